//! The form of a script, which determines its value, and the statements that it cannot have.

use serde::{Deserialize, Serialize};
use swc_common::{BytePos, Span, Spanned};
use swc_ecma_ast::{
    CallExpr, Callee, Decl, DefaultDecl, ExportAll, ExportDefaultDecl, ExportDefaultExpr, Expr,
    ExprStmt, FnDecl, ImportDecl, Lit, MemberProp, MetaPropExpr, MetaPropKind, Module, ModuleDecl,
    ModuleItem, NamedExport, Pat, Stmt, TsExternalModuleRef, TsImportType, TsModuleDecl,
    TsModuleName,
};
use swc_ecma_visit::{Visit, VisitWith};

use crate::error::{ScriptError, ScriptErrorKind};
use crate::parse::{offset, range};
use crate::source::{Edits, Source};

/// The form in which a script was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Form {
    /// Statements; the value is that of a top-level `return`, or of a last expression without side
    /// effects.
    Statements,
    /// `export default`; a function is called, any other value is the script's.
    DefaultExport,
    /// Only one function; it is called.
    Function,
    /// Only one expression; it is the value.
    Expression,
}

/// The change that makes the code the body of one async function.
pub(crate) struct Wrapping {
    pub(crate) form: Form,
    pub(crate) edits: Edits,
    /// The end of the wrapper's first line.
    pub(crate) head: String,
    /// The wrapper's lines after the code.
    pub(crate) tail: String,
    /// The byte of the text where the statement continues that starts in `head`.
    pub(crate) value: Option<usize>,
    /// The byte of the text before which [`RETURN`] is inserted.
    pub(crate) returned: Option<usize>,
}

/// Inserted before the last expression of statements if its value is the script's.
pub(crate) const RETURN: &str = "return(";

/// The wrapping that makes the code the body of an async function.
pub(crate) fn wrapping(source: &Source, module: &Module) -> Result<Wrapping, ScriptError> {
    refuse(source, module)?;
    let name = fresh_name(source.text());
    let Items {
        mut edits,
        running,
        default,
    } = Items::of(source, module)?;
    if let Some(default) = default {
        let function = export_default(source, default, &name, &mut edits)?;
        return Ok(match function {
            None => assigned(Form::DefaultExport, edits, &name, ";", None),
            Some(function) => called(Form::DefaultExport, edits, String::new(), &function),
        });
    }
    match running.as_slice() {
        [] => Err(ScriptError::new(
            ScriptErrorKind::Empty,
            "there is no code in the script; write statements that call tools",
            None,
        )),
        [
            ModuleItem::Stmt(Stmt::Decl(Decl::Fn(FnDecl {
                ident, function, ..
            }))),
        ] if !function.is_generator => Ok(called(Form::Function, edits, String::new(), &ident.sym)),
        // A sequence would need parentheses around it.
        [ModuleItem::Stmt(Stmt::Expr(ExprStmt { expr, .. }))]
            if !matches!(**expr, Expr::Seq(_)) =>
        {
            let form = match expr.unwrap_parens() {
                Expr::Arrow(_) | Expr::Fn(_) => Form::Function,
                _ => Form::Expression,
            };
            let at = offset(expr.span_lo());
            Ok(assigned(
                form,
                edits,
                &name,
                &format!("; {name} ="),
                Some(at),
            ))
        }
        running => Ok(statements(running, module, edits)),
    }
}

/// The items of a module by their role.
#[derive(Default)]
struct Items<'m> {
    /// Erases declarations without a meaning at run time, and directives.
    edits: Edits,
    /// The items that have an effect at run time.
    running: Vec<&'m ModuleItem>,
    /// `export default`, which is also among the running ones.
    default: Option<&'m ModuleDecl>,
}

