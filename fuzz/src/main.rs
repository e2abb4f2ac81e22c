//! The program of libFuzzer, for the target that `CALLGATE_FUZZ_TARGET` names.
#![no_main]

use std::io::Write as _;
use std::sync::LazyLock;

static TARGET: LazyLock<callgate_fuzz::Target> = LazyLock::new(|| {
    // libFuzzer's own hook also aborts on panics that the code catches. Uncaught panics end the
    // process in any case.
    std::panic::set_hook(Box::new(|panic| {
        let _ = writeln!(std::io::stderr(), "{panic}");
    }));
    let name = std::env::var("CALLGATE_FUZZ_TARGET").unwrap_or_default();
    callgate_fuzz::target(&name).unwrap_or_else(|| panic!("there is no target {name:?}"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
