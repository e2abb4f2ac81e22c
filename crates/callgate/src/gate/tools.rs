//! What can be asked about the tools themselves, besides what declarations say.

use std::fmt;
use std::sync::Arc;

use callgate_catalog::{Catalog, Detail};
use serde_json::{Map, Value, json};

use super::{Gate, GateBuilder};
use crate::ToolSettings;

impl GateBuilder {
    /// What is set for tools one by one. Default: that of the configuration;
    /// else nothing.
    pub fn tool_settings(mut self, settings: ToolSettings) -> Self {
        self.tool_settings = settings;
        self
    }
}

impl Gate {
    /// What is set for tools one by one.
    pub fn tool_settings(&self) -> &ToolSettings {
        &self.tool_settings
    }

    /// As [`Gate::declarations`], of these functions in this order; names that
    /// are none are passed over.
    pub fn declarations_of(&self, detail: Detail, functions: &[&str]) -> String {
        self.catalog().declarations_of(detail, functions)
    }

    /// Whether a tool has this generated name, after lists that are out of date
    /// have been asked for, as by [`Gate::refresh`]; but only that of the server is waited for
    /// that has the name, if one has.
    pub async fn finds_tool(&self, function: &str) -> bool {
        self.live.fresh_for(function).await.get(function).is_some()
    }

    /// Asks for lists of tools that are out of date, and waits for them, for two
    /// seconds at most. One that does not come in that time is not waited for again, by
    /// anybody, until its server has answered.
    pub async fn refresh(&self) {
        let _catalog = self.fresh_catalog().await;
    }

    /// Which tools there are now, to tell whether there are others later.
    pub fn catalog_stamp(&self) -> CatalogStamp {
        CatalogStamp(self.catalog())
    }

    /// A tool as its server lists it (MCP 2026-07-28, server/tools, "Tool"), but
    /// for its name, which is the generated one: schemas, title, description,
    /// annotations and `_meta` are the server's own words. Hints that say that a call does
    /// less than the protocol takes for granted are left out, unless the server is trusted:
    /// who reads them may ask less. `None` for a name that is no tool.
    pub fn tool_entry(&self, function: &str) -> Option<Map<String, Value>> {
        let catalog = self.catalog();
        let tool = catalog.get(function)?;
        let definition = &tool.definition;
        let mut entry = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(key.to_owned(), value);
            }
        };
        put("name", Some(tool.function.as_str().into()));
        put("title", definition.title.clone().map(Value::from));
        put(
            "description",
            definition.description.clone().map(Value::from),
        );
        put("inputSchema", Some(definition.input_schema.clone()));
        let output = definition.output_schema.as_ref();
        put("outputSchema", output.map(|it| it.value().clone()));
        let said = &definition.annotations;
        let mut annotations = json!({
            "title": said.title,
            "readOnlyHint": said.read_only_hint,
            "destructiveHint": said.destructive_hint,
            "idempotentHint": said.idempotent_hint,
            "openWorldHint": said.open_world_hint,
        });
        let is_trusted = || {
            let mut servers = self.broker.servers();
            servers.any(|it| it.trusted && it.name == definition.server)
        };
        let widens = |hint: &str, value: &Value| match hint {
            "readOnlyHint" | "idempotentHint" => *value == Value::Bool(true),
            "destructiveHint" | "openWorldHint" => *value == Value::Bool(false),
            _ => false,
        };
        if let Value::Object(annotations) = &mut annotations {
            let is_trusted = annotations.iter().any(|(hint, it)| widens(hint, it)) && is_trusted();
            annotations.retain(|hint, it| !it.is_null() && (is_trusted || !widens(hint, it)));
        }
        let any = annotations != json!({});
        put("annotations", any.then_some(annotations));
        put("_meta", definition.meta.clone().map(Value::from));
        Some(entry)
    }
}

/// Which tools there were at one time. Two are equal as long as no tool has come,
/// gone or changed between them.
#[derive(Clone)]
pub struct CatalogStamp(Arc<Catalog>);

impl PartialEq for CatalogStamp {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CatalogStamp {}

impl fmt::Debug for CatalogStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogStamp({} tools)", self.0.tools().len())
    }
}
