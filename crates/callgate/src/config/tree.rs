//! The tree of a file: serde reads it, and each mistake gets its place.
//!
//! [`Tree::read`] goes on after a mistake: it skips the member or element with the mistake and reads
//! again, so that every mistake of a file is reported at once. (`serde_path_to_error` stops at the
//! first mistake.)

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use callgate_text::nearest;
use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged as _};
use serde::de::DeserializeOwned;

use super::deserializer::{Mistake, Node};
use super::error::{LeftOut, Problem, Wrong};
use super::expand::Variables;
use super::foreign::{OTHER_CLIENTS, RESTRAINTS, SYNONYMS};

/// JSON with comments and trailing commas, and nothing looser.
pub(super) const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The maximum number of mistakes and unknown keys that are reported.
const MAX_MISTAKES: usize = 1_000;

/// A file that is being read, and the problems found so far.
pub(super) struct Tree<'a> {
    pub(super) text: &'a str,
    pub(super) root: &'a Value<'a>,
    pub(super) shown: &'a Path,
    pub(super) variables: Variables<'a>,
    /// True if other clients share the file: their keys are not mistakes.
    pub(super) is_shared: bool,
    pub(super) problems: RefCell<Vec<Problem>>,
    pub(super) warnings: RefCell<Vec<Problem>>,
    /// Servers of a shared file whose entries have mistakes.
    pub(super) lost: RefCell<Vec<LeftOut>>,
    /// Servers whose entries name unset variables: the place of the first, and all names.
    pub(super) unset: RefCell<BTreeMap<String, (usize, Vec<String>)>>,
    /// The starts of members and elements that are not read; true for one with a mistake.
    pub(super) left_out: RefCell<HashMap<usize, bool>>,
    /// Values of environment variables, by the place of the text with the reference and by name.
    pub(super) used: RefCell<BTreeMap<(usize, String), String>>,
}

impl<'a> Tree<'a> {
    /// Deserializes a value. Each mistake is reported, and the member that has it is skipped.
    pub(super) fn read<T: DeserializeOwned>(&self, value: &Value<'_>) -> Option<T> {
        // Each costs a reading of the whole value.
        for _ in 0..MAX_MISTAKES {
            let mistake = match T::deserialize(Node { value, tree: self }) {
                Ok(read) => return Some(read),
                Err(mistake) => mistake.placed(value.range(), None),
            };
            let is_mistake = self.report(&mistake);
            let mut left_out = self.left_out.borrow_mut();
            left_out.insert(mistake.entry?, is_mistake);
        }
        let clause = format!(
            "has more than {MAX_MISTAKES} mistakes or unknown keys; correct them and try again"
        );
        self.wrong(value, &clause);
        None
    }

    /// The member that these keys lead to.
    pub(super) fn member(&self, keys: &[&str]) -> Option<&'a ObjectProp<'a>> {
        let (last, path) = keys.split_last()?;
        let object = path
            .iter()
            .try_fold(self.root, |value, key| get(value, key))?;
        let mut members = object.as_object()?.properties.iter();
        members.find(|it| it.name.as_str() == *last && self.is_read(it.range.start))
    }

    /// The value that these keys lead to.
    pub(super) fn find(&self, keys: &[&str]) -> Option<&'a Value<'a>> {
        self.member(keys).map(|member| &member.value)
    }

    /// True if part of a value was skipped for a mistake, from which further ones may follow.
    pub(super) fn has_mistake(&self, range: Range) -> bool {
        let left_out = self.left_out.borrow();
        let mut mistakes = left_out.iter().filter(|(_, is_mistake)| **is_mistake);
        mistakes.any(|(at, _)| contains(range, *at))
    }

    pub(super) fn is_read(&self, start: usize) -> bool {
        !self.left_out.borrow().contains_key(&start)
    }

    /// Reports an error of a value: its key, and a clause about it.
    pub(super) fn wrong(&self, value: &Value<'_>, clause: &str) {
        self.error_of(value.range().start, clause);
    }

    /// Reports an error of the value that these keys lead to, from this value.
    pub(super) fn wrong_at(&self, value: &Value<'_>, keys: &[&str], clause: &str) {
        let found = keys.iter().try_fold(value, |value, key| get(value, key));
        self.wrong(found.unwrap_or(value), clause);
    }

    /// Reports an error of the key at this place.
    fn error_of(&self, at: usize, clause: &str) {
        let space = if clause.starts_with(':') { "" } else { " " };
        let subject = self.subject(at);
        let example = example(&subject);
        self.error(at, &format!("{subject}{space}{clause}{example}"));
    }

