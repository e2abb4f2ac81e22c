//! Rules that can decide nothing, or do not heed what they say of the arguments, so that
//! somebody hears of a slip of the pen.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::condition::Condition;
use crate::facts::KnownTool;
use crate::fit::fits_hints;
use crate::nearest::nearest;
use crate::pattern::Pattern;
use crate::rule::{Effect, Rank, Rule};
use crate::rules::Rules;
use crate::unheeded::{Still, place};

/// A rule that can decide nothing, or decides otherwise than it says, and why. Its
/// `Display` is a warning for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Why that is so.
    pub why: Why,
}

/// Why a rule decides nothing, or otherwise than it says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// No function matches its pattern.
    NoTool {
        /// The function that is most like it.
        nearest: Option<String>,
    },
    /// Functions match, but they are not of a server that matches.
    NoServer {
        /// The server whose name is most like the one that the rule has.
        nearest: Option<String>,
    },
    /// Functions match, but their servers are, or are not, trusted.
    Trust,
    /// Functions match, but not their hints; or the hints do not count, because
    /// no server of them is trusted.
    Annotations {
        /// Whether it would match if the servers were trusted.
        for_want_of_trust: bool,
    },
    /// It has expired.
    Expired(Timestamp),
    /// No tool it matches has the definition that it is for.
    Definition,
    /// No tool it matches declares such an argument.
    NoArgument {
        /// The place that it looks at.
        at: String,
        /// The name that is most like the one missing, as a pointer.
        nearest: Option<String>,
        /// What it decides about all the same.
        still: Still,
    },
    /// What it says of one place of the arguments is never so.
    Contradiction {
        /// The place that it looks at.
        at: String,
        /// What it decides about all the same.
        still: Still,
    },
    /// Every tool it matches declares values there that its tests are not for.
    Type {
        /// The place that it looks at.
        at: String,
        /// What it wants there, such as `a text`.
        wanted: &'static str,
        /// The types that a tool declares.
        declared: String,
        /// What it decides about all the same.
        still: Still,
    },
    /// Every tool it matches is taken by rules that are asked before it; this
    /// is one of them.
    TakenBy(Arc<Rule>),
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        let (does, about) = does(rule.effect);
        match &self.why {
            Why::NoTool { nearest: None } => write!(f, "{rule} matches no tool"),
            Why::NoTool {
                nearest: Some(nearest),
            } if rule.pattern.is_a_name() => {
                write!(f, "{rule} matches no tool; did you mean \"{nearest}\"?")
            }
            Why::NoTool {
                nearest: Some(nearest),
            } => write!(f, "{rule} matches no tool; the nearest is \"{nearest}\""),
            Why::NoServer { nearest: None } => {
                write!(f, "{rule} matches no tool of such a server")
            }
            Why::NoServer {
                nearest: Some(nearest),
            } => write!(
                f,
                "{rule} matches no tool of such a server; did you mean {nearest:?}?"
            ),
            Why::Trust => write!(f, "{rule} matches no tool: it is about the servers' trust"),
            Why::Annotations {
                for_want_of_trust: true,
            } => write!(
                f,
                "{rule} matches no tool: hints count only of servers marked \"trusted\""
            ),
            Why::Annotations { .. } => write!(f, "{rule} matches no tool with such hints"),
            Why::Expired(at) => write!(f, "{rule} decides nothing: it expired at {at}"),
            Why::Definition => write!(
                f,
                "{rule} decides nothing: the tool is not what it was when the rule was written"
            ),
            Why::NoArgument { at, nearest, still } => {
                write!(
                    f,
                    "{rule} looks at {at}, which no tool that it matches declares, and "
                )?;
                // A call may have it all the same, and then it is judged.
                match still {
                    Still::Nothing => f.write_str("decides nothing about calls without it")?,
                    _ => write!(f, "{does} {about}calls without it{}", unless(rule))?,
                }
                match nearest {
                    Some(nearest) => write!(f, "; did you mean {nearest}?"),
                    None => Ok(()),
                }
            }
            Why::Contradiction { at, still } => {
                write!(f, "{rule} wants of {} what no value can be", place(at))?;
                let calls = match still {
                    Still::Unjudged {
                        without: true,
                        with: true,
                    } => "calls without it, or with a value there that cannot be judged",
                    Still::Unjudged { without: true, .. } => "calls without it",
                    Still::Unjudged { with: true, .. } => {
                        "calls with a value there that cannot be judged"
                    }
                    Still::Unjudged { .. } | Still::AsDeclared | Still::Nothing => return Ok(()),
                };
                write!(f, ", and {does} only {about}{calls}")
            }
            Why::Type {
                at,
                wanted,
                declared,
                still,
            } => {
                write!(
                    f,
                    "{rule} wants {wanted} at {at}, and the tools that it matches declare \
                     {declared} there"
                )?;
                match still {
                    Still::Nothing => Ok(()),
                    _ => write!(
                        f,
                        "; it {does} {about}calls with a value of that type there{}",
                        unless(rule)
                    ),
                }
            }
            Why::TakenBy(earlier) => {
                write!(f, "{rule} never decides: {earlier} comes first")
            }
        }
    }
}

