//! What a server's definitions say of how its tools are to be called.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::failure::Failure;
use crate::http::Mirror;
use crate::listing::Dropped;

/// The tools of a connection that are called in some special way.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    special: RwLock<Specials>,
}

/// What a whole list says of that, by the tools' names.
#[derive(Debug, Default)]
pub(crate) struct Specials(FxHashMap<String, Arc<Special>>);

/// How a tool is called, where that is not as usual.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Special {
    /// It can only be called as a task (`execution.taskSupport`, 2025-11-25).
    pub(crate) as_task: bool,
    /// Which of its arguments are headers too (HTTP, since 2026-07-28).
    pub(crate) mirror: Mirror,
}

impl Specials {
    /// Reads a list. Where arguments are `mirrored` in headers, a tool that says so in a
    /// way that is not allowed is taken off it, as the specification wants it, and
    /// `dropped`.
    pub(crate) fn read(
        definitions: &mut Vec<Value>,
        mirrored: bool,
        dropped: &mut Dropped,
    ) -> Self {
        let mut special = FxHashMap::default();
        definitions.retain(|definition| {
            let name = definition.get("name").and_then(Value::as_str);
            let mirror = match definition.get("inputSchema").filter(|_| mirrored) {
                Some(schema) => Mirror::of(schema),
                None => Ok(Mirror::default()),
            };
            let mirror = match mirror {
                Ok(mirror) => mirror,
                Err(reason) => {
                    dropped.add(|| {
                        let name: String = name.unwrap_or_default().chars().take(80).collect();
                        format!("its tool {name:?} is dropped: {reason}")
                    });
                    return false;
                }
            };
            let support = definition.pointer("/execution/taskSupport");
            let how = Special {
                as_task: support.and_then(Value::as_str) == Some("required"),
                mirror,
            };
            if let Some(name) = name.filter(|_| how != Special::default()) {
                special.insert(name.to_owned(), Arc::new(how));
            }
            true
        });
        Self(special)
    }
}

impl Tools {
    /// Puts what a list says in the place of what the one before said. `publish` makes the
    /// list itself known: no call learns how its tool is called before it can see what the
    /// tool is by the same list.
    pub(crate) fn take(&self, specials: Specials, publish: impl FnOnce()) {
        let mut special = self.special.write().unwrap_or_else(PoisonError::into_inner);
        publish();
        *special = specials;
    }

    /// What is special about a tool.
    pub(crate) fn get(&self, tool: &str) -> Option<Arc<Special>> {
        let special = self.special.read().unwrap_or_else(PoisonError::into_inner);
        special.0.get(tool).cloned()
    }
}

impl Special {
    /// The headers that go with these arguments, which are a JSON object.
    ///
    /// # Errors
    ///
    /// There are none for them.
    pub(crate) fn headers(&self, arguments: &str) -> Result<Vec<(String, String)>, Failure> {
        if self.mirror.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        self.mirror.headers(&arguments).map_err(Failure::Unfit)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_special_and_what_is_dropped() {
        let tools = Tools::default();
        let good = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" } } });
        let bad = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "" } } });
        let list = || {
            vec![
                json!({ "name": "good", "inputSchema": good }),
                json!({ "name": "bad", "inputSchema": bad }),
                json!({ "name": "task", "execution": { "taskSupport": "required" } }),
                json!({ "name": "plain", "execution": { "taskSupport": "optional" } }),
                json!(7),
            ]
        };
        let mut over_http = list();
        let mut dropped = Dropped::default();
        tools.take(Specials::read(&mut over_http, true, &mut dropped), || {});
        let warnings = dropped.said();
        assert_eq!((over_http.len(), warnings.len()), (4, 1), "{warnings:?}");
        assert!(warnings[0].starts_with(r#"its tool "bad" is dropped: "#));
        let good = tools.get("good").expect("it is special");
        let headers = good.headers(r#"{"a":"x","b":1}"#).expect("they fit");
        assert_eq!(headers, [("Mcp-Param-A".to_owned(), "x".to_owned())]);
        assert!(tools.get("task").is_some_and(|task| task.as_task));
        assert_eq!(tools.get("plain"), None);

        let mut over_stdio = list();
        tools.take(Specials::read(&mut over_stdio, false, &mut dropped), || {});
        assert!(dropped.said().is_empty());
        assert_eq!(over_stdio, list());
        assert_eq!(tools.get("good"), None);
    }
}
