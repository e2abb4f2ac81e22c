//! The parser's thread: its stack is large enough for every text, and a panic ends only the thread.

/// The most bytes of a script in UTF-8: 256 KiB.
pub const MAX_SCRIPT_BYTES: usize = 256 * 1024;

/// Bytes of stack that the parser takes for one byte of text, at most: an
/// opening parenthesis takes about 2600 bytes without optimisation.
const STACK_PER_BYTE: usize = 4 * 1024;

/// Stack for everything that does not grow with the text.
const STACK: usize = 64 * 1024 * 1024;

/// Address space that the parser has for its stack with a text of so many bytes.
pub fn stack_bytes(text: usize) -> usize {
    STACK + STACK_PER_BYTE * text.min(MAX_SCRIPT_BYTES)
}

/// Why the parser gave no answer. The text of `Panicked` follows the name of the text, such as
/// "the script".
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("the parser cannot be started: {0}")]
    NotStarted(std::io::Error),
    #[error("makes the parser fail; write it in simpler pieces")]
    Panicked,
}

/// Runs `work` on a text, on a thread of this name.
pub(crate) fn run<T: Send>(
    name: &str,
    text: &str,
    work: impl FnOnce(&str) -> T + Send,
) -> Result<T, Lost> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(stack_bytes(text.len()))
            .spawn_scoped(scope, || work(text))
            .map_err(Lost::NotStarted)?
            .join()
            .map_err(|_panic| Lost::Panicked)
    })
}
