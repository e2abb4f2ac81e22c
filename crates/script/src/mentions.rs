//! The tools that a script mentions.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use swc_common::{GLOBALS, Globals, Mark, Span};
use swc_ecma_ast::{
    CallExpr, Callee, Expr, Ident, Lit, MemberExpr, MemberProp, Module, ObjectPat, ObjectPatProp,
    Pat, Program, Prop, PropName, VarDeclarator,
};
use swc_ecma_transforms_base::resolver;
use swc_ecma_visit::{Visit, VisitWith};

use crate::parse::offset;
use crate::source::Source;

/// The tools that a script may call, according to its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mentions {
    /// Every name that is used but not declared in the script, including JavaScript's own globals,
    /// every literal argument of `mcp.callTool`, and `mcp.extract`. Each has its first place. A
    /// catalog decides which of them are tools.
    pub tools: Vec<Mention>,
    /// True if the script may also call tools by computed names: with `mcp.callTool(name)`, or by
    /// passing `mcp` on as a value.
    pub dynamic: bool,
    /// True if the script may read any property of the global object: with `globalThis[name]`, or by
    /// passing that object on as a value.
    pub global: bool,
    /// True if the script may read `mcp.stdin`.
    pub stdin: bool,
}

/// A name in a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    pub name: String,
    /// From 1.
    pub line: u32,
    /// From 1, in UTF-16 units.
    pub column: u32,
    /// True if the name is an argument of `mcp.callTool` somewhere, so that it must be a tool's.
    pub called: bool,
}

/// Finds the tools that a module mentions.
pub(crate) fn find(source: &Source, module: Module) -> Mentions {
    let mut finder = GLOBALS.set(&Globals::new(), || {
        let unresolved = Mark::new();
        let mut program = Program::Module(module);
        program.mutate(&mut resolver(unresolved, Mark::new(), true));
        let mut finder = Finder {
            unresolved,
            found: Vec::new(),
            called: HashSet::new(),
            dynamic: false,
            global: false,
            stdin: false,
            stdin_of_value: false,
        };
        program.visit_with(&mut finder);
        finder
    });
    finder.found.sort_by_key(|(_, at)| *at);
    let mut seen = HashSet::new();
    finder.found.retain(|(name, _)| seen.insert(name.clone()));
    let tools = finder.found.into_iter().map(|(name, at)| {
        let place = source.place(at);
        Mention {
            called: finder.called.contains(&name),
            name,
            line: place.line,
            column: place.column,
        }
    });
    // The value may be `mcp`, if that is passed on.
    let is_passed_on = finder.dynamic || finder.global;
    Mentions {
        tools: tools.collect(),
        dynamic: finder.dynamic,
        global: finder.global,
        stdin: finder.stdin || (finder.stdin_of_value && is_passed_on),
    }
}

struct Finder {
    unresolved: Mark,
    found: Vec<(String, usize)>,
    /// Literal arguments of `mcp.callTool`.
    called: HashSet<String>,
    dynamic: bool,
    global: bool,
    /// `mcp.stdin`.
    stdin: bool,
    /// The property `stdin` of any other value.
    stdin_of_value: bool,
}

impl Finder {
    fn is_free(&self, name: &Ident) -> bool {
        name.ctxt.outer() == self.unresolved
    }

    fn is_global(&self, expr: &Expr, names: &[&str]) -> bool {
        matches!(
            without_wrappers(expr),
            Expr::Ident(name) if names.contains(&&*name.sym) && self.is_free(name)
        )
    }

    fn name(&mut self, name: &str, span: Span) {
        self.found.push((name.to_owned(), offset(span.lo)));
    }

    fn ident(&mut self, name: &Ident) {
        if self.is_free(name) {
            self.global_name(&name.sym, name.span);
        }
    }

