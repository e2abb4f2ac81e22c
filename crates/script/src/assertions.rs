//! A guard against texts on which the parser takes exponential time.
//!
//! Where an expression starts with `<T>`, the parser first tries to read an
//! arrow function and then, if it was none, a type assertion: it reads what is
//! inside twice, and what is inside that four times. A few such levels are
//! nothing; thirty are hours. This counts the levels with a lexer that only
//! knows where strings, comments, templates and regular expressions end. It
//! guesses where only a parser can know, such as whether a `/` after a `}`
//! divides, so the time limit on parsing stands behind it.

/// How many `<T>` may stand inside each other. Each level doubles the time.
const MAX_NESTED: usize = 10;

/// Where `<T>` is nested too deeply, if it is, in bytes of the code.
pub(crate) fn too_many(code: &str) -> Option<usize> {
    let mut lexer = Lexer {
        code: code.as_bytes(),
        at: 0,
        before: Before::Operator,
    };
    let mut levels = vec![Level::default()];
    while let Some(byte) = lexer.next_significant() {
        let start = lexer.at;
        lexer.at += 1;
        match byte {
            b'(' | b'[' | b'{' => {
                levels.push(Level::default());
                lexer.before = Before::Operator;
            }
            b'}' if levels.last().is_some_and(|level| level.in_template) => {
                levels.pop();
                lexer.template(&mut levels);
            }
            b')' | b']' | b'}' => {
                if levels.len() > 1 {
                    levels.pop();
                }
                lexer.before = if byte == b']' {
                    Before::Value
                } else {
                    Before::Close
                };
            }
            b',' | b';' => {
                if let Some(level) = levels.last_mut() {
                    level.angle = false;
                }
                lexer.before = Before::Operator;
            }
            b'"' | b'\'' => lexer.string(byte),
            b'`' => lexer.template(&mut levels),
            b'/' if lexer.before == Before::Operator => lexer.regular_expression(),
            b'<' if lexer.before != Before::Value && lexer.name_follows() => {
                if let Some(level) = levels.last_mut() {
                    level.angle = true;
                }
                if levels.iter().filter(|level| level.angle).count() > MAX_NESTED {
                    return Some(start);
                }
                lexer.before = Before::Operator;
            }
            byte if is_word(byte) => lexer.word(start),
            _ => lexer.before = Before::Operator,
        }
    }
    None
}

/// What an open bracket holds so far.
#[derive(Default)]
struct Level {
    /// Whether an expression in it started with `<T>`.
    angle: bool,
    /// Whether it is the `${` of a template.
    in_template: bool,
}

/// What stands before a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operator, or nothing: an expression starts here.
    Operator,
    /// `)` or `}`: an expression may have ended, or a statement.
    Close,
    /// The end of an expression.
    Value,
}

struct Lexer<'a> {
    code: &'a [u8],
    at: usize,
    before: Before,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.code.get(self.at + ahead).copied()
    }

    /// Goes over white space and comments.
    fn next_significant(&mut self) -> Option<u8> {
        loop {
            match (self.peek(0)?, self.peek(1)) {
                (byte, _) if byte.is_ascii_whitespace() => self.at += 1,
                (b'/', Some(b'/')) => {
                    while self
                        .peek(0)
                        .is_some_and(|byte| byte != b'\n' && byte != b'\r')
                    {
                        self.at += 1;
                    }
                }
                (b'/', Some(b'*')) => {
                    self.at += 2;
                    while self.peek(0).is_some() && !self.code_at("*/") {
                        self.at += 1;
                    }
                    self.at += 2;
                }
                (byte, _) => return Some(byte),
            }
        }
    }

    fn code_at(&self, text: &str) -> bool {
        self.code
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// Whether the next token is a name, as far as a byte can tell.
    fn name_follows(&self) -> bool {
        let mut ahead = 0;
        while self
            .peek(ahead)
            .is_some_and(|byte| byte.is_ascii_whitespace())
        {
            ahead += 1;
        }
        self.peek(ahead).is_some_and(|byte| {
            (is_word(byte) && !byte.is_ascii_digit()) || matches!(byte, b'/' | b'\\')
        })
    }

    fn word(&mut self, start: usize) {
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        let word = self.code.get(start..self.at).unwrap_or_default();
        let continues = [
            "await",
            "case",
            "default",
            "delete",
            "do",
            "else",
            "extends",
            "in",
            "instanceof",
            "new",
            "of",
            "return",
            "throw",
            "typeof",
            "void",
            "yield",
            "as",
            "satisfies",
        ];
        let operator = continues.iter().any(|keyword| keyword.as_bytes() == word);
        self.before = if operator {
            Before::Operator
        } else {
            Before::Value
        };
    }

    fn string(&mut self, quote: u8) {
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' | b'\r' => break,
                byte if byte == quote => break,
                _ => {}
            }
        }
        self.before = Before::Value;
    }

    /// The rest of a template, up to its end or to a `${`.
    fn template(&mut self, levels: &mut Vec<Level>) {
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'`' => break,
                b'$' if self.peek(0) == Some(b'{') => {
                    self.at += 1;
                    levels.push(Level {
                        angle: false,
                        in_template: true,
                    });
                    self.before = Before::Operator;
                    return;
                }
                _ => {}
            }
        }
        self.before = Before::Value;
    }

    fn regular_expression(&mut self) {
        let mut in_class = false;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                b'\n' | b'\r' => break,
                _ => {}
            }
        }
        self.before = Before::Value;
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 0x80
}
