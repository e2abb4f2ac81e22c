//! What somebody who is asked about a call gets to read.

use std::fmt::Write as _;
use std::time::Duration;

use callgate_broker::{Changed, Done, Question};
use callgate_policy::flow::{Encoding, Finding, MAX_PIECE, Seen};
use similar::{ChangeTag, TextDiff};

use crate::harmless::{harmless, one_line};

/// Characters that a short question shows from the beginning of the arguments.
const SHOWN_HEAD: usize = 300;

/// Characters that it shows from their end.
const SHOWN_TAIL: usize = 150;

/// Characters of a title, a description or a script's line.
const SHOWN_LINE: usize = 200;

/// Tools that it names of those that were called before.
const SHOWN_DONE: usize = 10;

/// Lines of a changed definition that it shows.
const SHOWN_CHANGES: usize = 30;

/// Time for comparing two definitions. What is not compared by then is shown
/// as changed.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// The beginning and the end of what is long.
    #[default]
    Short,
    /// All of it.
    Whole,
}

/// A question as text for a person: what is to be called and why it is asked,
/// the tool in its server's words, the script's line, the arguments, what the
/// run has done so far, and what changed.
///
/// Nothing that a script or a server wrote can leave its line or steer a
/// terminal. Every line ends with a line feed; the first one names the call.
pub fn question_text(question: &Question, shown: Shown) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _written = write(&mut text, question, shown);
    // Once more over all of it: names, too, can have characters that hide.
    harmless(&text)
}

fn write(text: &mut String, question: &Question, shown: Shown) -> std::fmt::Result {
    let Question {
        function,
        server,
        tool,
        decision,
        ..
    } = question;
    writeln!(
        text,
        "The script wants to call {function} (tool {tool:?} of server {server:?}), which {}",
        one_line(&decision.to_string(), usize::MAX),
    )?;
    if let Some(title) = &question.title {
        writeln!(text, "  title: {}", one_line(title, SHOWN_LINE))?;
    }
    if let Some(first) = question.description.as_deref().and_then(first_line) {
        writeln!(text, "  its server says: {}", one_line(first, SHOWN_LINE))?;
    }
    if let Some(line) = &question.line {
        let said = line.text.as_deref().unwrap_or_default();
        writeln!(
            text,
            "  line {}: {}",
            line.number,
            one_line(said, SHOWN_LINE)
        )?;
    }
    let arguments = harmless(&question.arguments).replace('\n', "\\n");
    match shown {
        Shown::Short => writeln!(text, "  arguments: {}", shortened(&arguments))?,
        Shown::Whole => writeln!(text, "  arguments: {arguments}")?,
    }
    for flow in &question.flows {
        write_flow(text, flow)?;
    }
    if !question.done.is_empty() {
        writeln!(text, "  so far in this run: {}", done(&question.done))?;
    }
    if let Some(changed) = &question.changed {
        write_change(text, changed, shown)?;
    }
    Ok(())
}

/// Whose data the arguments carry, with the longest piece of it.
fn write_flow(text: &mut String, flow: &Finding) -> std::fmt::Result {
    let said = one_line(&flow.to_string(), usize::MAX);
    let Seen::Copied(copied) = &flow.seen else {
        return writeln!(text, "  data: {said}");
    };
    let encoding = match copied.encoding {
        Encoding::Base64 => " in base64",
        _ => "",
    };
    let piece = one_line(&copied.piece, MAX_PIECE);
    writeln!(text, "  data: {said}{encoding}: {piece}")
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Head and tail: what matters must not be pushed out of sight by padding.
fn shortened(arguments: &str) -> String {
    let (Some((head, _)), Some((tail, _))) = (
        arguments.char_indices().nth(SHOWN_HEAD),
        arguments.char_indices().rev().nth(SHOWN_TAIL),
    ) else {
        return arguments.to_owned();
    };
    if head >= tail {
        return arguments.to_owned();
    }
    format!(
        "{} … {} (the middle is cut: {} bytes in all)",
        arguments.get(..head).unwrap_or_default(),
        arguments.get(tail..).unwrap_or_default(),
        arguments.len()
    )
}

fn done(done: &[Done]) -> String {
    let shown = done.iter().take(SHOWN_DONE).map(|done| {
        let mut counts = Vec::new();
        for (count, what) in [
            (done.sent, "called"),
            (done.failed, "failed"),
            (done.denied, "denied"),
        ] {
            if count > 0 {
                counts.push(format!("{count} {what}"));
            }
        }
        format!("{} ({})", done.function, counts.join(", "))
    });
    let mut shown: Vec<String> = shown.collect();
    if done.len() > SHOWN_DONE {
        shown.push(format!("and {} more functions", done.len() - SHOWN_DONE));
    }
    shown.join(", ")
}

fn write_change(text: &mut String, changed: &Changed, shown: Shown) -> std::fmt::Result {
    let (Some(before), Some(now)) = (&changed.before, &changed.now) else {
        return writeln!(
            text,
            "  its definition has changed since it was allowed; what it was then is not known"
        );
    };
    writeln!(text, "  its definition has changed since it was allowed:")?;
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(before.text(), now.text());
    let most = match shown {
        Shown::Short => SHOWN_CHANGES,
        Shown::Whole => usize::MAX,
    };
    let mut lines = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => return None,
        };
        Some((sign, change.value()))
    });
    for (sign, line) in lines.by_ref().take(most) {
        let most = if most == usize::MAX { most } else { SHOWN_LINE };
        writeln!(text, "    {sign} {}", one_line(line, most))?;
    }
    match lines.count() {
        0 => Ok(()),
        more => writeln!(text, "    and {more} more lines"),
    }
}
