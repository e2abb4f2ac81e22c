//! The author's text: the range of its code, and the places of its bytes.

use std::ops::Range;

use crate::error::{Place, ScriptError, ScriptErrorKind};

/// A script's text, and the part of it that is code.
pub(crate) struct Source {
    text: String,
    /// The code: all of the text, or the inside of a fence.
    code: Range<usize>,
    /// True if the fence marks the code as JavaScript.
    is_javascript: bool,
    /// The start of prose before a fence, if the text looks like prose.
    prose: Option<usize>,
}

impl Source {
    /// Finds the code in a text.
    pub(crate) fn new(text: &str) -> Result<Self, ScriptError> {
        // Editors do not count a byte order mark as a column.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let mut source = Self {
            code: 0..text.len(),
            is_javascript: false,
            prose: None,
            text,
        };
        source.code = unwrapped(&source.text);
        let code = source
            .text
            .get(source.code.clone())
            .unwrap_or_default()
            .trim_start();
        if let Some(name) = THOUGHTS
            .iter()
            .find(|name| code.starts_with(&format!("<{name}>")))
        {
            let message = format!("<{name}> is not closed; send the code alone");
            let at = source.code.end - code.len();
            return Err(source.error(ScriptErrorKind::Syntax, message, at));
        }
        if let Some(code) = source.fenced()? {
            source.code = code;
        }
        if source.text.starts_with("#!") {
            source.code.start = source.text.find(is_line_end).unwrap_or(source.text.len());
        }
        Ok(source)
    }

    /// The whole text with these edits, and blanks outside of the code. Every character of the code
    /// keeps the author's line and column, except after inserted text.
    pub(crate) fn code_with(&self, edits: &Edits) -> String {
        let around = [0..self.code.start, self.code.end..self.text.len()];
        edits.apply(&self.text, around)
    }

    pub(crate) fn lines(&self) -> u32 {
        u32::try_from(line_ends(&self.text).count()).unwrap_or(u32::MAX - 2) + 1
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The code alone; its bytes keep their offsets.
    pub(crate) fn code(&self) -> String {
        let code = self.text.get(self.code.clone()).unwrap_or_default();
        " ".repeat(self.code.start) + code
    }

    pub(crate) fn is_javascript(&self) -> bool {
        self.is_javascript
    }

    /// The error for a text that looks like prose before a code block.
    pub(crate) fn prose(&self) -> Option<ScriptError> {
        self.prose.map(|at| {
            self.error(
                ScriptErrorKind::Unsupported,
                "there is text before the code block; send the code alone",
                at,
            )
        })
    }

    pub(crate) fn place(&self, position: usize) -> Place {
        let position = (0..=position.min(self.text.len()))
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(0);
        let (line, column) = line_and_column(&self.text, position);
        Place { line, column }
    }

    pub(crate) fn error(
        &self,
        kind: ScriptErrorKind,
        message: impl Into<String>,
        position: usize,
    ) -> ScriptError {
        ScriptError::new(kind, message, Some(self.place(position)))
    }

    /// The inside of a fence around the whole text, if there is one.
    fn fenced(&mut self) -> Result<Option<Range<usize>>, ScriptError> {
        let mut fences = Vec::new();
        let mut start = self.code.start;
        let rest = self.text.get(self.code.clone()).unwrap_or_default();
        let ends = line_ends(rest).map(|(at, length)| (self.code.start + at, length));
        for (at, length) in ends.chain([(self.code.end, 0)]) {
            let line = self.text.get(start..at).unwrap_or_default();
            fences.extend(Fence::of(line).map(|fence| (start, at + length, fence)));
            start = at + length;
        }
        let Some(&(open, inside, fence)) = fences.first() else {
            return Ok(None);
        };
        let language = fence.language().to_ascii_lowercase();
        self.is_javascript = JAVASCRIPT.contains(&language.as_str());
        let is_known = self.is_javascript || TYPESCRIPT.contains(&language.as_str());
        let before = self.text.get(self.code.start..open).unwrap_or_default();
        if !before.trim().is_empty() {
            // The fence may also be a line inside a template literal.
            if is_known && !language.is_empty() {
                self.prose = Some(open - before.trim_start().len());
            }
            self.is_javascript = false;
            return Ok(None);
        }
        let refused = |kind, message: &str, at| Err(self.error(kind, message, at));
        if fence.info.contains(fence.mark) {
            let message = "put the first and the last line of the code block on lines of their own";
            return refused(ScriptErrorKind::Syntax, message, open);
        }
        if !is_known {
            let message =
                format!("the code block is marked {language:?}; send TypeScript or JavaScript");
            return refused(ScriptErrorKind::Unsupported, &message, open);
        }
        // Shorter and different fences are part of the code.
        fences.retain(|(_, _, other)| other.mark == fence.mark && other.length >= fence.length);
        // The last fence closes the block; those before it are in its code.
        let mut others = fences.iter().skip(1);
        let Some(&(close, after, _)) = others.rfind(|(_, _, other)| other.info.is_empty()) else {
            let end = fence.mark.to_string().repeat(fence.length);
            let message = format!("the code block is not closed; end it with a line {end:?}");
            return refused(ScriptErrorKind::Syntax, &message, open);
        };
        let rest = self.text.get(after..self.code.end).unwrap_or_default();
        if !rest.trim().is_empty() {
            let at = self.code.end - rest.trim_start().len();
            let message = "there is text after the code block; send the code alone";
            return refused(ScriptErrorKind::Unsupported, message, at);
        }
        // Two blocks would otherwise run as one.
        let mut between = fences.iter().skip(1).filter(|(start, ..)| *start < close);
        let marked = between.clone().find(|(_, _, fence)| !fence.info.is_empty());
        if let Some(&(at, ..)) = marked.or_else(|| between.next()) {
            let message = "there is more than one code block; send one";
            return refused(ScriptErrorKind::Unsupported, message, at);
        }
        Ok(Some(inside..close))
    }
}

