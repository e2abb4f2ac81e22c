//! Foreign text in rows with a margin, so that no row of it can pass for a line of ours.
//!
//! A terminal breaks a long line wherever it is full, so the rows are made here.

use unicode_width::UnicodeWidthChar as _;

use crate::harmless::{harmless, one_line};

/// The beginning of every row of foreign text, which [`undrawn`] keeps out of the text itself.
const MARGIN: &str = "│ ";
/// Columns of the margin at most: some terminals draw the bar twice as wide.
const MARGIN_COLUMNS: usize = 3;
/// The width if it is not known.
const UNKNOWN_COLUMNS: usize = 60;
/// The least width of rows: one wide character after a margin.
const LEAST_COLUMNS: usize = MARGIN_COLUMNS + 2;
/// Columns of a word that goes to the next row whole.
const WHOLE_WORD: usize = 16;

/// Foreign text, [`harmless`] and [`undrawn`], in rows of at most so many columns (60 if that is
/// not known) after a bar each.
///
/// ```text
/// │ a text that is longer than
/// │ a row
/// ```
pub fn quoted(text: &str, columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(UNKNOWN_COLUMNS).max(LEAST_COLUMNS);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = undrawn(&harmless(line)).replace('\t', " ");
        for row in rows(&line, columns - MARGIN_COLUMNS) {
            out += &format!("{MARGIN}{row}\n");
        }
    }
    out
}

/// The text with all characters that draw lines (the block "Box Drawing") spelled out: nothing
/// of it can pass for a row of a question.
pub fn undrawn(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{2500}'..='\u{257f}' => out += &format!("\\u{:04x}", u32::from(character)),
            _ => out.push(character),
        }
    }
    out
}

/// Foreign text in one line of at most so many characters, [`one_line`] and [`undrawn`]: a name or
/// a message within a line of ours.
pub fn label(text: &str, max: usize) -> String {
    undrawn(&one_line(text, max))
}

/// Parts of a line of ours, such as the choices of a prompt, in rows of at most so many columns:
/// two blanks between the parts, and before each further row. Only a part that is wider than a row
/// is broken at its own blanks, and only a word that is wider than a row is cut.
pub fn wrapped(parts: &[&str], columns: usize) -> String {
    const INDENT: usize = 2;
    let columns = columns.max(LEAST_COLUMNS);
    let mut out = String::new();
    let mut used = 0;
    for part in parts {
        let is_one_row = INDENT.saturating_add(text_width(part)) <= columns;
        let words: Vec<&str> = if is_one_row {
            vec![*part]
        } else {
            part.split(' ').collect()
        };
        let mut gap = if out.is_empty() { "" } else { "  " };
        for word in words {
            let word = cut_to_width(word, columns - INDENT);
            let width = text_width(&word);
            if used + gap.len() + width <= columns {
                out += gap;
                used += gap.len();
            } else {
                out += "\n  ";
                used = INDENT;
            }
            out += &word;
            used += width;
            gap = " ";
        }
    }
    out
}

/// The text, or as much of it as fits into so many columns with a mark after it.
pub fn cut_to_width(text: &str, columns: usize) -> String {
    if text_width(text) <= columns {
        return text.to_owned();
    }
    let mut used = width('…');
    let fits = |character: &char| {
        used += width(*character);
        used <= columns
    };
    let shown: String = text.chars().take_while(fits).collect();
    format!("{shown}…")
}

/// Columns of a text in one line at most: terminals differ.
pub fn text_width(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// At least one row. Spaces stay as they are.
fn rows(line: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for character in line.chars() {
        let width = width(character);
        if used + width > columns {
            let rest = last_word(&mut row, columns);
            used = text_width(&rest);
            rows.push(std::mem::replace(&mut row, rest));
        }
        row.push(character);
        used += width;
    }
    rows.push(row);
    rows
}

/// Takes off the word that was begun, if it is short and not the first one.
fn last_word(row: &mut String, columns: usize) -> String {
    match row.rfind(' ') {
        Some(space) if columns > 2 * WHOLE_WORD && row.len() - space <= WHOLE_WORD => {
            row.split_off(space + 1)
        }
        _ => String::new(),
    }
}

/// Columns of a character at most: terminals differ.
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
            let width = text_width(row);
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
    fn very_narrow_terminal_still_gets_rows() {
        for columns in [0, 1, 5] {
            assert_eq!(quoted("日ab", Some(columns)), "│ 日\n│ ab\n");
        }
    }

    #[test]
    fn quoted_text_cannot_draw_frame_lines() {
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

    #[test]
    fn choices_wrap_between_choices_first() {
        let choices = ["└ send it? [y] now", "[l] later today", "[n] no: "];
        for (columns, expected) in [
            (usize::MAX, "└ send it? [y] now  [l] later today  [n] no: "),
            (40, "└ send it? [y] now  [l] later today\n  [n] no: "),
            (24, "└ send it? [y] now\n  [l] later today\n  [n] no: "),
            (
                12,
                "└ send it?\n  [y] now\n  [l] later\n  today\n  [n] no: ",
            ),
        ] {
            let rows = wrapped(&choices, columns);
            assert_eq!(rows, expected);
            assert!(rows.lines().all(|row| text_width(row) <= columns));
        }
        assert_eq!(wrapped(&["to a_long_name"], 10), "to\n  a_long…");
    }

    #[test]
    fn cut_text_fits_into_its_columns() {
        assert_eq!(cut_to_width("same", 4), "same");
        assert_eq!(cut_to_width("{\"to\":\"ops\"}", 8), "{\"to\":…");
        assert_eq!(cut_to_width("日本語です", 7), "日本…");
        assert_eq!(cut_to_width("ab", 0), "…");
    }
}
