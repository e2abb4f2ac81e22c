//! The functions in a tool's description: server by server, as much as the budget holds.

use callgate::settings::Detail;
use callgate::{Gate, Server, ServerState, ToolInfo};

use super::approvals::{Approvals, Asked};
use super::sample::Sample;
use super::texts;

/// Bytes of a token, roughly, in declarations.
const TOKEN_BYTES: usize = 4;
/// Declarations leave one part in four of the budget to the names of other functions.
const NAMES_PART: usize = 4;

/// The functions in a description.
#[derive(Debug)]
pub(crate) struct DeclaredFunctions {
    /// The declarations.
    pub(crate) code: String,
    /// True if the declarations have comments; otherwise they are signatures in one line, except
    /// those of functions that are always on.
    pub(crate) is_full: bool,
    /// The number of declarations.
    pub(crate) declared: usize,
    /// The bytes that names of functions may take.
    pub(crate) room: usize,
    /// In the order of the configuration, without those that are down and have no known tools.
    pub(crate) servers: Vec<ServerFunctions>,
    /// The number of servers with tools.
    pub(crate) with_tools: usize,
    /// The names of servers that are down.
    pub(crate) down: Vec<String>,
    /// True if a server is off.
    pub(crate) is_some_off: bool,
    /// A clause about functions that are not known yet.
    pub(crate) late: Option<String>,
    /// The number of functions, denied ones included.
    pub(crate) all: usize,
    pub(crate) denied: Vec<String>,
    pub(crate) approvals: Approvals,
    /// A call of one of the functions.
    pub(crate) sample: Option<Sample>,
}

/// The functions of a server that can be called.
#[derive(Debug)]
pub(crate) struct ServerFunctions {
    pub(crate) name: String,
    /// The server in one line, without its purpose.
    pub(crate) line: String,
    /// The server's purpose.
    pub(crate) about: Option<String>,
    /// Without those that are declared because they are always on.
    pub(crate) functions: Vec<String>,
    signatures: String,
    /// True if the functions are declared.
    pub(crate) is_declared: bool,
}

impl ServerFunctions {
    /// The names of the functions in one line.
    pub(crate) fn names(&self) -> String {
        self.functions.join(", ")
    }
}

impl DeclaredFunctions {
    /// All functions with comments if they fit into this number of tokens. Otherwise those that are
    /// always on, and the signatures of whole servers, the smallest first.
    /// `asked`: the people who can be asked to approve calls.
    pub(crate) fn new(gate: &Gate, servers: &[Server], tokens: usize, asked: Asked) -> Self {
        let mut declared = Self::by_name(gate, servers, tokens, asked);
        let budget = tokens.saturating_mul(TOKEN_BYTES);
        let functions = declared.servers.iter().flat_map(|it| it.functions.clone());
        let functions: Vec<String> = functions.collect();
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        declared.code = gate.view().declarations_of(Detail::Read, &functions);
        if declared.code.len() <= budget {
            declared.is_full = true;
            declared.declared = functions.len();
            for server in &mut declared.servers {
                server.is_declared = true;
            }
        } else {
            declared.declare_always_on(gate, &functions, tokens);
            declared.declare_signatures(gate, budget);
        }
        declared.room = budget.saturating_sub(declared.code.len());
        tracing::info!(
            tools = declared.all,
            declared = declared.declared,
            bytes = declared.code.len(),
            budget = tokens,
            "tools in a description"
        );
        declared
    }

    /// The names of the functions, for a quarter of this number of tokens.
    pub(crate) fn by_name(gate: &Gate, servers: &[Server], tokens: usize, asked: Asked) -> Self {
        let known = gate.tools();
        let all = known.len();
        let (denied, callable): (Vec<ToolInfo>, Vec<ToolInfo>) = known
            .into_iter()
            .partition(|tool| gate.view().denies(&tool.function));
        let functions: Vec<&str> = callable.iter().map(|it| it.function.as_str()).collect();
        let is_down = |server: &&Server| matches!(server.state, ServerState::Down { .. });
        let down = servers.iter().filter(is_down);
        let down = down.map(|server| texts::line(&server.name)).collect();
        let with_tools = servers.iter().filter(|server| server.tools > 0).count();
        let is_some_off = servers.iter().any(|it| it.state == ServerState::Disabled);
        let shown = servers.iter().filter(|it| it.tools > 0 || !is_down(it));
        let servers = shown.map(|server| {
            let own = callable.iter().filter(|tool| tool.server == server.name);
            ServerFunctions {
                name: texts::line(&server.name),
                line: texts::short_line(server),
                about: server.description.as_deref().map(texts::line),
                functions: own.map(|tool| tool.function.clone()).collect(),
                signatures: String::new(),
                is_declared: false,
            }
        });
        Self {
            code: String::new(),
            is_full: false,
            declared: 0,
            room: tokens.saturating_mul(TOKEN_BYTES) / NAMES_PART,
            servers: servers.collect(),
            with_tools,
            down,
            is_some_off,
            late: None,
            all,
            approvals: Approvals::of_all(gate, &callable, asked),
            sample: Sample::of(gate, &functions),
            denied: denied.into_iter().map(|tool| tool.function).collect(),
        }
    }

    /// True if all functions that can be called are declared.
    pub(crate) fn is_whole(&self) -> bool {
        self.late.is_none() && self.declared + self.denied.len() == self.all
    }

