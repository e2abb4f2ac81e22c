//! Internal crate of Callgate: parses a TypeScript script, normalises its form, strips its types.
//!
//! [`prepare`] turns what an author wrote into the text of one async function expression, and says
//! where each part of it stands in the author's text: one line higher in the same columns, wherever
//! types can be blanked. Accepted are statements with `await` and `return` at the top, `export
//! default`, one function, one expression, and a fenced code block around any of these. The
//! author's text is parsed alone, before anything is put around it, and the result is parsed again
//! the way V8 will read it, so that no text can end the function around it.

mod checkable;
mod depth;
mod error;
mod fence;
mod foreign_apis;
mod form;
mod inexact_numbers;
mod names;
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
pub use foreign_apis::instead_of;
pub use form::Form;
pub use names::{Mention, Named};
pub use parser_stack::{MAX_SCRIPT_BYTES, stack_bytes};
pub use positions::{MappedRange, author_place};
pub use source::line;
pub use types::{MAX_TYPE_BYTES, TypeTextError, json_schema};

use error::Place;
use form::Wrapping;
use parse::SyntaxErrors;
use serde::{Deserialize, Serialize};
use source::{Source, line_and_column};
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
    /// The form in which the script was written.
    pub form: Form,
    /// The tools it names.
    pub named: Named,
    /// The script with its types, for a type checker.
    pub checkable: Checkable,
    /// True if the script is not the text itself but [`rewritten`] code, which the places above
    /// are in.
    pub is_rewritten: bool,
}

/// The code that a text has in JSON, with HTML entities or with characters that look like others.
pub fn rewritten(source: &str) -> Option<String> {
    rewritten::reading(source)?.code
}

/// Prepares a script for the sandbox. If the text is not a script but [`rewritten`] can turn it into
/// one, that is used.
///
/// Worst cases: time quadratic in the length or exponential in the nesting, and several hundred MiB
/// of memory. Call it only in a process that can be killed.
/// The error: [`ScriptError`] if the text is no TypeScript, uses what a script cannot have, or is
/// beyond [`MAX_SCRIPT_BYTES`] or [`MAX_DEPTH`]. No text makes it panic.
pub fn prepare(source: &str) -> Result<Prepared, ScriptError> {
    if source.len() > MAX_SCRIPT_BYTES {
        return Err(ScriptError::new(
            ScriptErrorKind::TooLong,
            format!(
                "the script is over {MAX_SCRIPT_BYTES} bytes, the most it may have; let it fetch its \
                 data with tools"
            ),
            None,
        ));
    }
    let prepared = parser_stack::run(source, prepare_reading);
    prepared.unwrap_or_else(|_panicked| Err(parser_failed(source)))
}

fn internal(message: impl Into<String>) -> ScriptError {
    ScriptError::new(ScriptErrorKind::Internal, message, None)
}

fn parser_failed(text: &str) -> ScriptError {
    // It is known to, on some of the comments that it refuses.
    match (
        Source::new(text),
        text.find("<!--").or_else(|| text.find("-->")),
    ) {
        (Ok(source), Some(position)) => {
            source.error(ScriptErrorKind::Syntax, parse::OLD_COMMENT, position)
        }
        _ => ScriptError::new(
            ScriptErrorKind::Internal,
            "the parser failed on this script; write it in simpler pieces",
            None,
        ),
    }
}

fn prepare_reading(text: &str) -> Result<Prepared, ScriptError> {
    let as_it_is = prepare_here(text);
    let Some(reading) = rewritten::reading(text) else {
        return as_it_is;
    };
    let code = reading.code.as_deref().map(prepare_here);
    match (code, as_it_is) {
        (Some(Ok(prepared)), _) => Ok(Prepared {
            is_rewritten: true,
            ..prepared
        }),
        (Some(Err(inner)), Err(error)) => {
            let message = format!("{} (in that code: {})", reading.advice, inner.message());
            Err(error.with_message(message))
        }
        (None, Err(error)) => Err(error.with_message(reading.advice.to_owned())),
        (_, Ok(prepared)) => Ok(prepared),
    }
}

