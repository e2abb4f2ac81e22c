//! A guard against constants that grow when a script is printed anew.
//!
//! The printer works out the values of enum members, and of the constants they may be made from,
//! and writes members of a `const enum` where they are used. `B = A + A`, `C = B + B` and so on
//! would double a text with each line. This adds up what it could come to, by names alone: what has
//! the same name counts as the longest of them.

use std::collections::HashMap;

use swc_common::{Span, Spanned};
use swc_ecma_ast::{
    BinaryOp, Expr, Lit, MemberExpr, MemberProp, Module, Pat, TsEnumDecl, TsEnumMemberId, VarDecl,
    VarDeclKind,
};
use swc_ecma_visit::{Visit, VisitWith};

/// The most bytes that the worked out constants of a script may come to: 16 MiB.
pub(crate) const MAX_FOLDED: usize = 16 * 1024 * 1024;

/// Where constants become too long, if they do.
pub(crate) fn too_long(module: &Module) -> Option<Span> {
    let mut sizes = Sizes::default();
    module.visit_with(&mut sizes);
    sizes.too_long
}

/// A number, as it is written.
const NUMBER: usize = 25;

#[derive(Default)]
struct Sizes {
    /// The longest value of each name so far.
    of: HashMap<String, usize>,
    total: usize,
    too_long: Option<Span>,
}

impl Sizes {
    fn named(&self, name: &str) -> usize {
        self.of.get(name).copied().unwrap_or(0)
    }

    fn add(&mut self, size: usize, span: Span) {
        self.total = self.total.saturating_add(size);
        if self.total > MAX_FOLDED {
            self.too_long.get_or_insert(span);
        }
    }

    fn define(&mut self, name: &str, size: usize, span: Span) {
        let longest = self.of.entry(name.to_owned()).or_default();
        *longest = size.max(*longest);
        self.add(size, span);
    }

    /// The longest text that an expression can come to, if it is worked out; 0
    /// where it can only be a number.
    fn size(&self, expr: &Expr) -> usize {
        match expr {
            Expr::Lit(Lit::Str(text)) => text.value.len().max(1),
            Expr::Ident(name) => self.named(&name.sym),
            Expr::Member(member) => property(&member.prop).map_or(0, |name| self.named(&name)),
            Expr::OptChain(chain) => chain
                .base
                .as_member()
                .and_then(|member| property(&member.prop))
                .map_or(0, |name| self.named(&name)),
            Expr::Bin(both) if both.op == BinaryOp::Add => {
                match (self.size(&both.left), self.size(&both.right)) {
                    (0, 0) => 0,
                    (left, right) => left.max(NUMBER).saturating_add(right.max(NUMBER)),
                }
            }
            Expr::Tpl(template) => {
                let texts = template.quasis.iter().map(|text| text.raw.len());
                let values = template
                    .exprs
                    .iter()
                    .map(|expr| self.size(expr).max(NUMBER));
                texts.chain(values).fold(1, usize::saturating_add)
            }
            Expr::Paren(inner) => self.size(&inner.expr),
            Expr::TsAs(inner) => self.size(&inner.expr),
            Expr::TsSatisfies(inner) => self.size(&inner.expr),
            Expr::TsNonNull(inner) => self.size(&inner.expr),
            Expr::TsConstAssertion(inner) => self.size(&inner.expr),
            Expr::TsTypeAssertion(inner) => self.size(&inner.expr),
            Expr::TsInstantiation(inner) => self.size(&inner.expr),
            _ => 0,
        }
    }
}

impl Visit for Sizes {
    fn visit_ts_enum_decl(&mut self, declared: &TsEnumDecl) {
        for member in &declared.members {
            let name = match &member.id {
                TsEnumMemberId::Ident(name) => name.sym.to_string(),
                TsEnumMemberId::Str(name) => name.value.to_string_lossy().into_owned(),
            };
            let size = member.init.as_ref().map_or(0, |init| self.size(init));
            self.define(&name, size, member.span);
        }
        declared.visit_children_with(self);
    }

    fn visit_var_decl(&mut self, declared: &VarDecl) {
        for one in &declared.decls {
            if let (VarDeclKind::Const, Pat::Ident(name), Some(init)) =
                (declared.kind, &one.name, &one.init)
            {
                let size = self.size(init);
                self.define(&name.sym, size, one.span);
            }
        }
        declared.visit_children_with(self);
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        if let Some(name) = property(&member.prop) {
            self.add(self.named(&name), member.span());
        }
        member.visit_children_with(self);
    }
}

fn property(property: &MemberProp) -> Option<String> {
    match property {
        MemberProp::Ident(name) => Some(name.sym.to_string()),
        MemberProp::Computed(computed) => match &*computed.expr {
            Expr::Lit(Lit::Str(text)) => Some(text.value.to_string_lossy().into_owned()),
            Expr::Tpl(template) => Some(template.quasis.first()?.raw.to_string()),
            _ => None,
        },
        MemberProp::PrivateName(_) => None,
    }
}