impl<'m> Items<'m> {
    fn of(source: &Source, module: &'m Module) -> Result<Self, ScriptError> {
        let mut items = Self::default();
        for (index, item) in module.body.iter().enumerate() {
            let is_first = items.running.is_empty();
            match item {
                ModuleItem::ModuleDecl(
                    export @ (ModuleDecl::ExportDefaultExpr(_) | ModuleDecl::ExportDefaultDecl(_)),
                ) => {
                    if items.default.replace(export).is_some() {
                        return Err(source.error(
                            ScriptErrorKind::Syntax,
                            "there is a second \"export default\"; keep one",
                            offset(item.span().lo),
                        ));
                    }
                    items.running.push(item);
                }
                item if is_only_types(item) => erase(&mut items.edits, item.span(), is_first),
                ModuleItem::Stmt(Stmt::Empty(_)) => {}
                // A directive: a function in strict mode needs none.
                ModuleItem::Stmt(Stmt::Expr(ExprStmt { expr, span }))
                    if is_first
                        && matches!(**expr, Expr::Lit(Lit::Str(_)))
                        && index + 1 < module.body.len() =>
                {
                    items.edits.blank(range(*span));
                }
                item => items.running.push(item),
            }
        }
        Ok(items)
    }
}

/// The wrapping that assigns a value to the variable `name`, and calls it if it is a function.
fn assigned(form: Form, edits: Edits, name: &str, head: &str, value: Option<usize>) -> Wrapping {
    Wrapping {
        form,
        edits,
        head: format!(" let {name}{head}"),
        tail: format!("\n;return typeof {name} === \"function\" ? await {name}() : {name};\n}})"),
        value,
        returned: None,
    }
}

/// The wrapping of statements, which returns the value of a last expression.
fn statements(running: &[&ModuleItem], module: &Module, mut edits: Edits) -> Wrapping {
    let last = running.last().and_then(|last| last_value(last, module));
    if let Some(last) = last {
        let range = range(last);
        edits.write(range.start..range.start, RETURN);
        edits.write(range.end..range.end, ")");
    }
    Wrapping {
        form: Form::Statements,
        edits,
        head: String::new(),
        tail: "\n})".to_owned(),
        value: None,
        returned: last.map(|last| offset(last.lo)),
    }
}

/// The expression of a last statement if its value is the script's: it has no side effects, or it
/// calls a function of the script, such as `main()`. Other calls count as side effects.
fn last_value(last: &ModuleItem, module: &Module) -> Option<Span> {
    let ModuleItem::Stmt(Stmt::Expr(ExprStmt { expr, .. })) = last else {
        return None;
    };
    let is_value = match called_first(expr) {
        Some(Expr::Arrow(_) | Expr::Fn(_)) => true,
        Some(Expr::Ident(name)) => module.body.iter().any(|item| declares(item, &name.sym)),
        Some(_) => false,
        None => is_pure(expr),
    };
    is_value.then(|| expr.span())
}

/// The function that an expression calls, before any `then`, `catch` or `finally` of its promise.
fn called_first(expr: &Expr) -> Option<&Expr> {
    match expr.unwrap_parens() {
        Expr::Await(awaited) => called_first(&awaited.arg),
        Expr::Call(CallExpr {
            callee: Callee::Expr(callee),
            ..
        }) => {
            let callee = callee.unwrap_parens();
            let Expr::Member(member) = callee else {
                return Some(callee);
            };
            let MemberProp::Ident(name) = &member.prop else {
                return Some(callee);
            };
            let of_promise = ["then", "catch", "finally"].contains(&name.sym.as_ref());
            let before = of_promise.then(|| called_first(&member.obj)).flatten();
            Some(before.unwrap_or(callee))
        }
        _ => None,
    }
}

/// True if an item declares a function with this name.
fn declares(item: &ModuleItem, name: &str) -> bool {
    match item {
        ModuleItem::Stmt(Stmt::Decl(Decl::Fn(function))) => function.ident.sym == *name,
        ModuleItem::Stmt(Stmt::Decl(Decl::Var(var))) => var.decls.iter().any(|declared| {
            let is_function = matches!(
                declared.init.as_deref().map(Expr::unwrap_parens),
                Some(Expr::Arrow(_) | Expr::Fn(_))
            );
            is_function && matches!(&declared.name, Pat::Ident(ident) if ident.sym == *name)
        }),
        _ => false,
    }
}

