//! The end of a server's stderr, for messages.

/// The last lines that a message shows.
const SHOWN_LINES: usize = 10;
/// The last lines in which an error is searched for: a stack and a nested error follow it.
pub(crate) const KEPT_LINES: usize = 100;
/// Words of a line with an error, in lower case: of Node, Python, Java, .NET, Go, Ruby, Rust, npm.
const ERROR_WORDS: [&str; 10] = [
    "error:",
    "error [",
    "error)",
    "exception:",
    "panicked at",
    "panic:",
    "fatal:",
    "npm error",
    "npm err!",
    "command not found",
];

fn is_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ERROR_WORDS.iter().any(|words| line.contains(words))
}

/// The last lines of a text, with its first error in front.
pub(crate) fn excerpt(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let error = lines.iter().position(|line| is_error(line));
    let error = error.map(|at| lines.remove(at));
    let last = lines.len().saturating_sub(SHOWN_LINES);
    let shown: Vec<&str> = error.into_iter().chain(lines.drain(last..)).collect();
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_begins_with_the_error() {
        let frames = |line: &str| (0..12).map(|n| format!("{line} {n}")).collect::<Vec<_>>();
        for (above, error, below) in [
            (
                vec!["node:internal/process/promises:394".to_owned()],
                "TypeError: Invalid URL",
                frames("    at parse (file:///srv/x.js)"),
            ),
            (
                frames("  File \"/srv/app.py\", line"),
                "KeyError: 'DATABASE'",
                Vec::new(),
            ),
            (
                Vec::new(),
                "Exception in thread \"main\" java.lang.IllegalStateException: no port",
                frames("\tat org.example.Main"),
            ),
            (
                frames("connecting"),
                "thread 'main' panicked at src/main.rs:7:5:",
                vec!["no such table".to_owned()],
            ),
        ] {
            let lines = [above, vec![error.to_owned()], below].concat();
            let shown = excerpt(&lines.join("\n"));
            assert_eq!(shown.lines().next(), Some(error), "{shown}");
            assert!(shown.lines().count() <= SHOWN_LINES + 1, "{shown}");
        }
    }

    #[test]
    fn excerpt_without_error_is_the_last_lines() {
        let lines: Vec<String> = (1..=12).map(|n| format!("line {n}")).collect();
        assert_eq!(excerpt(&lines.join("\n")), lines[2..].join("\n"));
    }
}