fn prepare_here(text: &str) -> Result<Prepared, ScriptError> {
    let source = Source::new(text)?;
    let Alone {
        wrapping,
        named,
        checkable,
    } = match parse_alone(&source) {
        Ok(parsed) => parsed,
        Err(error) if error.kind() == ScriptErrorKind::Syntax => {
            return Err(source.prose().unwrap_or(error));
        }
        Err(error) => return Err(error),
    };
    let Wrapping {
        form,
        edits,
        head,
        tail,
        value,
        returned,
    } = wrapping;
    let wrapped = format!(
        "(async () => {{\"use strict\";{head}\n{}{tail}",
        source.code_with(&edits)
    );
    let value = value.map(|at| {
        let first_line = wrapped.split('\n').next().unwrap_or_default();
        let statement = first_line.rfind("; ").map_or(0, |end| end + "; ".len());
        let place = source.place(at);
        let column = u32::try_from(statement + 1).unwrap_or(1);
        (column, (place.line, place.column))
    });
    let returned = returned.map(|at| {
        let place = source.place(at);
        (place.line, place.column)
    });
    let in_place = positions::in_place(source.lines(), value, returned);
    let (code, source_map) =
        match strip::strip(&wrapped).map_err(|e| wrapped_error(&wrapped, &in_place, &e))? {
            Stripped::InPlace(code) => (code, in_place),
            Stripped::Printed { code, map } => {
                let map = SourceMap::from_slice(map.as_bytes()).map_err(|error| {
                    internal(format!("the script's source map cannot be read: {error}"))
                })?;
                // As a statement, the function is printed without parentheses.
                let source_map = positions::through(&map, &in_place);
                let code = format!("({})", code.trim_end().trim_end_matches(';'));
                (code, source_map)
            }
        };
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
        form,
        named,
        checkable,
        is_rewritten: false,
    })
}

/// The author's code, parsed with nothing around it.
struct Alone {
    wrapping: Wrapping,
    named: Named,
    checkable: Checkable,
}

/// Parses the author's code with nothing around it.
fn parse_alone(source: &Source) -> Result<Alone, ScriptError> {
    let code = source.code();
    let first = match parse::module(&code) {
        Ok(module) => {
            if let Some(error) = source.prose()
                && fence::is_parsed(&code, &module)
            {
                return Err(error);
            }
            sound(source, &module)?;
            return Ok(Alone {
                wrapping: form::wrapping(source, &module)?,
                checkable: checkable::of_module(source, &module),
                named: names::named(source, module)?,
            });
        }
        Err(errors) => errors,
    };
    // A function expression without a name is no statement.
    match parse::function(&code) {
        Ok(Some(module)) => {
            sound(source, &module)?;
            Ok(Alone {
                wrapping: form::function_expression(source, &module)?,
                checkable: checkable::of_function(source),
                named: names::named(source, module)?,
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

/// Refuses code that parses but cannot run: foreign APIs, deep nesting, inexact numbers.
fn sound(source: &Source, module: &Module) -> Result<(), ScriptError> {
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
    source.error(ScriptErrorKind::Syntax, with_count(errors), errors.position)
}

fn wrapped_error(code: &str, source_map: &[MappedRange], errors: &SyntaxErrors) -> ScriptError {
    let (line, column, _) = line_and_column(code, errors.position);
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

/// True if the code is one async function and nothing else.
fn is_one_async_function(script: &Script) -> bool {
    let [Stmt::Expr(statement)] = script.body.as_slice() else {
        return false;
    };
    let mut expr = &*statement.expr;
    while let Expr::Paren(inner) = expr {
        expr = &inner.expr;
    }
    matches!(expr, Expr::Arrow(arrow) if arrow.is_async && arrow.params.is_empty())
}
