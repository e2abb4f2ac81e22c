//! `models`, `search` and `extract`: endpoints of models, and the functions that use them.

use std::fmt;
use std::time::Duration;

use callgate_auth::Source;
use callgate_models::{Api, Endpoint};
use jsonc_parser::common::Ranged as _;
use serde::Deserialize;

use super::tree::{Tree, get};
use super::{fields, server};
use crate::settings::SearchBy;

/// The endpoints of models that a file names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ModelsConfig {
    /// `embeddings`: the endpoint that makes vectors of tools and queries.
    pub embeddings: Option<EmbeddingsConfig>,
    /// `small`: the model that picks tools and extracts values.
    pub small: Option<SmallModelConfig>,
}

/// An OpenAI-compatible endpoint of embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EmbeddingsConfig {
    /// `url`: the API's base, such as `https://api.example.com/v1`; `https`, or `http` on loopback.
    pub url: BaseUrl,
    /// `model`: its name there.
    pub model: String,
    /// `key`: what is sent as `Authorization: Bearer`. Default: nothing.
    #[serde(deserialize_with = "fields::later")]
    pub key: Option<Source>,
    /// `dimensions`: how many numbers the endpoint is asked for. Default: as many as it gives.
    pub dimensions: Option<usize>,
    /// `timeout`: time of one request with its retries. Default: 30 s.
    pub timeout: Duration,
}

/// An OpenAI- or Anthropic-compatible endpoint of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SmallModelConfig {
    /// `api`: `openai` for chat completions, `anthropic` for messages. Default: `openai`.
    pub api: Api,
    /// `url`: the API's base, such as `https://api.example.com/v1`; `https`, or `http` on loopback.
    pub url: BaseUrl,
    /// `model`: its name there.
    pub model: String,
    /// `key`: what is sent as `Authorization: Bearer`, or as `x-api-key` to
    /// `anthropic`. Default: nothing.
    #[serde(deserialize_with = "fields::later")]
    pub key: Option<Source>,
    /// `timeout`: time of one request with its retries. Default: 60 s.
    pub timeout: Duration,
    /// `maxTokens`: the most tokens of one answer. Default: 4,096.
    pub max_tokens: u32,
}

impl EmbeddingsConfig {
    /// This model at this endpoint, the rest by default.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            url: BaseUrl(url.into()),
            model: model.into(),
            key: None,
            dimensions: None,
            timeout: Duration::from_secs(30),
        }
    }
}

impl SmallModelConfig {
    /// This model at this endpoint, the rest by default.
    pub fn new(api: Api, url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            api,
            url: BaseUrl(url.into()),
            model: model.into(),
            key: None,
            timeout: Duration::from_secs(60),
            max_tokens: 4096,
        }
    }
}

/// The base of an API. Its `Debug` form shows the origin alone, since the rest may hold a secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct BaseUrl(pub(crate) String);

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = url::Url::parse(&self.0);
        let origin = url.map(|url| url.origin().ascii_serialization());
        f.write_str(&origin.unwrap_or_default())
    }
}

impl Default for EmbeddingsConfig {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl Default for SmallModelConfig {
    fn default() -> Self {
        Self::new(Api::OpenAi, "", "")
    }
}

/// Checks the endpoints, reads their keys, and warns of a search that lacks its endpoint.
pub(super) fn read(tree: &Tree<'_>, models: &mut ModelsConfig, search: SearchBy) {
    let wrong = |value: &_, clause: &str| tree.wrong(value, clause);
    let endpoint = |of: &str, url: &str| {
        let section = tree.find(&["models", of])?;
        for key in ["url", "model"] {
            if get(section, key).is_none() {
                wrong(section, &format!("has no \"{key}\"; write it"));
            }
        }
        // The error names the host alone, for the rest may hold a secret.
        if let Some(place) = tree.find(&["models", of, "url"])
            && let Err(error) = Endpoint::new(Api::OpenAi, url, None, Duration::from_secs(1))
        {
            wrong(place, &format!(": {error}"));
        }
        server::source(tree, tree.find(&["models", of, "key"])?)
    };
    if let Some(embeddings) = &mut models.embeddings {
        embeddings.key = endpoint("embeddings", &embeddings.url.0);
    }
    if let Some(small) = &mut models.small {
        small.key = endpoint("small", &small.url.0);
    }
    // A client may offer the model of a search by model.
    if let Some(section) = tree.find(&["search"])
        && search == SearchBy::Hybrid
        && models.embeddings.is_none()
    {
        let message = "\"search\" by \"hybrid\" compares words only: \"models\" names no \
                       \"embeddings\"; add them, or leave \"search\" out";
        tree.warning(section.range().start, message);
    }
}
