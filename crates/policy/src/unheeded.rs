//! What a rule says of the arguments that makes no difference, and what the rule decides
//! about then.

use serde_json::Value;

use crate::equality::Judged;
use crate::facts::KnownTool;
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::sense::{Misfit, misfit, never_judged, never_together};
use crate::unmatched::Why;

/// What a rule decides about though no argument that is as declared passes its tests: what
/// cannot be judged passes them where it is to be held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Still {
    /// No calls that are as the tools declare them.
    Nothing,
    /// Calls that are as the tools declare them, unless another of its tests fails: that have
    /// nothing at a place that none declares, or there a value of the type that they declare.
    AsDeclared,
    /// Only calls that these tests cannot judge.
    Unjudged {
        /// Those that have nothing at the place.
        without: bool,
        /// Those that have something there, such as a value of another type.
        with: bool,
    },
}

impl Why {
    /// Whether the rule decides about no call that is as the tools declare it, for what it says
    /// of the arguments.
    pub(crate) fn is_for_nothing(&self) -> bool {
        match self {
            Self::NoArgument { still, .. }
            | Self::Contradiction { still, .. }
            | Self::Type { still, .. } => *still == Still::Nothing,
            _ => false,
        }
    }
}

impl Rule {
    /// Each place of which it says what is never so.
    pub(crate) fn contradictions(&self) -> Vec<Why> {
        let places = never_together(&self.arguments);
        let contradictions = places.map(|at| {
            let (without, with) = never_judged(&self.arguments, at);
            let still = match !self.effect.widens() && (without || with) {
                true => Still::Unjudged { without, with },
                false => Still::Nothing,
            };
            let at = at.as_str().to_owned();
            Why::Contradiction { at, still }
        });
        contradictions.collect()
    }

    /// Each place that it looks at and that none of these tools has.
    pub(crate) fn looks_for(&self, tools: &[&KnownTool<'_>]) -> impl Iterator<Item = Why> {
        self.arguments.iter().filter_map(|condition| {
            let absent = |tool: &&KnownTool<'_>| absent(condition.at(), tool.input_schema);
            if !tools.iter().all(|tool| absent(tool).is_some()) {
                return None;
            }
            let still = match condition.judge_nothing() {
                Judged::Holds => Still::AsDeclared,
                Judged::Unclear => self.in_doubt(),
                Judged::Fails => Still::Nothing,
            };
            Some(Why::NoArgument {
                at: condition.at().as_str().to_owned(),
                nearest: tools.iter().find_map(|tool| absent(tool)?),
                still,
            })
        })
    }

    /// Each place at which it wants what is of another type than all these tools declare.
    pub(crate) fn mistypes(&self, tools: &[&KnownTool<'_>]) -> impl Iterator<Item = Why> {
        self.arguments.iter().filter_map(|condition| {
            let misfits = tools
                .iter()
                .map(|tool| misfit(condition, tool.input_schema));
            let misfits: Option<Vec<Misfit>> = misfits.collect();
            let Misfit { wanted, declared } = misfits?.into_iter().next()?;
            Some(Why::Type {
                at: place(condition.at().as_str()).to_owned(),
                wanted,
                declared,
                still: self.in_doubt(),
            })
        })
    }

    /// What it decides about where a test of it cannot be judged.
    fn in_doubt(&self) -> Still {
        match self.effect.widens() {
            true => Still::Nothing,
            false => Still::AsDeclared,
        }
    }
}

/// A place as a sentence has it.
pub(crate) fn place(at: &str) -> &str {
    match at {
        "" => "the arguments",
        at => at,
    }
}

/// Whether a schema declares other members at a place, but not this one: then
/// the most alike of them, if one is. `None` where the schema leaves it open.
fn absent(at: &Pointer, schema: Option<&Value>) -> Option<Option<String>> {
    let mut schema = schema?;
    let mut before = String::new();
    for token in at.tokens() {
        // Whatever else a schema says may bring members of its own.
        let open = [
            "$ref",
            "$dynamicRef",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "patternProperties",
            "dependentSchemas",
        ];
        let properties = schema.get("properties")?.as_object()?;
        if open.iter().any(|key| schema.get(key).is_some())
            || schema
                .get("additionalProperties")
                .is_some_and(|more| *more != Value::Bool(false))
        {
            return None;
        }
        let Some(next) = properties.get(token) else {
            let near = nearest(token, properties.keys().map(String::as_str));
            return Some(near.map(|near| format!("{before}/{}", escaped(near))));
        };
        before = format!("{before}/{}", escaped(token));
        schema = next;
    }
    None
}

/// A name as a JSON pointer writes it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
