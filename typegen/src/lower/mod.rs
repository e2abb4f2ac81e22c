//! JSON Schema to types.
//!
//! The rule above all others: every instance a schema accepts is assignable to its type. An
//! inexpressible constraint is left out, which widens the type, and is reported. The one narrowing
//! allowed: a schema with keywords for objects and no `type` means an object, as its author
//! intends.
//!
//! Lowering does not recurse through references: the target of a reference becomes a declared type,
//! lowered once, from a work list.

mod array;
mod complement;
mod conditions;
mod keywords;
mod kinds;
mod literal;
mod mentioned;
mod notes;
mod object;
mod recursion;
mod reference;
mod report;
mod scope;
mod values;
mod width;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::degradation::Reason;
use crate::ir::{Doc, Type, TypeId};
use kinds::Kinds;
use report::Report;
use scope::{Dialect, Index, Scope};

/// The deepest nesting of schemas, not counting targets of references.
const MAX_DEPTH: usize = 48;
/// Bytes of a reported pointer or name.
const MAX_QUOTED: usize = 200;

/// One of a tool's two schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Side {
    #[default]
    Input,
    Output,
}

/// A JSON pointer into a tool's definition, and the reason for a loss there.
pub(crate) type Found = (String, Reason);

/// The lowered schemas of a tool.
pub(crate) struct LoweredTool {
    pub(crate) input: Type,
    pub(crate) output: Type,
    pub(crate) degradations: Vec<Found>,
}

/// A type to be declared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definition {
    /// The author's name for the type, if it has one that can be used.
    pub(crate) wanted_name: Option<String>,
    /// The type's documentation.
    pub(crate) doc: Option<Doc>,
    pub(crate) body: Type,
    /// The tool of the type: its index in the list of tools.
    pub(crate) tool: usize,
    pub(crate) side: Side,
    /// True if the type is the whole schema of `side`.
    pub(crate) root: bool,
}

/// Lowers one tool's schemas, adding the types they declare to `definitions`.
pub(crate) fn lower_tool(
    index: usize,
    input: &Value,
    output: Option<&Value>,
    definitions: &mut Vec<Definition>,
) -> LoweredTool {
    let mut report = Report::default();
    let input = Lowering::new(input, Side::Input, index, definitions, &mut report).root();
    let output = output.map_or(Type::Unknown, |output| {
        Lowering::new(output, Side::Output, index, definitions, &mut report).root()
    });
    LoweredTool {
        input,
        output,
        degradations: report.found,
    }
}

/// The lowering of one schema of one tool.
struct Lowering<'a, 'o> {
    root: &'a Value,
    side: Side,
    tool: usize,
    dialect: Dialect,
    definitions: &'o mut Vec<Definition>,
    report: &'o mut Report,
    /// Declared types by the address of their schema.
    declared: HashMap<usize, TypeId>,
    /// The JSON pointers to the schemas of declared types.
    pointers: HashMap<TypeId, String>,
    pending: VecDeque<Pending<'a>>,
    path: Vec<Step<'a>>,
    /// The JSON pointer at which `path` starts.
    base_pointer: String,
    depth: usize,
    /// The documents of the whole schema and of the present one.
    whole: Scope<'a>,
    scope: Scope<'a>,
    /// The documents and anchors by name, once something asks for them.
    index: Option<Rc<Index<'a>>>,
    /// The schemas around the present one that the same instance is known to fit.
    around: Vec<&'a Map<String, Value>>,
    /// The number of conditions on the present instance so far.
    conditions: usize,
    /// True if keywords for objects mean an object; false in conditions and complements.
    narrowing: bool,
}

/// A declared type whose body is still to be lowered.
struct Pending<'a> {
    id: TypeId,
    schema: &'a Value,
    pointer: String,
    depth: usize,
    scope: Scope<'a>,
}