    /// Adds a property of the global object. Any property may be read of an object that is passed on
    /// as a value.
    fn global_name(&mut self, name: &str, span: Span) {
        if name == "mcp" {
            self.dynamic = true;
        } else if GLOBAL_OBJECTS.contains(&name) {
            self.global = true;
        } else {
            self.name(name, span);
        }
    }

    /// Adds the names that a pattern takes from the global object.
    fn pattern(&mut self, pattern: &ObjectPat) {
        for property in &pattern.props {
            let named = match property {
                ObjectPatProp::Assign(short) => Some((short.key.sym.to_string(), short.key.span)),
                ObjectPatProp::KeyValue(pair) => match &pair.key {
                    PropName::Ident(name) => Some((name.sym.to_string(), name.span)),
                    PropName::Str(text) => {
                        Some((text.value.to_string_lossy().into_owned(), text.span))
                    }
                    PropName::Computed(computed) => literal(&computed.expr),
                    PropName::Num(_) | PropName::BigInt(_) => continue,
                },
                ObjectPatProp::Rest(_) => None,
            };
            match named {
                Some((name, span)) => self.global_name(&name, span),
                None => self.global = true,
            }
        }
    }
}

impl Visit for Finder {
    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Expr(callee) = &call.callee
            && let Expr::Member(member) = without_wrappers(callee)
            && self.is_global(&member.obj, &["mcp"])
            && property(&member.prop).as_deref() == Some("callTool")
        {
            let first = call.args.first().filter(|it| it.spread.is_none());
            match first.and_then(|argument| literal(&argument.expr)) {
                Some((name, span)) => {
                    self.name(&name, span);
                    self.called.insert(name);
                }
                None => self.dynamic = true,
            }
            call.args.visit_with(self);
            return;
        }
        call.visit_children_with(self);
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        self.stdin_of_value |= property(&member.prop).as_deref() == Some("stdin");
        if self.is_global(&member.obj, &["mcp"]) {
            match property(&member.prop).as_deref() {
                // A reference to the function itself may be called with any name; other properties
                // call no tool.
                Some("callTool") | None => self.dynamic = true,
                // It sends data to a model, which rules treat as a call.
                Some("extract") => self.name("mcp.extract", member.span),
                Some("stdin") => self.stdin = true,
                Some(_) => {}
            }
            member.prop.visit_with(self);
        } else if self.is_global(&member.obj, GLOBAL_OBJECTS) {
            match property(&member.prop) {
                Some(name) => self.global_name(&name, member.span),
                None => self.global = true,
            }
            member.prop.visit_with(self);
        } else {
            member.visit_children_with(self);
        }
    }

    fn visit_object_pat_prop(&mut self, property: &ObjectPatProp) {
        self.stdin_of_value |= match property {
            ObjectPatProp::Assign(short) => *short.key.sym == *"stdin",
            ObjectPatProp::KeyValue(pair) => {
                matches!(&pair.key, PropName::Ident(name) if *name.sym == *"stdin")
            }
            ObjectPatProp::Rest(_) => false,
        };
        property.visit_children_with(self);
    }

    fn visit_var_declarator(&mut self, declared: &VarDeclarator) {
        match (&declared.name, declared.init.as_deref()) {
            (Pat::Object(pattern), Some(from)) if self.is_global(from, GLOBAL_OBJECTS) => {
                self.pattern(pattern);
                pattern.visit_with(self);
            }
            _ => declared.visit_children_with(self),
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

/// The name of a property, unless it is computed.
fn property(property: &MemberProp) -> Option<String> {
    match property {
        MemberProp::Ident(name) => Some(name.sym.to_string()),
        MemberProp::Computed(computed) => literal(&computed.expr).map(|(name, _)| name),
        MemberProp::PrivateName(_) => None,
    }
}

/// The text of a string literal, and its place.
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

/// The expression without parentheses and type assertions around it.
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

const GLOBAL_OBJECTS: &[&str] = &["globalThis", "self", "window", "global"];
