//! What a server's definitions say of how its tools are to be called.

use std::sync::{Arc, PoisonError, RwLock};

use callgate_policy::{Definition, DefinitionHash};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::failure::Failure;
use crate::http::Mirror;
use crate::listing::Dropped;

/// The tools of a connection that are called in some special way.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    special: RwLock<Specials>,
}

/// What a whole list says of that, by the tools' names: of a name that has something special,
/// every entry in the order of the list. Of one name there may be several, of which the
/// catalog takes one; how a call is made is what that one says, and no other.
#[derive(Debug, Default)]
pub(crate) struct Specials(FxHashMap<String, Vec<(DefinitionHash, Arc<Special>)>>);

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
        let mut read = Vec::with_capacity(definitions.len());
        let mut names = FxHashSet::default();
        definitions.retain(|definition| {
            let name = name_of(definition);
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
                names.insert(name.to_owned());
            }
            read.push(how);
            true
        });
        let mut special: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (definition, how) in definitions.iter().zip(read) {
            if let Some(name) = name_of(definition).filter(|name| names.contains(*name)) {
                let hash = *Definition::of(definition).hash();
                let entries = special.entry(name.to_owned()).or_default();
                entries.push((hash, Arc::new(how)));
            }
        }
        Self(special)
    }
}

fn name_of(definition: &Value) -> Option<&str> {
    definition.get("name").and_then(Value::as_str)
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

    /// What is special about a tool, as the entry says it that was decided on; where nothing
    /// is known of that, the first of its name.
    pub(crate) fn get(
        &self,
        tool: &str,
        definition: Option<&DefinitionHash>,
    ) -> Option<Arc<Special>> {
        let special = self.special.read().unwrap_or_else(PoisonError::into_inner);
        let mut entries = special.0.get(tool)?.iter();
        let is_it = |hash| definition.is_none_or(|definition| definition == hash);
        let (_, how) = entries.find(|(hash, _)| is_it(hash))?;
        Some(Arc::clone(how))
    }
}

impl Special {
    /// The headers that go with these arguments, which are a JSON object.
    ///
    /// # Errors
    ///
    /// There are none for them.
    pub(crate) fn headers(&self, arguments: &str) -> Result<Vec<(String, String)>, Failure> {
        self.mirror.headers(arguments).map_err(Failure::Unfit)
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
        let good = tools.get("good", None).expect("it is special");
        let headers = good.headers(r#"{"a":"x","b":1}"#).expect("they fit");
        assert_eq!(headers, [("Mcp-Param-A".to_owned(), "x".to_owned())]);
        assert!(tools.get("task", None).is_some_and(|task| task.as_task));
        assert_eq!(tools.get("plain", None), None);

        let mut over_stdio = list();
        tools.take(Specials::read(&mut over_stdio, false, &mut dropped), || {});
        assert!(dropped.said().is_empty());
        assert_eq!(over_stdio, list());
        assert_eq!(tools.get("good", None), None);
    }

    #[test]
    fn of_one_name_each_entry_says_how_it_is_called() {
        let header = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" } } });
        let plain = json!({ "name": "t", "inputSchema": { "type": "object" } });
        let mirrored = json!({ "name": "t", "inputSchema": header });
        let task = json!({
            "name": "t", "description": "d", "execution": { "taskSupport": "required" },
        });
        // What counts of it is as of the one before.
        let same = json!({ "name": "t", "description": "d", "execution": {} });
        let all = [plain, mirrored, task, same];
        let tools = Tools::default();
        let mut list = all.to_vec();
        let specials = Specials::read(&mut list, true, &mut Dropped::default());
        tools.take(specials, || {});
        let said = |definition: Option<&Value>| {
            let hash = definition.map(|definition| *Definition::of(definition).hash());
            let how = tools.get("t", hash.as_ref())?;
            let headers = how.headers(r#"{"a":"x"}"#).expect("they fit");
            Some((how.as_task, headers.len()))
        };
        let usual = Some((false, 0));
        let expected = [usual, Some((false, 1)), Some((true, 0)), Some((true, 0))];
        assert_eq!(all.each_ref().map(|entry| said(Some(entry))), expected);
        assert_eq!(said(None), usual);
        assert_eq!(said(Some(&json!({ "name": "t" }))), None);
    }
}
