//! Finds the function that was meant by a name or pattern of no function.

use callgate_text::nearest;
use callgate_typegen::names::prefix;

use crate::catalog::Catalog;
use crate::search::{Asked, MAX_ASKED, plain};
use crate::tool::Tool;

/// Names that other programs put before those of tools and servers.
const NAMESPACES: [&str; 14] = [
    "mcp",
    "codemode",
    "default_api",
    "sandbox",
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

/// The letters after the server's name with which a function's name is begun.
const MIN_BEGUN: usize = 3;

/// The meaning of a name in the spelling of other programs: `fs.read_file`,
/// `tools.fs_read_file`, `mcp__fs__read_file`, `fsReadFile`, `read_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant<'c> {
    /// The functions whose name it is in a different spelling; several if it names no server.
    Functions(Vec<&'c str>),
    /// The name begins with this server's; these are its functions, the nearest first.
    Server(&'c str, Vec<&'c str>),
    /// The name is only one that other programs put before those of tools.
    Namespace,
}

impl Catalog {
    /// The function or server meant by a name that is not a function, among the functions for which
    /// `is_known` is true. A `.`, `/` or `__` separates parts of the name.
    pub fn meant(&self, name: &str, is_known: impl Fn(&str) -> bool) -> Option<Meant<'_>> {
        if name.is_empty() || name.len() > MAX_ASKED {
            return None;
        }
        let known: Vec<_> = self
            .tools()
            .iter()
            .filter(|it| is_known(&it.function))
            .collect();
        let parts = name.split(['.', '/']);
        let parts: Vec<&str> = parts.flat_map(|part| part.split("__")).collect();
        // A server may have the name of a namespace, so the whole name comes first.
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
                let is_meant = |it: &&&Tool| {
                    let (server, own) = (&it.definition.server, &it.definition.name);
                    same(own) || same(&format!("{server}_{own}"))
                };
                let meant = known.iter().filter(is_meant);
                found = meant.map(|it| it.function.as_str()).collect();
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

    /// The function most like a name of no function, if one is similar.
    pub fn suggest(&self, name: &str) -> Option<&str> {
        if let Some(Meant::Functions(functions)) = self.meant(name, |_| true) {
            return functions.first().copied();
        }
        let begun = self.begun(name, |_| true);
        begun.or_else(|| nearest(name, self.functions()))
    }

    /// The shortest function with a name that begins so, among the functions for which `is_known`
    /// is true; a deprecated one only if there is no other.
    pub fn begun(&self, name: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
        if name.len() > MAX_ASKED {
            return None;
        }
        let begin = plain(name);
        let is_begun = |tool: &&Tool| {
            let server = plain(&tool.definition.server);
            begin.len() >= server.len() + MIN_BEGUN
                && plain(&tool.function).starts_with(&begin)
                && is_known(&tool.function)
        };
        let begun = self.tools().iter().filter(is_begun);
        let rank = |tool: &&Tool| (tool.definition.is_deprecated(), tool.function.len());
        Some(begun.min_by_key(rank)?.function.as_str())
    }

    /// The server with the prefix of a name that no function has, and its functions for which
    /// `is_known` is true, the nearest first.
    pub fn server_of(
        &self,
        name: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<(&str, Vec<&str>)> {
        if name.len() > MAX_ASKED {
            return None;
        }
        let mut prefixes = self.tools().iter().map(|it| prefix(&it.definition.server));
        let begin = prefixes.find(|begin| name.starts_with(begin.as_str()))?;
        let own = name.get(begin.len()..)?;
        match self.meant(&format!("{}.{own}", begin.trim_end_matches('_')), is_known)? {
            Meant::Server(server, functions) => Some((server, functions)),
            _ => None,
        }
    }

    fn functions(&self) -> impl Iterator<Item = &str> {
        self.tools().iter().map(|tool| tool.function.as_str())
    }

    /// The function, or the pattern over functions, that was meant by a pattern without a match.
    pub fn suggest_pattern(&self, pattern: &str) -> Option<String> {
        if pattern.len() > MAX_ASKED {
            return None;
        }
        let bare = pattern.strip_prefix("mcp");
        let bare = bare.map_or(pattern, |rest| rest.trim_start_matches('_'));
        let Some((head, tail)) = bare.split_once('*') else {
            return self.suggest_for_name(pattern, bare);
        };
        let spelled = bare.replace("__", "_");
        let is_match = |tool: &Tool| tool.name().is_matched(&spelled, true);
        if spelled != pattern && self.tools().iter().any(is_match) {
            return Some(spelled);
        }
        let mut functions = self.functions();
        let found = functions.find_map(|function| in_spelling_of(function, head));
        if let Some(begin) = found.filter(|begin| begin != head) {
            return Some(format!("{begin}*{tail}"));
        }
        // A letter too many or too few moves the end of the head.
        let heads = self.functions().flat_map(|function| {
            let lengths = head.len().saturating_sub(1)..=head.len() + 1;
            lengths.filter_map(|end| function.get(..end))
        });
        let near = nearest(head, heads).filter(|near| near.len() > 2)?;
        let mut functions = self.functions();
        let found = functions.find(|function| function.starts_with(near));
        found.map(str::to_owned)
    }

    /// The function, or all functions of the server, that was meant by a pattern without stars.
    fn suggest_for_name(&self, pattern: &str, bare: &str) -> Option<String> {
        let names = [pattern, bare].into_iter();
        let mut meant = names.filter_map(|name| self.meant(name, |_| true));
        match meant.next() {
            Some(Meant::Server(server, _)) if plain(pattern).ends_with(&plain(server)) => {
                Some(format!("{}*", prefix(server)))
            }
            Some(Meant::Functions(functions) | Meant::Server(_, functions)) => {
                functions.first().map(|function| (*function).to_owned())
            }
            Some(Meant::Namespace) | None => self.suggest(pattern).map(str::to_owned),
        }
    }
}

/// The prefix of a function's name that has the letters of `head`, with the underscores after it.
fn in_spelling_of(function: &str, head: &str) -> Option<String> {
    let letters = plain(head);
    if letters.is_empty() || !plain(function).starts_with(&letters) {
        return None;
    }
    let begin = |end: &usize| function.get(..*end).map(plain).as_ref() == Some(&letters);
    let end = (0..=function.len()).find(begin)?;
    let after = function.get(end..)?;
    let gap = after.len() - after.trim_start_matches('_').len();
    function.get(..end + gap).map(str::to_owned)
}
