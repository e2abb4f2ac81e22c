//! Questions about calls as text for a person.

mod change;

use callgate_gate::{About, Answer, Question, ScriptLine};
use callgate_policy::flow::{Encoding, Finding, MAX_PIECE, Seen};

pub use change::change_text;

use crate::harmless::{harmless, one_line};
use crate::quoted::quoted;

/// Characters that a short question shows from the beginning of the arguments.
const SHOWN_HEAD: usize = 300;

/// Characters that it shows from their end.
const SHOWN_TAIL: usize = 150;

/// Characters of a title, a description or a script's line.
const SHOWN_LINE: usize = 200;

/// Tools that it names of those that were called before.
const SHOWN_DONE: usize = 10;

/// Flows that it shows.
const SHOWN_FLOWS: usize = 10;

/// The extent of a shown question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// The beginning and the end of what is long; of a changed definition, up to 400 characters
    /// of the difference of each part.
    #[default]
    Short,
    /// The same for a person who cannot ask for more: of a changed definition, up to 2,000
    /// characters of the difference of each part.
    Form,
    /// All of it.
    Whole,
}

/// A question as text for a person, laid out for so many columns, if that is known.
///
/// Rows that begin with `┌` or `├` are ours. Text of scripts and servers stands in rows that
/// begin with `│` ([`quoted`]): it cannot leave them, nor steer a terminal. Every row ends with a
/// line feed; the first one names the function.
pub fn question_text(question: &Question, shown: Shown, columns: Option<usize>) -> String {
    let mut page = Page {
        text: String::new(),
        columns,
    };
    write(&mut page, question, shown);
    // Once more over all of it: names, too, can have characters that hide.
    harmless(&page.text)
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
        _ => "no".to_owned(),
    };
    one_line(&text, usize::MAX)
}

/// The text so far.
struct Page {
    text: String,
    columns: Option<usize>,
}

impl Page {
    /// A row of ours.
    fn heading(&mut self, text: &str) {
        let begin = if self.text.is_empty() { '┌' } else { '├' };
        self.text += &format!("{begin} {text}\n");
    }

    /// Rows of foreign text.
    fn quote(&mut self, text: &str) {
        self.text += &quoted(text, self.columns);
    }
}

fn write(page: &mut Page, question: &Question, shown: Shown) {
    let is_whole = shown == Shown::Whole;
    let line = |text: &str| one_line(text, if is_whole { usize::MAX } else { SHOWN_LINE });
    let function = line(&question.function);
    page.heading(&if question.script {
        format!("The script wants to call {function}:")
    } else {
        format!("{function} is to be called:")
    });
    page.quote(&format!(
        "tool {:?} of server {:?}, which {}",
        question.tool,
        question.server,
        one_line(&question.decision.to_string(), usize::MAX),
    ));
    if let Some(besides) = &question.besides {
        let besides = one_line(&besides.to_string(), usize::MAX);
        page.quote(&format!("and the call {besides}"));
    }
    let described = question.description.as_deref().map(str::trim);
    let described = described.and_then(|text| match shown {
        Shown::Short | Shown::Form => text.lines().next(),
        Shown::Whole => Some(text),
    });
    if question.title.is_some() || described.is_some() {
        page.heading("its server says:");
    }
    if let Some(title) = &question.title {
        page.quote(&line(title));
    }
    for said in described.into_iter().flat_map(str::lines) {
        page.quote(&line(said));
    }
    if let Some(ScriptLine { number, text, .. }) = &question.line {
        page.heading(&format!("line {number} of the script:"));
        page.quote(&line(text));
    }
    page.heading("arguments:");
    let arguments = one_line(&question.arguments, usize::MAX);
    let (arguments, max) = if is_whole {
        (arguments, usize::MAX)
    } else {
        (shortened(&arguments), SHOWN_FLOWS)
    };
    page.quote(&arguments);
    write_flows(page, &question.flows, &question.about.data, max);
    if !question.done.is_empty() {
        page.heading("so far in this run:");
        page.quote(&one_line(&done(question), usize::MAX));
    }
    if let Some(changed) = &question.changed {
        page.text += &change_text(changed, shown, page.columns);
    }
}

/// Writes the data of other servers in the arguments, at most so many flows of it. Of the
/// others, those whose function's data is `asked` about are counted.
fn write_flows(page: &mut Page, flows: &[Finding], asked: &[String], max: usize) {
    let (told, more) = flows.split_at(max.min(flows.len()));
    for flow in told {
        page.heading(&format!("data of server {:?}:", flow.from.server));
        page.quote(&one_line(&flow.to_string(), usize::MAX));
        if let Seen::Copied(copied) = &flow.seen {
            page.heading(match copied.encoding {
                Encoding::Base64 => "such as, in base64:",
                _ => "such as:",
            });
            page.quote(&one_line(&copied.piece, MAX_PIECE));
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
    page.heading(&format!("and {} more flows{asked}", more.len()));
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
            let mut page = Page {
                text: "┌\n".to_owned(),
                columns: Some(80),
            };
            write_flows(&mut page, &flows, &asked, max);
            page.text
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
}
