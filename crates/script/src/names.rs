//! The tools a script names.

use std::collections::HashSet;

use swc_common::{GLOBALS, Globals, Mark, Span};
use swc_ecma_ast::{
    CallExpr, Callee, Expr, Ident, Lit, MemberExpr, MemberProp, Module, Program, Prop,
};
use swc_ecma_transforms_base::resolver;
use swc_ecma_visit::{Visit, VisitWith};

use crate::form::USE_TOOLS;
use crate::parse::offset;
use crate::source::Source;
use crate::{ScriptError, ScriptErrorKind};

/// The tools a script may call, as far as its text tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// Every name that is used but not declared in the script, JavaScript's own
    /// globals among them, and every name that is given to `mcp.callTool` as a
    /// literal. Each once, where it first stands. Which of them are tools, only
    /// a catalog knows.
    pub tools: Vec<Mention>,
    /// Whether the script may also call tools whose names its text does not
    /// tell, such as `mcp.callTool(name)` or `globalThis[name]`.
    pub dynamic: bool,
}

/// A name in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mention {
    /// The name.
    pub name: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1, in UTF-16 units.
    pub column: u32,
}

/// Finds the tools that a module names.
///
/// # Errors
///
/// An error where it calls `require`.
pub(crate) fn named(source: &Source, module: Module) -> Result<Named, ScriptError> {
    let (mut found, dynamic, require) = GLOBALS.set(&Globals::new(), || {
        let unresolved = Mark::new();
        let mut program = Program::Module(module);
        program.mutate(&mut resolver(unresolved, Mark::new(), true));
        let mut finder = Finder {
            unresolved,
            found: Vec::new(),
            dynamic: false,
            require: None,
        };
        program.visit_with(&mut finder);
        (finder.found, finder.dynamic, finder.require)
    });
    if let Some(span) = require {
        return Err(source.error(ScriptErrorKind::Unsupported, USE_TOOLS, offset(span.lo)));
    }
    found.sort_by_key(|(_, at)| *at);
    let mut seen = HashSet::new();
    found.retain(|(name, _)| seen.insert(name.clone()));
    let tools = found
        .into_iter()
        .map(|(name, at)| {
            let place = source.place(at);
            Mention {
                name,
                line: place.line,
                column: place.column,
            }
        })
        .collect();
    Ok(Named { tools, dynamic })
}

struct Finder {
    unresolved: Mark,
    found: Vec<(String, usize)>,
    dynamic: bool,
    /// Where `require` is called, if it is.
    require: Option<Span>,
}

impl Finder {
    fn is_free(&self, name: &Ident) -> bool {
        name.ctxt.outer() == self.unresolved
    }

    fn is_global(&self, expr: &Expr, names: &[&str]) -> bool {
        matches!(expr, Expr::Ident(name) if names.contains(&&*name.sym) && self.is_free(name))
    }

    fn name(&mut self, name: &str, span: Span) {
        self.found.push((name.to_owned(), offset(span.lo)));
    }

    fn ident(&mut self, name: &Ident) {
        if !self.is_free(name) {
            return;
        }
        if name.sym == *"mcp" || GLOBAL_OBJECTS.contains(&&*name.sym) {
            // Handed on as a value, anything may be read from it.
            self.dynamic = true;
        } else {
            self.name(&name.sym, name.span);
        }
    }
}

impl Visit for Finder {
    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Expr(callee) = &call.callee
            && self.is_global(without_wrappers(callee), &["require"])
        {
            self.require.get_or_insert(call.span);
        }
        if let Callee::Expr(callee) = &call.callee
            && let Expr::Member(member) = without_wrappers(callee)
            && self.is_global(&member.obj, &["mcp"])
            && property(&member.prop).as_deref() == Some("callTool")
        {
            match call
                .args
                .first()
                .map(|argument| (&*argument.expr, argument.spread))
            {
                Some((argument, None)) if literal(argument).is_some() => {
                    if let Some((name, span)) = literal(argument) {
                        self.name(&name, span);
                    }
                }
                _ => self.dynamic = true,
            }
            call.args.visit_with(self);
            return;
        }
        call.visit_children_with(self);
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        if self.is_global(&member.obj, &["mcp"]) {
            match property(&member.prop).as_deref() {
                // A reference to the function itself may be called with any
                // name; what else is there calls nothing.
                Some("callTool") | None => self.dynamic = true,
                Some(_) => {}
            }
            member.prop.visit_with(self);
        } else if self.is_global(&member.obj, GLOBAL_OBJECTS) {
            match property(&member.prop).as_deref() {
                Some("mcp") | None => self.dynamic = true,
                Some(name) => self.name(name, member.span),
            }
            member.prop.visit_with(self);
        } else {
            member.visit_children_with(self);
        }
    }

    fn visit_expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Ident(name) => self.ident(name),
            _ => expr.visit_children_with(self),
        }
    }

    fn visit_prop(&mut self, prop: &Prop) {
        match prop {
            Prop::Shorthand(name) => self.ident(name),
            _ => prop.visit_children_with(self),
        }
    }
}

/// The name of a property, if the text tells it.
fn property(property: &MemberProp) -> Option<String> {
    match property {
        MemberProp::Ident(name) => Some(name.sym.to_string()),
        MemberProp::Computed(computed) => literal(&computed.expr).map(|(name, _)| name),
        MemberProp::PrivateName(_) => None,
    }
}

/// The text of a string, and where it stands.
fn literal(expr: &Expr) -> Option<(String, Span)> {
    match without_wrappers(expr) {
        Expr::Lit(Lit::Str(text)) => Some((text.value.to_string_lossy().into_owned(), text.span)),
        Expr::Tpl(template) if template.exprs.is_empty() => {
            let text = template.quasis.first()?.cooked.as_ref()?;
            Some((text.to_string_lossy().into_owned(), template.span))
        }
        _ => None,
    }
}

/// An expression without parentheses and types around it.
fn without_wrappers(expr: &Expr) -> &Expr {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Paren(inner) => &inner.expr,
            Expr::TsAs(inner) => &inner.expr,
            Expr::TsSatisfies(inner) => &inner.expr,
            Expr::TsNonNull(inner) => &inner.expr,
            Expr::TsConstAssertion(inner) => &inner.expr,
            Expr::TsInstantiation(inner) => &inner.expr,
            _ => return expr,
        };
    }
}

/// The names of the global object.
const GLOBAL_OBJECTS: &[&str] = &["globalThis", "self", "window", "global"];