/// Words that mark a code block as TypeScript, and as JavaScript.
const TYPESCRIPT: [&str; 6] = ["", "ts", "typescript", "mts", "cts", "tsx"];
const JAVASCRIPT: [&str; 7] = ["js", "javascript", "mjs", "cjs", "jsx", "es6", "ecmascript"];
/// Elements in which models put their thoughts before the answer.
const THOUGHTS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// Elements that stand around code.
const ELEMENTS: [&str; 6] = [
    "code",
    "execute",
    "javascript",
    "pre",
    "script",
    "typescript",
];

/// A line that opens or closes a code block.
#[derive(Clone, Copy)]
struct Fence<'t> {
    mark: char,
    length: usize,
    /// The text after the marks.
    info: &'t str,
}

impl<'t> Fence<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let line = line.trim();
        let mark = line
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        let info = info.trim();
        (length >= 3).then_some(Self { mark, length, info })
    }

    /// The first word, as in `ts`, `ts title="a"`, `ts:a.ts` and `{.ts}`; empty for attributes alone.
    fn language(self) -> &'t str {
        let info = self.info.trim_start_matches(['{', '.', ' ']);
        let end = info.find(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '#' | '-' | '_'));
        let (word, rest) = info.split_at(end.unwrap_or(info.len()));
        if rest.starts_with('=') { "" } else { word }
    }
}

/// The part of a text after leading thoughts, and inside the elements around it.
fn unwrapped(text: &str) -> Range<usize> {
    let after_thoughts = THOUGHTS.iter().find_map(|name| {
        let rest = text.trim_start().strip_prefix(&format!("<{name}>"))?;
        let (_, after) = rest.split_once(&format!("</{name}>"))?;
        Some(text.len() - after.len())
    });
    let mut code = after_thoughts.unwrap_or(0)..text.len();
    while let Some(inside) = text.get(code.clone()).and_then(inside_element) {
        code = code.start + inside.start..code.start + inside.end;
    }
    code
}

/// The inside of an element around a text, if there is one.
fn inside_element(text: &str) -> Option<Range<usize>> {
    let code = text.trim();
    ELEMENTS.iter().find_map(|name| {
        let rest = code.strip_prefix('<')?.strip_prefix(*name)?;
        let (attributes, rest) = rest.split_once('>')?;
        let inside = rest.strip_suffix(&format!("</{name}>"))?;
        let start = text.trim_end().len() - rest.len();
        let is_tag = attributes.is_empty() || attributes.starts_with(' ');
        is_tag.then_some(start..start + inside.len())
    })
}

/// Changes to a text that keep every line and column.
#[derive(Default)]
pub(crate) struct Edits {
    edits: Vec<(Range<usize>, String)>,
}

impl Edits {
    pub(crate) fn blank(&mut self, range: Range<usize>) {
        self.edits.push((range, String::new()));
    }

    /// Blanks a range and writes ASCII text over its start. An empty range inserts the text.
    pub(crate) fn write(&mut self, range: Range<usize>, text: &str) {
        self.edits.push((range, text.to_owned()));
    }

    /// Makes these changes, and blanks further ranges.
    pub(crate) fn apply(
        &self,
        text: &str,
        blanks: impl IntoIterator<Item = Range<usize>>,
    ) -> String {
        let edits = self.edits.iter();
        let mut all: Vec<(Range<usize>, &str)> = edits
            .map(|(range, write)| (range.clone(), write.as_str()))
            .chain(blanks.into_iter().map(|range| (range, "")))
            .collect();
        all.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(text.len() + 16);
        let mut copied = 0;
        for (range, write) in all {
            let start = range.start.max(copied);
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str(write);
            let end = range.end.max(start);
            let covered = text.get(start..end).unwrap_or_default();
            let mut to_skip = write.len();
            for c in covered.chars() {
                if to_skip > 0 && !is_line_end(c) {
                    to_skip -= 1;
                } else if is_line_end(c) {
                    out.push(c);
                } else {
                    out.extend(std::iter::repeat_n(' ', c.len_utf16()));
                }
            }
            copied = end;
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        out
    }
}

/// Line and column of a byte of a text, both from 1; columns are in UTF-16 units.
pub fn line_and_column(text: &str, position: usize) -> (u32, u32) {
    let mut line = 1;
    let mut start = 0;
    for (at, length) in line_ends(text) {
        if at + length > position {
            break;
        }
        line += 1;
        start = at + length;
    }
    let before = text.get(start..position).unwrap_or_default();
    let column = u32::try_from(before.encode_utf16().count()).unwrap_or(u32::MAX - 1) + 1;
    (line, column)
}

/// A line of a script, from 1. Lines end where JavaScript ends them, and a byte order mark is not
/// part of the first. `None` for line 0; empty past the last line.
pub fn line(text: &str, line: u32) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut ends = line_ends(text);
    let start = match line.checked_sub(1)? {
        0 => 0,
        before => match ends.nth(before as usize - 1) {
            Some((at, length)) => at + length,
            None => return Some(""),
        },
    };
    let end = ends.next().map_or(text.len(), |(at, _)| at);
    text.get(start..end)
}

/// Line ends as V8 counts them: each as its position and length.
fn line_ends(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.char_indices().filter_map(|(at, c)| match c {
        '\r' if text.as_bytes().get(at + 1) == Some(&b'\n') => None,
        '\n' if at > 0 && text.as_bytes().get(at - 1) == Some(&b'\r') => Some((at - 1, 2)),
        c if is_line_end(c) => Some((at, c.len_utf8())),
        _ => None,
    })
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
