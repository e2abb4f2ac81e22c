//! The layout of questions: what stands out, what is cut, and the line that stays after the answer.

use callgate::Answer;
use callgate::faces::asking::choice_of;
use callgate::faces::store::{Choice, QuestionTexts};
use callgate_text::{cut_to_width, label, quoted, wrapped};

use crate::style::{self, styled};

/// The start of every row of foreign text.
const MARGIN: &str = "│ ";
/// The starts of headings over data of other servers, and over a changed definition.
const DATA: [&str; 3] = ["data of", "such as", "its definition"];
/// Rows shown of one part of a whole question: more of them would push its head out of the
/// terminal's memory.
const MAX_ROWS: usize = 200;
/// Characters shown of the place of a rule.
const MAX_PLACE: usize = 300;

/// The rows of a question, in which the function, its arguments, the reason and other servers' data
/// stand out. Foreign text cannot start a row, so a row says by its start which part begins.
pub fn highlighted(text: &str, function: &str, script: bool) -> String {
    let mut part = None;
    let mut out = String::with_capacity(text.len());
    for row in text.lines() {
        if let Some(foreign) = row.strip_prefix(MARGIN) {
            out += MARGIN;
            out += &part.map_or_else(|| foreign.to_owned(), |style| styled(foreign, style));
        } else if row.starts_with('┌') {
            let at = if script {
                row.rfind(function)
            } else {
                row.find(function)
            };
            let parts = at.and_then(|at| row.split_at_checked(at));
            let parts =
                parts.and_then(|(before, rest)| Some((before, rest.strip_prefix(function)?)));
            if let Some((before, after)) = parts {
                out += &format!("{before}{}{after}", styled(function, style::STRONG));
                part = Some(style::REASON);
            } else {
                // The name is in the rows below.
                out += row;
                part = Some(style::STRONG);
            }
        } else {
            if let Some(heading) = row.strip_prefix("├ ") {
                let has_data = DATA.iter().any(|start| heading.starts_with(start));
                part = match heading {
                    "arguments:" => Some(style::STRONG),
                    _ => has_data.then_some(style::FOREIGN_DATA),
                };
            }
            out += row;
        }
        out.push('\n');
    }
    out
}

/// The rows, with at most [`MAX_ROWS`] rows of foreign text in each part. Parts are cut one by one,
/// so that a long one cannot hide another.
pub fn capped(text: &str, columns: Option<usize>) -> String {
    let mut out = String::new();
    let mut rows = 0;
    for row in text.lines() {
        if row.starts_with(MARGIN) {
            rows += 1;
            if rows > MAX_ROWS {
                continue;
            }
        } else {
            out += &left_out(rows, columns);
            rows = 0;
        }
        out += row;
        out.push('\n');
    }
    out + &left_out(rows, columns)
}

/// The row after a part that is cut; empty after other parts.
fn left_out(rows: usize, columns: Option<usize>) -> String {
    let more = rows.saturating_sub(MAX_ROWS);
    if more == 0 {
        return String::new();
    }
    let text = format!("├ … {more} more lines; --dry-run --json shows the arguments of calls");
    wrapped(&[text.as_str()], columns.unwrap_or(usize::MAX)) + "\n"
}

/// The rule that an answer "always" writes, and its place; empty if that is not offered.
pub fn always_rows(function: &str, question: &QuestionTexts, columns: Option<usize>) -> String {
    let mut offers = question.offers.iter();
    let place = question.keeps_in.as_ref();
    let place = place.filter(|_| offers.any(|offer| offer.choice == Choice::Always));
    let Some(place) = place else {
        return String::new();
    };
    let place = label(place, MAX_PLACE);
    let rule = format!("{function:?}, until its server changes the tool");
    let rule = quoted(&rule, columns);
    let heading = format!("├ [a] adds to permissions.allow of {place}:");
    let heading = wrapped(&[heading.as_str()], columns.unwrap_or(usize::MAX));
    format!("{heading}\n{rule}")
}

/// A choice in words.
pub fn said(choice: Choice) -> &'static str {
    match choice {
        Choice::Once => "allowed once",
        Choice::Run => "allowed in this run",
        Choice::Session => "allowed in this session",
        Choice::Always => "allowed always",
        Choice::DenyRun => "denied in this run",
        _ => "denied",
    }
}

/// The line that stays of an answered question about a call.
pub fn summary(call: &str, answer: Answer, columns: usize) -> String {
    let outcome = said(choice_of(answer).unwrap_or(Choice::Deny));
    let (mark, style) = if answer.allows() {
        ("✓", style::ALLOWED)
    } else {
        ("✗", style::DENIED)
    };
    // Some terminals draw the mark twice as wide.
    let call = cut_to_width(call, columns.saturating_sub(outcome.len() + 5));
    format!("{} {call} {}", styled(mark, style), styled(outcome, style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_part_of_a_question_is_capped_alone() {
        let text = |first: usize, second: usize| {
            let (first, second) = ("│ said\n".repeat(first), "│ {}\n".repeat(second));
            format!("┌ The script wants to call b_send:\n{first}├ arguments:\n{second}")
        };
        assert_eq!(capped(&text(200, 1), None), text(200, 1));
        let cut = capped(&text(5_000, 203), None);
        assert_eq!(cut.matches("│ said\n").count(), 200);
        let more = [
            "├ … 4800 more lines; --dry-run --json shows the arguments of calls\n├ arguments:\n│ {}\n",
            "│ {}\n├ … 3 more lines; --dry-run --json shows the arguments of calls\n",
        ];
        assert!(cut.contains(more[0]), "{cut}");
        assert!(cut.ends_with(more[1]), "{cut}");
    }
}
