//! What a run has called so far, by function: counted as the lines of its ledger change, so
//! that a question costs the same however long the run is.

use std::collections::{BTreeMap, HashMap};

use crate::ask::Done;
use crate::ledger::LedgerLine;
use crate::outcome::Outcome;

/// The most functions that a question tells of.
const MAX_TOLD: usize = 100;

/// The counts of one ledger.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By the index of the function's first line that counts.
    by_line: BTreeMap<usize, Done>,
    /// That index, by function.
    first: HashMap<String, usize>,
}

/// What one line counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    sent: usize,
    failed: usize,
    denied: usize,
}

impl Counts {
    /// What is still waiting for an answer from its server counts as sent.
    pub(crate) fn of(line: &LedgerLine) -> Self {
        let (sent, failed, denied) = match &line.outcome {
            Outcome::Denied => (0, 0, 1),
            Outcome::Ok | Outcome::InFlight => (1, 0, 0),
            // It was refused, given up, or is being asked about.
            _ if line.took_ms.is_none() => (0, 0, 0),
            _ => (1, 1, 0),
        };
        Self {
            sent,
            failed,
            denied,
        }
    }
}

impl Tally {
    /// Counts the line at `index` anew, which counted for so much before.
    pub(crate) fn recount(&mut self, index: usize, line: &LedgerLine, before: Counts) {
        let now = Counts::of(line);
        if now == before {
            return;
        }
        let done = self.of(&line.function, index);
        done.sent = (done.sent + now.sent).saturating_sub(before.sent);
        done.failed = (done.failed + now.failed).saturating_sub(before.failed);
        done.denied = (done.denied + now.denied).saturating_sub(before.denied);
    }

    /// The counts of a function that the line at `index` counts for.
    fn of(&mut self, function: &str, index: usize) -> &mut Done {
        let first = self.first.get(function).copied();
        // A call may be sent before an earlier one, which somebody is asked about.
        let begins = first.map_or(index, |first| first.min(index));
        if first != Some(begins) {
            self.first.insert(function.to_owned(), begins);
            let known = first.and_then(|first| self.by_line.remove(&first));
            if let Some(known) = known {
                self.by_line.insert(begins, known);
            }
        }
        self.by_line.entry(begins).or_insert_with(|| Done {
            function: function.to_owned(),
            sent: 0,
            failed: 0,
            denied: 0,
        })
    }

    /// What was called, by function in the order of the first calls, and how many functions
    /// there are besides.
    pub(crate) fn done(&self) -> (Vec<Done>, usize) {
        let told = self.by_line.values().take(MAX_TOLD).cloned().collect();
        (told, self.by_line.len().saturating_sub(MAX_TOLD))
    }
}

#[cfg(test)]
mod tests {
    use callgate_policy::{Because, Decision, Verdict};

    use super::MAX_TOLD;
    use crate::ledger::{Entry, Ledger};
    use crate::outcome::Outcome;
    use crate::ruling::Ruling;

    fn ruling(verdict: Verdict) -> Ruling {
        Ruling::by_rules(Decision::new(verdict, Because::NoRule))
    }

    fn open(ledger: &Ledger, function: &str) -> Entry {
        let opened = ledger.open(function, "s", "t", None, 2);
        opened.expect("there is room")
    }

    fn sent(ledger: &Ledger, function: &str) -> Entry {
        let mut entry = open(ledger, function);
        let sending = entry.sending(&ruling(Verdict::Allow));
        sending.expect("there is no journal");
        entry
    }

    #[track_caller]
    fn check(ledger: &Ledger, expected: &str) {
        let (done, more) = ledger.done();
        let told = done.iter().map(|done| {
            let (sent, failed, denied) = (done.sent, done.failed, done.denied);
            format!("{} {sent}/{failed}/{denied}", done.function)
        });
        assert_eq!(told.collect::<Vec<_>>().join(", "), expected);
        assert_eq!(more, 0);
    }

    #[tokio::test]
    async fn each_end_of_a_call_counts_once() {
        let ledger = Ledger::new(None);
        let asked = open(&ledger, "a");
        check(&ledger, "");
        let waits = sent(&ledger, "b");
        check(&ledger, "b 1/0/0");
        waits.close(Outcome::Ok, Some("1"));
        check(&ledger, "b 1/0/0");
        let fails = sent(&ledger, "b");
        check(&ledger, "b 2/0/0");
        fails.close(Outcome::tool_error("no"), None);
        check(&ledger, "b 2/1/0");
        let given_up = sent(&ledger, "c");
        let later = sent(&ledger, "a");
        check(&ledger, "b 2/1/0, c 1/0/0, a 1/0/0");
        drop(given_up);
        check(&ledger, "b 2/1/0, c 1/1/0, a 1/0/0");
        // Its line is before all others.
        asked.denied(&ruling(Verdict::Deny));
        check(&ledger, "a 1/0/1, b 2/1/0, c 1/1/0");
        later.close(Outcome::TimedOut { limit_ms: 1 }, None);
        check(&ledger, "a 1/1/1, b 2/1/0, c 1/1/0");
        // None of these was sent, and none was denied.
        drop(open(&ledger, "d"));
        open(&ledger, "d").close(Outcome::protocol_error(-32602, "no object"), None);
        open(&ledger, "d").withheld(&ruling(Verdict::Ask), None);
        open(&ledger, "d").withheld(&ruling(Verdict::Ask), Some("1"));
        check(&ledger, "a 1/1/1, b 2/1/0, c 1/1/0");
    }

    #[test]
    fn functions_past_the_first_are_counted() {
        let ledger = Ledger::new(None);
        for _ in 0..2 {
            for number in 0..MAX_TOLD + 3 {
                open(&ledger, &format!("f{number}")).denied(&ruling(Verdict::Deny));
            }
        }
        let (done, more) = ledger.done();
        assert_eq!((done.len(), more), (MAX_TOLD, 3));
        assert!(done.iter().all(|done| done.denied == 2 && done.sent == 0));
        assert_eq!(done.last().map(|done| done.function.as_str()), Some("f99"));
    }
}
