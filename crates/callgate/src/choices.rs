//! Settings that a configuration file and a host can both choose.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

/// The way of searching for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SearchBy {
    /// The best way that is configured.
    #[default]
    Auto,
    /// By the words of names, titles, descriptions, parameters and keywords.
    Words,
    /// By a case-insensitive regular expression over names, titles and descriptions.
    Regex,
    /// By meaning: embeddings of tools and of the query. Needs an embeddings endpoint;
    /// without an answer from it, by words, with a note.
    Vectors,
    /// By words and by meaning, both rankings merged. Needs an embeddings endpoint.
    Hybrid,
    /// By a model that picks among the tools found. Needs a client with sampling or a
    /// model endpoint; without an answer, by words, with a note.
    Model,
}

impl SearchBy {
    /// Every way, by its name.
    pub const ALL: [(&str, Self); 6] = [
        ("auto", Self::Auto),
        ("words", Self::Words),
        ("regex", Self::Regex),
        ("vectors", Self::Vectors),
        ("hybrid", Self::Hybrid),
        ("model", Self::Model),
    ];
}

/// The effect of the type check before a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckMode {
    /// Scripts are not checked.
    Off,
    /// Type errors are reported, and the script runs.
    Warn,
    /// A script with type errors does not run, nor does one that TypeScript gives up on.
    /// Where no script can be checked, for example without TypeScript, the script runs
    /// and the report says that it was not checked.
    #[default]
    On,
    /// A script runs only if it was checked and has no type errors.
    Require,
}

impl FromStr for CheckMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = Self::deserialize(StrDeserializer::<Error>::new(text));
        read.map_err(|_| {
            format!("{text:?} is not a mode of the type check; write \"off\", \"warn\", \"on\" or \"require\"")
        })
    }
}
