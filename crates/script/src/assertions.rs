//! A guard against texts on which the parser takes exponential time.
//!
//! Where an expression starts with `<T>`, the parser first tries to read an
//! arrow function and then, if it was none, a type assertion: it reads what is
//! inside twice, and what is inside that four times. A few such levels are
//! nothing; thirty are hours. So does it read `async<T>(a)`, as an arrow function
//! and then as a call, and `infer U extends V`, with the constraint and then
//! without. This counts the levels of all three, and what stands in them as often
//! as it is read, with a lexer that only knows where strings, comments, templates
//! and regular expressions end. It guesses where only a parser can know, such as
//! whether a `/` after a `}` divides, so the time limit on parsing stands behind it.

/// How many of these may stand inside each other. Each level doubles the time.
const MAX_NESTED: usize = 10;

/// How many bytes the parser may read, each as often as it reads it: ten levels around
/// a long text would take it minutes.
const MAX_READ: usize = 1 << 20;

/// Where too many of these stand inside each other, or too much in them.
pub(crate) struct TooMany {
    /// In bytes of the code.
    pub(crate) at: usize,
    /// What is wrong, and what to write instead.
    pub(crate) message: &'static str,
}

/// Where the code is nested too deeply for the parser, if it is.
pub(crate) fn too_many(code: &str) -> Option<TooMany> {
    let mut lexer = Lexer {
        text: code,
        code: code.as_bytes(),
        at: 0,
        before: Before::Operator,
    };
    let mut levels = Levels::default();
    let (mut read, mut read_to) = (0_usize, 0);
    loop {
        let next = lexer.next_significant();
        // The last token may have no end.
        let start = next.map_or(code.len(), |_| lexer.at);
        read += (start - read_to) << levels.nested;
        if read > MAX_READ {
            let (at, message) = (read_to, TOO_MUCH);
            return Some(TooMany { at, message });
        }
        let byte = next?;
        read_to = start;
        lexer.at += 1;
        match byte {
            b'(' | b'[' | b'{' => {
                levels.open(false);
                lexer.before = Before::Operator;
            }
            b'}' if levels.innermost.in_template => {
                levels.close();
                lexer.template(&mut levels);
            }
            b')' | b']' | b'}' => {
                levels.close();
                lexer.before = if byte == b']' {
                    Before::Value
                } else {
                    Before::Close
                };
            }
            b',' | b';' => {
                levels.change(|level| {
                    level.angle = false;
                    // A comma may stand between the types of these.
                    if byte == b';' {
                        level.generic_async = false;
                        level.constraints = 0;
                    }
                });
                lexer.before = Before::Operator;
            }
            b'"' | b'\'' => lexer.string(byte),
            b'`' => lexer.template(&mut levels),
            b'/' if lexer.before == Before::Operator => lexer.regular_expression(),
            b'<' if lexer.before != Before::Value && lexer.name_follows() => {
                let is_async = lexer.before == Before::Async;
                let message = if is_async { ASYNC } else { ASSERTIONS };
                levels.change(|level| match is_async {
                    true => level.generic_async = true,
                    false => level.angle = true,
                });
                if levels.nested > MAX_NESTED {
                    return Some(TooMany { at: start, message });
                }
                lexer.before = Before::Operator;
            }
            byte if starts_word(byte) => {
                lexer.at = start;
                lexer.word();
                if lexer.is_constrained_infer(start) {
                    levels.change(|level| level.constraints += 1);
                    if levels.nested > MAX_NESTED {
                        let message = CONSTRAINTS;
                        return Some(TooMany { at: start, message });
                    }
                }
            }
            _ => lexer.before = Before::Operator,
        }
    }
}

const ASSERTIONS: &str =
    "type assertions stand too deep inside each other; write \"x as T\" for \"<T>x\"";
const ASYNC: &str = "generic async functions stand too deep inside each other; write \"async \
    function\", or declare them one after the other";
const CONSTRAINTS: &str = "there are too many \"infer U extends V\" inside each other; write the \
    types one after the other, with \";\" between them";

const TOO_MUCH: &str = "too much code stands inside nested type assertions, generic async \
    functions or \"infer U extends V\"; move it out of them";

