//! The seccomp filters, made from the table in `calls`.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::calls::{self, Call, Test, Verdict};

/// The filters kill a process that makes calls of a different architecture.
const ARCHITECTURE: TargetArch = if cfg!(target_arch = "aarch64") {
    TargetArch::aarch64
} else {
    TargetArch::x86_64
};

/// Error numbers that a refused call can return; each needs its own filter.
const ERRORS: [i32; 3] = [libc::EACCES, libc::EPERM, libc::ENOSYS];

/// Applies the filters for the start of V8 and the isolate.
pub(super) fn apply_start_up() -> Result<(), seccompiler::Error> {
    apply(|call| call.start_up)
}

/// Applies the filters for the run of a script. Those for the start-up still hold, so they skip calls
/// with the same verdict in both.
pub(super) fn apply_run_time() -> Result<(), seccompiler::Error> {
    apply(|call| {
        if call.run_time == call.start_up {
            Verdict::Allow
        } else {
            call.run_time
        }
    })
}

/// The strictest verdict of all filters counts. So each error number has a filter that returns it for
/// its calls and allows the others, and the last filter traps calls that are not in the table.
fn apply(verdict: impl Fn(&Call) -> Verdict) -> Result<(), seccompiler::Error> {
    for error in ERRORS {
        let mut refused = Rules::new();
        for call in calls::table() {
            match verdict(call) {
                Verdict::Error(number) if number == error => {
                    refused.insert(call.number, Vec::new());
                }
                Verdict::Unless(tests, number) if number == error => {
                    let rules: Result<Vec<_>, _> = tests.iter().map(rules).collect();
                    refused.insert(call.number, rules?.concat());
                }
                _ => {}
            }
        }
        if !refused.is_empty() {
            let action = SeccompAction::Errno(error.unsigned_abs());
            apply_program(refused, action, SeccompAction::Allow)?;
        }
    }
    let known = calls::table().filter(|call| !matches!(verdict(call), Verdict::Kill));
    let known = known.map(|call| (call.number, Vec::new())).collect();
    apply_program(known, SeccompAction::Allow, SeccompAction::Trap)
}

/// A call matches if one of its rules does, or if it has no rules.
type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// The rules of a test, which holds if one of them matches.
fn rules(test: &Test) -> Result<Vec<SeccompRule>, BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    let conditions = match *test {
        Test::OtherBits(argument, bits) => {
            // One rule for all bits above the highest of them, and one for each gap below it.
            let highest = u64::MAX >> bits.leading_zeros();
            let above = SeccompCondition::new(argument, Qword, SeccompCmpOp::Gt, highest);
            let gaps = (0..u64::BITS).map(|bit| 1 << bit);
            let gaps = gaps.filter(|bit| bit & highest != 0 && bit & bits == 0);
            let gap =
                |bit| SeccompCondition::new(argument, Qword, SeccompCmpOp::MaskedEq(bit), bit);
            let conditions = std::iter::once(above).chain(gaps.map(gap));
            return conditions
                .map(|condition| SeccompRule::new(vec![condition?]))
                .collect();
        }
        Test::Is(argument, value) => {
            let (operator, value) = (SeccompCmpOp::Eq, u64::from(value));
            vec![SeccompCondition::new(argument, Dword, operator, value)?]
        }
        Test::IsNone(argument, values) => {
            let other =
                |value: &u64| SeccompCondition::new(argument, Qword, SeccompCmpOp::Ne, *value);
            values.iter().map(other).collect::<Result<_, _>>()?
        }
        Test::IsOther(argument) => {
            let (operator, own) = (SeccompCmpOp::Ne, u64::from(std::process::id()));
            vec![SeccompCondition::new(argument, Qword, operator, own)?]
        }
    };
    Ok(vec![SeccompRule::new(conditions)?])
}

fn apply_program(
    rules: Rules,
    matched: SeccompAction,
    otherwise: SeccompAction,
) -> Result<(), seccompiler::Error> {
    let filter = SeccompFilter::new(rules, otherwise, matched, ARCHITECTURE)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter_all_threads(&program)
}
