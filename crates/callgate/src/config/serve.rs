//! `serve`: how `callgate serve` serves, and what its clients see.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;

use super::error::ConfigErrorKind;
use super::reader::Reader;
use super::{Config, http, keys, users};

/// What a file says of serving; `None` where it leaves the default.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServeConfig {
    /// `mode`: which tools a client sees that does not say itself.
    pub mode: Option<ToolMode>,
    /// `context`, `window`: the size of the model's context, in tokens.
    pub window: Option<u64>,
    /// `context`, `share`: the part of the context that the descriptions of
    /// tools may take, above 0 and at most 1.
    pub share: Option<f64>,
    /// `toolsTtl`: how long clients without sessions may keep the list of tools.
    pub tools_ttl: Option<Duration>,
    /// `wait`: how long a call waits for its script before it is answered that the
    /// script goes on.
    pub wait: Option<Duration>,
    /// `answerTime`: how long a question to a client's user waits for its answer.
    pub answer_time: Option<Duration>,
}

/// Which tools a client of `callgate serve` sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ToolMode {
    /// `run_script`, and what finds tools if not all are declared in its
    /// description.
    #[default]
    Code,
    /// What finds tools and calls them one by one; no scripts.
    Discovery,
    /// The servers' own tools, passed through.
    Native,
}

impl ToolMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Code, Self::Discovery, Self::Native];

    /// The word for it in settings, on the command line, in headers and queries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Discovery => "discovery",
            Self::Native => "native",
        }
    }
}

impl fmt::Display for ToolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ToolMode {
    type Err = UnknownToolMode;

    fn from_str(text: &str) -> Result<Self, UnknownToolMode> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        // Whoever sent it reads it again: no more of it than a mode could be.
        found.ok_or_else(|| UnknownToolMode(text.chars().take(40).collect()))
    }
}

/// A word that is no [`ToolMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode; the modes are \"code\", \"discovery\" and \"native\"")]
pub struct UnknownToolMode(String);

/// Reads a share of something: a number above 0 and at most 1.
///
/// # Errors
///
/// [`NoShare`] for any other text.
pub fn parse_share(text: &str) -> Result<f64, NoShare> {
    let share: f64 = text.parse().map_err(|_| NoShare)?;
    (share > 0.0 && share <= 1.0)
        .then_some(share)
        .ok_or(NoShare)
}

/// A text that is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a share is a number above 0 and at most 1, such as 0.02")]
pub struct NoShare;

/// Reads the section, once the servers are known.
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, config: &mut Config) {
    let what = "\"serve\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    let mut users = None;
    let mut tokens_known = true;
    for property in reader.properties(object, what, &keys::SERVE) {
        match property.name.as_str() {
            "mode" => config.serve.mode = reader.parsed(property, what, str::parse::<ToolMode>),
            "context" => context(reader, property, &mut config.serve),
            "toolsTtl" => config.serve.tools_ttl = reader.duration(property, what),
            "wait" => config.serve.wait = reader.duration(property, what),
            "answerTime" => {
                config.serve.answer_time = reader.duration(property, what);
            }
            "http" => {
                let before = reader.problems.len();
                config.http = http::read(reader, property, what);
                tokens_known = reader.problems.len() == before;
            }
            _ => {
                config.users = users::read(reader, property, what);
                users = property.value.as_object();
            }
        }
    }
    // Once the tokens are known.
    if let Some(users) = users {
        users::check(reader, users, config, tokens_known);
    }
}

fn context(reader: &mut Reader<'_>, property: &ObjectProp<'_>, serve: &mut ServeConfig) {
    let what = "\"context\"";
    let Some(object) = reader.object(property, "\"serve\"") else {
        return;
    };
    for property in reader.properties(object, what, &keys::CONTEXT) {
        if property.name.as_str() == "window" {
            serve.window = reader.count(property, what);
            continue;
        }
        let number = property.value.as_number_lit();
        serve.share = number.and_then(|number| parse_share(number.value).ok());
        if serve.share.is_none() {
            reader.error(
                property.value.range(),
                ConfigErrorKind::Value,
                format!("\"share\" in {what}: {NoShare}"),
            );
        }
    }
}