    /// Reports an error. In a shared file, one in the entry of a server costs that server alone.
    pub(super) fn error(&self, at: usize, message: &str) {
        if let Some(server) = self.shared_entry(at) {
            self.leave_out(server, at, message, false);
            return;
        }
        let problem = Problem::at(self.shown, self.text, at, message);
        self.problems.borrow_mut().push(problem);
    }

    fn leave_out(&self, server: String, at: usize, message: &str, is_unset: bool) {
        let message = format!("{message}; the server is left out");
        let problem = Problem::at(self.shown, self.text, at, &message);
        self.lost.borrow_mut().push(LeftOut {
            server,
            problem,
            is_unset,
        });
    }

    /// Reports an unset variable. In the entry of a server, it costs that server alone.
    fn unset(&self, at: usize, name: &str) {
        let Some(server) = self.entry(at) else {
            return self.error_of(at, &not_set(&[name.to_owned()]));
        };
        let mut unset = self.unset.borrow_mut();
        let (_, names) = unset.entry(server).or_insert((at, Vec::new()));
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }

    /// The servers to leave out, with one reason for all unset variables of each.
    pub(super) fn left_out_servers(&self) -> Vec<LeftOut> {
        for (server, (at, names)) in self.unset.take() {
            let subject = match names.as_slice() {
                [_] => self.subject(at),
                _ => format!("server \"{server}\""),
            };
            let message = format!("{subject}{}", not_set(&names));
            self.leave_out(server, at, &message, true);
        }
        let mut lost = self.lost.take();
        lost.sort_by_key(|lost| lost.problem.place);
        lost.dedup();
        lost
    }

    /// Reports an error, or a warning for a key that may belong to another client.
    pub(super) fn error_unless(&self, is_foreign: bool, at: usize, message: &str) {
        if is_foreign {
            self.warning(at, message);
        } else {
            self.error(at, message);
        }
    }

    /// Reports a warning.
    pub(super) fn warning(&self, at: usize, message: &str) {
        let problem = Problem::at(self.shown, self.text, at, message);
        self.warnings.borrow_mut().push(problem);
    }

    /// The server of a shared file whose entry is at this place.
    fn shared_entry(&self, at: usize) -> Option<String> {
        self.entry(at).filter(|_| self.is_shared)
    }

    /// The server whose entry is at this place.
    fn entry(&self, at: usize) -> Option<String> {
        match path_to(self.root, at).as_slice() {
            [Step::Key("mcpServers" | "servers"), Step::Key(server), ..] => {
                Some((*server).to_owned())
            }
            _ => None,
        }
    }

    /// Reports a mistake. Returns false for a key that may be another client's.
    fn report(&self, mistake: &Mistake) -> bool {
        // It may follow from a mistake that is reported already.
        let Some(range) = mistake.range.filter(|range| !self.has_mistake(*range)) else {
            return true;
        };
        let at = range.start;
        match &mistake.wrong {
            Wrong::Key { key, ours } => return self.unknown_key(at, key, ours),
            Wrong::Twice(key) => {
                let of = self.object_at(at);
                let message = format!("key \"{key}\" stands twice in {of}; remove one");
                self.error(at, &message);
            }
            Wrong::Clause(clause) => self.error_of(at, clause),
            Wrong::Unset(name) => self.unset(at, name),
        }
        true
    }

