//! One tool as its server lists it, read from raw JSON.
//!
//! An entry is malformed if a part that calls need, the name or the input schema, is
//! missing or has the wrong form. A part that only describes the tool is left out with a
//! warning if it has the wrong form, and unknown members are ignored.

use std::sync::Arc;

use callgate_policy::{Definition, Hints};
use callgate_schema::Declared;
use callgate_typegen::deprecation;
use serde_json::{Map, Value};

use crate::warning::{Malformed, ignored};

/// Bytes of a tool's name. The protocol asks for at most 128 characters;
/// servers in use go beyond that, though never far.
const MAX_NAME: usize = 256;
/// Levels of nesting of a schema.
const MAX_SCHEMA_DEPTH: usize = 200;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name on the server, which a call sends.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The description of the tool.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, which are an object.
    pub input_schema: Value,
    /// The JSON Schema of the structured result.
    pub output_schema: Option<Declared>,
    /// A name for people in its annotations, from before tools had titles.
    pub older_title: Option<String>,
    /// The server's hints about the tool's effects. They are claims, not facts: only a server
    /// that is trusted is believed.
    pub hints: Hints,
    /// `_meta`: the server's data about the tool for clients that know the keys.
    pub meta: Option<Map<String, Value>>,
    /// The definition that grants are bound to, as the server wrote it.
    pub identity: Arc<Definition>,
    /// True if it is for the server's own views and not for models
    /// (`_meta.ui.visibility` without `model`). Catalogs leave it out.
    pub hidden: bool,
    /// True if a server of MCP 2025-11-25 takes calls of it only as tasks
    /// (`execution.taskSupport`). Later revisions do not have the member.
    pub task_only: bool,
    /// Warnings about parts that were left out, as sentences.
    pub warnings: Vec<String>,
}

impl ToolDefinition {
    /// True if its server calls it deprecated, in its description or title.
    pub fn is_deprecated(&self) -> bool {
        let texts = [&self.description, &self.title, &self.older_title];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| deprecation(text).is_some())
    }

    /// The name for people, wherever the server writes it.
    pub fn shown_title(&self) -> Option<&str> {
        self.title.as_deref().or(self.older_title.as_deref())
    }
}

impl ToolDefinition {
    /// A tool with known names only.
    pub fn new(server: &str, name: &str) -> Self {
        Self {
            server: server.to_owned(),
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: Value::Null,
            output_schema: None,
            older_title: None,
            hints: Hints::default(),
            meta: None,
            identity: Arc::new(Definition::of(&Value::Null)),
            hidden: false,
            task_only: false,
            warnings: Vec::new(),
        }
    }

    /// Reads one entry of a server's list.
    /// The error: [`Malformed`] if the entry has no usable name or input schema.
    pub fn parse(server: &str, raw: &Value) -> Result<Self, Malformed> {
        let malformed = |name: Option<&str>, reason: &str| Malformed {
            server: server.to_owned(),
            tool: name.map(|name| name[..name.floor_char_boundary(MAX_NAME)].to_owned()),
            reason: reason.to_owned(),
        };
        let Some(entry) = raw.as_object() else {
            return Err(malformed(None, "the entry is not an object"));
        };
        let name = match entry.get("name") {
            None => return Err(malformed(None, "it has no `name`")),
            Some(Value::String(name)) => name.as_str(),
            Some(_) => return Err(malformed(None, "`name` is not a string")),
        };
        if let Some(reason) = name_fault(name) {
            return Err(malformed(Some(name), &reason));
        }
        let input_schema = match entry.get("inputSchema") {
            None => return Err(malformed(Some(name), "it has no `inputSchema`")),
            Some(schema) => input_schema(schema)
                .map_err(|fault| malformed(Some(name), &format!("`inputSchema` {fault}")))?,
        };

        let mut reader = Reader {
            server,
            tool: name,
            warnings: Vec::new(),
        };
        let output_schema = match entry.get("outputSchema") {
            None | Some(Value::Null) => None,
            Some(schema) => match schema_fault(schema) {
                None => Some(Declared::new(schema.clone())),
                Some(fault) => {
                    reader.ignore("outputSchema", &fault);
                    None
                }
            },
        };
        let title = reader.string(entry, "title");
        let description = reader.string(entry, "description");
        let annotations = reader.member(entry, "annotations", "an object", Value::as_object);
        let annotations = annotations.map(|annotations| {
            let hints = Hints {
                read_only: reader.boolean(annotations, "readOnlyHint"),
                destructive: reader.boolean(annotations, "destructiveHint"),
                idempotent: reader.boolean(annotations, "idempotentHint"),
                open_world: reader.boolean(annotations, "openWorldHint"),
            };
            (reader.string(annotations, "title"), hints)
        });
        let (older_title, hints) = annotations.unwrap_or_default();
        Ok(Self {
            title,
            description,
            input_schema,
            output_schema,
            older_title,
            hints,
            meta: meta(entry),
            identity: Arc::new(Definition::of(raw)),
            hidden: is_hidden(raw),
            task_only: raw["execution"]["taskSupport"] == "required",
            warnings: reader.warnings,
            ..Self::new(server, name)
        })
    }
}

