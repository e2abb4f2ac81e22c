//! Counts the tokens that a model reads and writes.

use std::sync::LazyLock;

use tiktoken_rs::CoreBPE;

static VOCABULARY: LazyLock<Option<CoreBPE>> = LazyLock::new(|| tiktoken_rs::o200k_base().ok());

/// Tokens of a text, `o200k_base`; 0 if the vocabulary cannot be loaded.
pub fn tokens(text: &str) -> usize {
    let vocabulary = VOCABULARY.as_ref();
    vocabulary.map_or(0, |vocabulary| vocabulary.encode_ordinary(text).len())
}

/// The cost of one task so far.
pub struct Cost {
    /// Tokens in the context.
    pub new: usize,
    /// Tokens that were read and written, turn by turn.
    pub billed: usize,
    /// The number of turns.
    pub turns: usize,
}

impl Cost {
    /// A context with the array of tools and the user's prompt.
    pub fn new(start: usize, prompt: &str) -> Self {
        Self {
            new: start + tokens(prompt),
            billed: 0,
            turns: 0,
        }
    }

    /// Begins a turn: the model reads the whole context.
    pub fn turn(&mut self) {
        self.billed += self.new;
        self.turns += 1;
    }

    /// The model writes this text.
    pub fn written(&mut self, text: &str) {
        self.given(text);
        self.billed += tokens(text);
    }

    /// The model is given this text.
    pub fn given(&mut self, text: &str) {
        self.new += tokens(text);
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}
