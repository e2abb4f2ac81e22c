//! Finds names that are declared twice, which the parser accepts and V8 refuses.

use std::collections::{HashMap, HashSet};

use swc_common::Span;
use swc_ecma_ast::{
    ArrowExpr, ArrowFunctionBody, BlockStmt, Constructor, Decl, Function, Ident, Module,
    ModuleItem, ParamOrTsParamProp, Pat, Stmt, SwitchStmt, TsParamPropParam, VarDeclKind,
};
use swc_ecma_visit::{Visit, VisitWith};

/// The first name that is declared a second time where that is an error.
pub(crate) fn first(module: &Module) -> Option<(String, Span)> {
    let mut finder = Finder { found: Vec::new() };
    let statements = module.body.iter().filter_map(|item| match item {
        ModuleItem::Stmt(statement) => Some(statement),
        ModuleItem::ModuleDecl(_) => None,
    });
    finder.block(Vec::new(), statements, true);
    module.visit_with(&mut finder);
    finder.found.into_iter().min_by_key(|(_, span)| span.lo)
}

struct Finder {
    found: Vec<(String, Span)>,
}

/// How a name is declared: `let`, `const`, classes and the like may not share
/// a block with anything of the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Lexical,
    Shared,
}

impl Finder {
    /// Looks at what one block declares itself. `outer` are names that already
    /// stand in it: a function's parameters.
    fn block<'a>(
        &mut self,
        outer: Vec<Ident>,
        statements: impl Iterator<Item = &'a Stmt>,
        is_body: bool,
    ) {
        let mut names: Vec<(Ident, How)> =
            outer.into_iter().map(|name| (name, How::Shared)).collect();
        for statement in statements {
            let Stmt::Decl(decl) = statement else {
                continue;
            };
            match decl {
                Decl::Var(var) if var.declare => {}
                Decl::Var(var) => {
                    let how = if var.kind == VarDeclKind::Var {
                        How::Shared
                    } else {
                        How::Lexical
                    };
                    let bound = var.decls.iter().flat_map(|decl| bound(&decl.name));
                    names.extend(bound.map(|name| (name, how)));
                }
                Decl::Using(using) => {
                    let bound = using.decls.iter().flat_map(|decl| bound(&decl.name));
                    names.extend(bound.map(|name| (name, How::Lexical)));
                }
                Decl::Class(class) if !class.declare => {
                    names.push((class.ident.clone(), How::Lexical));
                }
                // In a block, a function is as lexical as a class.
                Decl::Fn(function) if !function.declare && function.function.body.is_some() => {
                    let how = if is_body { How::Shared } else { How::Lexical };
                    names.push((function.ident.clone(), how));
                }
                _ => {}
            }
        }
        let mut seen: HashMap<String, How> = HashMap::new();
        for (name, how) in names {
            match seen.insert(name.sym.to_string(), how) {
                Some(earlier) if earlier == How::Lexical || how == How::Lexical => {
                    self.found.push((name.sym.to_string(), name.span));
                }
                _ => {}
            }
        }
    }

    fn parameters<'a>(&mut self, parameters: impl Iterator<Item = &'a Pat>) -> Vec<Ident> {
        let names: Vec<Ident> = parameters.flat_map(bound).collect();
        let mut seen = HashSet::new();
        for name in &names {
            if !seen.insert(&name.sym) {
                self.found.push((name.sym.to_string(), name.span));
            }
        }
        names
    }
}

impl Visit for Finder {
    fn visit_function(&mut self, function: &Function) {
        let names = self.parameters(function.params.iter().map(|param| &param.pat));
        if let Some(body) = &function.body {
            self.block(names, body.stmts.iter(), true);
        }
        function.visit_children_with(self);
    }

    fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
        let names = self.parameters(arrow.params.iter());
        if let ArrowFunctionBody::FunctionBody(body) = &*arrow.body {
            self.block(names, body.stmts.iter(), true);
        }
        arrow.visit_children_with(self);
    }

    fn visit_constructor(&mut self, constructor: &Constructor) {
        let patterns: Vec<Pat> = constructor
            .params
            .iter()
            .map(|param| match param {
                ParamOrTsParamProp::Param(param) => param.pat.clone(),
                ParamOrTsParamProp::TsParamProp(property) => match &property.param {
                    TsParamPropParam::Ident(name) => Pat::Ident(name.clone()),
                    TsParamPropParam::Assign(assign) => Pat::Assign(assign.clone()),
                },
            })
            .collect();
        let names = self.parameters(patterns.iter());
        if let Some(body) = &constructor.body {
            self.block(names, body.stmts.iter(), true);
        }
        constructor.visit_children_with(self);
    }

    fn visit_block_stmt(&mut self, block: &BlockStmt) {
        self.block(Vec::new(), block.stmts.iter(), false);
        block.visit_children_with(self);
    }

    fn visit_switch_stmt(&mut self, switch: &SwitchStmt) {
        let statements = switch.cases.iter().flat_map(|case| case.cons.iter());
        self.block(Vec::new(), statements, false);
        switch.visit_children_with(self);
    }
}

fn bound(pattern: &Pat) -> Vec<Ident> {
    struct Names(Vec<Ident>);
    impl Visit for Names {
        fn visit_binding_ident(&mut self, name: &swc_ecma_ast::BindingIdent) {
            self.0.push(name.id.clone());
        }
        fn visit_assign_pat_prop(&mut self, prop: &swc_ecma_ast::AssignPatProp) {
            self.0.push(prop.key.id.clone());
        }
        // Defaults may hold functions with names of their own.
        fn visit_expr(&mut self, _: &swc_ecma_ast::Expr) {}
        fn visit_prop_name(&mut self, _: &swc_ecma_ast::PropName) {}
        fn visit_ts_type_ann(&mut self, _: &swc_ecma_ast::TsTypeAnn) {}
    }
    let mut names = Names(Vec::new());
    pattern.visit_with(&mut names);
    names.0
}
