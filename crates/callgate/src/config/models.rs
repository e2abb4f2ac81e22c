//! `models`, `search` and `extract`: endpoints of models, and the functions that use them.

use std::fmt;
use std::time::Duration;

use callgate_auth::Source;
use callgate_models::{Api, Endpoint};
use schemars::JsonSchema;
use serde::Deserialize;

use super::tree::Tree;
use super::units::ValueError;

/// The endpoints of models that a file names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ModelsConfig {
    /// The endpoint that makes vectors of tools and queries.
    pub embeddings: Option<EmbeddingsConfig>,
    /// The model that picks tools and extracts values.
    pub small: Option<SmallModelConfig>,
}

/// An OpenAI-compatible endpoint of embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct EmbeddingsConfig {
    /// The base of the API, such as `https://api.example.com/v1`; `http` on loopback only.
    pub url: BaseUrl,
    /// The name of the model at the endpoint.
    pub model: String,
    /// The key, sent as `Authorization: Bearer`. Default: none.
    pub key: Option<Source>,
    /// The length of a vector that is requested. Default: the endpoint's.
    pub dimensions: Option<usize>,
    /// The time of one request with its retries. Default: `30s`.
    #[serde(default = "embeddings_timeout")]
    pub timeout: Duration,
}

/// An OpenAI- or Anthropic-compatible endpoint of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SmallModelConfig {
    /// The API of the endpoint. Default: `openai`.
    #[serde(default)]
    pub api: Api,
    /// The base of the API, such as `https://api.example.com/v1`; `http` on loopback only.
    pub url: BaseUrl,
    /// The name of the model at the endpoint.
    pub model: String,
    /// The key, sent as `Authorization: Bearer`, or as `x-api-key` to `anthropic`. Default: none.
    pub key: Option<Source>,
    /// The time of one request with its retries. Default: `60s`.
    #[serde(default = "small_timeout")]
    pub timeout: Duration,
    /// The maximum length of an answer, in tokens. Default: `4096`.
    #[serde(default = "max_tokens")]
    pub max_tokens: u32,
}

fn embeddings_timeout() -> Duration {
    Duration::from_secs(30)
}

fn small_timeout() -> Duration {
    Duration::from_secs(60)
}

fn max_tokens() -> u32 {
    4096
}

impl EmbeddingsConfig {
    /// This model at this endpoint, the rest by default.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            url: BaseUrl(url.into()),
            model: model.into(),
            key: None,
            dimensions: None,
            timeout: embeddings_timeout(),
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
            timeout: small_timeout(),
            max_tokens: max_tokens(),
        }
    }
}

/// The base of an API. Its `Debug` form shows the origin alone, since the rest may hold a secret.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct BaseUrl(pub(crate) String);

impl TryFrom<String> for BaseUrl {
    type Error = ValueError;

    fn try_from(url: String) -> Result<Self, ValueError> {
        match Endpoint::new(Api::OpenAi, &url, None, Duration::from_secs(1)) {
            Ok(_) => Ok(Self(url)),
            // The error names the host alone.
            Err(error) => Err(ValueError(format!(": {error}"))),
        }
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = url::Url::parse(&self.0);
        let origin = url.map(|url| url.origin().ascii_serialization());
        f.write_str(&origin.unwrap_or_default())
    }
}

/// Lets programs for keys start in the file's folder.
pub(super) fn complete(tree: &Tree<'_>, models: &mut ModelsConfig) {
    let keys = [
        models.embeddings.as_mut().and_then(|it| it.key.as_mut()),
        models.small.as_mut().and_then(|it| it.key.as_mut()),
    ];
    for key in keys.into_iter().flatten() {
        key.start_in(tree.variables.folder);
    }
}
