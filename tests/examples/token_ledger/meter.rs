//! Counts what goes into a model's context and comes out of it.

use std::sync::LazyLock;

use tiktoken_rs::CoreBPE;

use crate::Cost;

static VOCABULARY: LazyLock<Option<CoreBPE>> = LazyLock::new(|| tiktoken_rs::o200k_base().ok());

/// Tokens of a text, `o200k_base`; 0 if the vocabulary cannot be loaded.
pub fn tokens(text: &str) -> usize {
    let vocabulary = VOCABULARY.as_ref();
    vocabulary.map_or(0, |vocabulary| vocabulary.encode_ordinary(text).len())
}

/// The context of one task.
pub struct Meter {
    context: usize,
    billed: usize,
    turns: usize,
}

impl Meter {
    /// A context that has the array of tools and what the user wants.
    pub fn new(start: usize, prompt: &str) -> Self {
        Self {
            context: start + tokens(prompt),
            billed: 0,
            turns: 0,
        }
    }

    /// The model is asked for its next step, and reads all there is.
    pub fn turn(&mut self) {
        self.billed += self.context;
        self.turns += 1;
    }

    /// The model writes this.
    pub fn written(&mut self, text: &str) {
        let count = tokens(text);
        self.context += count;
        self.billed += count;
    }

    /// The model is given this.
    pub fn given(&mut self, text: &str) {
        self.context += tokens(text);
    }

    /// All of it, with the turn in which the model reads the last results.
    pub fn cost(mut self) -> Cost {
        self.turn();
        Cost {
            new: self.context,
            billed: self.billed,
            turns: self.turns,
        }
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
