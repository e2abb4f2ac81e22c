//! What rules say of arguments, laid out so that many rules over one tool cost
//! little: one after the other in memory, cheap tests first, each place of the
//! arguments looked up once a call, and each text searched once for all globs
//! and expressions.
//!
//! What is decided is what [`crate::fit::fits_arguments`] decides.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex::SetMatches;
use rustc_hash::FxHashSet;
use serde_json::{Number, Value};

use crate::condition::{Test, one_of};
use crate::dots::has_dot_segment;
use crate::equality::{Judged, order, same};
use crate::fit::Fit;
use crate::literals::{Literals, Search, of_glob, of_regex};
use crate::pointer::Pointer;
use crate::rule::{Rank, Rule};

/// How many globs and expressions are held against a text one by one before it
/// is searched for the literals of all of them.
const ONE_BY_ONE: u32 = 2;
/// How many values a list has to have for its texts to be looked up.
const MANY_VALUES: usize = 2;

/// The conditions of all rules.
#[derive(Debug)]
pub(crate) struct Index {
    rules: Box<[Entry]>,
    checks: Box<[Check]>,
    places: Box<[Place]>,
}

/// What is asked of a rule before the rule itself is looked at: most rules match
/// nothing most of the time.
#[derive(Debug)]
struct Entry {
    checks: Range<usize>,
    /// Whether it has conditions, be they empty.
    looks: bool,
    widens: bool,
    rank: Rank,
}

#[derive(Debug)]
struct Check {
    place: u32,
    kind: Kind,
}

/// A test; what is large is kept elsewhere.
#[derive(Debug)]
enum Kind {
    Exists(bool),
    Min(Number),
    Max(Number),
    Equals(Box<Value>),
    Prefix(Box<str>),
    In(Box<Values>),
    /// A glob or an expression: which test of the rule it is, and the literals
    /// that it needs.
    Text {
        condition: u32,
        test: u32,
        needs: Box<[usize]>,
        /// Whether a segment of dots leaves it unclear.
        minds_dots: bool,
    },
}

#[derive(Debug)]
struct Values {
    all: Box<[Value]>,
    /// The texts among them, if they are many.
    texts: Option<FxHashSet<Box<str>>>,
    /// Whether there is anything but texts among them.
    others: bool,
}

/// A place that rules look at.
#[derive(Debug)]
struct Place {
    at: Pointer,
    literals: Literals,
    search: OnceLock<Option<Search>>,
}

impl Index {
    /// The index of these rules, by their order.
    pub(crate) fn of(rules: &[Arc<Rule>]) -> Self {
        let mut checks: Vec<Check> = Vec::new();
        let mut places: Vec<Place> = Vec::new();
        let mut entries = Vec::with_capacity(rules.len());
        for rule in rules {
            let first = checks.len();
            for (condition_number, condition) in rule.arguments.iter().enumerate() {
                let place = place(&mut places, condition.at());
                for (test_number, test) in condition.tests().iter().enumerate() {
                    let at = (to_u32(condition_number), to_u32(test_number));
                    checks.extend(places.get_mut(place).map(|known| Check {
                        place: to_u32(place),
                        kind: Kind::of(test, at, known),
                    }));
                }
            }
            if let Some(own) = checks.get_mut(first..) {
                own.sort_by_key(|check| check.kind.rank());
            }
            entries.push(Entry {
                checks: first..checks.len(),
                looks: !rule.arguments.is_empty(),
                widens: rule.effect.widens(),
                rank: rule.rank(),
            });
        }
        Self {
            rules: entries.into(),
            checks: checks.into(),
            places: places.into(),
        }
    }

    /// When a rule is asked.
    pub(crate) fn rank(&self, number: usize) -> Option<Rank> {
        self.rules.get(number).map(|entry| entry.rank)
    }

    /// A look at the arguments of one call, for the rules of this index.
    pub(crate) fn look<'a>(
        &'a self,
        rules: &'a [Arc<Rule>],
        arguments: Option<&'a Value>,
    ) -> Look<'a> {
        Look {
            index: self,
            rules,
            arguments,
            seen: Vec::new(),
        }
    }

    fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(usize::try_from(number).ok()?)
    }
}

/// The test as the rule has it.
fn written(rules: &[Arc<Rule>], number: usize, condition: u32, test: u32) -> Option<&Test> {
    let conditions = &rules.get(number)?.arguments;
    let condition = conditions.get(usize::try_from(condition).ok()?)?;
    condition.tests().get(usize::try_from(test).ok()?)
}