/// The brackets that are open, and the text around them all.
#[derive(Default)]
struct Levels {
    outer: Vec<Level>,
    innermost: Level,
    /// How many of what takes the parser twice the time are open.
    nested: usize,
}

impl Levels {
    fn open(&mut self, in_template: bool) {
        let level = Level {
            in_template,
            ..Level::default()
        };
        self.outer
            .push(std::mem::replace(&mut self.innermost, level));
    }

    fn close(&mut self) {
        if let Some(level) = self.outer.pop() {
            self.nested -= self.innermost.doubles();
            self.innermost = level;
        }
    }

    /// Changes the innermost.
    fn change(&mut self, change: impl FnOnce(&mut Level)) {
        self.nested -= self.innermost.doubles();
        change(&mut self.innermost);
        self.nested += self.innermost.doubles();
    }
}

/// What an open bracket holds so far.
#[derive(Default)]
struct Level {
    /// Whether an expression in it started with `<T>`.
    angle: bool,
    /// Whether there was an `async<T>` in it.
    generic_async: bool,
    /// How many `infer U extends` there were in it. They need no brackets to
    /// stand inside each other: `infer U extends () => infer V extends W`.
    constraints: usize,
    /// Whether it is the `${` of a template.
    in_template: bool,
}

impl Level {
    /// How often it doubles the time.
    fn doubles(&self) -> usize {
        usize::from(self.angle) + usize::from(self.generic_async) + self.constraints
    }
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
    /// `async`, which may be the end of an expression too.
    Async,
}

#[derive(Clone)]
struct Lexer<'a> {
    text: &'a str,
    /// The same in bytes.
    code: &'a [u8],
    at: usize,
    before: Before,
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.code.get(self.at + ahead).copied()
    }

    /// Goes over white space and comments.
    fn next_significant(&mut self) -> Option<u8> {
        loop {
            match (self.peek(0)?, self.peek(1)) {
                (b'/', Some(b'/')) => {
                    while self
                        .peek(0)
                        .is_some_and(|byte| byte != b'\n' && byte != b'\r')
                        && !self.code_at("\u{2028}")
                        && !self.code_at("\u{2029}")
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
                (byte, _) => match self.white_space() {
                    0 => return Some(byte),
                    length => self.at += length,
                },
            }
        }
    }

    /// How many bytes the white space character here has; 0 if there is none.
    fn white_space(&self) -> usize {
        let next = self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next());
        match next {
            Some(next) if next.is_whitespace() || next == '\u{feff}' => next.len_utf8(),
            _ => 0,
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

    /// Goes over a word, with the `\u0061` and `\u{61}` in it.
    fn skip_word(&mut self) -> &'a [u8] {
        let start = self.at;
        while let Some(byte) = self.peek(0)
            && starts_word(byte)
            && self.white_space() == 0
        {
            self.at += 1;
            if byte == b'\\' && self.code_at("u{") {
                while self.peek(0).is_some_and(|byte| byte != b'}') {
                    self.at += 1;
                }
                self.at += 1;
            }
        }
        self.code.get(start..self.at).unwrap_or_default()
    }

    /// Whether the word that ends here is an `infer` with a name and `extends`
    /// behind it.
    fn is_constrained_infer(&self, start: usize) -> bool {
        let word = self.code.get(start..self.at).unwrap_or_default();
        if !may_be(word, b"infer") {
            return false;
        }
        let mut ahead = self.clone();
        ahead.next_significant();
        let has_name = !ahead.skip_word().is_empty();
        ahead.next_significant();
        has_name && may_be(ahead.skip_word(), b"extends")
    }

    fn word(&mut self) {
        let word = self.skip_word();
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
        let is_async = may_be(word, b"async");
        self.before = if operator {
            Before::Operator
        } else if is_async {
            Before::Async
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
    fn template(&mut self, levels: &mut Levels) {
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'`' => break,
                b'$' if self.peek(0) == Some(b'{') => {
                    self.at += 1;
                    levels.open(true);
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

fn starts_word(byte: u8) -> bool {
    is_word(byte) || byte == b'\\'
}

/// Whether a word is this one. One with an escape in it may be any.
fn may_be(word: &[u8], keyword: &[u8]) -> bool {
    word == keyword || word.contains(&b'\\')
}
