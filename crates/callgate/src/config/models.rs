//! `models`, `search` and `extract`: endpoints of models, and what they are
//! used for.

use std::fmt;
use std::time::Duration;

use callgate_broker::Source;
use callgate_models::{Api, Endpoint};
use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;

use super::error::ConfigErrorKind;
use super::keys;
use super::reader::Reader;
use super::server::expanded;
use super::source::source;
use crate::settings::{ExtractLimits, SearchBy};

/// The endpoints of models that a file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelsConfig {
    /// `embeddings`: what makes vectors of tools and of what is looked for.
    pub embeddings: Option<EmbeddingsConfig>,
    /// `small`: what picks tools, and extracts values.
    pub small: Option<SmallModelConfig>,
}

/// An OpenAI-compatible endpoint of embeddings.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbeddingsConfig {
    /// `url`: the API's base, such as `https://api.example.com/v1`; `https`, or
    /// `http` on loopback.
    pub url: String,
    /// `model`: its name there.
    pub model: String,
    /// `key`: what is sent as `Authorization: Bearer`. Default: nothing.
    pub key: Option<Source>,
    /// `dimensions`: how many numbers the endpoint is asked for. Default: as many
    /// as it gives.
    pub dimensions: Option<usize>,
    /// `timeout`: time of one request with its retries. Default: 30 s.
    pub timeout: Duration,
}

/// An OpenAI- or Anthropic-compatible endpoint of a model.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmallModelConfig {
    /// `api`: `openai` for chat completions, `anthropic` for messages. Default:
    /// `openai`.
    pub api: Api,
    /// `url`: the API's base, such as `https://api.example.com/v1`; `https`, or
    /// `http` on loopback.
    pub url: String,
    /// `model`: its name there.
    pub model: String,
    /// `key`: what is sent as `Authorization: Bearer`, or as `x-api-key` to
    /// `anthropic`. Default: nothing.
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
            url: url.into(),
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
            url: url.into(),
            model: model.into(),
            key: None,
            timeout: Duration::from_secs(60),
            max_tokens: 4096,
        }
    }
}

impl fmt::Debug for EmbeddingsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingsConfig")
            .field("origin", &origin(&self.url))
            .field("model", &self.model)
            .field("key", &self.key)
            .field("dimensions", &self.dimensions)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SmallModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmallModelConfig")
            .field("api", &self.api)
            .field("origin", &origin(&self.url))
            .field("model", &self.model)
            .field("key", &self.key)
            .field("timeout", &self.timeout)
            .field("max_tokens", &self.max_tokens)
            .finish_non_exhaustive()
    }
}

