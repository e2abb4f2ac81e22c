//! References, and which schemas become declared types under which names.

use std::rc::Rc;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::kinds::Kinds;
use super::scope::{Index, Place, Scope, resolve};
use super::{Definition, Lowering, MAX_QUOTED, Pending};
use crate::degradation::Reason;
use crate::ir::{Type, TypeId};
use crate::text::{pascal_case, prefix};

/// Bytes of a type's name; a longer title is prose, not a name.
const MAX_NAME: usize = 64;
/// Places one dynamic anchor may stand for.
const MAX_DYNAMIC: usize = 16;

impl<'a> Lowering<'a, '_> {
    /// The declared type that `$ref` leads to, or one of those that `$dynamicRef` may lead to.
    pub(super) fn reference(&mut self, keyword: &'static str, reference: &'a Value) -> Type {
        let Some(text) = reference.as_str() else {
            self.degrade(Reason::Malformed { keyword });
            return Type::Unknown;
        };
        let Some(first) = self.resolve(text) else {
            self.degrade(Reason::UnresolvedReference {
                reference: prefix(text, MAX_QUOTED).to_owned(),
            });
            return Type::Unknown;
        };
        if keyword != "$dynamicRef" {
            return self.named(first);
        }
        let (_, fragment) = text.split_once('#').unwrap_or((text, ""));
        if first.schema.get("$dynamicAnchor").and_then(Value::as_str) != Some(fragment) {
            return self.named(first);
        }
        let index = self.index();
        let places = index.dynamic(fragment, &self.whole);
        if places.len() > MAX_DYNAMIC {
            self.degrade(Reason::Inexpressible { keyword });
            return Type::Unknown;
        }
        let members = places.iter().map(|place| self.named(Target::of(place)));
        Type::union(members.collect::<Vec<_>>())
    }

    fn named(&mut self, target: Target<'a>) -> Type {
        if let Some(id) = self.declared_type(target.schema) {
            return Type::Named(id);
        }
        match target.schema {
            Value::Bool(true) => return Type::Unknown,
            Value::Bool(false) => return Type::Never,
            _ => {}
        }
        let name = reference_name(target.schema, &target.last);
        let id = self.new_definition(target.schema, name, false);
        self.pending.push_back(Pending {
            id,
            schema: target.schema,
            pointer: prefix(&target.pointer, MAX_QUOTED).to_owned(),
            depth: 0,
            scope: target.scope,
        });
        Type::Named(id)
    }

    /// Declares a type for a schema in the present place, or finds it declared.
    pub(super) fn declare(
        &mut self,
        schema: &'a Value,
        name: Option<String>,
        root: bool,
    ) -> TypeId {
        if let Some(id) = self.declared_type(schema) {
            return id;
        }
        let id = self.new_definition(schema, name, root);
        self.pending.push_back(Pending {
            id,
            schema,
            pointer: self.pointer(),
            depth: self.depth,
            scope: self.scope.clone(),
        });
        id
    }

    /// The name under which a schema is declared where it stands: it has a title
    /// and is an object with properties or a choice between such. Titles of
    /// anything smaller are labels for forms, and would only hide a `string`.
    pub(super) fn inline_name(&self, schema: &Value, assume: Kinds) -> Option<String> {
        let map = schema.as_object()?;
        // First, because most schemas have none.
        if !map.contains_key("title") || map.contains_key("$ref") {
            return None;
        }
        let of_objects = match map.get("type") {
            None => assume == Kinds::ALL || assume == Kinds::OBJECT,
            Some(ty) => ty == "object",
        };
        // A declared type is valid wherever it is used, so it cannot depend on the kinds assumed of
        // the instance here, unless its own keywords say as much.
        let holds_anywhere = map.contains_key("type") || assume == Kinds::ALL;
        let has_properties = |map: &Map<String, Value>| {
            let properties = map.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| !properties.is_empty())
        };
        let choices = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| map.get(*keyword)?.as_array())
            .flatten()
            .filter_map(Value::as_object)
            .filter(|branch| has_properties(branch) || branch.contains_key("$ref"))
            .count();
        if of_objects && (has_properties(map) || (choices >= 2 && holds_anywhere)) {
            self.title_name(schema)
        } else {
            None
        }
    }

    /// The name a schema's title makes.
    pub(super) fn title_name(&self, schema: &Value) -> Option<String> {
        type_name(schema.get("title")?.as_str()?)
    }

    /// True if the schema is declared under a name of its own.
    pub(super) fn is_declared(&self, schema: &Value) -> bool {
        self.declared_type(schema).is_some()
    }

    fn declared_type(&self, schema: &Value) -> Option<TypeId> {
        self.declared.get(&address(schema)).copied()
    }

    fn new_definition(&mut self, schema: &Value, name: Option<String>, root: bool) -> TypeId {
        let id = self.definitions.len();
        self.definitions.push(Definition {
            wanted_name: name,
            doc: None,
            body: Type::Unknown,
            tool: self.tool,
            side: self.side,
            root,
        });
        self.declared.insert(address(schema), id);
        id
    }

    /// Follows a reference to wherever it leads inside the whole schema.
    fn resolve(&mut self, reference: &str) -> Option<Target<'a>> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let scope = if uri.is_empty() {
            self.scope.clone()
        } else {
            let uri = resolve(&self.scope.uri, uri);
            self.index().document(&uri)?.clone()
        };
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let index = self.index();
            return Some(Target::of(index.anchor(&scope, &fragment)?));
        }
        let mut target = Target {
            schema: scope.root,
            pointer: format!("{}{fragment}", scope.pointer),
            last: last_step(&scope.pointer, &self.whole.pointer),
            scope,
        };
        for step in fragment.split('/').skip(1) {
            let key = step.replace("~1", "/").replace("~0", "~");
            target.schema = match target.schema {
                Value::Object(map) => map.get(&key)?,
                Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
                _ => return None,
            };
            let pointer = || target.pointer.clone();
            target.scope = target.scope.inside(target.schema, pointer, self.dialect);
            target.last = Some(key);
        }
        let is_schema = target.schema.is_object() || target.schema.is_boolean();
        is_schema.then_some(target)
    }

    fn index(&mut self) -> Rc<Index<'a>> {
        let make = || Rc::new(Index::of(&self.whole, self.dialect));
        self.index.get_or_insert_with(make).clone()
    }
}

