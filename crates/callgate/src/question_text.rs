//! Questions about calls as text for a person.

mod change;

use callgate_gate::{About, Answer, Question, ScriptLine};
use callgate_policy::flow::{Encoding, Finding, MAX_PIECE, Seen};
use callgate_text::{harmless, label, one_line, quoted, undrawn, wrapped};

pub use change::change_text;

/// The start of the arguments in a short question, in characters.
const SHOWN_HEAD: usize = 300;

/// The end of the arguments in a short question, in characters.
const SHOWN_TAIL: usize = 150;

/// The limit of a title, a description or a script's line, in characters.
const SHOWN_LINE: usize = 200;

/// The limit of tools that were called before.
const SHOWN_DONE: usize = 10;

const SHOWN_FLOWS: usize = 10;

/// The extent of a shown question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// The start and the end of long texts; of a changed definition, up to 400 characters of the
    /// difference in each part.
    #[default]
    Short,
    /// As [`Shown::Short`], for a person who cannot ask for more: of a changed definition, up to
    /// 2,000 characters of the difference in each part. Clients may show the first lines alone,
    /// and break lines by themselves. So the call with its arguments, the reason and the script's
    /// line are a line each, and come first.
    Form,
    /// The whole question.
    Whole,
}

/// A question as text for a person, laid out for a number of columns, if it is known.
///
/// Rows that start with `┌` or `├` are ours. Text of scripts and servers is in rows that start with
/// `│` ([`quoted`]): it cannot leave them, and cannot control a terminal. The first three lines of a
/// form have no such start; text of scripts is at their ends, and cannot add lines. Rows that start
/// with two blanks continue a row of ours. Every row ends with a line feed; the first one names the
/// function, unless its name is too long: then the rows after it do.
pub fn question_text(question: &Question, shown: Shown, columns: Option<usize>) -> String {
    let columns = match shown {
        Shown::Form => Some(usize::MAX),
        Shown::Short | Shown::Whole => columns,
    };
    let mut rows = Rows {
        text: String::new(),
        columns,
    };
    write(&mut rows, question, shown);
    // Again for the whole text, because names can have invisible characters, too.
    harmless(&rows.text)
}

/// The call of a question in one line: the function, and the start and the end of its arguments.
pub fn call_text(question: &Question) -> String {
    let function = one_line(&question.function, SHOWN_LINE);
    let arguments = shortened(&one_line(&question.arguments, usize::MAX));
    harmless(&undrawn(&format!("{function} {arguments}")))
}

/// The effect of an answer to this question, such as `all calls of this tool in this run`.
pub fn answer_text(question: &Question, answer: Answer) -> String {
    let About { call, data, .. } = &question.about;
    let data = match data.as_slice() {
        [] => None,
        [function] => Some(format!("data of {function}")),
        functions => Some(format!("data of {} tools", functions.len())),
    };
    let text = match (answer, call, data) {
        (Answer::Run, false, Some(data)) => format!("{data} to {} in this run", question.function),
        (Answer::Once | Answer::Standing, ..) | (Answer::Run, false, None) => {
            "this call".to_owned()
        }
        (Answer::Run, true, None) => "all calls of this tool in this run".to_owned(),
        (Answer::Run, true, Some(data)) => {
            format!("all calls of this tool in this run, also with {data}")
        }
        (Answer::Session | Answer::Always, _, data) => {
            let place = question
                .keeps_in
                .as_ref()
                .filter(|_| answer == Answer::Always);
            let all = match place {
                Some(place) => format!("always, in {place}"),
                None => "all calls of this tool in this session".to_owned(),
            };
            match data {
                Some(data) => format!("{all}, but {data} in this run alone"),
                None => all,
            }
        }
        (Answer::DenyRun, ..) => "no, to this tool in this run".to_owned(),
        _ => "no".to_owned(),
    };
    one_line(&text, usize::MAX)
}

