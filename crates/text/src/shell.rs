//! Words of the commands that people are told to run. A server chooses some of
//! them: none may be more than a word to the shell that it is pasted into.

use std::borrow::Cow;

/// A word as a POSIX shell takes it: as it is if it means nothing but itself there, else in quotes.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    // Between single quotes nothing has a meaning but their end.
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-./:@%+=,".contains(character)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::shell_word;

    /// The word as a shell reads it.
    fn read(text: &str) -> String {
        let command = format!("printf %s {}", shell_word(text));
        let output = Command::new("sh").arg("-c").arg(command).output();
        String::from_utf8(output.expect("start sh").stdout).expect("text")
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        for text in ["web", "files:read", "https://a.example/x.y+z@1,2=3%20_-"] {
            assert_eq!(shell_word(text), text);
            assert_eq!(read(text), text);
        }
    }

    #[test]
    fn other_words_are_quoted_for_the_shell() {
        let words = "¦a b¦$(id)¦`id`¦a;id¦a|id¦a&id¦>x¦*¦~¦#a¦!a¦a\nid¦it's¦'; id; '¦\\¦\"$HOME\"¦\
                     {a,b}¦é\u{1b}";
        for text in words.split('¦') {
            assert_eq!(read(text), text);
        }
    }
}