/// True if a server lists the viewers of the tool and models are not among them.
fn is_hidden(raw: &Value) -> bool {
    match &raw["_meta"]["ui"]["visibility"] {
        Value::Null => false,
        Value::Array(viewers) => !viewers.iter().any(|viewer| viewer == "model"),
        // A visibility of unknown form hides the tool.
        _ => true,
    }
}

/// A tool's `_meta`, if it can be passed on.
fn meta(entry: &Map<String, Value>) -> Option<Map<String, Value>> {
    let meta = entry
        .get("_meta")
        .filter(|meta| schema_fault(meta).is_none());
    meta.and_then(Value::as_object).cloned()
}

fn name_fault(name: &str) -> Option<String> {
    if name.is_empty() {
        Some("`name` is empty".to_owned())
    } else if name.len() > MAX_NAME {
        let bytes = name.len();
        Some(format!("`name` has {bytes} bytes; the limit is {MAX_NAME}"))
    } else if name.chars().any(char::is_control) {
        Some("`name` holds control characters".to_owned())
    } else {
        None
    }
}

/// The schema of arguments, with the `type` "object". The error: its fault, as a clause.
fn input_schema(schema: &Value) -> Result<Value, String> {
    if let Some(fault) = schema_fault(schema) {
        return Err(fault);
    }
    let mut schema = schema.clone();
    if let Some(ty) = schema.get_mut("type") {
        let is_object = |ty: &Value| {
            ty.as_str()
                .is_some_and(|ty| ty.eq_ignore_ascii_case("object"))
        };
        let is_of_objects = match &*ty {
            Value::Null => true,
            Value::Array(types) => types.is_empty() || types.iter().any(is_object),
            ty => is_object(ty),
        };
        if !is_of_objects {
            return Err("does not have the `type` \"object\"".to_owned());
        }
        *ty = "object".into();
    }
    Ok(schema)
}

/// The fault of any schema of a tool, as a clause. A result may be something else than
/// an object from the protocol's 2026 revision on, so its `type` is free.
fn schema_fault(schema: &Value) -> Option<String> {
    if !schema.is_object() {
        return Some("is not an object".to_owned());
    }
    let is_too_deep = deeper_than(schema, MAX_SCHEMA_DEPTH);
    is_too_deep.then(|| format!("is nested deeper than {MAX_SCHEMA_DEPTH} levels"))
}

/// True if a value is nested deeper than `limit`; without recursion, and before
/// anything that has some.
fn deeper_than(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Reads the members a tool can do without.
struct Reader<'a> {
    server: &'a str,
    tool: &'a str,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// The value of a member, unless it is missing, null or not of this kind.
    fn member<'v, T>(
        &mut self,
        map: &'v Map<String, Value>,
        member: &str,
        kind: &str,
        read: impl FnOnce(&'v Value) -> Option<T>,
    ) -> Option<T> {
        let value = map.get(member).filter(|value| !value.is_null())?;
        let value = read(value);
        if value.is_none() {
            self.ignore(member, &format!("is not {kind}"));
        }
        value
    }

    fn string(&mut self, map: &Map<String, Value>, member: &str) -> Option<String> {
        let text = self.member(map, member, "a string", Value::as_str);
        text.map(str::to_owned)
    }

    fn boolean(&mut self, map: &Map<String, Value>, member: &str) -> Option<bool> {
        self.member(map, member, "a boolean", Value::as_bool)
    }

    fn ignore(&mut self, member: &str, fault: &str) {
        let warning = ignored(self.server, self.tool, member, fault);
        self.warnings.push(warning);
    }
}
