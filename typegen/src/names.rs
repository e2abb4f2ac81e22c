//! Function names for tools: `{server}_{tool}`, injective over a catalog and
//! the same whatever order the tools come in. Where a tool's own name begins with its server's,
//! that is not repeated: `git_log` of `git` is `git_log`.
//!
//! Everything that could make two tools answer to one name makes *all* of them lose it: a
//! permission written for a plain name then matches nothing instead of the wrong tool. No name
//! starts with the longer prefix of another server: a permission for all tools of that server
//! matches no others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

use crate::reserved::is_reserved_value;

/// The maximum number of names of a server's removed tools that stay reserved. No list is so long.
const MAX_GONE: usize = 10_000;

/// Gives every (server, tool) pair its function name. A pair that comes twice counts once.
pub fn assign<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Names {
    assign_after(&Names::default(), pairs)
}

/// Like [`assign`], for a catalog that changed: a pair with a name in `before` keeps it, and the name
/// of a removed pair stays reserved for it. So a name means one tool over a chain of catalogs. Which
/// tools have a suffix depends on the earlier catalogs.
pub fn assign_after<'a>(
    before: &Names,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Names {
    let pairs: Vec<(&str, &str)> = pairs
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let unsuffixed: Vec<String> = pairs.iter().map(|(s, t)| unsuffixed_name(s, t)).collect();
    let own: Vec<String> = pairs
        .iter()
        .zip(&unsuffixed)
        .map(|((server, _), unsuffixed)| before.own_name(server, unsuffixed.clone()))
        .collect();
    let functions = separate(&pairs, &own, before);

    let mut names = before.without(&pairs);
    let mut groups: BTreeMap<&str, Vec<Member>> = BTreeMap::new();
    for ((&(server, tool), unsuffixed), function) in pairs.iter().zip(&unsuffixed).zip(functions) {
        if function != *unsuffixed {
            groups.entry(unsuffixed).or_default().push(Member {
                server: server.to_owned(),
                tool: tool.to_owned(),
                function: function.clone(),
            });
        }
        names
            .functions
            .entry(server.to_owned())
            .or_default()
            .insert(tool.to_owned(), function);
    }
    names.collisions = groups
        .into_iter()
        .map(|(name, members)| Collision {
            name: name.to_owned(),
            members,
        })
        .collect();
    names
}

/// The map between tools and the functions they became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    functions: BTreeMap<String, BTreeMap<String, String>>,
    collisions: Vec<Collision>,
    /// Names that no pair gets.
    reserved: BTreeSet<String>,
    /// The prefixes of the names of each server's tools.
    prefixes: BTreeSet<String>,
    /// The names of pairs that are gone: server, tool, function.
    gone: BTreeMap<String, BTreeMap<String, String>>,
}

impl Names {
    /// No pairs yet, and reserved names: no pair gets one in this catalog or in a later one.
    pub fn reserving<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            reserved: names.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Also reserves the prefixes of these servers: no name in this catalog, or in a later one, starts
    /// with a server's prefix that is longer than the prefix of its own server.
    pub fn among<'a>(mut self, servers: impl IntoIterator<Item = &'a str>) -> Self {
        self.prefixes = servers.into_iter().map(prefix).collect();
        self
    }

    /// The name of a server's tool, changed if it starts with the longer prefix of another
    /// server.
    fn own_name(&self, server: &str, mut name: String) -> String {
        if self.prefixes.is_empty() {
            return name;
        }
        let own = prefix(server);
        let is_others = |name: &str| {
            let mut others = self.prefixes.iter().filter(|other| other.len() > own.len());
            others.any(|other| name.starts_with(other.as_str()))
        };
        // The loop ends: the other prefixes end in an underscore and contain few `$`, so with enough
        // inserted `$` the name differs from all of them.
        while is_others(&name) && own.len() <= name.len() {
            name.insert(own.len(), '$');
        }
        name
    }

    /// The function a tool became.
    pub fn function(&self, server: &str, tool: &str) -> Option<&str> {
        Some(self.functions.get(server)?.get(tool)?.as_str())
    }

    /// The names more than one tool wanted, ordered by name.
    pub fn collisions(&self) -> &[Collision] {
        &self.collisions
    }

    /// The name a pair has or had.
    fn known(&self, server: &str, tool: &str) -> Option<&str> {
        let gone = || Some(self.gone.get(server)?.get(tool)?.as_str());
        self.function(server, tool).or_else(gone)
    }

    /// The reserved names without the assigned ones. Pairs that are not among `pairs` count as gone.
    fn without(&self, pairs: &[(&str, &str)]) -> Self {
        let mut gone = self.gone.clone();
        for (server, tools) in &self.functions {
            let gone = gone.entry(server.clone()).or_default();
            for (tool, function) in tools {
                if gone.len() < MAX_GONE {
                    gone.insert(tool.clone(), function.clone());
                }
            }
        }
        for (server, tool) in pairs {
            if let Some(gone) = gone.get_mut(*server) {
                gone.remove(*tool);
            }
        }
        gone.retain(|_, tools| !tools.is_empty());
        Self {
            gone,
            reserved: self.reserved.clone(),
            prefixes: self.prefixes.clone(),
            ..Self::default()
        }
    }
}

/// A name that no tool got: several tools wanted it, it is reserved, or it starts with the prefix of
/// another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The name that was wanted.
    pub name: String,
    /// The tools that wanted the name and did not get it, ordered by server and tool. A single
    /// member means that the name is a suffixed or an earlier name of a different tool, or starts
    /// with the prefix of a different server.
    pub members: Vec<Member>,
}

