//! The terms of a tool, and the weight of each place where they stand.
//!
//! A tool's weights follow from its own definition alone: lengths are compared with constants, not
//! with the average of the catalog, so that no server can change how another's tools are weighed,
//! and a tool is read once however often others change.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::terms::{Term, each_word, words};
use super::typos::plain;
use crate::definition::ToolDefinition;

/// A tool as it is put into an index.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The name of its function in a script.
    pub function: &'a str,
    /// The tool as its server lists it.
    pub definition: &'a Arc<ToolDefinition>,
    /// Words it is to be found by besides its own.
    pub keywords: Vec<&'a str>,
    /// The purpose of its server.
    pub about: Option<&'a str>,
}

/// A tool in a ranking, which is a list of these with the best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked<'a> {
    /// The name of its function in a script.
    pub function: &'a str,
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The quality of the match: more is better. It compares within one ranking only.
    pub score: f64,
}

/// The weight of one place of a definition.
struct Field {
    /// The weight of a word in it.
    weight: f32,
    /// The words that such a place usually has.
    usual: f32,
    /// The loss of weight by length: 0 for not at all, 1 in full.
    by_length: f32,
    /// The words that are read of it.
    max: usize,
}

const NAME: Field = field(3.0, 3.0, 0.5, 32);
const JOINED: Field = field(1.0, 2.0, 0.0, 32);
const TITLE: Field = field(1.5, 4.0, 0.5, 32);
const KEYWORDS: Field = field(2.0, 4.0, 0.3, 64);
const SUMMARY: Field = field(1.5, 10.0, 0.5, 48);
const DESCRIPTION: Field = field(0.45, 40.0, 0.75, 400);
const PARAMETERS: Field = field(0.4, 8.0, 0.75, 256);
const ABOUT_PARAMETERS: Field = field(0.2, 50.0, 0.75, 400);
const SERVER: Field = field(1.0, 1.0, 0.0, 8);
/// The server's name as it is written, all of it.
const NAMED_SERVER: Field = field(0.4, 1.0, 0.0, 1);
const ABOUT_SERVER: Field = field(0.3, 15.0, 0.75, 48);

const fn field(weight: f32, usual: f32, by_length: f32, max: usize) -> Field {
    Field {
        weight,
        usual,
        by_length,
        max,
    }
}

/// The saturation of repeated words.
const SATURATION: f32 = 1.2;
/// The maximum number of times that a word counts in one place.
const MAX_TIMES: u16 = 2;
/// The maximum number of bytes of a description that are read.
pub(super) const MAX_DESCRIPTION: usize = 4096;
/// The maximum number of bytes of a parameter's description that are read.
const MAX_ABOUT_PARAMETER: usize = 300;
/// Parameters, and members of those, that are read.
const MAX_PARAMETERS: usize = 128;
/// Values of a parameter that has a list of them.
const MAX_VALUES: usize = 64;

/// A tool in the index.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) function: Box<str>,
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) is_deprecated: bool,
    /// Each term once, in order, with its weight: from 0 to 1.
    pub(super) terms: Box<[(Term, f32)]>,
    /// The words of the name, title and keywords, which a typo may be meant for.
    pub(super) spelled: Box<[Box<str>]>,
}

impl Document {
    pub(super) fn read(entry: &Entry<'_>) -> Self {
        let definition = entry.definition;
        let mut terms = Terms::default();
        let mut spelled = words(&definition.name, NAME.max);
        terms.add(&NAME, of_words(&spelled));
        terms.add(&JOINED, of_words(&joined(&spelled)));
        let title = definition.shown_title().unwrap_or_default();
        let keywords = entry.keywords.join(" ");
        let server = definition.server.as_str();
        for (field, text) in [
            (&TITLE, title),
            (&KEYWORDS, keywords.as_str()),
            (&SERVER, server),
        ] {
            let from = spelled.len();
            each_word(text, field.max, |word| spelled.push(word.to_owned()));
            terms.add(field, of_words(spelled.get(from..).unwrap_or_default()));
        }
        terms.add(&JOINED, of_words(&joined(&words(server, SERVER.max))));
        terms.add(&NAMED_SERVER, vec![Term::of_server(&plain(server))]);
        let description = start_of(
            definition.description.as_deref().unwrap_or_default(),
            MAX_DESCRIPTION,
        );
        let (summary, rest) = description.split_at(first_sentence(description));
        terms.add(&SUMMARY, of_text(summary, SUMMARY.max));
        terms.add(&DESCRIPTION, of_text(rest, DESCRIPTION.max));
        let parameters = Parameters::of(&definition.input_schema);
        terms.add(&PARAMETERS, parameters.names);
        terms.add(&ABOUT_PARAMETERS, parameters.about);
        let about_server = entry.about.unwrap_or_default();
        terms.add(&ABOUT_SERVER, of_text(about_server, ABOUT_SERVER.max));
        spelled.sort_unstable();
        spelled.dedup();
        Self {
            function: entry.function.into(),
            definition: Arc::clone(definition),
            is_deprecated: definition.is_deprecated(),
            terms: terms.summed(),
            spelled: spelled.into_iter().map(String::into_boxed_str).collect(),
        }
    }

