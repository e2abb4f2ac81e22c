//! The section `serve` of the configuration: how `callgate serve` serves, to whom, and what its
//! clients see.

mod bearer;
mod file;
mod http;
mod operators;
#[cfg(test)]
mod tests;
mod users;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use callgate::config::{Section, ServeSection, Size};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

pub use bearer::{MIN_TOKEN, TOKEN_OF_ONE};
pub use file::ConfigFile;
pub use http::{ALGORITHMS, HttpConfig, RateConfig, ResourceConfig};
pub use operators::Operator;
pub(crate) use operators::users_named;
pub use users::{Role, UsersConfig, subject_user, token_user};
pub use values::{InvalidValue, address, host, origin, parse_share};

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = serde_json::Value::deserialize(deserializer)?.as_f64();
    share
        .filter(values::is_share)
        .ok_or_else(|| D::Error::custom(format_args!(": {}", values::SHARE)))
}

/// `serve`: to whom it serves, and what clients see.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Serve")]
pub struct ServeConfig {
    /// Ask the client about calls that the rules do not decide, if the client can ask a person
    /// (`elicitation`); otherwise the gate's asker is asked. Not in the file.
    #[serde(skip)]
    pub asks: bool,
    /// The configuration file. Reports warn if it has changed. Not in the file.
    #[serde(skip)]
    pub file: Option<ConfigFile>,
    /// The tools of clients that do not choose a mode. Flag: `--mode`. Default: `code`.
    pub mode: ToolMode,
    /// The context of the model.
    pub context: ContextConfig,
    /// How long a client without a session may keep the list of tools. Default: `5m`.
    pub tools_ttl: Duration,
    /// The time that a call waits for its script. Then it is answered that the script continues. Flag:
    /// `--wait`. Default: `45s`.
    pub wait: Duration,
    /// How long a question to a client's user waits. Then a client of 2025-11-25 has not answered;
    /// the run of a newer client is cancelled. Flag: `--answer-time`. Default: `10m`.
    pub answer_time: Duration,
    /// The memory of all scripts that run at the same time. Default: half of the machine's or
    /// control group's memory.
    #[serde(deserialize_with = "Size::deserialize_memory")]
    #[schemars(with = "Option<Size>")]
    pub memory: Option<u64>,
    /// The modes that a client over HTTP may choose, besides `mode`. Default: all; none with
    /// `flows`.
    pub modes: Option<Vec<ToolMode>>,
    /// Whose folders a server gets that asks: the client's, or else those of `roots`; with
    /// `configured` only those of `roots`. Default: `client`.
    pub roots: RootsFrom,
    /// Send a run's report as `structuredContent` too, but not to Claude Code and Codex, which show
    /// it to the model in place of the text. Default: `false`.
    pub structured_report: bool,
    /// MCP over HTTP.
    pub http: HttpConfig,
    /// Servers and rules of users over HTTP.
    pub users: UsersConfig,
    /// The operators, by their names: over HTTP they answer the questions of runs, and read runs,
    /// at `/v1/admin`. Default: none.
    pub operators: BTreeMap<String, Operator>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            asks: true,
            file: None,
            mode: ToolMode::default(),
            context: ContextConfig::default(),
            tools_ttl: Duration::from_secs(300),
            wait: Duration::from_secs(45),
            answer_time: Duration::from_secs(600),
            memory: None,
            modes: None,
            roots: RootsFrom::default(),
            structured_report: false,
            http: HttpConfig::default(),
            users: UsersConfig::default(),
            operators: BTreeMap::new(),
        }
    }
}

impl ServeSection for ServeConfig {
    /// Lets the programs of tokens start in the file's folder, and checks the names of servers,
    /// roles, tokens and users.
    fn complete(&mut self, section: &Section<'_>) {
        let tokens = self.http.bearer.iter_mut().map(|(_, token)| token);
        let operators = self.operators.values_mut();
        for token in tokens.chain(operators.map(|operator| &mut operator.token)) {
            token.start_in(&section.config().folder);
        }
        self.users.check(section);
        operators::check(&self.operators, &self.http, section);
    }
}

/// The context of the model.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Context")]
pub struct ContextConfig {
    /// The size of the model's context, in tokens. Flag: `--context-window`. Default: `200000`.
    pub window: u64,
    /// The part of the context that declarations in `run_script` may take; above 0, at most 1.
    /// Flag: `--context-share`. Default: `0.02`.
    #[serde(deserialize_with = "share")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub share: f64,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            window: 200_000,
            share: 0.02,
        }
    }
}

/// The folders that servers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RootsFrom {
    /// Those of the client, or else those of the file.
    #[default]
    Client,
    /// Those of the file.
    Configured,
}

/// The tools that a client of `callgate serve` sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolMode {
    /// `run_script`, and the tools of search if its description does not declare all tools.
    #[default]
    Code,
    /// The tools that search and call tools one by one; no scripts.
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
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| {
            // The sender gets it back: no more of it than a mode could be.
            let text: String = text.chars().take(40).collect();
            InvalidValue(format!(
                "{text:?} is not a mode; the modes are \"code\", \"discovery\" and \"native\""
            ))
        })
    }
}