/// One step of the way from a schema to a schema inside it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a, 'o> Lowering<'a, 'o> {
    fn new(
        root: &'a Value,
        side: Side,
        tool: usize,
        definitions: &'o mut Vec<Definition>,
        report: &'o mut Report,
    ) -> Self {
        let dialect = Dialect::of(root);
        let base_pointer = match side {
            Side::Input => "/inputSchema",
            Side::Output => "/outputSchema",
        };
        let whole = Scope::whole(root, base_pointer, dialect);
        Self {
            root,
            side,
            tool,
            dialect,
            definitions,
            report,
            declared: HashMap::new(),
            pointers: HashMap::new(),
            pending: VecDeque::new(),
            path: Vec::new(),
            base_pointer: base_pointer.to_owned(),
            depth: 0,
            scope: whole.clone(),
            whole,
            index: None,
            around: Vec::new(),
            conditions: 0,
            narrowing: true,
        }
    }

    /// Lowers the whole schema and all the schemas that it refers to. The root is a declared type
    /// like any other; `inline` decides later which types keep their names.
    fn root(&mut self) -> Type {
        let first = self.definitions.len();
        let root = self.declare(self.root, self.title_name(self.root), true);
        while let Some(pending) = self.pending.pop_front() {
            self.path.clear();
            self.base_pointer.clone_from(&pending.pointer);
            self.pointers.insert(pending.id, pending.pointer);
            self.depth = pending.depth;
            self.scope = pending.scope;
            self.conditions = 0;
            let body = self.body(pending.schema, Kinds::ALL);
            let name = self.definitions.get(pending.id);
            let name = name.and_then(|definition| definition.wanted_name.clone());
            let doc = self.comment(&[], Some(name.as_deref().unwrap_or("")), pending.schema);
            if let Some(definition) = self.definitions.get_mut(pending.id) {
                definition.body = body;
                definition.doc = doc;
            }
        }
        self.break_empty_recursion(first);
        self.bound_widths(first);
        Type::Named(root)
    }

    /// The type of a schema, given that the instance is one of `assume`.
    fn schema(&mut self, schema: &'a Value, assume: Kinds) -> Type {
        if self.narrowing
            && let Some(name) = self.inline_name(schema, assume)
        {
            return Type::Named(self.declare(schema, Some(name), false));
        }
        self.body(schema, assume)
    }

    /// Like [`Self::schema`], but ignores the schema's own name.
    fn body(&mut self, schema: &'a Value, assume: Kinds) -> Type {
        if !self.spend() {
            return Type::Unknown;
        }
        let map = match schema {
            Value::Bool(true) => return Type::Unknown,
            Value::Bool(false) => return Type::Never,
            Value::Object(map) => map,
            _ => {
                self.degrade(Reason::NotASchema);
                return Type::Unknown;
            }
        };
        if self.depth >= MAX_DEPTH {
            self.degrade(Reason::TooDeep { limit: MAX_DEPTH });
            return Type::Unknown;
        }
        let outer = map.contains_key("$id").then(|| self.scope.clone());
        if let Some(outer) = &outer {
            self.scope = outer.inside(schema, || self.pointer(), self.dialect);
        }
        self.depth += 1;
        self.around.push(map);
        let ty = self.keywords(map, assume);
        self.around.pop();
        self.depth -= 1;
        if let Some(outer) = outer {
            self.scope = outer;
        }
        ty
    }

    /// Lowers a schema of a part of the instance, at `keys` and `index`.
    fn at(
        &mut self,
        keys: &[&'a str],
        index: Option<usize>,
        schema: &'a Value,
        assume: Kinds,
    ) -> Type {
        let around = std::mem::take(&mut self.around);
        let conditions = std::mem::take(&mut self.conditions);
        let ty = self.in_place(keys, index, schema, assume);
        self.around = around;
        self.conditions = conditions;
        ty
    }

    /// Like [`Self::at`], for a schema of the same instance.
    fn in_place(
        &mut self,
        keys: &[&'a str],
        index: Option<usize>,
        schema: &'a Value,
        assume: Kinds,
    ) -> Type {
        let outer = self.path.len();
        self.path.extend(keys.iter().map(|key| Step::Key(key)));
        self.path.extend(index.map(Step::Index));
        let ty = self.schema(schema, assume);
        self.path.truncate(outer);
        ty
    }
}
