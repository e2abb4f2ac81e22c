//! Removes types from the wrapped code: blanks them in place, or else transforms the code.

use std::sync::{Arc, Mutex};

use swc_common::errors::{DiagnosticBuilder, Emitter, Handler};
use swc_common::sync::Lrc;
use swc_common::{GLOBALS, Globals, SourceMap};
use swc_ts_fast_strip::{ErrorCode, Mode, Options, TransformConfig, TransformOutput, operate};

use crate::parse::{self, SyntaxErrors, TYPESCRIPT, offset};

/// JavaScript without types.
pub(crate) enum Stripped {
    /// The code with unchanged lines and columns.
    InPlace(String),
    /// The code, reprinted.
    Printed {
        code: String,
        /// A source map, as JSON, from `code` to the text.
        map: String,
    },
}

pub(crate) fn strip(text: &str) -> Result<Stripped, SyntaxErrors> {
    match attempt(text, Mode::StripOnly) {
        Ok(output) => Ok(Stripped::InPlace(output.code)),
        Err((ErrorCode::UnsupportedSyntax, _)) => {
            // When swc makes a map, it prints comments, and a comment of two lines between `return`
            // and its value would end the statement.
            let text = parse::without_comments(text)?;
            attempt(&text, Mode::Transform)
                .map(|output| Stripped::Printed {
                    code: output.code,
                    map: output.map.unwrap_or_default(),
                })
                .map_err(|(_, errors)| errors)
        }
        Err((_, errors)) => Err(errors),
    }
}

fn attempt(text: &str, mode: Mode) -> Result<TransformOutput, (ErrorCode, SyntaxErrors)> {
    let map: Lrc<SourceMap> = Lrc::default();
    let messages = Messages::default();
    let handler = Handler::with_emitter(false, false, Box::new(messages.clone()));
    let mut transform = TransformConfig::default();
    transform.typescript.no_empty_export = true;
    transform.typescript.ts_enum_is_mutable = true;
    transform.typescript.native_class_properties = true;
    let options = Options {
        module: Some(true),
        parser: TYPESCRIPT,
        source_map: matches!(mode, Mode::Transform),
        mode,
        transform: Some(transform),
        ..Options::default()
    };
    let result = GLOBALS.set(&Globals::new(), || {
        operate(&map, &handler, text.to_owned(), options)
    });
    result.map_err(|error| {
        let mut found = messages
            .found
            .lock()
            .map(|mut found| std::mem::take(&mut *found));
        let errors = match &mut found {
            Ok(found) if !found.is_empty() => {
                let more = found.len() - 1;
                let (position, message) = found.swap_remove(0);
                SyntaxErrors {
                    position,
                    message,
                    more,
                }
            }
            _ => SyntaxErrors {
                position: 0,
                message: error.message,
                more: 0,
            },
        };
        (error.code, errors)
    })
}

/// Keeps the stripper's messages instead of printing them.
#[derive(Clone, Default)]
struct Messages {
    found: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Emitter for Messages {
    fn emit(&mut self, diagnostic: &mut DiagnosticBuilder<'_>) {
        let position = diagnostic
            .span
            .primary_span()
            .map_or(0, |span| offset(span.lo));
        if let Ok(mut found) = self.found.lock() {
            found.push((position, diagnostic.message()));
        }
    }
}
