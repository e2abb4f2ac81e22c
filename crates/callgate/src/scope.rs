//! The servers whose tools a run may use.

use std::sync::Arc;

use callgate_broker::Target;
use callgate_catalog::Catalog;

/// Names of servers that are said in a message.
const SAID: usize = 8;

/// The servers whose tools a run may use: all, or these alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope(Option<Arc<[String]>>);

impl Scope {
    /// These servers alone.
    pub(crate) fn of(servers: Vec<String>) -> Self {
        Self(Some(servers.into()))
    }

    /// Whether all servers are in it.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.is_none()
    }

    /// The servers, unless it is all of them.
    pub(crate) fn servers(&self) -> Option<Vec<String>> {
        self.0.as_deref().map(<[String]>::to_vec)
    }

    /// Whether this server is in it.
    pub(crate) fn has(&self, server: &str) -> bool {
        let servers = self.0.as_deref();
        servers.is_none_or(|servers| servers.iter().any(|name| name == server))
    }

    /// Whether a tool with this generated name is out of it.
    pub(crate) fn excludes(&self, catalog: &Catalog, function: &str) -> bool {
        !self.is_whole()
            && catalog
                .get(function)
                .is_some_and(|tool| !self.has(&tool.definition.server))
    }

    /// The function most like a name that is none, unless its tool is out of it.
    pub(crate) fn nearest<'c>(&self, catalog: &'c Catalog, name: &str) -> Option<&'c str> {
        let near = catalog.suggest(name);
        near.filter(|near| !self.excludes(catalog, near))
    }

    /// Why a tool that is out of it is not called.
    pub(crate) fn why_not(&self, function: &str, server: &str) -> String {
        let servers = self.0.as_deref().unwrap_or_default();
        let mut said: Vec<String> = servers
            .iter()
            .take(SAID)
            .map(|name| format!("{name:?}"))
            .collect();
        if servers.len() > SAID {
            said.push(format!("{} more", servers.len() - SAID));
        }
        let may = match said.is_empty() {
            true => "none".to_owned(),
            false => format!("{} alone", said.join(", ")),
        };
        format!("{function} is of server {server:?}, and this run may use the tools of {may}")
    }

    /// Why a run may not call this tool; `None` for one that is in it.
    pub(crate) fn refusal(&self, target: &Target) -> Option<String> {
        let out = !self.has(&target.server);
        out.then(|| self.why_not(&target.function, &target.server))
    }
}