struct Target<'a> {
    schema: &'a Value,
    pointer: String,
    /// The last step of the way, such as a key under `$defs`.
    last: Option<String>,
    scope: Scope<'a>,
}

impl<'a> Target<'a> {
    fn of(place: &Place<'a>) -> Self {
        Self {
            schema: place.schema,
            pointer: place.pointer.to_string(),
            last: last_step(&place.pointer, ""),
            scope: place.scope.clone(),
        }
    }
}

/// The key that a pointer ends in, unless it is `whole`.
fn last_step(pointer: &str, whole: &str) -> Option<String> {
    let (_, last) = pointer.rsplit_once('/').filter(|_| pointer != whole)?;
    Some(last.replace("~1", "/").replace("~0", "~"))
}

/// The name of a definition: its title where that is a valid name, else its key where that is one,
/// else a name made from either.
fn reference_name(schema: &Value, key: &Option<String>) -> Option<String> {
    let title = schema.get("title").and_then(Value::as_str);
    let key = key.as_deref();
    title
        .filter(|title| is_type_name(title))
        .or(key.filter(|key| is_type_name(key)))
        .map(str::to_owned)
        .or_else(|| type_name(key?))
        .or_else(|| type_name(title?))
}

/// A type's name out of a title or key: the text itself if it is a name, else
/// its words in pascal case.
fn type_name(text: &str) -> Option<String> {
    if is_type_name(text) {
        return Some(text.to_owned());
    }
    let mut name = pascal_case(text);
    name.truncate(MAX_NAME);
    is_type_name(&name).then_some(name)
}

fn is_type_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A schema's identity while it is borrowed.
fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}
