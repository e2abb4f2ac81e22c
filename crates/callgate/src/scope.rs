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

/// Advice about a name that is not a function.
pub(crate) enum Advice {
    /// A question that names the functions that it spells in another way.
    Meant(String),
    /// A question that names the function most like it, or the functions of its server.
    Near(String),
    /// A statement.
    Said(String),
}

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

    /// The tool most like a name that is not a tool, if that one is in scope.
    pub(crate) fn nearest<'c>(&self, catalog: &'c Catalog, name: &str) -> Option<&'c str> {
        let near = catalog.suggest(name);
        near.filter(|near| !self.excludes(catalog, near))
    }

    /// Advice about a name that is not a function: the name itself, and the tool that it calls, as
    /// a script spells it, such as `fs.read_file`.
    pub(crate) fn advice(&self, catalog: &Catalog, name: &str, tool: &str) -> Option<Advice> {
        let in_scope = |function: &str| !self.excludes(catalog, function);
        let listed = |functions: &[&str], separator: &str| {
            let names = functions.iter().take(SHOWN_FUNCTIONS);
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            names.join(separator)
        };
        let some = |functions: &[&str]| {
            let names = listed(functions, ", ");
            match functions.len().saturating_sub(SHOWN_FUNCTIONS) {
                0 => names,
                more => format!("{names} and {more} more"),
            }
        };
        let instead = callgate_script::replacement_for(name);
        Some(match catalog.meant(tool, in_scope) {
            Some(Meant::Functions(functions)) => {
                // `mcp.call("fs_read")` could be the function, or a call by name.
                let by_name = instead.filter(|_| name.starts_with("mcp."));
                let by_name = by_name.map_or(String::new(), |it| format!(" Or {it}"));
                Advice::Meant(format!(
                    "did you mean {}?{by_name}",
                    listed(&functions, " or ")
                ))
            }
            Some(Meant::Server(server, functions)) => {
                let names = some(&functions);
                Advice::Said(format!(
                    "{server} is a server; its functions are globals: {names}"
                ))
            }
            _ if instead.is_some() => Advice::Said(instead.unwrap_or_default().to_owned()),
            Some(Meant::Namespace) => {
                let mut tools = catalog.tools().iter().map(|tool| tool.function.as_str());
                let example = tools.find(|function| in_scope(function))?;
                Advice::Said(format!(
                    "tools are global functions, such as `{example}(input)`"
                ))
            }
            None => {
                if let Some(begun) = catalog.begun(tool, in_scope) {
                    return Some(Advice::Meant(format!("did you mean `{begun}`?")));
                }
                if let Some(near) = self.nearest(catalog, tool) {
                    return Some(Advice::Near(format!("did you mean `{near}`?")));
                }
                let (server, functions) = catalog.server_of(tool, in_scope)?;
                Advice::Near(format!("server {server:?} has {}", some(&functions)))
            }
        })
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
