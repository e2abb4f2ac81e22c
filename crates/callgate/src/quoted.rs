//! What others wrote, in rows of its own: a terminal breaks a long line
//! wherever it is full, and what then stands at the left edge could pass for a
//! line of ours. So we break it ourselves, and every row of it has a margin.

use unicode_width::UnicodeWidthChar as _;

use crate::harmless::harmless;

/// Before every row of text that others wrote. They cannot write it: see [`is_frame`].
const MARGIN: &str = "│ ";

/// Columns that the margin takes at the most: terminals may draw the bar twice as wide.
const MARGIN_COLUMNS: usize = 3;

/// The width where nobody knows it: narrow enough for most that show text.
const UNKNOWN_COLUMNS: usize = 60;

/// The least width that rows are made for: one wide character after a margin.
const LEAST_COLUMNS: usize = MARGIN_COLUMNS + 2;

/// Columns of a word that goes to the next row whole.
const WHOLE_WORD: usize = 16;

/// Text of somebody else's for a person, [`harmless`], in rows of at most so many columns (60 if
/// that is not known) after a bar each. Characters that draw lines are spelled out, so that no row
/// of it can begin as ours do, however wide the place is in the end.
///
/// ```text
/// │ a text that is longer than
/// │ a row
/// ```
pub fn quoted(text: &str, columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(UNKNOWN_COLUMNS).max(LEAST_COLUMNS);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        for row in rows(&spelled_out(line), columns - MARGIN_COLUMNS) {
            out.push_str(MARGIN);
            out.push_str(&row);
            out.push('\n');
        }
    }
    out
}

/// A line without anything that could leave its row or draw a margin.
fn spelled_out(line: &str) -> String {
    undrawn(&harmless(line)).replace('\t', " ")
}

/// The text with all characters that draw lines spelled out: nothing of it can pass for a
/// row of a question.
pub fn undrawn(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if is_frame(c) => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out
}

/// Characters that draw lines: those of margins and headings of ours, and those
/// that look like them (the block "Box Drawing").
fn is_frame(character: char) -> bool {
    matches!(character, '\u{2500}'..='\u{257f}')
}

/// At least one row. Spaces stay as they are.
fn rows(line: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for character in line.chars() {
        let width = width(character);
        if used + width > columns {
            let rest = last_word(&mut row, columns);
            used = rest.chars().map(self::width).sum();
            rows.push(std::mem::replace(&mut row, rest));
        }
        row.push(character);
        used += width;
    }
    rows.push(row);
    rows
}

/// Takes off the word that was begun, if it is short and something stands before it.
fn last_word(row: &mut String, columns: usize) -> String {
    match row.rfind(' ') {
        Some(space) if columns > 2 * WHOLE_WORD && row.len() - space <= WHOLE_WORD => {
            row.split_off(space + 1)
        }
        _ => String::new(),
    }
}

/// Columns that a character takes at the most: some terminals give two to what
/// has one in others, and one to what is drawn over the character before.
fn width(character: char) -> usize {
    character.width_cjk().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, columns: usize, expected: Expect) {
        let rows = quoted(text, Some(columns));
        for row in rows.lines() {
            let width: usize = row.chars().map(width).sum();
            assert!(width <= columns, "{width} columns: {row:?}");
            assert!(row.starts_with(MARGIN), "{row:?}");
        }
        expected.assert_eq(&rows);
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        check(
            &format!("x{}arguments: {{}}", " ".repeat(21)),
            20,
            expect![[r"
                │ x                
                │      arguments: {
                │ }
            "]],
        );
        check(
            "日本語の長い文章です, ÷±",
            12,
            expect![[r#"
                │ 日本語の
                │ 長い文章
                │ です, ÷
                │ ±
            "#]],
        );
        assert_eq!(
            quoted("e\u{301}e\u{301}e\u{301}", Some(6)),
            "│ e\u{301}e\n│ \u{301}e\u{301}\n"
        );
    }

    #[test]
    fn words_stay_whole_where_there_is_room() {
        check(
            "one two three four five six seven eight nine ten, and a_word_that_is_far_too_long_to_go_on",
            40,
            expect![[r"
                │ one two three four five six seven 
                │ eight nine ten, and a_word_that_is_fa
                │ r_too_long_to_go_on
            "]],
        );
    }

    #[test]
    fn a_very_narrow_place_gets_rows_too() {
        for columns in [0, 1, 5] {
            assert_eq!(quoted("日ab", Some(columns)), "│ 日\n│ ab\n");
        }
    }

    #[test]
    fn nobody_else_draws_lines() {
        check(
            "├ arguments:\n│ {}\t┃\n\nx\u{1b}[2K",
            60,
            expect![[r"
                │ \u251c arguments:
                │ \u2502 {} \u2503
                │ 
                │ x\u001b[2K
            "]],
        );
    }
}
