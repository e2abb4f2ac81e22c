//! The functions that were meant by names that none has.

use crate::catalog::Catalog;
use crate::search::{Asked, MAX_ASKED, MIN_LIKENESS, plain};
use crate::tool::Tool;

/// Names that other programs put before those of tools and servers.
const NAMESPACES: [&str; 11] = [
    "mcp",
    "tools",
    "tool",
    "servers",
    "server",
    "functions",
    "function",
    "client",
    "api",
    "session",
    "globalThis",
];

/// Names of namespaces that may stand before a name.
const MAX_NAMESPACES: usize = 4;

/// The meaning of a name that is spelt as other programs spell it: `fs.read_file`,
/// `tools.fs_read_file`, `mcp__fs__read_file`, `fsReadFile`, `read_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant<'c> {
    /// These functions have the name in another spelling; more than one if it names no server.
    Functions(Vec<&'c str>),
    /// The name begins with this server's; these are its functions, the nearest first.
    Server(&'c str, Vec<&'c str>),
    /// The name is only one that other programs put before those of tools.
    Namespace,
}

impl Catalog {
    /// The function or server meant by a name that is not a function, among the functions that
    /// `is_known` takes.
    /// Parts of the name are parted by dots.
    pub fn meant(&self, name: &str, is_known: impl Fn(&str) -> bool) -> Option<Meant<'_>> {
        if name.is_empty() || name.len() > MAX_ASKED {
            return None;
        }
        let known: Vec<_> = self
            .tools()
            .iter()
            .filter(|it| is_known(&it.function))
            .collect();
        let parts: Vec<&str> = name.split('.').flat_map(|part| part.split("__")).collect();
        // A server may be named as a namespace is, so the whole name comes first.
        let starts = (0..parts.len().min(MAX_NAMESPACES)).filter(|start| {
            let before = parts.get(..*start).unwrap_or_default();
            before.iter().all(|part| NAMESPACES.contains(part))
        });
        for start in starts.clone() {
            let parts = parts.get(start..).unwrap_or_default();
            let asked = plain(&parts.concat());
            let same = |name: &str| !asked.is_empty() && plain(name) == asked;
            let named = known.iter().filter(|it| same(&it.function));
            let mut found: Vec<&str> = named.map(|it| it.function.as_str()).collect();
            if found.is_empty() {
                let own = known.iter().filter(|it| same(&it.definition.name));
                found = own.map(|it| it.function.as_str()).collect();
            }
            if !found.is_empty() {
                return Some(Meant::Functions(found));
            }
        }
        for start in starts {
            let (server, rest) = parts.get(start..)?.split_first()?;
            let of_server = |it: &&&Tool| plain(&it.definition.server) == plain(server);
            let mut asked = Asked::new(&rest.concat());
            let tools = known.iter().filter(of_server).map(|tool| {
                let own = plain(&tool.definition.name);
                let part = own.contains(&asked.name) || asked.name.contains(&own);
                let like = asked.likeness(&own);
                (tool, if part { -1.0 - like } else { -like })
            });
            let mut tools: Vec<_> = tools.collect();
            let Some((first, _)) = tools.first() else {
                continue;
            };
            let server = first.definition.server.as_str();
            tools.sort_by(|(_, a), (_, b)| a.total_cmp(b));
            let functions = tools.iter().map(|(it, _)| it.function.as_str());
            return Some(Meant::Server(server, functions.collect()));
        }
        NAMESPACES
            .contains(&parts.first()?)
            .then_some(Meant::Namespace)
    }

    /// The function most like a name that is none, if one is like it at all.
    pub fn suggest(&self, name: &str) -> Option<&str> {
        if let Some(Meant::Functions(functions)) = self.meant(name, |_| true) {
            return functions.first().copied();
        }
        if name.is_empty() || name.len() > MAX_ASKED {
            return None;
        }
        let mut asked = Asked::new(name);
        self.tools()
            .iter()
            .map(|tool| {
                (
                    asked.likeness(&plain(&tool.function)),
                    tool.function.as_str(),
                )
            })
            .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
            .max_by(|(a, first), (b, second)| a.total_cmp(b).then_with(|| second.cmp(first)))
            .map(|(_, function)| function)
    }
}