    /// The server's name in the configuration.
    pub(super) fn server(&self) -> &str {
        &self.definition.server
    }

    /// The tool with this score.
    pub(super) fn ranked(&self, score: f64) -> Ranked<'_> {
        Ranked {
            function: &self.function,
            server: &self.definition.server,
            score,
        }
    }
}

impl Ranked<'_> {
    /// The better one first; of equals, the first by name.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let by_name = || self.function.cmp(other.function);
        other.score.total_cmp(&self.score).then_with(by_name)
    }
}

/// Neighbours written as one word: `pull_request` is found as `pullrequest`.
pub(super) fn joined(words: &[String]) -> Vec<String> {
    words.windows(2).map(|pair| pair.concat()).collect()
}

/// The end of the first sentence: at a full stop with a space after it, or with the line.
fn first_sentence(text: &str) -> usize {
    let leading = text.len() - text.trim_start().len();
    let body = text.get(leading..).unwrap_or_default();
    let line = body.find('\n').unwrap_or(body.len());
    let sentence = body.find(". ").unwrap_or(body.len());
    leading + line.min(sentence)
}

/// The first `max` bytes of a text, or fewer.
pub(super) fn start_of(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max))
        .unwrap_or_default()
}

fn of_words(words: &[String]) -> Vec<Term> {
    words.iter().map(|word| Term::of(word)).collect()
}

/// The terms of the first `max` words of a text.
fn of_text(text: &str, max: usize) -> Vec<Term> {
    let mut terms = Vec::new();
    each_word(text, max, |word| terms.push(Term::of(word)));
    terms
}

/// The terms of all places, each with its weight there.
#[derive(Default)]
struct Terms(Vec<(Term, f32)>);

impl Terms {
    /// Adds the terms of a place, as many as are read of it.
    fn add(&mut self, field: &Field, mut terms: Vec<Term>) {
        terms.truncate(field.max);
        let length = terms.len() as f32 / field.usual;
        let by_length = 1.0 - field.by_length + field.by_length * length;
        terms.sort_unstable();
        for same in terms.chunk_by(|a, b| a == b) {
            let times = u16::try_from(same.len()).unwrap_or(u16::MAX).min(MAX_TIMES);
            if let Some(term) = same.first() {
                let weight = field.weight * f32::from(times) / by_length;
                self.0.push((*term, weight));
            }
        }
    }

    fn summed(mut self) -> Box<[(Term, f32)]> {
        self.0.sort_by_key(|(term, _)| *term);
        let summed = self.0.chunk_by(|(a, _), (b, _)| a == b);
        summed
            .filter_map(|same| {
                let sum: f32 = same.iter().map(|(_, weight)| weight).sum();
                Some((same.first()?.0, sum / (SATURATION + sum)))
            })
            .collect()
    }
}

/// The terms of the parameters in a schema.
#[derive(Default)]
struct Parameters {
    /// Names, and the values of those that have a list of values.
    names: Vec<Term>,
    about: Vec<Term>,
    read: usize,
}

impl Parameters {
    fn of(schema: &Value) -> Self {
        let mut parameters = Self::default();
        if let Some(members) = properties(schema) {
            parameters.read_properties(members, true);
        }
        parameters
    }

    fn read_properties(&mut self, members: &Map<String, Value>, are_outer: bool) {
        for (name, schema) in members {
            if self.read == MAX_PARAMETERS || self.is_full() {
                return;
            }
            self.read += 1;
            self.add_name(name);
            let values = schema.get("enum").and_then(Value::as_array);
            for value in values.into_iter().flatten().take(MAX_VALUES) {
                self.add_name(value.as_str().unwrap_or_default());
            }
            if !are_outer {
                continue;
            }
            if let Some(about) = schema.get("description").and_then(Value::as_str) {
                let room = ABOUT_PARAMETERS.max - self.about.len();
                let about = start_of(about, MAX_ABOUT_PARAMETER);
                each_word(about, room, |word| self.about.push(Term::of(word)));
            }
            let inner = properties(schema).or_else(|| properties(schema.get("items")?));
            if let Some(inner) = inner {
                self.read_properties(inner, false);
            }
        }
    }

    fn add_name(&mut self, name: &str) {
        let room = PARAMETERS.max - self.names.len();
        each_word(name, room, |word| self.names.push(Term::of(word)));
    }

    fn is_full(&self) -> bool {
        self.names.len() == PARAMETERS.max
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}
