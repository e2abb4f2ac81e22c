//! The parser, with messages in plain words.

use swc_common::comments::{Comments, SingleThreadedComments};
use swc_common::input::StringInput;
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::{EsVersion, Expr, Module, ModuleItem, Script, Stmt};
use swc_ecma_parser::error::{Error, SyntaxError};
use swc_ecma_parser::{EsSyntax, Lexer, PResult, Parser, Syntax, TsSyntax};

use crate::source::Edits;

/// The syntax for scripts: TypeScript without JSX and decorators, which V8 cannot run.
pub(crate) const TYPESCRIPT: TsSyntax = TsSyntax {
    tsx: false,
    decorators: false,
    dts: false,
    no_early_errors: false,
    disallow_ambiguous_jsx_like: false,
};

/// The message about the comments of classic scripts.
pub(crate) const OLD_COMMENT: &str = "\"<!--\" and \"-->\" start comments in old scripts; write \
                                      \"//\", or put spaces between the characters";

/// Parses a text as a module: strict, with top-level `await`. A top-level `return` is allowed.
pub(crate) fn module(text: &str) -> Result<Module, SyntaxErrors> {
    typescript(text, BytePos(1), TYPESCRIPT, None, is_top_return)
}

/// Parses a text as TypeScript with all syntax, including JSX and decorators.
pub(crate) fn anything(text: &str) -> Option<Module> {
    let syntax = TsSyntax {
        tsx: true,
        decorators: true,
        ..TYPESCRIPT
    };
    typescript(text, BytePos(1), syntax, None, is_top_return).ok()
}

fn is_top_return(error: &Error) -> bool {
    matches!(error.kind(), SyntaxError::ReturnNotAllowed)
}

/// Parses a text between parentheses, where a function needs no name. Positions are those of the text
/// without them. `None` if the text is not one function.
pub(crate) fn function(text: &str) -> Result<Option<Module>, SyntaxErrors> {
    let text = format!("({}\n)", text.trim_end().trim_end_matches(';'));
    let module = typescript(&text, BytePos(0), TYPESCRIPT, None, |_| false)?;
    let is_function = matches!(
        module.body.as_slice(),
        [ModuleItem::Stmt(Stmt::Expr(statement))] if matches!(
            &*statement.expr,
            Expr::Paren(paren)
                if paren.span.hi.0 as usize == text.len() && matches!(*paren.expr, Expr::Fn(_))
        )
    );
    Ok(is_function.then_some(module))
}

/// The text with blanks instead of comments; positions stay.
pub(crate) fn without_comments(text: &str) -> Result<String, SyntaxErrors> {
    let comments = SingleThreadedComments::default();
    typescript(text, BytePos(1), TYPESCRIPT, Some(&comments), |_| false)?;
    let (leading, trailing) = comments.borrow_all();
    let comments = leading.values().chain(trailing.values()).flatten();
    Ok(Edits::default().apply(text, comments.map(|comment| range(comment.span))))
}

/// Parses a text the way V8 will: as a classic script, without types.
pub(crate) fn classic_script(text: &str) -> Result<Script, SyntaxErrors> {
    let syntax = EsSyntax {
        explicit_resource_management: true,
        ..EsSyntax::default()
    };
    let mut parser = parser(text, BytePos(1), Syntax::Es(syntax), None);
    let script = parser.parse_script();
    checked(script, parser.take_errors(), |_| false)
}

/// Syntax errors, at bytes of the text that was parsed.
pub(crate) struct SyntaxErrors {
    /// The byte of the first error.
    pub(crate) position: usize,
    pub(crate) message: String,
    /// The number of errors after the first.
    pub(crate) more: usize,
}

/// The byte of a text for a position of swc, which counts from 1.
pub(crate) fn offset(position: BytePos) -> usize {
    position.0.saturating_sub(1) as usize
}

/// The bytes of a text that a span covers.
pub(crate) fn range(span: Span) -> std::ops::Range<usize> {
    offset(span.lo)..offset(span.hi)
}

