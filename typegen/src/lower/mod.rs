//! JSON Schema to types.
//!
//! The rule above all others: every instance a schema accepts is assignable to
//! its type. What cannot be said is left out, which widens the type, and is
//! reported. The one narrowing allowed is that a schema with `properties` and
//! no `type` is taken to mean an object, because that is what its author means.
//!
//! Nothing here recurses through references: what one leads to becomes a
//! declared type, lowered once, from a list of those still to do.

mod array;
mod kinds;
mod literal;
mod object;
mod reference;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use crate::degradation::{Degradation, Reason};
use crate::ir::{Type, TypeId};
use crate::text::prefix;
use kinds::Kinds;

/// Schemas inside schemas, not counting what references lead to.
const MAX_DEPTH: usize = 48;
/// Schemas and literals of one tool.
const MAX_PARTS: usize = 20_000;
/// Degradations reported of one tool.
const MAX_DEGRADATIONS: usize = 50;
/// Bytes of a reported pointer or name.
const MAX_QUOTED: usize = 200;

/// Which of a tool's two schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Input,
    Output,
}

/// What a tool's schemas became.
pub(crate) struct LoweredTool {
    pub(crate) input: Type,
    pub(crate) output: Type,
    pub(crate) degradations: Vec<Degradation>,
}

/// A type to be declared.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    /// The name its author gave it, if it has one that can be used.
    pub(crate) wanted_name: Option<String>,
    /// The schema's description, as it was written.
    pub(crate) doc: Option<String>,
    pub(crate) body: Type,
    /// The tool it came from: its place in the list of tools.
    pub(crate) tool: usize,
    pub(crate) side: Side,
    /// Whether it is the whole schema of that side.
    pub(crate) root: bool,
}

/// Lowers one tool's schemas, adding the types they declare to `definitions`.
pub(crate) fn lower_tool(
    (server, tool): (&str, &str),
    index: usize,
    input: &Value,
    output: Option<&Value>,
    definitions: &mut Vec<Definition>,
) -> LoweredTool {
    let mut report = Report::default();
    let input = {
        let mut lowering = Lowering::new(input, Side::Input, index, definitions, &mut report);
        match lowering.root() {
            Type::Unknown => Type::open_object(),
            ty => ty,
        }
    };
    let output = output.map_or(Type::Unknown, |output| {
        Lowering::new(output, Side::Output, index, definitions, &mut report).root()
    });
    let degradations = report
        .found
        .into_iter()
        .map(|(pointer, reason)| Degradation {
            server: server.to_owned(),
            tool: tool.to_owned(),
            pointer,
            reason,
        })
        .collect();
    LoweredTool {
        input,
        output,
        degradations,
    }
}

/// The lowering of one schema of one tool.
struct Lowering<'a, 'o> {
    root: &'a Value,
    side: Side,
    tool: usize,
    /// Whether keywords beside `$ref` mean nothing, as up to draft 7.
    reference_stands_alone: bool,
    definitions: &'o mut Vec<Definition>,
    report: &'o mut Report,
    /// Declared types by the address of their schema.
    declared: HashMap<usize, TypeId>,
    /// Where each declared type's schema is.
    pointers: HashMap<TypeId, String>,
    pending: VecDeque<Pending<'a>>,
    path: Vec<Step<'a>>,
    /// Where in the schema `path` starts.
    base_pointer: String,
    depth: usize,
    /// Whether references are relative to an inner `$id`.
    inside_other_resource: bool,
}

/// What is found on the way, and what both sides of a tool share.
#[derive(Default)]
struct Report {
    found: Vec<(String, Reason)>,
    seen: HashSet<String>,
    parts: usize,
}

