//! The document in which a reference is resolved: schemas with an `$id` are documents of their own,
//! and anchors name places in them.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};
use url::Url;

use crate::text::prefix;

/// Bytes of a pointer that is kept; of longer ones the start says enough.
const MAX_POINTER: usize = 200;
/// Bytes of a document's URI. Each `$id` is resolved against the `$id`s around it, so that URIs
/// would grow with the square of the nesting.
const MAX_URI: usize = 2_000;
/// The URI of a document whose own URI is too long: no reference leads there.
const UNKNOWN: &str = "about:blank";
/// The base URI of a whole schema without an `$id`.
const NOWHERE: &str = "schema:///";

/// The document that a schema belongs to.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    /// The document's schema.
    pub(super) root: &'a Value,
    /// The document's URI, empty for a whole schema without an `$id`.
    pub(super) uri: Rc<str>,
    /// The document's JSON pointer in the tool's definition.
    pub(super) pointer: Rc<str>,
}

impl<'a> Scope<'a> {
    /// The document of the whole schema.
    pub(super) fn whole(root: &'a Value, pointer: &str, dialect: Dialect) -> Self {
        Self {
            root,
            uri: match root.as_object().and_then(|map| own_id(map, dialect)) {
                Some(id) => resolve("", id).into(),
                None => "".into(),
            },
            pointer: pointer.into(),
        }
    }

    /// The document of a schema inside this document: the schema itself if it has an `$id`.
    pub(super) fn inside(
        &self,
        schema: &'a Value,
        pointer: impl FnOnce() -> String,
        dialect: Dialect,
    ) -> Self {
        let id = schema.as_object().and_then(|map| own_id(map, dialect));
        match id {
            Some(id) if !std::ptr::eq(schema, self.root) => {
                let uri = resolve(&self.uri, id);
                Self {
                    root: schema,
                    uri: if uri.len() > MAX_URI { UNKNOWN } else { &uri }.into(),
                    pointer: pointer().into(),
                }
            }
            _ => self.clone(),
        }
    }
}

/// The versions of JSON Schema that lowering distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Up to draft 6.
    Old,
    Draft7,
    /// From 2019-09 on, and where nothing is said.
    Modern,
}

impl Dialect {
    pub(super) fn of(root: &Value) -> Self {
        let named = root.get("$schema").and_then(Value::as_str).unwrap_or("");
        let is = |draft: &str| named.contains(draft);
        if ["draft-03", "draft-04", "draft-06"].into_iter().any(is) {
            Self::Old
        } else if is("draft-07") {
            Self::Draft7
        } else {
            Self::Modern
        }
    }
}

/// The documents and anchors of a schema, by name.
#[derive(Debug, Default)]
pub(super) struct Index<'a> {
    documents: HashMap<Rc<str>, Scope<'a>>,
    /// By URI with fragment.
    anchors: HashMap<String, Place<'a>>,
    dynamic: HashMap<&'a str, Vec<Place<'a>>>,
}

/// A schema that has a name.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    pub(super) scope: Scope<'a>,
    pub(super) pointer: Rc<str>,
}

impl<'a> Index<'a> {
    pub(super) fn document(&self, uri: &str) -> Option<&Scope<'a>> {
        self.documents.get(uri)
    }

    pub(super) fn anchor(&self, document: &Scope<'a>, name: &str) -> Option<&Place<'a>> {
        self.anchors.get(&format!("{}#{name}", document.uri))
    }

    /// The places a dynamic anchor may stand for: the outermost one that the way to a schema has
    /// passed. Every way begins at the whole schema, so if that has it, it is the one.
    pub(super) fn dynamic(&self, name: &str, whole: &Scope<'a>) -> &[Place<'a>] {
        let places = self.dynamic.get(name).map_or(&[][..], Vec::as_slice);
        let outermost = places
            .iter()
            .position(|place| std::ptr::eq(place.scope.root, whole.root));
        match outermost.and_then(|index| places.get(index..=index)) {
            Some(one) => one,
            None => places,
        }
    }

    /// Indexes a schema in one walk. Values that are not schemas, as in an `enum`, are skipped.
    pub(super) fn of(whole: &Scope<'a>, dialect: Dialect) -> Self {
        let mut index = Self::default();
        let mut open = vec![(whole.root, whole.clone(), whole.pointer.to_string())];
        while let Some((schema, outer, pointer)) = open.pop() {
            let Value::Object(map) = schema else {
                continue;
            };
            let scope = outer.inside(schema, || pointer.clone(), dialect);
            if std::ptr::eq(scope.root, schema) && *scope.uri != *UNKNOWN {
                let uri = scope.uri.clone();
                index.documents.entry(uri).or_insert_with(|| scope.clone());
            }
            index.name(schema, map, &scope, &pointer, dialect);
            for (keyword, inner) in map {
                let at = |step: &str| {
                    if pointer.len() > MAX_POINTER {
                        return pointer.clone();
                    }
                    let step = prefix(step, MAX_POINTER);
                    let step = step.replace('~', "~0").replace('/', "~1");
                    format!("{pointer}/{keyword}/{step}")
                };
                match (keyword.as_str(), inner) {
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions"
                        | "dependentSchemas" | "dependencies",
                        Value::Object(schemas),
                    ) => {
                        for (key, schema) in schemas {
                            let pointer = at(key);
                            open.push((schema, scope.clone(), pointer));
                        }
                    }
                    ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(list)) => {
                        for (number, schema) in list.iter().enumerate() {
                            let pointer = at(&number.to_string());
                            open.push((schema, scope.clone(), pointer));
                        }
                    }
                    (
                        "items"
                        | "additionalItems"
                        | "additionalProperties"
                        | "unevaluatedItems"
                        | "unevaluatedProperties"
                        | "contains"
                        | "propertyNames"
                        | "not"
                        | "if"
                        | "then"
                        | "else",
                        schema,
                    ) => open.push((
                        schema,
                        scope.clone(),
                        format!("{}/{keyword}", prefix(&pointer, MAX_POINTER)),
                    )),
                    _ => {}
                }
            }
        }
        index
    }

    fn name(
        &mut self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
        scope: &Scope<'a>,
        pointer: &str,
        dialect: Dialect,
    ) {
        let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
        let place = || Place {
            schema,
            scope: scope.clone(),
            pointer: pointer.into(),
        };
        let (anchor, dynamic) = match dialect {
            Dialect::Modern => (text("$anchor"), text("$dynamicAnchor")),
            Dialect::Old | Dialect::Draft7 if map.contains_key("$ref") => (None, None),
            Dialect::Old | Dialect::Draft7 => {
                (text("$id").and_then(|id| id.strip_prefix('#')), None)
            }
        };
        for name in anchor.into_iter().chain(dynamic) {
            self.anchors
                .entry(format!("{}#{name}", scope.uri))
                .or_insert_with(place);
        }
        if let Some(name) = dynamic {
            self.dynamic.entry(name).or_default().push(place());
        }
    }
}

/// The `$id` that makes a schema a document, without its empty fragment.
fn own_id(map: &Map<String, Value>, dialect: Dialect) -> Option<&str> {
    let id = map.get("$id")?.as_str()?;
    if dialect != Dialect::Modern && map.contains_key("$ref") {
        return None;
    }
    let id = id.split_once('#').map_or(id, |(id, _)| id);
    (!id.is_empty()).then_some(id)
}

/// A reference made absolute, both without fragments. Nothing is ever fetched.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let base = Url::parse(base).or_else(|_| Url::parse(NOWHERE));
    let resolved = base.and_then(|base| base.join(reference));
    resolved.map_or_else(|_| reference.to_owned(), String::from)
}
