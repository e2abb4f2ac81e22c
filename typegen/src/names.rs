//! Function names for tools: `{server}_{tool}`, injective over a catalog and
//! the same whatever order the tools come in. Where a tool's own name begins with its server's,
//! that is not repeated: `git_log` of `git` is `git_log`, and its long name `git_git_log` finds
//! it too.
//!
//! Everything that could make two tools answer to one name makes *all* of them lose it: a
//! permission written for a plain name then matches nothing instead of the wrong tool. No name
//! starts with the longer prefix of another server: a permission for all tools of that server
//! matches no others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

use crate::reserved::is_reserved_value;

/// The most names of a server's removed tools that no other tool gets; a server with more of them
/// than any list is long gives up the rest.
const MAX_GONE: usize = 10_000;
/// The round in which a suffix has all digits of its hash.
const WHOLE_HASH: u32 = 8;

/// Gives every (server, tool) pair its function name. A pair that comes twice counts once.
pub fn assign<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Names {
    assign_after(&Names::default(), pairs)
}

/// Like [`assign`], for a catalog that changed: a pair with a name in `before` keeps it, whatever
/// came or went since, and the name of a removed pair is kept for its return. So a name means one
/// tool over a chain of catalogs; the set of suffixes depends on the catalogs before.
pub fn assign_after<'a>(
    before: &Names,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Names {
    let pairs: Vec<(&str, &str)> = pairs
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let natural: Vec<String> = pairs.iter().map(|(s, t)| natural_name(s, t)).collect();
    let own: Vec<String> = pairs
        .iter()
        .zip(&natural)
        .map(|((server, _), natural)| before.own_name(server, natural.clone()))
        .collect();
    let functions = separate(&pairs, &own, before);

    let mut names = before.without(&pairs);
    let mut groups: BTreeMap<&str, Vec<Member>> = BTreeMap::new();
    for ((&(server, tool), natural), function) in pairs.iter().zip(&natural).zip(functions) {
        if function != *natural {
            names.naturals.insert(function.clone(), natural.clone());
            groups.entry(natural).or_default().push(Member {
                server: server.to_owned(),
                tool: tool.to_owned(),
                function: function.clone(),
            });
        }
        names
            .functions
            .entry(server.to_owned())
            .or_default()
            .insert(tool.to_owned(), function.clone());
        names
            .originals
            .insert(function, (server.to_owned(), tool.to_owned()));
    }
    names.add_long(&pairs, before);
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
    originals: BTreeMap<String, (String, String)>,
    /// The natural names of functions that are called otherwise.
    naturals: BTreeMap<String, String>,
    /// The long names of functions whose tools' names begin with their servers'.
    long: BTreeMap<String, String>,
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

    /// These names among `servers`: no name in this catalog, or in a later one, starts with another
    /// server's prefix if that beginning is longer than its own server's.
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
        // The other prefixes end in an underscore and have only so many `$`, so that enough
        // inserted `$` make the name differ from all of them.
        while is_others(&name) && own.len() <= name.len() {
            name.insert(own.len(), '$');
        }
        name
    }

    /// The function a tool became.
    pub fn function(&self, server: &str, tool: &str) -> Option<&str> {
        Some(self.functions.get(server)?.get(tool)?.as_str())
    }

    /// The (server, tool) a function stands for.
    pub fn original(&self, function: &str) -> Option<(&str, &str)> {
        let (server, tool) = self.originals.get(function)?;
        Some((server, tool))
    }

    /// The name that a function would have with no other server or tool beside it, if that is
    /// another one.
    pub fn natural(&self, function: &str) -> Option<&str> {
        Some(self.naturals.get(function)?.as_str())
    }

    /// The name of a function with its server's name twice, if it has the name once because the
    /// tool's own name has it too. No function has this name, and no other tool would.
    pub fn long(&self, function: &str) -> Option<&str> {
        Some(self.long.get(function)?.as_str())
    }

    fn add_long(&mut self, pairs: &[(&str, &str)], before: &Self) {
        let mut wanted: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
        for &(server, tool) in pairs {
            let own = identifier(tool);
            if after_server(&identifier(server), &own).is_some() {
                let long = before.own_name(server, joined_name(server, &own));
                wanted.entry(long).or_default().push((server, tool));
            }
        }
        for (long, wanting) in wanted {
            if let [(server, tool)] = *wanting
                && !before.reserved.contains(&long)
                && !self.originals.contains_key(&long)
                && let Some(function) = self.function(server, tool).map(str::to_owned)
            {
                self.long.insert(function, long);
            }
        }
    }

    /// The name of a tool in a collision, with all 64 digits of its suffix. Shorter names have the
    /// first eight digits, or sixteen, and so on; in longer names, the digits repeat.
    pub fn suffixed(&self, server: &str, tool: &str) -> String {
        let natural = natural_name(server, tool);
        self.own_name(server, suffixed_name(&natural, WHOLE_HASH, (server, tool)))
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

    /// No pairs; pairs with names so far that are not among `pairs` count as gone.
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

/// A name that no tool got, because more than one tool wanted it, it is reserved, or it starts with
/// the prefix of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The name that was wanted.
    pub name: String,
    /// The tools that wanted the name and did not get it, ordered by server and tool. A single
    /// member means that the name is another tool's suffixed name, was another tool's name before
    /// this tool came, or could be another server's.
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

/// The name a pair has when no other tool wants it.
fn natural_name(server: &str, tool: &str) -> String {
    let own = identifier(tool);
    let short = after_server(&identifier(server), &own);
    joined_name(server, &short.unwrap_or(own))
}

/// A server and the rest of a name, as one name.
fn joined_name(server: &str, rest: &str) -> String {
    let mut name = format!("{}_{rest}", identifier(server));
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if is_reserved_value(&name) {
        name.push('_');
    }
    name
}

/// A text without the characters that no name has.
fn identifier(text: &str) -> String {
    text.replace(
        |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$'),
        "_",
    )
}

/// A tool's own name without its server's, where it begins with that as a word: `log` of
/// `git_log`, and of `gitLog`. Not where that begins so again, since a long name could then be
/// another tool's short one.
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
    let mut name = natural_name(server, "x");
    name.pop();
    name
}