/// A declared type whose body is still to be lowered.
struct Pending<'a> {
    id: TypeId,
    schema: &'a Value,
    pointer: String,
    depth: usize,
    inside_other_resource: bool,
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
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or("");
        Self {
            root,
            side,
            tool,
            reference_stands_alone: ["draft-03", "draft-04", "draft-06", "draft-07"]
                .iter()
                .any(|draft| dialect.contains(draft)),
            definitions,
            report,
            declared: HashMap::new(),
            pointers: HashMap::new(),
            pending: VecDeque::new(),
            path: Vec::new(),
            base_pointer: match side {
                Side::Input => "/inputSchema".to_owned(),
                Side::Output => "/outputSchema".to_owned(),
            },
            depth: 0,
            inside_other_resource: false,
        }
    }

    /// Lowers the whole schema. It is declared by name if it is given one or if
    /// it refers to itself, else it stands where it is used.
    fn root(&mut self) -> Type {
        let first = self.definitions.len();
        let named = self.inline_name(self.root, Kinds::ALL).is_some();
        let root = self.declare(self.root, self.title_name(self.root), true);
        while let Some(pending) = self.pending.pop_front() {
            self.path.clear();
            self.base_pointer.clone_from(&pending.pointer);
            self.pointers.insert(pending.id, pending.pointer);
            self.depth = pending.depth;
            self.inside_other_resource = pending.inside_other_resource;
            let body = self.body(pending.schema, Kinds::ALL);
            if let Some(definition) = self.definitions.get_mut(pending.id) {
                definition.body = body;
            }
        }
        self.break_empty_recursion(first);

        let recursive = self
            .definitions
            .iter()
            .skip(first)
            .any(|definition| definition.body.mentions().contains(&root));
        match self.definitions.get(root) {
            Some(definition) if !named && !recursive => definition.body.clone(),
            _ => Type::Named(root),
        }
    }

    /// The type of a schema, given that the instance is one of `assume`.
    fn schema(&mut self, schema: &'a Value, assume: Kinds) -> Type {
        if let Some(name) = self.inline_name(schema, assume) {
            return Type::Named(self.declare(schema, Some(name), false));
        }
        self.body(schema, assume)
    }

    /// As [`Self::schema`], with the schema's own name passed over.
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
        let outer = self.inside_other_resource;
        if !std::ptr::eq(schema, self.root) && has_own_id(map) {
            self.inside_other_resource = true;
        }
        self.depth += 1;
        let ty = self.keywords(map, assume);
        self.depth -= 1;
        self.inside_other_resource = outer;
        ty
    }

    /// The type of a schema that is an object: all its keywords together.
    fn keywords(&mut self, map: &'a Map<String, Value>, assume: Kinds) -> Type {
        let mut parts = Vec::new();
        if let Some(reference) = map.get("$ref") {
            let target = self.reference(reference);
            if self.reference_stands_alone {
                return target;
            }
            parts.push(target);
        }
        self.report_inexpressible(map);

        let declared = self.declared_kinds(map);
        let kinds = match declared {
            Some(kinds) => kinds.and(assume),
            // The permitted narrowing; see the top of the module.
            None if assume == Kinds::ALL && map.contains_key("properties") => Kinds::OBJECT,
            None => assume,
        };
        for (index, schema) in self.schemas(map, "allOf").iter().enumerate() {
            parts.push(self.at(&["allOf"], Some(index), schema, kinds));
        }
        for keyword in ["anyOf", "oneOf"] {
            let schemas = self.schemas(map, keyword);
            if schemas.is_empty() {
                continue;
            }
            let members: Vec<Type> = schemas
                .iter()
                .enumerate()
                .map(|(index, schema)| self.at(&[keyword], Some(index), schema, kinds))
                .collect();
            parts.push(Type::union(members));
        }

        let base = if let Some(values) = self.enumerated(map, kinds) {
            values
        } else if declared.is_none() && !speaks_of(map, kinds) {
            self.report_missing_type(map, kinds);
            Type::Unknown
        } else {
            self.structure(map, kinds)
        };
        let says_more = parts.iter().any(|part| *part != Type::Unknown);
        if !(says_more && base == Type::open_object() && !map.contains_key("additionalProperties"))
        {
            parts.insert(0, base);
        }
        let ty = Type::intersection(parts);
        if map.get("nullable") == Some(&Value::Bool(true)) {
            Type::union([ty, Type::Null])
        } else {
            ty
        }
    }

    /// The values of the given kinds, as far as the keywords for each restrict
    /// them.
    fn structure(&mut self, map: &'a Map<String, Value>, kinds: Kinds) -> Type {
        if kinds == Kinds::ALL {
            // Reached only when `type` lists all of them.
            return Type::Unknown;
        }
        let mut members = Vec::new();
        if kinds.has(Kinds::STRING) {
            members.push(Type::String);
        }
        if kinds.has(Kinds::FRACTION) {
            members.push(Type::Number);
        } else if kinds.has(Kinds::INTEGER) {
            members.push(Type::Integer);
        }
        if kinds.has(Kinds::BOOLEAN) {
            members.push(Type::Boolean);
        }
        if kinds.has(Kinds::OBJECT) {
            members.push(Type::Object(self.object(map)));
        }
        if kinds.has(Kinds::ARRAY) {
            members.push(self.array(map));
        }
        if kinds.has(Kinds::NULL) {
            members.push(Type::Null);
        }
        Type::union(members)
    }

    /// The kinds `type` names, or none where it is missing or unusable.
    fn declared_kinds(&mut self, map: &Map<String, Value>) -> Option<Kinds> {
        let named: Vec<&Value> = match map.get("type")? {
            Value::Array(names) => names.iter().collect(),
            name => vec![name],
        };
        let mut kinds = Kinds::NONE;
        for name in named {
            let Some(name) = name.as_str() else {
                self.degrade(Reason::Malformed { keyword: "type" });
                return None;
            };
            let Some(kind) = Kinds::of_type(name) else {
                let name = prefix(name, MAX_QUOTED).to_owned();
                self.degrade(Reason::UnknownType { name });
                return None;
            };
            kinds = kinds.or(kind);
        }
        if kinds == Kinds::NONE {
            self.degrade(Reason::Malformed { keyword: "type" });
            return None;
        }
        Some(kinds)
    }

    /// The list of schemas under a keyword; empty where there is none.
    fn schemas(&mut self, map: &'a Map<String, Value>, keyword: &'static str) -> &'a [Value] {
        match map.get(keyword) {
            None => &[],
            Some(Value::Array(schemas)) if !schemas.is_empty() => schemas,
            Some(_) => {
                self.degrade(Reason::Malformed { keyword });
                &[]
            }
        }
    }

    /// Lowers a schema inside the present one, knowing the way to it.
    fn at(
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

    /// Reports keywords that restrict the shape of an instance and are not
    /// lowered. Those that only bound a number, a string's text or a count are
    /// no part of a type in any case.
    fn report_inexpressible(&mut self, map: &Map<String, Value>) {
        for keyword in [
            "not",
            "if",
            "dependencies",
            "dependentSchemas",
            "unevaluatedProperties",
            "unevaluatedItems",
            "$dynamicRef",
            "$recursiveRef",
            "extends",
            "disallow",
        ] {
            if map.contains_key(keyword) {
                self.degrade(Reason::Inexpressible { keyword });
            }
        }
    }

    /// Reports keywords that do nothing because no `type` goes with them.
    fn report_missing_type(&mut self, map: &Map<String, Value>, kinds: Kinds) {
        if kinds != Kinds::ALL {
            return;
        }
        let silent = [
            "required",
            "additionalProperties",
            "patternProperties",
            "items",
            "prefixItems",
        ];
        if let Some(keyword) = silent.into_iter().find(|key| map.contains_key(*key)) {
            self.degrade(Reason::MissingType { keyword });
        }
    }

    /// Counts one part; false once there are too many.
    fn spend(&mut self) -> bool {
        if self.report.parts >= MAX_PARTS {
            self.degrade(Reason::TooLarge { limit: MAX_PARTS });
            return false;
        }
        self.report.parts += 1;
        true
    }

    /// Reports something at a place inside the present one.
    fn degrade_at(&mut self, keys: &[&'a str], reason: Reason) {
        let outer = self.path.len();
        self.path.extend(keys.iter().map(|key| Step::Key(key)));
        self.degrade(reason);
        self.path.truncate(outer);
    }

    /// Reports something at the present place.
    fn degrade(&mut self, reason: Reason) {
        if self.report.found.len() > MAX_DEGRADATIONS {
            return;
        }
        // These hold for a tool, and the first place is as good as any.
        let once = matches!(reason, Reason::TooLarge { .. });
        let pointer = self.pointer();
        let key = if once {
            reason.to_string()
        } else {
            format!("{pointer} {reason}")
        };
        if !self.report.seen.insert(key) {
            return;
        }
        let reason = if self.report.found.len() == MAX_DEGRADATIONS {
            Reason::MoreNotListed
        } else {
            reason
        };
        self.report.found.push((pointer, reason));
    }

    /// The JSON pointer of the present place, cut when it is long.
    fn pointer(&self) -> String {
        let mut pointer = self.base_pointer.clone();
        for step in &self.path {
            if pointer.len() > MAX_QUOTED {
                pointer.push('…');
                break;
            }
            pointer.push('/');
            match step {
                Step::Key(key) => {
                    let key = prefix(key, MAX_QUOTED);
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
                Step::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }

    /// Cuts each definition that is only itself, by way of other definitions.
    fn break_empty_recursion(&mut self, first: usize) {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.definitions.len().saturating_sub(first)];
        let mut empty = Vec::new();
        for start in first..self.definitions.len() {
            let mut open = vec![(start, false)];
            while let Some((id, leaving)) = open.pop() {
                let Some(mark) = marks.get_mut(id.saturating_sub(first)) else {
                    continue;
                };
                if leaving {
                    *mark = Mark::Done;
                    continue;
                }
                match *mark {
                    Mark::Done => {}
                    Mark::Open => empty.push(id),
                    Mark::New => {
                        *mark = Mark::Open;
                        open.push((id, true));
                        if let Some(definition) = self.definitions.get(id) {
                            let aliases = definition.body.aliases();
                            open.extend(aliases.into_iter().rev().map(|id| (id, false)));
                        }
                    }
                }
            }
        }
        for id in empty {
            if let Some(definition) = self.definitions.get_mut(id) {
                definition.body = Type::Unknown;
            }
            self.path.clear();
            self.base_pointer = self.pointers.get(&id).cloned().unwrap_or_default();
            self.degrade(Reason::EmptyRecursion);
        }
    }
}

/// Whether the schema names itself, so that references in it are relative to
/// that name and not to the whole.
fn has_own_id(map: &Map<String, Value>) -> bool {
    let id = map.get("$id").and_then(Value::as_str);
    id.is_some_and(|id| !id.starts_with('#'))
}

/// Whether the schema has keywords for the kinds the instance is known to be
/// of, when no `type` says which.
fn speaks_of(map: &Map<String, Value>, kinds: Kinds) -> bool {
    let any = |keywords: &[&str]| keywords.iter().any(|keyword| map.contains_key(*keyword));
    if kinds == Kinds::ALL {
        return false;
    }
    (kinds.has(Kinds::OBJECT)
        && any(&[
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
        ]))
        || (kinds.has(Kinds::ARRAY) && any(&["items", "prefixItems", "minItems", "maxItems"]))
}