    /// Declares the functions that are always on, up to the budget.
    fn declare_always_on(&mut self, gate: &Gate, functions: &[&str], tokens: usize) {
        let mut always_on = functions.to_vec();
        always_on.retain(|function| gate.view().always_on(function));
        let declare = |functions: &[&str]| gate.view().declarations_of(Detail::Read, functions);
        let (text, shown) = first_that_fit(&always_on, tokens, declare);
        if shown < always_on.len() {
            let always_on = always_on.len();
            tracing::warn!(
                shown,
                always_on,
                budget = tokens,
                "tools that are always on do not fit"
            );
        }
        always_on.truncate(shown);
        for server in &mut self.servers {
            let is_left = |function: &String| !always_on.contains(&function.as_str());
            server.functions.retain(is_left);
        }
        self.declared = shown;
        self.code = text;
    }

    /// Declares the functions of the smallest servers, as many as fit beside the names of the
    /// others.
    fn declare_signatures(&mut self, gate: &Gate, budget: usize) {
        for server in &mut self.servers {
            let functions: Vec<&str> = server.functions.iter().map(String::as_str).collect();
            server.signatures = gate.view().declarations_of(Detail::Signature, &functions);
        }
        let mut by_size: Vec<&mut ServerFunctions> = self.servers.iter_mut().collect();
        by_size.sort_by_key(|server| server.signatures.len());
        let sizes = by_size.iter();
        let sizes = sizes.map(|server| (server.signatures.len(), server.names().len()));
        let sizes: Vec<(usize, usize)> = sizes.collect();
        let room = budget.saturating_sub(self.code.len());
        let count = count_that_fits(&sizes, room, budget / NAMES_PART);
        for server in by_size.into_iter().take(count) {
            server.is_declared = true;
        }
        for server in self.servers.iter().filter(|server| server.is_declared) {
            self.declared += server.functions.len();
            self.code += &server.signatures;
        }
    }
}

/// The number of servers whose signatures fit into `room` bytes, beside the names of the others as
/// far as those fit into `names_room` bytes. `sizes`: the bytes of each server's signatures, the
/// smallest first, and of its names.
fn count_that_fits(sizes: &[(usize, usize)], room: usize, names_room: usize) -> usize {
    let fits = |count: &usize| {
        let signatures: usize = sizes.iter().take(*count).map(|(size, _)| size).sum();
        let names: Vec<usize> = sizes.iter().skip(*count).map(|(_, names)| *names).collect();
        let shown = shortest_that_fit(&names, names_room);
        let names = names.iter().zip(shown).filter(|(_, is_shown)| *is_shown);
        signatures + names.map(|(length, _)| length).sum::<usize>() <= room
    };
    (0..=sizes.len()).rev().find(fits).unwrap_or_default()
}

/// Marks the texts of these lengths that fit into `room` bytes together, the shortest first.
pub(crate) fn shortest_that_fit(lengths: &[usize], mut room: usize) -> Vec<bool> {
    let mut order: Vec<(usize, usize)> = lengths.iter().copied().enumerate().collect();
    order.sort_by_key(|(_, length)| *length);
    let mut fits = vec![false; lengths.len()];
    for (at, length) in order {
        if length > room {
            break;
        }
        room -= length;
        if let Some(fits) = fits.get_mut(at) {
            *fits = true;
        }
    }
    fits
}

fn fits(text: &str, tokens: usize) -> bool {
    text.len() <= tokens.saturating_mul(TOKEN_BYTES)
}

/// The text of the longest prefix of the names that fits into `max` tokens, and its number of
/// names.
pub(crate) fn first_that_fit(
    names: &[&str],
    max: usize,
    text: impl Fn(&[&str]) -> String,
) -> (String, usize) {
    let first = |count: usize| text(names.get(..count).unwrap_or(names));
    // A binary search, because a text of thousands of names takes long.
    let counts: Vec<usize> = (1..=names.len()).collect();
    let count = counts.partition_point(|count| fits(&first(*count), max));
    if count == 0 {
        return (String::new(), 0);
    }
    (first(count), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_fitting_prefix_is_declared() {
        let names = ["aaaa", "bbbb", "cccc", "dddd", "eeee"];
        for max in 0..=6 {
            let (text, count) = first_that_fit(&names, max, |names| names.concat());
            assert_eq!((text, count), (names[..max.min(5)].concat(), max.min(5)));
        }
        let long = first_that_fit(&names, 1, |names| "x".repeat(100 + names.len()));
        assert_eq!(long, (String::new(), 0));
    }

    #[test]
    fn smallest_servers_are_declared_beside_names_of_others() {
        // Four usual servers of small size and two large ones, one too large even for its names.
        let sizes = [
            (400, 90),
            (900, 200),
            (1500, 300),
            (5000, 800),
            (6000, 900),
            (90_000, 12_000),
        ];
        for (room, expected) in [
            (200_000, 6),
            (14_700, 5),
            (8_700, 4),
            (8_699, 3),
            (4_500, 3),
            (1_000, 0),
            (0, 0),
        ] {
            // The names of the largest are never reserved for.
            assert_eq!(count_that_fits(&sizes, room, 4_000), expected, "{room}");
        }
    }

    #[test]
    fn shortest_names_are_shown_and_equal_ones_in_order() {
        assert_eq!(
            shortest_that_fit(&[5, 3, 3, 3], 7),
            [false, true, true, false]
        );
        assert_eq!(shortest_that_fit(&[9], 8), [false]);
        assert_eq!(shortest_that_fit(&[9, 0], 9), [true, true]);
    }
}