/// Turns natural names into distinct ones.
///
/// In each round, every pair that shares a name, or has a name that was given up before, takes its
/// next suffix. The pairs that collide do not depend on order, so neither does the result, and a
/// pair without a collision keeps its natural name whatever else is in the catalog.
///
/// The rounds end: a suffix begins with the SHA-256 of its pair once it is long enough, so suffixed
/// names stop colliding, and it grows with each round, so a natural name can be in the way of only
/// one of them once.
fn separate(pairs: &[(&str, &str)], natural: &[String], before: &Names) -> Vec<String> {
    let mut current: Vec<String> = natural.to_vec();
    let mut round: Vec<u32> = vec![0; pairs.len()];
    // `None` is a name that was given up, or that no new tool can have.
    let mut holders: HashMap<String, Option<usize>> = HashMap::new();
    let gone = before.gone.values().flat_map(BTreeMap::values);
    for name in before.originals.keys().chain(gone).chain(&before.reserved) {
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
            if let (Some(name), Some(round), Some(pair), Some(natural)) = (
                current.get_mut(index),
                round.get_mut(index),
                pairs.get(index),
                natural.get(index),
            ) {
                *round += 1;
                // The suffix begins with the underscore that another's prefix may end in.
                *name = before.own_name(pair.0, suffixed_name(natural, *round, *pair));
            }
        }
        moving = displaced.into_iter().collect();
    }
    current
}

/// The name of a pair in a round: eight more hexadecimal digits each time, of the same hash over
/// and over. So a name tells if it is a pair's, in any round.
fn suffixed_name(natural: &str, round: u32, (server, tool): (&str, &str)) -> String {
    let mut hash = Sha256::new();
    // The version of these names: rules in people's configurations are for them.
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
    let mut name = format!("{natural}_");
    name.extend(digits.cycle().take(count));
    name
}

#[cfg(test)]
mod tests;
