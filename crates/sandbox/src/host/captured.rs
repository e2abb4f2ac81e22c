//! What a worker says that its script printed, bounded once more.

use callgate_wire::OutputEnd;

use crate::Captured;

/// Takes the output frames of one worker. Whatever they hold, no more than the limit is kept.
#[derive(Debug)]
pub(super) struct Collector {
    captured: Captured,
    head_bytes: usize,
    tail_bytes: usize,
}

impl Collector {
    pub(super) fn new(output_bytes: u64) -> Self {
        let bytes = usize::try_from(output_bytes).unwrap_or(usize::MAX);
        Self {
            captured: Captured::default(),
            head_bytes: bytes / 2,
            tail_bytes: bytes - bytes / 2,
        }
    }

    /// Adds to the head.
    pub(super) fn head(&mut self, text: &str) {
        let room = self.head_bytes.saturating_sub(self.captured.head.len());
        let (kept, cut) = text.split_at(text.floor_char_boundary(room));
        self.captured.head.push_str(kept);
        self.cut(cut);
    }

    /// Sets the tail.
    pub(super) fn end(&mut self, end: &OutputEnd) {
        let tail = end.tail.as_str();
        let from = tail.len().saturating_sub(self.tail_bytes);
        let (cut, kept) = tail.split_at(tail.ceil_char_boundary(from));
        self.captured.tail = kept.to_owned();
        self.captured.cut_bytes = self.captured.cut_bytes.saturating_add(end.cut_bytes);
        self.captured.cut_lines = self.captured.cut_lines.saturating_add(end.cut_lines);
        self.cut(cut);
    }

    pub(super) fn into_captured(self) -> Captured {
        self.captured
    }

    fn cut(&mut self, text: &str) {
        let lines = text.matches('\n').count();
        self.captured.cut_bytes = self.captured.cut_bytes.saturating_add(text.len() as u64);
        self.captured.cut_lines = self.captured.cut_lines.saturating_add(lines as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_sends_too_much_is_cut() {
        let mut collector = Collector::new(8);
        collector.head("ab\n");
        collector.head("cde\n");
        collector.end(&OutputEnd {
            cut_bytes: u64::MAX,
            cut_lines: 1,
            tail: "12345ü\n".into(),
        });
        assert_eq!(
            collector.into_captured(),
            Captured {
                head: "ab\nc".to_owned(),
                tail: "5ü\n".to_owned(),
                cut_bytes: u64::MAX,
                cut_lines: 2,
            }
        );
    }
}