/// True if an expression looks free of side effects.
fn is_pure(expr: &Expr) -> bool {
    match expr.unwrap_parens() {
        Expr::Ident(_) | Expr::Lit(_) | Expr::Tpl(_) | Expr::Object(_) | Expr::Array(_) => true,
        Expr::Await(awaited) => is_pure(&awaited.arg),
        Expr::Member(member) => is_pure(&member.obj),
        Expr::Bin(both) => is_pure(&both.left) && is_pure(&both.right),
        Expr::Cond(choice) => is_pure(&choice.cons) && is_pure(&choice.alt),
        Expr::TsAs(cast) => is_pure(&cast.expr),
        Expr::TsSatisfies(cast) => is_pure(&cast.expr),
        Expr::TsNonNull(cast) => is_pure(&cast.expr),
        _ => false,
    }
}

/// The wrapping that calls the function `name`, which the code or `head` declares.
fn called(form: Form, edits: Edits, head: String, name: &str) -> Wrapping {
    Wrapping {
        form,
        edits,
        head,
        tail: format!("\n;return await {name}();\n}})"),
        value: None,
        returned: None,
    }
}

/// The wrapping for a function expression without a name, which is not a statement.
pub(crate) fn function_expression(
    source: &Source,
    module: &Module,
) -> Result<Wrapping, ScriptError> {
    refuse(source, module)?;
    let name = fresh_name(source.text());
    let head = format!(" let {name}; {name} =");
    Ok(called(Form::Function, Edits::default(), head, &name))
}

/// A name that is not in the text. A function without a name gets this one, also in stacks. An
/// assignment to it is no wider than `export`.
fn fresh_name(text: &str) -> String {
    let numbered = (1_u32..).map(|number| format!("${number}_"));
    ["main".to_owned(), "$0".to_owned()]
        .into_iter()
        .chain(numbered)
        .find(|name| !text.contains(name.as_str()))
        .unwrap_or_default()
}

/// Erases a declaration that has no meaning at run time.
fn erase(edits: &mut Edits, span: Span, first: bool) {
    // Without a semicolon, the statement before could continue in the next one.
    edits.write(range(span), if first { "" } else { ";" });
}

/// Rewrites `export default` as a statement for a function body. Returns the name of the function to
/// call, if it has one.
fn export_default(
    source: &Source,
    export: &ModuleDecl,
    value: &str,
    edits: &mut Edits,
) -> Result<Option<String>, ScriptError> {
    let whole = export.span();
    let (inner, anonymous) = match export {
        ModuleDecl::ExportDefaultExpr(ExportDefaultExpr { expr, .. }) => (expr.span_lo(), false),
        ModuleDecl::ExportDefaultDecl(ExportDefaultDecl { decl, .. }) => match decl {
            DefaultDecl::Fn(function) => match &function.ident {
                Some(name) => {
                    blank_words(source, edits, whole.lo, function.function.span.lo, "");
                    return Ok(Some(name.sym.to_string()));
                }
                None => (function.function.span.lo, true),
            },
            DefaultDecl::Class(class) => {
                return Err(source.error(
                    ScriptErrorKind::Unsupported,
                    "a class cannot be the default export; export a function or a value",
                    offset(class.class.span.lo),
                ));
            }
            DefaultDecl::TsInterfaceDecl(interface) => {
                return Err(source.error(
                    ScriptErrorKind::Unsupported,
                    "an interface cannot be the default export; export a function or a value",
                    offset(interface.span.lo),
                ));
            }
        },
        _ => return Ok(None),
    };
    blank_words(source, edits, whole.lo, inner, &format!(";{value}="));
    if anonymous {
        // A declaration ends with its brace; as a value it needs a semicolon.
        let end = offset(whole.hi);
        edits.write(end..end, ";");
    }
    Ok(None)
}

/// Blanks `export default` before `inner`, and writes `write` over its start.
fn blank_words(source: &Source, edits: &mut Edits, start: BytePos, inner: BytePos, write: &str) {
    let start = offset(start);
    let text = source.text().get(start..offset(inner)).unwrap_or_default();
    let first = start..start + "export".len();
    edits.write(first.clone(), write);
    // Comments between the words may contain "default".
    let mut rest = text.get("export".len()..).unwrap_or_default();
    loop {
        rest = rest.trim_start();
        let skipped = if rest.starts_with("//") {
            rest.find(['\n', '\r', '\u{2028}', '\u{2029}'])
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 2)
        } else {
            break;
        };
        rest = rest
            .get(skipped.unwrap_or(rest.len())..)
            .unwrap_or_default();
    }
    let at = offset(inner) - rest.len();
    edits.blank(at..at + "default".len().min(rest.len()));
}