impl Unmatched {
    /// Whether it may decide about tools of this server, of which none is known yet:
    /// their names begin so, if that is known.
    pub fn may_be_about(&self, server: &str, beginning: Option<&str>, trusted: bool) -> bool {
        let rule = &self.rule;
        !matches!(self.why, Why::Expired(_) | Why::Contradiction { .. })
            && beginning.is_none_or(|beginning| rule.pattern.may_match_with(beginning))
            && rule.server.as_ref().is_none_or(|s| s.matches(server))
            && rule.trusted.is_none_or(|wanted| wanted == trusted)
    }
}

/// The function that a pattern was most likely meant to match. Of a pattern with
/// stars, what stands before the first is held against as much of the names.
fn nearest_tool<'t>(pattern: &Pattern, tools: &[KnownTool<'t>]) -> Option<&'t str> {
    let functions = || tools.iter().map(|tool| tool.function);
    let Some((begin, _)) = pattern.as_str().split_once('*') else {
        return nearest(pattern.as_str(), functions());
    };
    // A letter too many or too few moves where the beginning ends.
    let beginnings = functions().flat_map(|function| {
        let around = begin.len().saturating_sub(1)..=begin.len() + 1;
        around.filter_map(|end| function.get(..end))
    });
    let near = nearest(begin, beginnings).filter(|near| near.len() > 2)?;
    functions().find(|function| function.starts_with(near))
}

/// The server that a rule was most likely meant for. A pattern with stars is none's name.
fn nearest_server<'t>(rule: &Rule, tools: &[KnownTool<'t>]) -> Option<&'t str> {
    let name = rule.server.as_ref()?.as_str();
    let servers = tools.iter().map(|tool| tool.server);
    nearest(name, servers).filter(|_| !name.contains('*'))
}

/// What a rule does with calls: before and after an "only".
fn does(effect: Effect) -> (&'static str, &'static str) {
    match effect {
        Effect::Allow | Effect::Grant => ("allows", ""),
        Effect::Ask => ("asks", "about "),
        Effect::Deny => ("denies", ""),
    }
}

/// What else decides whether a rule with a test that judges nothing takes a call.
fn unless(rule: &Rule) -> &'static str {
    let tests = rule.arguments.iter().flat_map(Condition::tests);
    match tests.count() {
        ..=1 => "",
        _ => ", unless another of its tests fails",
    }
}

