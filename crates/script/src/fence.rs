//! Fences of code blocks that happen to parse. Prose before a fence may be an expression, a label or
//! a comment. The backticks are then template literals: two are empty, and the content of the block
//! is a third one, tagged with the first.

use swc_ecma_ast::{Module, TaggedTpl};
use swc_ecma_visit::{Visit, VisitWith};

use crate::parse::offset;

/// True if a line that starts with a fence was parsed as template literals.
pub(crate) fn is_parsed(code: &str, module: &Module) -> bool {
    let mut finder = Finder { code, found: false };
    module.visit_with(&mut finder);
    finder.found
}

struct Finder<'a> {
    code: &'a str,
    found: bool,
}

impl Visit for Finder<'_> {
    fn visit_tagged_tpl(&mut self, tagged: &TaggedTpl) {
        let before = self.code.get(..offset(tagged.tpl.span.lo));
        // The third backtick opens the text.
        if let Some(before) = before.and_then(|before| before.strip_suffix("``")) {
            let line = before.rsplit(['\n', '\r', '\u{2028}', '\u{2029}']).next();
            self.found |= line.unwrap_or_default().trim().is_empty();
        }
        tagged.visit_children_with(self);
    }
}
