//! Styles of text at the terminal. The codes are ours: foreign text is escaped before it gets a
//! style.

use std::env::var_os;

use clap::builder::styling::{AnsiColor, Style};

pub const STRONG: Style = Style::new().bold();
pub const REASON: Style = AnsiColor::Cyan.on_default();
pub const FOREIGN_DATA: Style = AnsiColor::Yellow.on_default();
pub const ALLOWED: Style = AnsiColor::Green.on_default();
pub const DENIED: Style = AnsiColor::Red.on_default();

/// True if the terminal obeys control codes.
pub fn has_codes() -> bool {
    var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// The text in a style, if the terminal has styles and `NO_COLOR` is not set
/// (<https://no-color.org>).
pub fn styled(text: &str, style: Style) -> String {
    let is_refused = var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_refused || !has_codes() {
        return text.to_owned();
    }
    format!("{style}{text}{style:#}")
}

/// The text without the codes of [`styled`].
pub fn unstyled(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_styles_are_removed() {
        for style in [STRONG, DENIED] {
            let text = format!("a {style}map{style:#} of m\n");
            assert_ne!(text, "a map of m\n");
            assert_eq!(unstyled(&text), "a map of m\n");
        }
    }
}