/// The rows so far.
struct Rows {
    text: String,
    columns: Option<usize>,
}

impl Rows {
    /// A row of ours.
    fn heading(&mut self, text: &str) {
        let begin = if self.text.is_empty() { '┌' } else { '├' };
        let columns = self.columns.unwrap_or(usize::MAX);
        self.text += &wrapped(&[format!("{begin} {text}").as_str()], columns);
        self.text.push('\n');
    }

    /// A row of ours with a foreign name in it. If it is wider than the terminal, the name gets rows
    /// after `without`: a server could choose one that seems to begin a row of ours.
    fn naming(&mut self, text: &str, without: &str, name: &str) {
        if quoted(text, self.columns).lines().count() > 1 {
            self.heading(without);
            self.quote(name);
        } else {
            self.heading(text);
        }
    }

    /// Rows of foreign text.
    fn quote(&mut self, text: &str) {
        self.text += &quoted(text, self.columns);
    }
}

fn write(rows: &mut Rows, question: &Question, shown: Shown) {
    let is_whole = shown == Shown::Whole;
    let line = |text: &str| one_line(text, if is_whole { usize::MAX } else { SHOWN_LINE });
    let tool = format!("{:?} of server {:?}", question.tool, question.server);
    if shown == Shown::Form {
        rows.text = first_lines(question);
        rows.heading("the tool:");
        rows.quote(&tool);
    } else {
        let function = line(&question.function);
        if question.script {
            let text = format!("The script wants to call {function}:");
            rows.naming(&text, "The script wants to call:", &function);
        } else {
            let text = format!("{function} is to be called:");
            rows.naming(&text, "This is to be called:", &function);
        }
        let decision = one_line(&question.decision.to_string(), usize::MAX);
        rows.quote(&format!("tool {tool}, which {decision}"));
        if let Some(asked) = &question.also_asked {
            let asked = one_line(&asked.to_string(), usize::MAX);
            rows.quote(&format!("and the call {asked}"));
        }
    }
    let described = question.description.as_deref().map(str::trim);
    let described = described.and_then(|text| match shown {
        Shown::Short | Shown::Form => text.lines().next(),
        Shown::Whole => Some(text),
    });
    if question.title.is_some() || described.is_some() {
        rows.heading("its server says:");
    }
    if let Some(title) = &question.title {
        rows.quote(&line(title));
    }
    for said in described.into_iter().flat_map(str::lines) {
        rows.quote(&line(said));
    }
    if shown != Shown::Form {
        if let Some(ScriptLine { number, text, .. }) = &question.line {
            rows.heading(&format!("line {number} of the script:"));
            rows.quote(&line(text));
        }
        rows.heading("arguments:");
        let arguments = one_line(&question.arguments, usize::MAX);
        rows.quote(&if is_whole {
            arguments
        } else {
            shortened(&arguments)
        });
    }
    let max = if is_whole { usize::MAX } else { SHOWN_FLOWS };
    write_flows(rows, &question.flows, &question.about.data, max);
    if !question.done.is_empty() {
        rows.heading("so far in this run:");
        rows.quote(&one_line(&done(question), usize::MAX));
    }
    if let Some(changed) = &question.changed {
        rows.text += &change_text(changed, shown, rows.columns);
    }
}

/// The lines of a form that its client shows first: the call, the reason, the script's line.
fn first_lines(question: &Question) -> String {
    let mut reason = question.decision.to_string();
    if let Some(asked) = &question.also_asked {
        reason += &format!(", and the call {asked}");
    }
    let line = match &question.line {
        Some(ScriptLine { number, text, .. }) => {
            format!("line {number} of the script: {}", label(text, SHOWN_LINE))
        }
        None if question.script => "called by the script".to_owned(),
        None => "called without a script".to_owned(),
    };
    let call = call_text(question);
    format!("{call}\n{}\n{line}\n", label(&reason, usize::MAX))
}