fn to_u32(number: usize) -> u32 {
    // No file has so many rules; what is not found is unclear.
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn place(places: &mut Vec<Place>, at: &Pointer) -> usize {
    if let Some(known) = places.iter().position(|place| place.at == *at) {
        return known;
    }
    places.push(Place {
        at: at.clone(),
        literals: Literals::default(),
        search: OnceLock::new(),
    });
    places.len() - 1
}

impl Kind {
    fn of(test: &Test, at: (u32, u32), place: &mut Place) -> Self {
        let mut text = |literals: Vec<String>, minds_dots| Self::Text {
            condition: at.0,
            test: at.1,
            needs: place.literals.numbers(literals),
            minds_dots,
        };
        match test {
            Test::Exists(exists) => Self::Exists(*exists),
            Test::Min(least) => Self::Min(least.clone()),
            Test::Max(most) => Self::Max(most.clone()),
            Test::Equals(value) => Self::Equals(Box::new(value.clone())),
            Test::Prefix(prefix) => Self::Prefix(prefix.as_str().into()),
            Test::In(values) => Self::In(Box::new(Values::of(values))),
            Test::Glob(glob) => text(of_glob(glob.as_str()), true),
            Test::Regex(regex) => text(of_regex(regex.as_str()), false),
        }
    }

    fn rank(&self) -> usize {
        match self {
            Self::Exists(_) => 0,
            Self::Min(_) | Self::Max(_) => 1,
            Self::Equals(_) => 2,
            Self::Prefix(_) => 3,
            Self::In(_) => 4,
            Self::Text { .. } => 5,
        }
    }
}

impl Values {
    fn of(values: &[Value]) -> Self {
        let texts = values.iter().filter_map(Value::as_str);
        let texts: FxHashSet<Box<str>> = texts.map(Box::from).collect();
        Self {
            all: values.into(),
            texts: (values.len() >= MANY_VALUES).then_some(texts),
            others: !values.iter().all(Value::is_string),
        }
    }

    fn judge(&self, value: &Value) -> Judged {
        match (&self.texts, value) {
            (Some(texts), Value::String(text)) if texts.contains(text.as_str()) => Judged::Holds,
            (Some(_), Value::String(_)) if self.others => Judged::Unclear,
            (Some(_), Value::String(_)) => Judged::Fails,
            _ => one_of(&self.all, value),
        }
    }
}

/// What has been seen of the arguments of one call.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    index: &'a Index,
    rules: &'a [Arc<Rule>],
    arguments: Option<&'a Value>,
    seen: Vec<Seen<'a>>,
}

/// What is at one place.
#[derive(Debug)]
struct Seen<'a> {
    place: u32,
    value: Option<&'a Value>,
    has_dots: OnceCell<bool>,
    /// Globs and expressions that were held against it.
    matched: u32,
    found: Option<SetMatches>,
}

impl<'a> Look<'a> {
    /// Whether the arguments are as a rule wants them.
    pub(crate) fn fits(&mut self, number: usize) -> Fit {
        let index = self.index;
        let Some(entry) = index.rules.get(number) else {
            return Fit::No;
        };
        if !entry.looks {
            return Fit::Yes;
        }
        let Some(arguments) = self.arguments else {
            return Fit::Depends;
        };
        // A rule that lets calls through wants every test to hold, and one that
        // holds them up wants none to fail; so their order makes no difference.
        let own = index.checks.get(entry.checks.clone()).unwrap_or_default();
        let fits = own
            .iter()
            .all(|check| match self.judge(check, arguments, number) {
                Judged::Holds => true,
                Judged::Fails => false,
                Judged::Unclear => !entry.widens,
            });
        if fits { Fit::Yes } else { Fit::No }
    }

    fn judge(&mut self, check: &Check, arguments: &'a Value, number: usize) -> Judged {
        let (index, rules) = (self.index, self.rules);
        let known = self.seen.iter().position(|seen| seen.place == check.place);
        let at = known.unwrap_or_else(|| {
            let place = index.place(check.place);
            self.seen.push(Seen {
                place: check.place,
                value: place.and_then(|place| place.at.find(arguments)),
                has_dots: OnceCell::new(),
                matched: 0,
                found: None,
            });
            self.seen.len() - 1
        });
        let Some(seen) = self.seen.get_mut(at) else {
            return Judged::Unclear;
        };
        match (&check.kind, seen.value) {
            (Kind::Exists(wanted), value) => Judged::of(value.is_some() == *wanted),
            (Kind::Equals(wanted), Some(value)) => same(wanted, value),
            (Kind::In(values), Some(value)) => values.judge(value),
            (Kind::Min(least), Some(Value::Number(number))) => {
                order(number, least).map_or(Judged::Unclear, |order| Judged::of(order.is_ge()))
            }
            (Kind::Max(most), Some(Value::Number(number))) => {
                order(number, most).map_or(Judged::Unclear, |order| Judged::of(order.is_le()))
            }
            (Kind::Prefix(prefix), Some(Value::String(text))) => {
                if seen.has_dots(text) {
                    Judged::Unclear
                } else {
                    Judged::of(text.starts_with(&**prefix))
                }
            }
            (
                Kind::Text {
                    condition,
                    test,
                    needs,
                    minds_dots,
                },
                Some(Value::String(text)),
            ) => {
                if *minds_dots && seen.has_dots(text) {
                    return Judged::Unclear;
                }
                if seen.lacks(needs, text, index) {
                    return Judged::Fails;
                }
                match written(rules, number, *condition, *test) {
                    Some(Test::Glob(glob)) => Judged::of(glob.matches(text)),
                    Some(Test::Regex(regex)) => Judged::of(regex.matches(text)),
                    _ => Judged::Unclear,
                }
            }
            _ => Judged::Unclear,
        }
    }
}

impl Seen<'_> {
    fn has_dots(&self, text: &str) -> bool {
        *self.has_dots.get_or_init(|| has_dot_segment(text))
    }

    /// Whether the text certainly lacks one of these literals.
    fn lacks(&mut self, needs: &[usize], text: &str, index: &Index) -> bool {
        self.matched = self.matched.saturating_add(1);
        if needs.is_empty() || self.matched <= ONE_BY_ONE {
            return false;
        }
        if self.found.is_none()
            && let Some(place) = index.place(self.place)
        {
            let search = place.search.get_or_init(|| place.literals.search());
            self.found = search.as_ref().map(|search| search.find(text));
        }
        let found = self.found.as_ref();
        found.is_some_and(|found| needs.iter().any(|number| !found.matched(*number)))
    }
}

#[cfg(test)]
mod tests;