/// One tool of a [`Collision`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The server's configured name.
    pub server: String,
    /// The tool's name on its server.
    pub tool: String,
    /// The function name that the tool got instead.
    pub function: String,
}

/// The names that would be a tool's, and are not that of its function: the name without the suffix or
/// `$` that keeps it apart from other names, and the name with the server's repeated.
pub fn aliases(server: &str, tool: &str, function: &str) -> Vec<String> {
    let whole = joined_name(&identifier(server), &identifier(tool));
    let mut names = vec![unsuffixed_name(server, tool), whole];
    names.dedup();
    names.retain(|name| name != function);
    names
}

/// The name that a pair gets if no other tool wants it and no other server's prefix begins it.
fn unsuffixed_name(server: &str, tool: &str) -> String {
    let (server, tool) = (identifier(server), identifier(tool));
    joined_name(&server, &after_server(&server, &tool).unwrap_or(tool))
}

fn joined_name(server: &str, rest: &str) -> String {
    let mut name = format!("{server}_{rest}");
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if is_reserved_value(&name) {
        name.push('_');
    }
    name
}

/// A text with an underscore for each character that no name has.
pub fn identifier(text: &str) -> String {
    text.replace(
        |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$'),
        "_",
    )
}

/// A tool's own name without its server's, where it begins with that as a word: `log` of
/// `git_log`, and of `gitLog`. `None` where the rest begins with it again.
fn after_server(server: &str, tool: &str) -> Option<String> {
    let rest = after_word(server, tool)?;
    let is_again = after_word(server, &rest).is_some();
    (!is_again && server.contains(|c: char| c.is_ascii_alphanumeric())).then_some(rest)
}

fn after_word(word: &str, text: &str) -> Option<String> {
    let (begin, rest) = text.split_at_checked(word.len())?;
    let mut chars = rest.chars();
    let (first, second) = (chars.next()?, chars.next());
    if !begin.eq_ignore_ascii_case(word) {
        return None;
    }
    if first == '_' {
        return second.and(rest.get(1..)).map(str::to_owned);
    }
    let is_camel = first.is_ascii_uppercase() && !begin.ends_with(|c: char| c.is_ascii_uppercase());
    is_camel.then(|| match second {
        Some(second) if second.is_ascii_uppercase() => rest.to_owned(),
        _ => format!(
            "{}{}",
            first.to_ascii_lowercase(),
            rest.get(1..).unwrap_or_default()
        ),
    })
}

/// The prefix of the names of a server's tools.
pub fn prefix(server: &str) -> String {
    let mut name = unsuffixed_name(server, "x");
    name.pop();
    name
}

/// Makes names distinct.
///
/// In each round, every pair that shares a name, or has a name that was given up before, takes its
/// next suffix. The pairs that collide do not depend on order, so neither does the result, and a
/// pair without a collision keeps its unsuffixed name whatever else is in the catalog.
///
/// The rounds end: a suffix begins with the SHA-256 of its pair once it is long enough, so suffixed
/// names stop colliding, and it grows with each round, so an unsuffixed name can be in the way of
/// only one of them once.
fn separate(pairs: &[(&str, &str)], unsuffixed: &[String], before: &Names) -> Vec<String> {
    let mut current: Vec<String> = unsuffixed.to_vec();
    let mut round: Vec<u32> = vec![0; pairs.len()];
    // `None`: the name was given up, or is reserved.
    let mut holders: HashMap<String, Option<usize>> = HashMap::new();
    let known = before.functions.values().chain(before.gone.values());
    let known = known.flat_map(BTreeMap::values);
    for name in known.chain(&before.reserved) {
        holders.insert(name.clone(), None);
    }
    let mut moving = Vec::new();
    for (index, (server, tool)) in pairs.iter().enumerate() {
        match (before.known(server, tool), current.get_mut(index)) {
            (Some(known), Some(current)) => known.clone_into(current),
            _ => moving.push(index),
        }
    }

    while !moving.is_empty() {
        let mut displaced = BTreeSet::new();
        for index in moving {
            let Some(name) = current.get(index) else {
                continue;
            };
            match holders.get_mut(name) {
                None => {
                    holders.insert(name.clone(), Some(index));
                }
                Some(holder) => {
                    displaced.extend(holder.take());
                    displaced.insert(index);
                }
            }
        }
        for &index in &displaced {
            if let (Some(name), Some(round), Some(pair), Some(unsuffixed)) = (
                current.get_mut(index),
                round.get_mut(index),
                pairs.get(index),
                unsuffixed.get(index),
            ) {
                *round += 1;
                // With the underscore of the suffix, the name may start with another prefix.
                *name = before.own_name(pair.0, suffixed_name(unsuffixed, *round, *pair));
            }
        }
        moving = displaced.into_iter().collect();
    }
    current
}

/// The name of a pair in a round: each round adds eight hexadecimal digits of the pair's hash, from
/// the start again after the last.
fn suffixed_name(unsuffixed: &str, round: u32, (server, tool): (&str, &str)) -> String {
    let mut hash = Sha256::new();
    // The version of these names. Rules in configurations depend on them.
    hash.update(1_u32.to_le_bytes());
    hash.update((server.len() as u64).to_le_bytes());
    hash.update(server);
    hash.update(tool);
    let hash = hash.finalize();
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    let count = usize::try_from(round)
        .unwrap_or(usize::MAX)
        .saturating_mul(8);
    let mut name = format!("{unsuffixed}_");
    name.extend(digits.cycle().take(count));
    name
}

#[cfg(test)]
mod tests;
