//! What a worker says that its script printed, bounded once more.

use crate::wire::OutputEnd;

use crate::Captured;

/// Takes the output frames of one worker. Whatever they hold, no more than the limit is kept.
#[derive(Debug)]
pub(super) struct Collector {
    captured: Captured,
    head_bytes: usize,
    tail_bytes: usize,
    /// What is missing within messages.
    missing_bytes: u64,
    /// What follows the head, whether it is in the tail or not.
    more: String,
    more_bytes: usize,
}

impl Collector {
    pub(super) fn new(output_bytes: u64, more_bytes: u64) -> Self {
        let bytes = usize::try_from(output_bytes).unwrap_or(usize::MAX);
        Self {
            captured: Captured::default(),
            head_bytes: bytes / 2,
            tail_bytes: bytes - bytes / 2,
            missing_bytes: 0,
            more: String::new(),
            more_bytes: usize::try_from(more_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Adds to the head.
    pub(super) fn head(&mut self, text: &str) {
        let room = self.head_bytes.saturating_sub(self.captured.head.len());
        let (kept, cut) = text.split_at(text.floor_char_boundary(room));
        self.captured.head.push_str(kept);
        self.cut(cut);
    }

    /// Adds to what follows the head.
    pub(super) fn more(&mut self, text: &str) {
        let room = self.more_bytes.saturating_sub(self.more.len());
        let kept = text.floor_char_boundary(room);
        self.more.push_str(text.get(..kept).unwrap_or_default());
    }

    /// Sets the tail.
    pub(super) fn end(&mut self, end: &OutputEnd) {
        let tail = end.tail.as_str();
        let from = tail.len().saturating_sub(self.tail_bytes);
        let (cut, kept) = tail.split_at(tail.ceil_char_boundary(from));
        self.captured.tail = kept.to_owned();
        self.captured.cut_bytes = self.captured.cut_bytes.saturating_add(end.cut_bytes);
        self.captured.cut_lines = self.captured.cut_lines.saturating_add(end.cut_lines);
        self.missing_bytes = end.missing_bytes;
        self.cut(cut);
    }

    pub(super) fn into_captured(mut self) -> Captured {
        if self.more_bytes > 0 && self.captured.cut_bytes > 0 {
            self.captured.whole = Some(whole(&self.captured, &self.more));
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

/// All that was printed, as far as it is there: the head, what follows it, and what of the tail is
/// not in that.
fn whole(captured: &Captured, more: &str) -> String {
    let tail = captured.tail.as_str();
    let mut whole = format!("{}{more}", captured.head);
    // The count of what was cut is the worker's word.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_sends_too_much_is_cut() {
        let mut collector = Collector::new(8, 0);
        collector.head("ab\n");
        collector.head("cde\n");
        collector.end(&OutputEnd {
            cut_bytes: u64::MAX,
            cut_lines: 1,
            missing_bytes: 1,
            tail: "12345ü\n".into(),
        });
        assert_eq!(
            collector.into_captured(),
            Captured {
                head: "ab\nc".to_owned(),
                tail: "5ü\n".to_owned(),
                cut_bytes: u64::MAX,
                cut_lines: 2,
                whole: None,
            }
        );
    }

    /// Collects an output of ten digits, of which head and tail have two each, where so much more is
    /// kept.
    fn check_whole(more_bytes: usize, expected: &str) {
        let output = "0123456789";
        let mut collector = Collector::new(4, more_bytes as u64);
        collector.head("01");
        let more = &output[2..(2 + more_bytes).min(output.len())];
        for digit in more.chars() {
            collector.more(&digit.to_string());
        }
        // An honest worker says no more.
        collector.more("too much");
        collector.end(&OutputEnd {
            cut_bytes: 6,
            cut_lines: 0,
            missing_bytes: 5,
            tail: "89".into(),
        });
        let whole = collector.into_captured().whole;
        assert_eq!(whole.as_deref(), Some(expected), "{more_bytes}");
    }

    #[test]
    fn the_whole_is_put_together() {
        check_whole(8, "0123456789");
        check_whole(7, "0123456789");
        check_whole(6, "0123456789");
        check_whole(5, "0123456\n[1 bytes are not kept; the end follows]\n89");
        check_whole(1, "012\n[5 bytes are not kept; the end follows]\n89");
    }
}