/// True if an item has no meaning at run time.
fn is_only_types(item: &ModuleItem) -> bool {
    match item {
        ModuleItem::Stmt(Stmt::Decl(decl)) => is_type_declaration(decl),
        ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => is_type_declaration(&export.decl),
        ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(export)) => {
            export.src.is_none() && (export.specifiers.is_empty() || export.type_only)
        }
        _ => false,
    }
}

fn is_type_declaration(decl: &Decl) -> bool {
    match decl {
        Decl::TsInterface(_) | Decl::TsTypeAlias(_) => true,
        Decl::Class(class) => class.declare,
        Decl::Fn(function) => function.declare || function.function.body.is_none(),
        Decl::Var(var) => var.declare,
        Decl::TsEnum(declared) => declared.declare,
        Decl::TsModule(module) => module.declare || module.global,
        Decl::Using(_) => false,
    }
}

/// Advice for imports.
const USE_TOOLS: &str = "imports are not available; call tools as global functions, such as \
                         server_tool(input)";

/// Advice for imports of types.
const USE_TYPES: &str =
    "imports are not available; the types of tools are global, use them by name";

/// Refuses imports, exports and modules.
fn refuse(source: &Source, module: &Module) -> Result<(), ScriptError> {
    let mut refusals = Refusals::default();
    module.visit_with(&mut refusals);
    for item in &module.body {
        if let ModuleItem::ModuleDecl(decl) = item {
            match decl {
                ModuleDecl::TsImportEquals(import) => refusals.add(import.span, USE_TOOLS),
                ModuleDecl::ExportDecl(_) | ModuleDecl::ExportNamed(_) if !is_only_types(item) => {
                    refusals.add(
                        decl.span(),
                        "only \"export default\" is available; return the value, or drop \
                         \"export\"",
                    );
                }
                ModuleDecl::ExportAll(_)
                | ModuleDecl::TsExportAssignment(_)
                | ModuleDecl::TsNamespaceExport(_) => refusals.add(
                    decl.span(),
                    "only \"export default\" is available; return the value",
                ),
                _ => {}
            }
        }
    }
    match refusals.found.into_iter().min_by_key(|(span, _)| span.lo) {
        None => Ok(()),
        Some((span, message)) => {
            Err(source.error(ScriptErrorKind::Unsupported, message, offset(span.lo)))
        }
    }
}

#[derive(Default)]
struct Refusals {
    found: Vec<(Span, &'static str)>,
}

impl Refusals {
    fn add(&mut self, span: Span, message: &'static str) {
        self.found.push((span, message));
    }
}

impl Visit for Refusals {
    fn visit_import_decl(&mut self, import: &ImportDecl) {
        let advice = if import.type_only {
            USE_TYPES
        } else {
            USE_TOOLS
        };
        self.add(import.span, advice);
    }

    // A type checker would look for these names among the files of its machine.
    fn visit_ts_import_type(&mut self, import: &TsImportType) {
        self.add(import.span, USE_TYPES);
    }

    fn visit_ts_external_module_ref(&mut self, module: &TsExternalModuleRef) {
        self.add(module.span, USE_TOOLS);
    }

    fn visit_export_all(&mut self, export: &ExportAll) {
        self.add(export.span, USE_TOOLS);
    }

    fn visit_named_export(&mut self, export: &NamedExport) {
        if export.src.is_some() {
            self.add(export.span, USE_TOOLS);
        }
    }

    fn visit_ts_module_decl(&mut self, module: &TsModuleDecl) {
        if let TsModuleName::Str(name) = &module.id {
            self.add(
                name.span,
                "modules are not available; declare types outside of modules",
            );
        }
        module.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Import(_) = &call.callee {
            self.add(call.span, USE_TOOLS);
        }
        call.visit_children_with(self);
    }

    fn visit_meta_prop_expr(&mut self, meta: &MetaPropExpr) {
        if meta.kind == MetaPropKind::ImportMeta {
            self.add(
                meta.span,
                "\"import.meta\" is not available: a script is not a module file",
            );
        }
    }
}
