//! Internal crate of Callgate: parses a TypeScript script, normalises its form, strips its types.
//!
//! [`prepare`] turns an author's text into one async function expression with a source map: where
//! types can be blanked, code is one line lower in the same columns. Accepted are statements with
//! `await` and `return` at the top level, `export default`, one function, one expression, and a fenced
//! code block around any of these. The author's text is parsed before it is wrapped, and the result is
//! parsed again like V8 parses it, so that no text can end the function around it.

mod checkable;
mod depth;
mod error;
mod fence;
mod foreign_apis;
mod form;
mod inexact_numbers;
mod mentions;
mod parse;
mod parser_stack;
mod positions;
mod rewritten;
mod source;
mod strip;
mod types;

use swc_ecma_ast::{Expr, Module, Script, Stmt};

pub use checkable::Checkable;
pub use depth::MAX_DEPTH;
pub use error::{ScriptError, ScriptErrorKind, printable};
pub use foreign_apis::replacement_for;
pub use form::Form;
pub use mentions::{Mention, Mentions};
pub use parser_stack::{MAX_SCRIPT_BYTES, stack_bytes};
pub use positions::{MappedRange, author_place};
pub use source::{line, line_and_column};
pub use types::{MAX_TYPE_BYTES, TypeTextError, json_schema};

use error::Place;
use form::Wrapping;
use parse::SyntaxErrors;
use serde::{Deserialize, Serialize};
use source::Source;
use strip::Stripped;
use swc_sourcemap::SourceMap;

/// A script that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// One JavaScript expression, to be evaluated as a classic script: an async
    /// function without parameters. Its promise is the script's value.
    pub code: String,
    /// Source map: ranges of `code` and their places in the author's text, in order.
    pub source_map: Vec<MappedRange>,
    pub form: Form,
    pub mentions: Mentions,
    pub checkable: Checkable,
    /// True if the script is not the text itself but [`rewritten`] code; all places are in that code.
    pub is_rewritten: bool,
}

/// The plain code of a text that has it in JSON, with HTML entities, or with lookalike characters.
pub fn rewritten(source: &str) -> Option<String> {
    rewritten::rewrite(source)?.code
}

/// Prepares a script for the sandbox. If the text is not a script but [`rewritten`] can turn it into
/// one, that is used.
///
/// Worst cases: time quadratic in the length or exponential in the nesting, and several hundred MiB
/// of memory. Call it only in a process that can be killed. No text makes it panic.
///
/// # Errors
///
/// The text is not TypeScript, uses a feature that scripts lack, or exceeds [`MAX_SCRIPT_BYTES`] or
/// [`MAX_DEPTH`].
pub fn prepare(source: &str) -> Result<Prepared, ScriptError> {
    if source.len() > MAX_SCRIPT_BYTES {
        let message = format!(
            "the script is over the limit of {MAX_SCRIPT_BYTES} bytes; let it fetch its data with \
             tools"
        );
        return Err(ScriptError::without_place(
            ScriptErrorKind::TooLong,
            message,
        ));
    }
    let prepared = parser_stack::run(source, prepare_or_rewrite);
    prepared.unwrap_or_else(|_panicked| Err(parser_failed(source)))
}

fn internal(message: impl Into<String>) -> ScriptError {
    ScriptError::without_place(ScriptErrorKind::Internal, message)
}

fn parser_failed(text: &str) -> ScriptError {
    // The parser is known to panic on some of these comments.
    match (
        Source::new(text),
        text.find("<!--").or_else(|| text.find("-->")),
    ) {
        (Ok(source), Some(position)) => {
            source.error(ScriptErrorKind::Syntax, parse::OLD_COMMENT, position)
        }
        _ => internal("the parser failed on this script; write it in simpler pieces"),
    }
}

fn prepare_or_rewrite(text: &str) -> Result<Prepared, ScriptError> {
    let unchanged = prepare_code(text);
    let Some(rewrite) = rewritten::rewrite(text) else {
        return unchanged;
    };
    let code = rewrite.code.as_deref().map(prepare_code);
    match (code, unchanged) {
        (Some(Ok(prepared)), _) => Ok(Prepared {
            is_rewritten: true,
            ..prepared
        }),
        (Some(Err(inner)), Err(error)) => {
            let message = format!("{} (in that code: {})", rewrite.advice, inner.message());
            Err(error.with_message(message))
        }
        (None, Err(error)) => Err(error.with_message(rewrite.advice.to_owned())),
        (_, Ok(prepared)) => Ok(prepared),
    }
}

fn prepare_code(text: &str) -> Result<Prepared, ScriptError> {
    let source = Source::new(text)?;
    let parsed = parse_unwrapped(&source).map_err(|error| match error.kind() {
        ScriptErrorKind::Syntax => source.prose().unwrap_or(error),
        _ => error,
    })?;
    let (wrapped, in_place) = wrap(&source, &parsed.wrapping);
    let (code, source_map) = strip_types(&wrapped, in_place)?;
    let script = parse::classic_script(&code)
        .map_err(|errors| wrapped_error(&code, &source_map, &errors))?;
    if !is_one_async_function(&script) {
        return Err(internal(
            "the script does not stay inside the function around it",
        ));
    }
    Ok(Prepared {
        code,
        source_map,
        form: parsed.wrapping.form,
        mentions: parsed.mentions,
        checkable: parsed.checkable,
        is_rewritten: false,
    })
}

