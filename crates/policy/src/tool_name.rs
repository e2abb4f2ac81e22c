//! The names of a tool that rules match.

/// The names of a tool that rules match: its function's name in scripts, and the pair
/// `server/tool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolName<'a> {
    /// The name of its function in scripts.
    pub function: &'a str,
    /// Names that would be the function's: without the suffix or the `$` that keeps it apart from
    /// other names, or with the server's name repeated. Most tools have none.
    pub aliases: &'a [String],
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
}

impl ToolName<'_> {
    /// True if a pattern over names, or over pairs, matches the tool. `widens` says whether a match
    /// lets calls through.
    ///
    /// A match that widens must not mean a second tool: it counts by the function's name, and by the
    /// pair at the last `/`, since servers choose the names of tools. A match that restricts also
    /// counts by the aliases, so that a second tool of the same name lifts no rule.
    pub fn is_matched(&self, pattern: &str, widens: bool) -> bool {
        let is_pair = |(server, tool)| matches(server, self.server) && matches(tool, self.tool);
        let mut pairs = pairs(pattern);
        if widens {
            return matches(pattern, self.function) || pairs.next_back().is_some_and(is_pair);
        }
        let is_alias = |alias: &String| matches(pattern, alias);
        matches(pattern, self.function) || self.aliases.iter().any(is_alias) || pairs.any(is_pair)
    }
}

/// A server whose tools are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnlistedServer<'a> {
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The prefix of the function names of its tools, if that is known.
    pub prefix: Option<&'a str>,
}

impl UnlistedServer<'_> {
    /// True if a pattern over names, or over pairs, may match one of the server's tools.
    pub fn may_match(&self, pattern: &str) -> bool {
        if pattern.contains('/') {
            return pairs(pattern).any(|(server, _)| matches(server, self.server));
        }
        let Some(prefix) = self.prefix else {
            return true;
        };
        match pattern.split_once('*') {
            Some((literal, _)) => literal.starts_with(prefix) || prefix.starts_with(literal),
            None => pattern.starts_with(prefix),
        }
    }
}

/// The ways to read a pattern as a pair of a server's name and a tool's own name. Both may
/// contain a `/`.
pub(crate) fn pairs(pattern: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    let slashes = pattern.match_indices('/');
    slashes.filter_map(move |(at, _)| Some((pattern.get(..at)?, pattern.get(at + 1..)?)))
}

/// True if a pattern matches all of a name. `*` stands for any run of characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(prefix) else {
        return false;
    };
    let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_suffix(suffix) else {
        return false;
    };
    // Between the anchored ends, the first place of each part is enough: a later place would only
    // leave less room for the next part. So nothing is tried twice.
    for part in middle.split('*') {
        match name.find(part) {
            Some(at) => name = name.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_pattern_matches_server_and_own_name() {
        let name = |server, tool| ToolName {
            function: "f",
            aliases: &[],
            server,
            tool,
        };
        for (pattern, server, tool, widens, restricts) in [
            ("fs/read", "fs", "read", true, true),
            ("fs/r*", "fs", "read", true, true),
            ("*/read", "fs", "read", true, true),
            ("fs/*", "fs", "a/b", true, true),
            ("my files/get-user", "my files", "get-user", true, true),
            ("fs/Read", "fs", "read", false, false),
            ("fs/read", "fs2", "read", false, false),
            ("fs/*", "fs/old", "read", false, false),
            ("a/b/c", "a/b", "c", true, true),
            // A server could name a tool so that the pair reads as one of another server.
            ("a/b/c", "a", "b/c", false, true),
        ] {
            let name = name(server, tool);
            assert_eq!(name.is_matched(pattern, true), widens, "{pattern}");
            assert_eq!(name.is_matched(pattern, false), restricts, "{pattern}");
        }
    }

    #[test]
    fn alias_matches_restricting_patterns_only() {
        let name = ToolName {
            function: "s_get_user_7e0bb0c2",
            aliases: &["s_get_user".to_owned(), "s_s_get_user".to_owned()],
            server: "s",
            tool: "get_user",
        };
        for (pattern, widens, restricts) in [
            ("s_get_user_7e0bb0c2", true, true),
            ("s/get_user", true, true),
            ("s_get_user*", true, true),
            ("s_get_user", false, true),
            ("*_user", false, true),
            ("*_s_get_user", false, true),
            ("s/get-user", false, false),
        ] {
            assert_eq!(name.is_matched(pattern, true), widens, "{pattern}");
            assert_eq!(name.is_matched(pattern, false), restricts, "{pattern}");
        }
    }

    #[test]
    fn pair_pattern_may_match_unlisted_server_by_name() {
        let server = UnlistedServer {
            server: "3d",
            prefix: Some("_3d_"),
        };
        for (pattern, may_match) in [
            ("3d/print", true),
            ("*/print", true),
            ("_3*/print", false),
            ("fs/print", false),
            ("_3d_print", true),
            ("_3*", true),
            ("fs_*", false),
        ] {
            assert_eq!(server.may_match(pattern), may_match, "{pattern}");
        }
    }
}
