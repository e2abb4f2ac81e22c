//! The output and the returned value of a run, as much of them as is kept.

use std::sync::Arc;

use callgate_sandbox::Captured;
use callgate_schema::{read, without_lone_surrogates};
use callgate_servers::Audience;

use super::{ErrorKind, LimitHit, Output, Returned, RunError, RunReport};

/// A model gets less of a text that is this many times as large as its limit.
const FAR_OVER: u64 = 10;
/// Bytes of the start and of the end of such a text.
const SHORT_PART: usize = 2 << 10;

/// The output, with its middle cut out if it was over the limit.
pub(super) fn output(captured: Captured, audience: Audience) -> Output {
    let Captured {
        mut head,
        mut tail,
        tail_is_error,
        cut_bytes,
        ..
    } = captured;
    // The worker's count may be any number.
    let bytes = cut_bytes.saturating_add((head.len() + tail.len()) as u64);
    shorten(&mut head, &mut tail, bytes, audience);
    let cut_bytes = bytes.saturating_sub((head.len() + tail.len()) as u64);
    Output {
        text: if cut_bytes == 0 {
            head + &tail
        } else {
            cut_text(&head, &tail, bytes, "printed")
        },
        bytes,
        cut_bytes,
        tail_bytes: tail.len(),
        tail_is_error,
    }
}

impl Output {
    /// The output after the first `begun` bytes, which an observer got as
    /// [`Event::Printed`](crate::Event::Printed): the number of bytes that are cut, and the end.
    pub fn after(&self, begun: u64) -> (u64, &str) {
        let rest = self.bytes.saturating_sub(begun);
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX);
        let from = self.text.len() - wanted.min(self.tail_bytes);
        let end = self.text.get(self.text.ceil_char_boundary(from)..);
        (
            rest.saturating_sub(self.tail_bytes as u64),
            end.unwrap_or_default(),
        )
    }

    /// True if all of the end that [`Output::after`] gives was printed to standard error, as far as
    /// that is known.
    pub fn end_is_error(&self) -> bool {
        self.tail_is_error
    }

    /// Replaces the kept start of the output by the start that an observer got.
    pub fn begin_with(&mut self, begun: String) {
        let (cut, end) = self.after(begun.len() as u64);
        let bytes = self.bytes.max(begun.len() as u64);
        self.text = if cut == 0 {
            begun + end
        } else {
            cut_text(&begun, end, bytes, "printed")
        };
        (self.bytes, self.cut_bytes) = (bytes, cut);
    }
}

impl RunReport {
    /// Turns a returned value that is cut into an error, for readers that need the whole value.
    pub fn require_value(&mut self) {
        let Some(value) = self.value.as_ref().filter(|value| value.cut_bytes > 0) else {
            return;
        };
        let (observed, limit) = (value.bytes, value.bytes - value.cut_bytes);
        let message =
            format!("the returned value is {observed} bytes, and {limit} bytes of it are kept");
        self.fail(RunError {
            limit: Some(LimitHit {
                which: "output".to_owned(),
                limit,
                observed,
                unit: "bytes".to_owned(),
            }),
            hint: Some("return less, or raise the limit with --output".to_owned()),
            ..RunError::new(ErrorKind::Limit, message)
        });
    }
}

/// Shortens the start and the end of a text for a model if the whole, of this many bytes, is far
/// over the limit: then more of it does not help.
fn shorten(head: &mut String, tail: &mut String, bytes: u64, audience: Audience) {
    let kept = (head.len() + tail.len()) as u64;
    if audience == Audience::Operator || bytes <= kept.saturating_mul(FAR_OVER) {
        return;
    }
    head.truncate(head.floor_char_boundary(SHORT_PART));
    let from = tail.len().saturating_sub(SHORT_PART);
    *tail = tail.split_off(tail.ceil_char_boundary(from));
}

/// Start and end of a text, after a line with the number of missing bytes.
fn cut_text(head: &str, tail: &str, bytes: u64, what: &str) -> String {
    let cut = bytes.saturating_sub((head.len() + tail.len()) as u64);
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    format!(
        "[{cut} of {bytes} bytes {what} are cut: the beginning and the end follow]\n\
         {head}{gap}[…]\n{tail}"
    )
}

/// The returned value, and its whole text if it was cut.
pub(super) fn returned(
    value: callgate_sandbox::Returned,
    audience: Audience,
) -> (Option<Returned>, Option<String>) {
    use callgate_sandbox::Returned as Worker;
    let (json, text, bytes, cut_bytes, whole) = match value {
        Worker::Undefined => return (None, None),
        Worker::Json(json) => {
            let json = without_lone_surrogates(json);
            let (text, bytes) = (plain(json.get()), json.get().len() as u64);
            (Some(json), text, bytes, 0, None)
        }
        Worker::Shown(text) => {
            let bytes = text.len() as u64;
            (None, text, bytes, 0, None)
        }
        Worker::Cut {
            mut head,
            mut tail,
            total_bytes,
            whole,
        } => {
            shorten(&mut head, &mut tail, total_bytes, audience);
            let kept = (head.len() + tail.len()) as u64;
            if head.starts_with('"') {
                (head, tail) = (string_part(&head, ""), string_part("", &tail));
            }
            let text = cut_text(&head, &tail, total_bytes, "returned");
            let whole = whole.map(|whole| plain(&whole));
            (
                None,
                text,
                total_bytes,
                total_bytes.saturating_sub(kept),
                whole,
            )
        }
    };
    let returned = Returned {
        json,
        text,
        bytes,
        cut_bytes,
    };
    (Some(returned), whole)
}

/// A JSON string as its text, any other value as JSON.
fn plain(json: &str) -> String {
    read(json).unwrap_or_else(|_| json.to_owned())
}

/// The text of the start or the end of a JSON string. An escape that was cut is omitted.
fn string_part(head: &str, tail: &str) -> String {
    const LONGEST_ESCAPE: usize = 12;
    let part = |left_out: usize| {
        let head = head.get(..head.len().saturating_sub(left_out))?;
        let tail = tail.get(left_out.min(tail.len())..)?;
        let quote = |part: &str| if part.is_empty() { "\"" } else { "" };
        read(&format!("{}{head}{tail}{}", quote(head), quote(tail))).ok()
    };
    let parts = (0..LONGEST_ESCAPE).find_map(part);
    parts.unwrap_or_else(|| format!("{head}{tail}"))
}

/// The whole output and value, if one of them was cut and was kept in whole.
pub(super) fn whole(
    report: &RunReport,
    printed: Option<String>,
    value: Option<String>,
) -> Option<Arc<str>> {
    if printed.is_none() && value.is_none() {
        return None;
    }
    let mut whole = printed.unwrap_or_else(|| report.output.text.clone());
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    let cut = report.value.as_ref().map(|value| value.text.clone());
    whole.push_str(&value.or(cut).unwrap_or_default());
    Some(whole.into())
}

#[cfg(test)]
mod tests {
    use super::string_part;

    #[test]
    fn parts_of_a_string_are_shown_as_text() {
        for (head, tail, expected) in [
            (r#""a\n\"b"#, "", "a\n\"b"),
            (r#""a\"#, "", "a"),
            (r#""a\u00"#, "", "a"),
            ("", r#"b\tc""#, "b\tc"),
            ("", r#""""#, ""),
            (r#""\ud83d\ude00\ud83d"#, "", "😀\u{fffd}"),
        ] {
            assert_eq!(string_part(head, tail), expected, "{head}{tail}");
        }
    }
}