/// Parses a text as a module whose first byte is at `start`.
fn typescript(
    text: &str,
    start: BytePos,
    syntax: TsSyntax,
    comments: Option<&dyn Comments>,
    ignore: fn(&Error) -> bool,
) -> Result<Module, SyntaxErrors> {
    let mut parser = parser(text, start, Syntax::Typescript(syntax), comments);
    let module = parser.parse_module();
    checked(module, parser.take_errors(), ignore)
}

fn parser<'t>(
    text: &'t str,
    start: BytePos,
    syntax: Syntax,
    comments: Option<&'t dyn Comments>,
) -> Parser<Lexer<'t>> {
    let end = BytePos(u32::try_from(text.len()).unwrap_or(u32::MAX - 1) + start.0);
    let input = StringInput::new(text, start, end);
    Parser::new_from(Lexer::new(syntax, EsVersion::latest(), input, comments))
}

fn checked<T>(
    parsed: PResult<T>,
    errors: Vec<Error>,
    ignore: fn(&Error) -> bool,
) -> Result<T, SyntaxErrors> {
    let (parsed, fatal) = match parsed {
        Ok(parsed) => (Some(parsed), None),
        Err(error) => (None, Some(error)),
    };
    let mut errors: Vec<Error> = errors
        .into_iter()
        .filter(|error| !ignore(error))
        .chain(fatal)
        .collect();
    errors.sort_by_key(|error| error.span().lo);
    errors.dedup_by_key(|error| error.span().lo);
    match (parsed, errors.first()) {
        (Some(parsed), None) => Ok(parsed),
        (_, first) => Err(SyntaxErrors {
            position: first.map_or(0, |error| offset(error.span().lo)),
            message: first.map_or_else(|| "not TypeScript".to_owned(), |e| plain(e.kind())),
            more: errors.len().saturating_sub(1),
        }),
    }
}

/// Maximum commas in a list of expected tokens; a longer list does not help.
const MAX_EXPECTED: usize = 4;

/// The parser's message in plain words.
fn plain(error: &SyntaxError) -> String {
    match error {
        SyntaxError::WithLabel { inner, .. } => plain(inner.kind()),
        SyntaxError::Eof => "the script ends here, but something in it is still open".to_owned(),
        SyntaxError::Expected(_, got) | SyntaxError::Unexpected { got, .. } if got == "<eof>" => {
            plain(&SyntaxError::Eof)
        }
        SyntaxError::Unexpected { got, expected } => {
            let got = if got == "ident" { "a name" } else { got };
            if expected.matches(',').count() > MAX_EXPECTED {
                return format!("unexpected {got}");
            }
            format!("unexpected {got}; {expected} is expected")
        }
        SyntaxError::TS1085 => "octal numbers are written \"0o10\"".to_owned(),
        SyntaxError::LegacyCommentInModule => OLD_COMMENT.to_owned(),
        SyntaxError::TS1003 | SyntaxError::ExpectedIdent => "a name is expected here".to_owned(),
        SyntaxError::TS1109 | SyntaxError::InvalidExpr => {
            "an expression is expected here".to_owned()
        }
        SyntaxError::TS1005 | SyntaxError::ExpectedSemi => {
            "a semicolon or a new line is expected here".to_owned()
        }
        SyntaxError::ExpectedSemiForExprStmt { .. } => {
            "a semicolon or a new line is expected here".to_owned()
        }
        SyntaxError::WithInStrict | SyntaxError::TS2410 => {
            "\"with\" is not available: scripts are strict".to_owned()
        }
        SyntaxError::AwaitInFunction => {
            "\"await\" needs an async function; write \"async\" before the function around it"
                .to_owned()
        }
        SyntaxError::ReturnNotAllowed => "\"return\" is not allowed here".to_owned(),
        other => {
            let message = other.msg();
            let message = message
                .trim_end_matches('.')
                .replace("<eof>", "end of the script");
            // Only a plain first word becomes lower case, not TypeScript's own names.
            let mut characters = message.chars();
            match (characters.next(), characters.clone().next()) {
                (Some(first), Some(second))
                    if !second.is_uppercase() && !second.is_ascii_digit() =>
                {
                    first.to_lowercase().chain(characters).collect()
                }
                _ => message,
            }
        }
    }
}
