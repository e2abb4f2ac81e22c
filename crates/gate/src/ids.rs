//! Ids of runs and questions.

use uuid::Uuid;

/// A new id for a run: `r-` and 64 random bits in hexadecimal.
pub fn run_id() -> String {
    new_id('r')
}

/// A new id for a question: `q-` and 64 random bits in hexadecimal.
pub(crate) fn question_id() -> String {
    new_id('q')
}

fn new_id(kind: char) -> String {
    // A UUID has fixed bits in each half, at different places.
    let (one, other) = Uuid::new_v4().as_u64_pair();
    format!("{kind}-{:016x}", one ^ other)
}