impl Rules {
    /// The rules that can decide nothing about these tools at this time, and those with
    /// a test that nothing passes which is as the tools declare it.
    pub fn unmatched<'a>(
        &self,
        tools: impl IntoIterator<Item = KnownTool<'a>>,
        now: Timestamp,
    ) -> Vec<Unmatched> {
        let tools: Vec<KnownTool<'a>> = tools.into_iter().collect();
        let rules = self.shared().iter().enumerate();
        let unmatched = rules.filter_map(|(index, rule)| {
            let why = self.why_unmatched(index, rule, &tools, now)?;
            let rule = Arc::clone(rule);
            Some(Unmatched { rule, why })
        });
        unmatched.collect()
    }

    fn why_unmatched(
        &self,
        index: usize,
        rule: &Rule,
        tools: &[KnownTool<'_>],
        now: Timestamp,
    ) -> Option<Why> {
        if let Some(expires) = rule.expires.filter(|expires| *expires <= now) {
            return Some(Why::Expired(expires));
        }
        let mut unheeded = rule.contradictions();
        if let Some(why) = unheeded.iter().find(|why| why.is_for_nothing()) {
            return Some(why.clone());
        }
        let mut left: Vec<&KnownTool<'_>> = tools
            .iter()
            .filter(|tool| rule.means(tool.function, tool.other_names))
            .collect();
        if left.is_empty() {
            let renamed = tools
                .iter()
                .find(|tool| rule.has_lost(tool.function, tool.other_names));
            let nearest = renamed.map(|tool| tool.function);
            let nearest = nearest.or_else(|| nearest_tool(&rule.pattern, tools));
            let nearest = nearest.map(str::to_owned);
            return Some(Why::NoTool { nearest });
        }
        left.retain(|tool| rule.server.as_ref().is_none_or(|s| s.matches(tool.server)));
        if left.is_empty() {
            return Some(Why::NoServer {
                nearest: nearest_server(rule, tools).map(str::to_owned),
            });
        }
        left.retain(|tool| rule.trusted.is_none_or(|trusted| trusted == tool.trusted));
        if left.is_empty() {
            return Some(Why::Trust);
        }
        let fits = |tool: &KnownTool<'_>, trusted: bool| {
            fits_hints(&rule.annotations, tool.hints, trusted, rule.effect.widens())
        };
        let for_want_of_trust = left.iter().any(|tool| fits(tool, true));
        left.retain(|tool| fits(tool, tool.trusted));
        if left.is_empty() {
            return Some(Why::Annotations { for_want_of_trust });
        }
        if rule.definition.is_some() {
            left.retain(|tool| rule.definition.as_ref() == tool.definition);
            if left.is_empty() {
                return Some(Why::Definition);
            }
        }
        unheeded.extend(rule.looks_for(&left));
        unheeded.extend(rule.mistypes(&left));
        if let Some(why) = unheeded.iter().find(|why| why.is_for_nothing()) {
            return Some(why.clone());
        }
        let taker = self.takers(index, rule, &left).map(Why::TakenBy);
        taker.or_else(|| unheeded.into_iter().next())
    }

    /// One of the rules that take each of the tools before `rule` is asked.
    fn takers(&self, index: usize, rule: &Rule, tools: &[&KnownTool<'_>]) -> Option<Arc<Rule>> {
        let mut taker = None;
        for tool in tools {
            let candidates = self.candidates(tool.function, tool.other_names);
            let earlier = candidates
                .iter()
                .take_while(|earlier| earlier.number != index)
                .filter_map(|earlier| self.shared().get(earlier.number))
                // A grant is there to come before other rules.
                .filter(|earlier| earlier.rank() != Rank::Grant)
                // Two plain rules of one kind may overlap, as patterns do.
                .filter(|earlier| earlier.effect != rule.effect || rule.is_about_some_calls())
                .find(|earlier| earlier.takes(tool));
            taker = Some(Arc::clone(earlier?));
        }
        taker
    }
}

impl Rule {
    /// Whether it may be about some calls only of a tool that it is about.
    fn is_about_some_calls(&self) -> bool {
        !self.arguments.is_empty() || self.max_calls.is_some() || self.expires.is_some()
    }

    /// Whether it matches every call of a tool that its pattern matches.
    fn takes(&self, tool: &KnownTool<'_>) -> bool {
        !self.is_about_some_calls()
            && self.definition.is_none()
            && self.server.as_ref().is_none_or(|s| s.matches(tool.server))
            && self.trusted.is_none_or(|trusted| trusted == tool.trusted)
            && fits_hints(
                &self.annotations,
                tool.hints,
                tool.trusted,
                self.effect.widens(),
            )
    }
}
