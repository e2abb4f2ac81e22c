//! Scripts that TypeScript cannot check within its limits.

use std::time::Duration;

use callgate_check::{CheckError, Failure, Script};

use crate::support::{checker, script, shown};

/// A script that keeps TypeScript busy for longer than any test may take.
fn slow() -> Script {
    let types: String = (0..40)
        .map(|n| {
            let (next, other) = ((n + 1) % 40, (n + 7) % 40);
            format!("interface A{n}<T> {{ x: A{next}<T[]>; y: A{other}<[T, T]> }}\n")
        })
        .collect();
    let uses = "declare let a: A0<number>, b: A0<string>, c: A1<number>;\n[a, b, c];";
    script(&format!("{types}{uses}"), "")
}

fn within(time: Duration, script: Script) -> Script {
    Script { time, ..script }
}

/// On one thread, so that tasks begin in the order in which they were spawned.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

#[test]
fn slow_scripts_delay_others_only_at_full_capacity() {
    runtime().block_on(async {
        let checker = checker();
        let spawn = || {
            let checker = checker.clone();
            tokio::spawn(async move { checker.check(slow()).await })
        };
        let mut slow: Vec<_> = (0..3).map(|_| spawn()).collect();
        tokio::task::yield_now().await;
        let checked = checker.check(script("const a: number = 'x';", "")).await;
        let expected = "1:7 type `string` is not assignable to type `number`\n";
        assert_eq!(shown(&checked.expect("an answer")), expected);
        slow.push(spawn());
        tokio::task::yield_now().await;
        let time = Duration::from_millis(200);
        let found = checker.check(within(time, script("1", ""))).await;
        assert_eq!(found, Err(CheckError::GaveUp(Failure::Busy(time))));
        assert!(slow.iter().all(|task| !task.is_finished()));
        for task in slow {
            task.abort();
        }
    });
}

#[test]
fn check_over_memory_limit_ends() {
    // The parser tries two readings of each.
    let text = "async<a>(".repeat(40) + "1" + &")".repeat(40);
    let found = runtime().block_on(checker().check(script(&text, "")));
    assert_eq!(found, Err(CheckError::GaveUp(Failure::Died)));
}

/// The decision about one error may read the whole script.
#[test]
fn harmless_errors_beyond_a_limit_stop_the_script() {
    let begin = "declare function f(x: 'a' | 'b'): void;\nconst s = 'a' as string;\n";
    let errors = |count: usize| {
        let text = format!("{begin}{}", "f(s);\n".repeat(count));
        let checked = runtime().block_on(checker().check(script(&text, "")));
        shown(&checked.expect("an answer")).lines().count()
    };
    assert_eq!((errors(200), errors(201)), (0, 1));
}
