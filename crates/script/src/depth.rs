//! Limits the nesting depth of code. The parser's recursion has a stack of sufficient size, and the
//! later passes see only trees of a bounded depth.

use swc_ecma_ast::{ClassMember, Expr, Module, Pat, Stmt, TsType};
use swc_ecma_visit::{Visit, VisitWith};

/// Maximum nesting of expressions, statements, patterns and types.
pub const MAX_DEPTH: usize = 1_000;

/// The first place where code is nested deeper than [`MAX_DEPTH`], if any.
pub(crate) fn too_deep(module: &Module) -> Option<swc_common::Span> {
    let mut meter = Meter {
        depth: 0,
        too_deep: None,
    };
    module.visit_with(&mut meter);
    meter.too_deep
}

struct Meter {
    depth: usize,
    too_deep: Option<swc_common::Span>,
}

impl Meter {
    fn enter<N: VisitWith<Self> + swc_common::Spanned>(&mut self, node: &N) {
        if self.depth == MAX_DEPTH {
            self.too_deep.get_or_insert(node.span());
        } else if self.too_deep.is_none() {
            self.depth += 1;
            node.visit_children_with(self);
            self.depth -= 1;
        }
    }
}

impl Visit for Meter {
    fn visit_expr(&mut self, node: &Expr) {
        self.enter(node);
    }

    fn visit_stmt(&mut self, node: &Stmt) {
        self.enter(node);
    }

    fn visit_pat(&mut self, node: &Pat) {
        self.enter(node);
    }

    fn visit_ts_type(&mut self, node: &TsType) {
        self.enter(node);
    }

    fn visit_class_member(&mut self, node: &ClassMember) {
        self.enter(node);
    }
}
