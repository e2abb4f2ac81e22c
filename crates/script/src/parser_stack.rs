//! The parser's stack, which is large enough for every text.
//!
//! It is not a thread's stack: the jail of a worker forbids new threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum bytes of a script in UTF-8: 256 KiB.
pub const MAX_SCRIPT_BYTES: usize = 256 * 1024;

/// Maximum bytes of stack that the parser takes for one byte of text: an opening parenthesis takes
/// about 2600 bytes without optimisation.
const STACK_PER_BYTE: usize = 4 * 1024;

/// Bytes of stack that do not depend on the text.
const STACK: usize = 64 * 1024 * 1024;

/// Address space for the parser's stack with a text of `text_bytes`.
pub fn stack_bytes(text_bytes: usize) -> usize {
    STACK + STACK_PER_BYTE * text_bytes.min(MAX_SCRIPT_BYTES)
}

/// The parser panicked. The message follows the name of the text, such as "the script".
#[derive(Debug, thiserror::Error)]
#[error("makes the parser fail; write it in simpler pieces")]
pub(crate) struct Panicked;

/// Runs `work` on a text, on a new stack.
pub(crate) fn run<T>(text: &str, work: impl FnOnce(&str) -> T) -> Result<T, Panicked> {
    let work = || stacker::grow(stack_bytes(text.len()), || work(text));
    catch_unwind(AssertUnwindSafe(work)).map_err(|_panic| Panicked)
}