/// Writes the first `max` flows of other servers' data in the arguments, and the number of further
/// flows, with the number of those whose data is `asked` about.
fn write_flows(rows: &mut Rows, flows: &[Finding], asked: &[String], max: usize) {
    let (first, more) = flows.split_at(max.min(flows.len()));
    for flow in first {
        let server = format!("{:?}", flow.from.server);
        rows.naming(&format!("data of server {server}:"), "data of:", &server);
        rows.quote(&one_line(&flow.to_string(), usize::MAX));
        if let Seen::Copied(copied) = &flow.seen {
            rows.heading(match copied.encoding {
                Encoding::Base64 => "such as, in base64:",
                _ => "such as:",
            });
            rows.quote(&one_line(&copied.piece, MAX_PIECE));
        }
    }
    if more.is_empty() {
        return;
    }
    let is_asked = |flow: &&Finding| asked.contains(&flow.from.function);
    let asked = match more.iter().filter(is_asked).count() {
        0 => String::new(),
        count => format!(", {count} of them asked about"),
    };
    rows.heading(&format!("and {} more flows{asked}", more.len()));
}

/// Head and tail of long arguments, so that padding hides neither.
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

fn done(question: &Question) -> String {
    let done = &question.done;
    let shown = done.iter().take(SHOWN_DONE).map(|done| {
        let counts = [
            (done.sent, "called"),
            (done.failed, "failed"),
            (done.denied, "denied"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        format!("{} ({})", done.function, counts.join(", "))
    });
    let mut shown: Vec<String> = shown.collect();
    let more = done.len().saturating_sub(SHOWN_DONE);
    if more > 0 {
        shown.push(format!("and {more} more functions"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use callgate_policy::flow::Side;

    #[test]
    fn flows_past_the_first_are_counted() {
        let to = Arc::new(Side::new("g", "b", "t"));
        let flows: Vec<Finding> = (0..6)
            .map(|number| {
                let from = Arc::new(Side::new(&format!("f{number}"), "a", "t"));
                Finding::new(
                    from,
                    Arc::clone(&to),
                    Seen::NotCompared("they are too large"),
                )
            })
            .collect();
        let told = |max, asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|one| (*one).to_owned()).collect();
            let mut rows = Rows {
                text: "┌\n".to_owned(),
                columns: Some(80),
            };
            write_flows(&mut rows, &flows, &asked, max);
            rows.text
        };
        let flow = "├ data of server \"a\":\n│ results of a.t may go to b.t: they are too large\n";
        for (max, asked, expected) in [
            (
                1,
                &["f0", "f1", "f5"][..],
                "├ and 5 more flows, 2 of them asked about\n",
            ),
            (5, &["f0"], "├ and 1 more flows\n"),
            (6, &["f0"], ""),
            (usize::MAX, &[], ""),
        ] {
            let flows = flow.repeat(max.min(6));
            assert_eq!(told(max, asked), format!("┌\n{flows}{expected}"));
        }
    }

    #[test]
    fn long_names_get_rows_of_their_own() {
        let heading = |columns, name: &str| {
            let mut rows = Rows {
                text: String::new(),
                columns: Some(columns),
            };
            let text = format!("The script wants to call {name}:");
            rows.naming(&text, "The script wants to call:", name);
            rows.text
        };
        assert_eq!(
            heading(40, "mail_send"),
            "┌ The script wants to call mail_send:\n"
        );
        let forging = format!("mail_send{}allow_y_this_call", "_".repeat(40));
        let rows = heading(40, &forging);
        let (first, name) = rows.split_once('\n').expect("two rows");
        assert_eq!(first, "┌ The script wants to call:");
        assert!(name.lines().all(|row| row.starts_with("│ ")), "{rows}");
        assert_eq!(name.replace("│ ", "").replace('\n', ""), forging);
        assert_eq!(
            heading(24, "fs_read"),
            "┌ The script wants to\n  call:\n│ fs_read\n"
        );
    }
}