/// The code inside an async function, and its source map.
fn wrap(source: &Source, wrapping: &Wrapping) -> (String, Vec<MappedRange>) {
    let (head, tail) = (&wrapping.head, &wrapping.tail);
    let code = source.code_with(&wrapping.edits);
    let wrapped = format!("(async () => {{\"use strict\";{head}\n{code}{tail}");
    let place = |at| {
        let place = source.place(at);
        (place.line, place.column)
    };
    let value = wrapping.value.map(|at| {
        let first_line = wrapped.split('\n').next().unwrap_or_default();
        let statement = first_line.rfind("; ").map_or(0, |end| end + "; ".len());
        (u32::try_from(statement + 1).unwrap_or(1), place(at))
    });
    let returned = wrapping.returned.map(place);
    let source_map = positions::in_place(source.lines(), value, returned);
    (wrapped, source_map)
}

/// The wrapped code without types, and its source map.
fn strip_types(
    wrapped: &str,
    in_place: Vec<MappedRange>,
) -> Result<(String, Vec<MappedRange>), ScriptError> {
    match strip::strip(wrapped).map_err(|errors| wrapped_error(wrapped, &in_place, &errors))? {
        Stripped::InPlace(code) => Ok((code, in_place)),
        Stripped::Printed { code, map } => {
            let map = SourceMap::from_slice(map.as_bytes()).map_err(|error| {
                internal(format!("the script's source map cannot be read: {error}"))
            })?;
            let source_map = positions::through(&map, &in_place);
            // As a statement, the function is printed without parentheses.
            let code = format!("({})", code.trim_end().trim_end_matches(';'));
            Ok((code, source_map))
        }
    }
}

/// The results of parsing the author's code before it is wrapped.
struct Parsed {
    wrapping: Wrapping,
    mentions: Mentions,
    checkable: Checkable,
}

fn parse_unwrapped(source: &Source) -> Result<Parsed, ScriptError> {
    let code = source.code();
    let first = match parse::module(&code) {
        Ok(module) => {
            if let Some(error) = source.prose()
                && fence::is_parsed(&code, &module)
            {
                return Err(error);
            }
            check_runnable(source, &module)?;
            return Ok(Parsed {
                wrapping: form::wrapping(source, &module)?,
                checkable: checkable::of_module(source, &module),
                mentions: mentions::find(source, module),
            });
        }
        Err(errors) => errors,
    };
    // A function expression without a name is not a statement.
    match parse::function(&code) {
        Ok(Some(module)) => {
            check_runnable(source, &module)?;
            Ok(Parsed {
                wrapping: form::function_expression(source, &module)?,
                checkable: checkable::of_function(source),
                mentions: mentions::find(source, module),
            })
        }
        // An error past the end is in the parentheses around the code.
        Err(errors) if (first.position + 1..code.len()).contains(&errors.position) => {
            Err(syntax_error(source, &errors))
        }
        _ => match parse::anything(&code).and_then(|m| foreign_apis::find_unsupported(&m)) {
            Some((span, message)) => {
                let at = parse::offset(span.lo);
                Err(source.error(ScriptErrorKind::Unsupported, message, at))
            }
            None => Err(syntax_error(source, &first)),
        },
    }
}

/// Refuses code that parses but must not run: foreign syntax, deep nesting, inexact numbers.
fn check_runnable(source: &Source, module: &Module) -> Result<(), ScriptError> {
    if let Some((span, message)) = foreign_apis::find_unsupported(module) {
        let at = parse::offset(span.lo);
        return Err(source.error(ScriptErrorKind::Unsupported, message, at));
    }
    if let Some(span) = depth::too_deep(module) {
        return Err(source.error(
            ScriptErrorKind::TooComplex,
            format!("the code is nested more than {MAX_DEPTH} deep; write it in simpler pieces"),
            parse::offset(span.lo),
        ));
    }
    if let Some((span, message)) = inexact_numbers::first(module) {
        let at = parse::offset(span.lo);
        return Err(source.error(ScriptErrorKind::Unsupported, message, at));
    }
    Ok(())
}

fn syntax_error(source: &Source, errors: &SyntaxErrors) -> ScriptError {
    let mut message = with_count(errors);
    if foreign_apis::is_python(&source.code()) {
        message = format!("this looks like Python, and scripts are TypeScript: {message}");
    }
    source.error(ScriptErrorKind::Syntax, message, errors.position)
}

fn wrapped_error(code: &str, source_map: &[MappedRange], errors: &SyntaxErrors) -> ScriptError {
    let (line, column) = line_and_column(code, errors.position);
    let place = author_place(source_map, line, column).map(|(line, column)| Place { line, column });
    ScriptError::new(ScriptErrorKind::Syntax, with_count(errors), place)
}

fn with_count(errors: &SyntaxErrors) -> String {
    match errors.more {
        0 => errors.message.clone(),
        1 => format!("{} (and 1 more error)", errors.message),
        more => format!("{} (and {more} more errors)", errors.message),
    }
}

/// True if the code is only one async function.
fn is_one_async_function(script: &Script) -> bool {
    let [Stmt::Expr(statement)] = script.body.as_slice() else {
        return false;
    };
    let expr = statement.expr.unwrap_parens();
    matches!(expr, Expr::Arrow(arrow) if arrow.is_async && arrow.params.is_empty())
}