    fn unknown_key(&self, at: usize, key: &str, ours: &[&'static str]) -> bool {
        let of = self.object_at(at);
        let mut others = OTHER_CLIENTS.iter();
        let other = others.find(|(one, other, _)| *other == key && ours.contains(one));
        if let Some((_, _, instead)) = other {
            let message = format!("key \"{key}\" in {of} means nothing here; {instead}");
            self.error_unless(self.is_shared, at, &message);
            return !self.is_shared;
        }
        let mut synonyms = SYNONYMS.iter();
        let synonym = synonyms.find(|(other, meant)| *other == key && ours.contains(meant));
        let synonym = synonym.map(|(_, ours)| *ours);
        let meant = synonym.or_else(|| nearest(key, ours.iter().copied()));
        let is_top = self.is_shared && path_to(self.root, at).len() == 1;
        // A misspelt key that restrains a server must not be passed over.
        let restrains = |meant| {
            if is_top {
                meant != "models"
            } else {
                RESTRAINTS.contains(&meant)
            }
        };
        let is_foreign =
            !meant.is_some_and(restrains) && (is_top || self.shared_entry(at).is_some());
        let advice = match meant {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None if is_foreign => "remove it if it is no other client's".to_owned(),
            None => format!("remove it, or use one of {}", ours.join(", ")),
        };
        let example = example(&of);
        let passed = if is_foreign { " is passed over" } else { "" };
        let message = format!("unknown key \"{key}\" in {of}{passed}; {advice}{example}");
        self.error_unless(is_foreign, at, &message);
        !is_foreign
    }

    /// A text with its references replaced.
    pub(super) fn expand(&self, text: &str, at: usize) -> Result<String, Wrong> {
        let mut used = Vec::new();
        let expanded = self.variables.expand(text, &mut used)?;
        if expanded.contains('\0') {
            let clause = "has a NUL character; remove it";
            return Err(Wrong::Clause(clause.to_owned()));
        }
        let used = used.into_iter().map(|(name, value)| ((at, name), value));
        self.used.borrow_mut().extend(used);
        Ok(expanded)
    }

    /// The environment variables in the texts of these values, by name.
    pub(super) fn used_in(&self, values: &[Option<&Value<'_>>]) -> BTreeMap<String, String> {
        let used = self.used.borrow();
        let inside = |at: &usize| values.iter().flatten().any(|it| contains(it.range(), *at));
        let used = used.iter().filter(|((at, _), _)| inside(at));
        used.map(|((_, name), value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The key at a place, for a message about it.
    pub(super) fn subject(&self, at: usize) -> String {
        let path = path_to(self.root, at);
        let container = container(&path);
        let keys = path.iter().filter(|step| matches!(step, Step::Key(_)));
        if keys.count() == 1 && !container.starts_with("a rule") {
            return format!("{container} in the file");
        }
        container
    }

    /// The object that the key at a place is in, for a message.
    fn object_at(&self, at: usize) -> String {
        let mut path = path_to(self.root, at);
        path.pop();
        container(&path)
    }
}

/// An example for a mistake in the conditions of a rule, which have an unusual form.
fn example(subject: &str) -> &'static str {
    if subject == "\"arguments\" in a rule" {
        "; write conditions such as [{ \"at\": \"/path\", \"glob\": \"/out/**\" }]"
    } else {
        ""
    }
}

/// The clause about variables that are not set.
fn not_set(names: &[String]) -> String {
    let first = names.first().map_or("", String::as_str);
    let (are, them) = match names {
        [_] => (format!("variable \"{first}\" is"), "it"),
        _ => (
            format!("variables \"{}\" are", names.join("\", \"")),
            "them",
        ),
    };
    format!(": environment {are} not set; set {them}, or write \"${{{first}:-default}}\"")
}

fn contains(range: Range, at: usize) -> bool {
    (range.start..range.end).contains(&at)
}

enum Step<'v> {
    Key(&'v str),
    Element,
}

/// The keys and elements that lead to a place.
fn path_to<'v>(root: &'v Value<'v>, at: usize) -> Vec<Step<'v>> {
    let (mut path, mut value) = (Vec::new(), root);
    loop {
        let next = match value {
            Value::Object(object) => {
                let mut members = object.properties.iter();
                let member = members.find(|member| contains(member.range, at));
                member.map(|member| (Step::Key(member.name.as_str()), &member.value))
            }
            Value::Array(array) => {
                let mut elements = array.elements.iter();
                let element = elements.find(|element| contains(element.range(), at));
                element.map(|element| (Step::Element, element))
            }
            _ => None,
        };
        let Some((step, inner)) = next else {
            return path;
        };
        path.push(step);
        value = inner;
    }
}

/// The target of a path, in words.
fn container(path: &[Step<'_>]) -> String {
    match path {
        [] => "the file".to_owned(),
        [Step::Key("mcpServers" | "servers"), Step::Key(name)] => format!("server \"{name}\""),
        [Step::Key("flows"), Step::Element] => "a rule in \"flows\"".to_owned(),
        [.., Step::Key("roles"), Step::Key(name)] => format!("role \"{name}\""),
        [.., Step::Key("permissions"), Step::Key(_), Step::Element] => "a rule".to_owned(),
        [of @ .., Step::Element] => container(of),
        [Step::Key(key)] => format!("\"{key}\""),
        [of @ .., Step::Key(key)] => format!("\"{key}\" in {}", container(of)),
    }
}

/// The value of a key, also where it has a mistake.
pub(super) fn get<'v>(value: &'v Value<'v>, key: &str) -> Option<&'v Value<'v>> {
    value.as_object()?.get(key).map(|member| &member.value)
}