/// What is shown of a URL: the rest of it may hold a secret.
fn origin(url: &str) -> String {
    let url = url::Url::parse(url);
    url.map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// The ways to search that a file can name.
const WAYS: [(&str, SearchBy); 4] = [
    ("auto", SearchBy::Auto),
    ("words", SearchBy::Words),
    ("hybrid", SearchBy::Hybrid),
    ("model", SearchBy::Model),
];

pub(super) fn models(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> ModelsConfig {
    let mut models = ModelsConfig::default();
    let Some(object) = reader.object(property, "the file") else {
        return models;
    };
    for property in reader.properties(object, "\"models\"", &keys::MODELS) {
        match property.name.as_str() {
            "embeddings" => models.embeddings = embeddings(reader, property),
            _ => models.small = small(reader, property),
        }
    }
    models
}

pub(super) fn search(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> SearchBy {
    let what = "\"search\"";
    let mut by = SearchBy::Auto;
    let Some(object) = reader.object(property, "the file") else {
        return by;
    };
    for property in reader.properties(object, what, &keys::SEARCH) {
        let parsed = reader.parsed(property, what, |text| {
            let known = WAYS.iter().find(|(name, _)| *name == text);
            let wrong = || {
                let text: String = text.chars().take(80).collect();
                format!("{text:?} is no way to search; write auto, words, hybrid or model")
            };
            known.map(|(_, by)| *by).ok_or_else(wrong)
        });
        by = parsed.unwrap_or(by);
    }
    by
}

pub(super) fn extract(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> ExtractLimits {
    let what = "\"extract\"";
    let mut limits = ExtractLimits::default();
    let Some(object) = reader.object(property, "the file") else {
        return limits;
    };
    for property in reader.properties(object, what, &keys::EXTRACT) {
        match property.name.as_str() {
            "calls" => limits.calls = reader.count(property, what).unwrap_or(limits.calls),
            "sameSchema" => {
                let count = reader.count(property, what);
                limits.same_schema = count.unwrap_or(limits.same_schema);
            }
            "input" => {
                let bytes = reader.size(property, what);
                limits.input_bytes = bytes.unwrap_or(limits.input_bytes);
            }
            _ => {
                let bytes = reader.size(property, what);
                limits.output_bytes = bytes.unwrap_or(limits.output_bytes);
            }
        }
    }
    limits
}

fn embeddings(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Option<EmbeddingsConfig> {
    let what = "\"embeddings\"";
    let object = reader.object(property, "\"models\"")?;
    let properties = reader.properties(object, what, &keys::EMBEDDINGS);
    let (url, model) = place(reader, property, &properties, what);
    let mut config = EmbeddingsConfig::new(String::new(), String::new());
    for property in properties {
        match property.name.as_str() {
            "key" => config.key = source(reader, property, what),
            "timeout" => {
                let time = reader.duration(property, what);
                config.timeout = time.unwrap_or(config.timeout);
            }
            "dimensions" => {
                let count = reader.count(property, what);
                config.dimensions = count.and_then(|count| usize::try_from(count).ok());
            }
            _ => {}
        }
    }
    (config.url, config.model) = (url?, model?);
    Some(config)
}

fn small(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Option<SmallModelConfig> {
    let what = "\"small\"";
    let object = reader.object(property, "\"models\"")?;
    let properties = reader.properties(object, what, &keys::SMALL);
    let (url, model) = place(reader, property, &properties, what);
    let mut config = SmallModelConfig::new(Api::OpenAi, String::new(), String::new());
    for property in properties {
        match property.name.as_str() {
            "api" => {
                let api = reader.parsed(property, what, |text| match text {
                    "openai" => Ok(Api::OpenAi),
                    "anthropic" => Ok(Api::Anthropic),
                    _ => Err("must be \"openai\" or \"anthropic\""),
                });
                config.api = api.unwrap_or(config.api);
            }
            "key" => config.key = source(reader, property, what),
            "timeout" => {
                let time = reader.duration(property, what);
                config.timeout = time.unwrap_or(config.timeout);
            }
            "maxTokens" => {
                let count = reader.count(property, what);
                let count = count.and_then(|count| u32::try_from(count).ok());
                config.max_tokens = count.unwrap_or(config.max_tokens);
            }
            _ => {}
        }
    }
    (config.url, config.model) = (url?, model?);
    Some(config)
}

/// Where a model is, and its name there.
fn place(
    reader: &mut Reader<'_>,
    whole: &ObjectProp<'_>,
    properties: &[&ObjectProp<'_>],
    what: &str,
) -> (Option<String>, Option<String>) {
    let mut word = |key: &str| {
        let found = properties.iter().copied().find(|p| p.name.as_str() == key);
        let Some(property) = found else {
            let message = format!("{what} has no \"{key}\"; write it");
            reader.error(whole.value.range(), ConfigErrorKind::Value, message);
            return None;
        };
        let text = expanded(reader, property, what)?;
        let wrong = match key {
            // The message names the place, and the value may hold a secret.
            "url" => Endpoint::new(&text, None, Duration::from_secs(1)).err(),
            _ => None,
        };
        if let Some(wrong) = wrong {
            let message = format!("\"{key}\" in {what}: {wrong}");
            reader.error(property.value.range(), ConfigErrorKind::Value, message);
            return None;
        }
        Some(text)
    };
    (word("url"), word("model"))
}
