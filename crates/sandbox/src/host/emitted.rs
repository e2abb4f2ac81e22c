//! What a worker says that its script emits, bounded once more.

use crate::wire::Text;
use serde_json::value::RawValue;

use crate::Limits;

/// The blocks of one run.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    pub(super) blocks: Vec<Box<RawValue>>,
    bytes: u64,
}

impl Emitted {
    /// Takes a block.
    ///
    /// # Errors
    ///
    /// What no worker does that is what it should be: that one has thrown in the script instead.
    pub(super) fn take(&mut self, block: &Text, limits: &Limits) -> Result<(), &'static str> {
        self.bytes = self.bytes.saturating_add(block.len() as u64);
        if self.blocks.len() as u64 >= limits.emits || self.bytes > limits.emit_bytes {
            return Err("it emits more than it may");
        }
        // In memory of its own: a frame keeps the whole buffer alive that it was received in.
        let block = RawValue::from_string(block.as_str().to_owned());
        self.blocks
            .push(block.map_err(|_no_json| "it emits what is no JSON")?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_emits_too_much_breaks_the_protocol() {
        let limits = Limits {
            emits: 3,
            emit_bytes: 10,
            ..Limits::default()
        };
        let take = |emitted: &mut Emitted, block: &str| emitted.take(&block.into(), &limits);
        let mut emitted = Emitted::default();
        for _ in 0..3 {
            assert_eq!(take(&mut emitted, "{}"), Ok(()));
        }
        assert_eq!(take(&mut emitted, "{}"), Err("it emits more than it may"));
        let mut emitted = Emitted::default();
        assert_eq!(
            take(&mut emitted, "\"123456789\""),
            Err("it emits more than it may")
        );
        let mut emitted = Emitted::default();
        assert_eq!(take(&mut emitted, "{"), Err("it emits what is no JSON"));
    }
}
