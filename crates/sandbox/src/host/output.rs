//! Printed and emitted output of a worker. The worker bounds it too; the host does not rely on that.

use serde_json::value::RawValue;

use crate::ended::Captured;
use crate::job::Limits;
use crate::wire::OutputEnd;

/// Collects the printed output of one worker, within its limits.
#[derive(Debug)]
pub(super) struct Printed {
    captured: Captured,
    head_bytes: usize,
    tail_bytes: usize,
    /// Bytes that are missing within messages.
    missing_bytes: u64,
    /// The text that follows the head, if it is kept. The tail may have a part of it too.
    more: Option<String>,
    /// Bytes of that text that may still come.
    more_bytes: usize,
}

impl Printed {
    pub(super) fn new(limits: &Limits) -> Self {
        let bytes = usize::try_from(limits.output_bytes).unwrap_or(usize::MAX);
        let is_kept = limits.keeps_whole && limits.whole_bytes > 0;
        Self {
            captured: Captured::default(),
            head_bytes: bytes / 2,
            tail_bytes: bytes - bytes / 2,
            missing_bytes: 0,
            more: is_kept.then(String::new),
            more_bytes: usize::try_from(limits.whole_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Adds to the head. Returns the part of the text that is within its size.
    pub(super) fn head<'t>(&mut self, text: &'t str) -> &'t str {
        let room = self.head_bytes.saturating_sub(self.captured.head.len());
        let (kept, cut) = text.split_at(text.floor_char_boundary(room));
        self.captured.head.push_str(kept);
        self.cut(cut);
        kept
    }

    /// Adds to the text that follows the head. Returns the part that is within its size.
    pub(super) fn more<'t>(&mut self, text: &'t str) -> &'t str {
        let (within, _) = text.split_at(text.floor_char_boundary(self.more_bytes));
        self.more_bytes -= within.len();
        if let Some(more) = &mut self.more {
            more.push_str(within);
        }
        within
    }

    /// Sets the tail.
    pub(super) fn end(&mut self, end: &OutputEnd) {
        let tail = end.tail.as_str();
        let from = tail.len().saturating_sub(self.tail_bytes);
        let (cut, kept) = tail.split_at(tail.ceil_char_boundary(from));
        self.captured.tail = kept.to_owned();
        self.captured.tail_is_error = end.is_error;
        self.captured.cut_bytes = self.captured.cut_bytes.saturating_add(end.cut_bytes);
        self.captured.cut_lines = self.captured.cut_lines.saturating_add(end.cut_lines);
        self.missing_bytes = end.missing_bytes;
        self.cut(cut);
    }

    pub(super) fn into_captured(mut self) -> Captured {
        if let Some(more) = self.more.filter(|_| self.captured.cut_bytes > 0) {
            self.captured.whole = Some(whole(&self.captured, &more));
        }
        let cut_bytes = self.captured.cut_bytes.saturating_add(self.missing_bytes);
        self.captured.cut_bytes = cut_bytes;
        self.captured
    }

    fn cut(&mut self, text: &str) {
        let lines = text.matches('\n').count();
        self.captured.cut_bytes = self.captured.cut_bytes.saturating_add(text.len() as u64);
        self.captured.cut_lines = self.captured.cut_lines.saturating_add(lines as u64);
    }
}

/// The whole output, as far as it was kept: the head, the text that follows it, and the part of the
/// tail behind that.
fn whole(captured: &Captured, more: &str) -> String {
    let tail = captured.tail.as_str();
    let mut whole = format!("{}{more}", captured.head);
    // The worker reports the number of cut bytes, and the number may be false.
    let after_head = captured.cut_bytes.saturating_add(tail.len() as u64);
    let missing = after_head.saturating_sub(more.len() as u64);
    match usize::try_from(missing) {
        Ok(missing) if missing <= tail.len() => {
            let from = tail.ceil_char_boundary(tail.len() - missing);
            whole.push_str(tail.get(from..).unwrap_or_default());
        }
        _ => {
            let gone = missing.saturating_sub(tail.len() as u64);
            let gap = if whole.ends_with('\n') { "" } else { "\n" };
            whole.push_str(&format!(
                "{gap}[{gone} bytes are not kept; the end follows]\n{tail}"
            ));
        }
    }
    whole
}

/// The blocks that a script emits.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    pub(super) blocks: Vec<Box<RawValue>>,
    bytes: u64,
}

impl Emitted {
    /// Takes a block. An error is a breach of the protocol: an honest worker throws in the script
    /// instead.
    pub(super) fn take(&mut self, block: String, limits: &Limits) -> Result<(), &'static str> {
        self.bytes = self.bytes.saturating_add(block.len() as u64);
        if self.blocks.len() as u64 >= limits.emits || self.bytes > limits.emit_bytes {
            return Err("it emits more than the limit");
        }
        let block = RawValue::from_string(block);
        self.blocks
            .push(block.map_err(|_no_json| "a block that it emits is not JSON")?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_output_of_worker_is_not_passed_on() {
        let mut limits = Limits::default();
        limits.pass_output_on(20 << 10);
        let mut printed = Printed::new(&limits);
        let text = "x".repeat(9 << 10);
        let passed = [printed.head(&text).len(), printed.head(&text).len()];
        assert_eq!(passed, [8 << 10, 0]);
        let passed = [printed.more(&text).len(), printed.more(&text).len()];
        assert_eq!(passed, [4 << 10, 0]);
        // It is not kept besides.
        assert_eq!(printed.into_captured().whole, None);
    }

    #[test]
    fn worker_emitting_too_much_breaks_the_protocol() {
        let limits = Limits {
            emits: 3,
            emit_bytes: 10,
            ..Limits::default()
        };
        let take = |emitted: &mut Emitted, block: &str| emitted.take(block.into(), &limits);
        let mut emitted = Emitted::default();
        for _ in 0..3 {
            assert_eq!(take(&mut emitted, "{}"), Ok(()));
        }
        assert_eq!(
            take(&mut emitted, "{}"),
            Err("it emits more than the limit")
        );
        let mut emitted = Emitted::default();
        assert_eq!(
            take(&mut emitted, "\"123456789\""),
            Err("it emits more than the limit")
        );
        let mut emitted = Emitted::default();
        assert_eq!(
            take(&mut emitted, "{"),
            Err("a block that it emits is not JSON")
        );
    }
}
