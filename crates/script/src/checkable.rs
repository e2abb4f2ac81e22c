//! The text for a type checker: the author's own code with its types, as one module.
//!
//! The author's code is not wrapped, so that namespaces, `declare` and other statements of a module's
//! top level are valid. Two constructs that a module cannot have are overwritten in place: a `return`
//! at the top level, and a function without a name that is not an expression.

use serde::{Deserialize, Serialize};
use swc_common::Span;
use swc_ecma_ast::{
    ArrowExpr, Constructor, Function, GetterProp, Module, ReturnStmt, SetterProp, StaticBlock,
};
use swc_ecma_visit::{Visit, VisitWith};

use crate::parse::range;
use crate::source::{Edits, Source};

/// A script with its types, for a type checker.
///
/// Check it as one ES module, with `target` and `module` `esnext`. Lines end where JavaScript ends
/// them, including U+2028 and U+2029.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkable {
    /// TypeScript. Its first lines are generated, so comments with a meaning only at the start of a
    /// file, such as `/// <reference …/>` and `// @ts-nocheck`, have no effect.
    pub text: String,
    /// Lines of `text` before the author's first line. Columns are the author's own.
    pub line_offset: u32,
    /// True if the code block is marked as JavaScript.
    pub is_javascript: bool,
}

/// The checkable text of statements.
pub(crate) fn of_module(source: &Source, module: &Module) -> Checkable {
    let mut returns = TopReturns::default();
    module.visit_with(&mut returns);
    let mut head = "export {};".to_owned();
    let mut edits = Edits::default();
    let end = returns.bare.first().map(|_| short_name(source.text()));
    for span in returns.with_value {
        // A `throw` ends the statements like a `return`, and the checker checks its value too.
        let start = range(span).start;
        edits.write(start..start + "return".len(), "throw");
    }
    if let Some(end) = end {
        // A `throw` needs a value and does not fit into six characters; a call of a function that
        // never returns does. The semicolon keeps it a statement.
        head.push_str(&format!(" declare function {end}(): never;"));
        for span in returns.bare {
            edits.write(range(span), &format!("{end}();"));
        }
    }
    with_head(&head, source, &edits)
}

/// The checkable text of a function expression without a name.
pub(crate) fn of_function(source: &Source) -> Checkable {
    with_head("export default", source, &Edits::default())
}

fn with_head(head: &str, source: &Source, edits: &Edits) -> Checkable {
    Checkable {
        text: format!("{head}\n{}\n", source.code_with(edits)),
        line_offset: 1,
        is_javascript: source.is_javascript(),
    }
}

/// A name of up to three characters that is not in the text, if there is one: a call of it with a
/// semicolon is as wide as `return`.
fn short_name(text: &str) -> String {
    let mut names = (10..100).map(|number| format!("${number}"));
    // A text with all of these names gets wrong diagnostics, which harms only itself.
    let unused = names.find(|name| !text.contains(name.as_str()));
    unused.unwrap_or_else(|| "$$$".to_owned())
}

/// Finds each `return` outside of functions.
#[derive(Default)]
struct TopReturns {
    with_value: Vec<Span>,
    bare: Vec<Span>,
}

impl Visit for TopReturns {
    fn visit_return_stmt(&mut self, statement: &ReturnStmt) {
        match statement.arg {
            Some(_) => self.with_value.push(statement.span),
            None => self.bare.push(statement.span),
        }
    }

    fn visit_function(&mut self, _: &Function) {}
    fn visit_arrow_expr(&mut self, _: &ArrowExpr) {}
    fn visit_constructor(&mut self, _: &Constructor) {}
    fn visit_getter_prop(&mut self, _: &GetterProp) {}
    fn visit_setter_prop(&mut self, _: &SetterProp) {}
    fn visit_static_block(&mut self, _: &StaticBlock) {}
}
