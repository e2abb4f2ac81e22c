//! The servers whose tools a run may use.

use std::sync::Arc;

use callgate_catalog::{Catalog, Meant};

/// Names of servers that a message lists.
const SHOWN_SERVERS: usize = 8;
/// Names of functions that a message lists.
const SHOWN_FUNCTIONS: usize = 5;

/// The servers whose tools a run may use: all, or only these.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope(Option<Arc<[String]>>);

impl Scope {
    /// Only these servers.
    pub(crate) fn of(servers: Vec<String>) -> Self {
        Self(Some(servers.into()))
    }

    /// The servers, unless all are in scope.
    pub(crate) fn servers(&self) -> Option<Vec<String>> {
        self.0.as_deref().map(<[String]>::to_vec)
    }

    /// True if this server is in scope.
    pub(crate) fn has(&self, server: &str) -> bool {
        let servers = self.0.as_deref();
        servers.is_none_or(|servers| servers.iter().any(|name| name == server))
    }

    /// True if this function is a tool out of scope.
    pub(crate) fn excludes(&self, catalog: &Catalog, function: &str) -> bool {
        let tool = catalog.get(function);
        tool.is_some_and(|tool| !self.has(&tool.definition.server))
    }

    /// The tool most like a name that is no tool, if that one is in scope.
    pub(crate) fn nearest<'c>(&self, catalog: &'c Catalog, name: &str) -> Option<&'c str> {
        let near = catalog.suggest(name);
        near.filter(|near| !self.excludes(catalog, near))
    }

    /// Advice about a name that is no function, as a script spells it, such as `fs.read_file`.
    pub(crate) fn advice(&self, catalog: &Catalog, name: &str, path: &str) -> Option<String> {
        let in_scope = |function: &str| !self.excludes(catalog, function);
        let instead = callgate_script::instead_of(name);
        match catalog.meant(path, in_scope) {
            Some(Meant::Functions(functions)) => {
                let names = functions.iter().take(SHOWN_FUNCTIONS);
                let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Some(Meant::Server(server, functions)) => {
                let names = functions.iter().take(SHOWN_FUNCTIONS);
                let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                if functions.len() > SHOWN_FUNCTIONS {
                    names.push(format!("{} more", functions.len() - SHOWN_FUNCTIONS));
                }
                let names = names.join(", ");
                Some(format!(
                    "{server} is a server; its functions are globals: {names}"
                ))
            }
            _ if instead.is_some() => instead.map(str::to_owned),
            Some(Meant::Namespace) => {
                let mut tools = catalog.tools().iter().map(|tool| tool.function.as_str());
                let example = tools.find(|function| in_scope(function))?;
                Some(format!(
                    "tools are global functions, such as `{example}(input)`"
                ))
            }
            None => {
                let near = self.nearest(catalog, path)?;
                Some(format!("did you mean `{near}`?"))
            }
        }
    }

    /// Why the run may not call this function of this server; `None` if it may.
    pub(crate) fn refusal(&self, function: &str, server: &str) -> Option<String> {
        if self.has(server) {
            return None;
        }
        let servers = self.0.as_deref().unwrap_or_default();
        let shown = servers.iter().take(SHOWN_SERVERS);
        let mut shown: Vec<String> = shown.map(|name| format!("{name:?}")).collect();
        if servers.len() > SHOWN_SERVERS {
            shown.push(format!("{} more", servers.len() - SHOWN_SERVERS));
        }
        let allowed = if shown.is_empty() {
            "none".to_owned()
        } else {
            format!("{} alone", shown.join(", "))
        };
        Some(format!(
            "{function} is of server {server:?}, and this run may use the tools of {allowed}"
        ))
    }
}
