//! Counts what goes into a model's context and comes out of it.

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
    /// How often the model was asked for its next step.
    pub turns: usize,
}

impl Cost {
    /// A context that has the array of tools and what the user wants.
    pub fn new(start: usize, prompt: &str) -> Self {
        Self {
            new: start + tokens(prompt),
            billed: 0,
            turns: 0,
        }
    }

    /// The model is asked for its next step, and reads all there is.
    pub fn turn(&mut self) {
        self.billed += self.new;
        self.turns += 1;
    }

    /// The model writes this.
    pub fn written(&mut self, text: &str) {
        self.given(text);
        self.billed += tokens(text);
    }

    /// The model is given this.
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
