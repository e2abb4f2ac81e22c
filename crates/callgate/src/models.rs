//! The models that a gate can use: those of its configuration, and the client's model.

use std::sync::Arc;
use std::time::Duration;

use callgate_auth::Source;
use callgate_models::{Api, Embedder, Endpoint, Model, ModelAnswer, ModelError, Prompt};
use callgate_servers::{Caller, Wanted, WantedKind};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::config::{EmbeddingsConfig, ModelsConfig, SmallModelConfig};

/// The time limit of a client's model. A person may have to allow the request.
const SAMPLING_TIME: Duration = Duration::from_secs(300);
/// The limit of the answer of a client's model, in bytes.
const MAX_SAMPLED: usize = 8 << 20;
/// The default limit of tokens in an answer.
const MAX_TOKENS: u32 = 4096;

/// The models of one gate. API keys are looked up at the first request.
pub(crate) struct Models {
    embeddings: Option<(EmbeddingsConfig, OnceCell<Embedder>)>,
    small: Option<(SmallModelConfig, OnceCell<Model>)>,
}

/// A request to a model.
pub(crate) struct Task<'a> {
    /// The function of `mcp` that asks the model.
    pub(crate) of: &'a str,
    pub(crate) system: &'a str,
    pub(crate) text: &'a str,
    pub(crate) schema: Option<&'a Value>,
}

/// Why no model answered. The texts contain no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error(
        "there is no model to ask: the client offers none (sampling), and the configuration names \
         none (models.small)"
    )]
    NoModel,
    #[error("{0}")]
    Late(String),
    #[error("{0}")]
    Failed(String),
}

impl From<ModelError> for NoAnswer {
    fn from(error: ModelError) -> Self {
        if error.is_timeout() {
            Self::Late(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl Models {
    pub(crate) fn new(config: ModelsConfig) -> Self {
        Self {
            embeddings: config.embeddings.map(|config| (config, OnceCell::new())),
            small: config.small.map(|config| (config, OnceCell::new())),
        }
    }

    /// True if the configuration has a model that answers prompts.
    pub(crate) fn has_small(&self) -> bool {
        self.small.is_some()
    }

    /// True if there is a model that answers prompts, here or at this caller.
    pub(crate) fn can_ask(&self, caller: Option<&Arc<dyn Caller>>) -> bool {
        self.has_small() || caller.is_some_and(|caller| caller.offers().sampling)
    }

    /// True if the configuration has an embeddings endpoint.
    pub(crate) fn has_embeddings(&self) -> bool {
        self.embeddings.is_some()
    }

    /// The client of the embeddings endpoint.
    pub(crate) async fn embedder(&self) -> Result<&Embedder, String> {
        let Some((config, embedder)) = &self.embeddings else {
            return Err("no embeddings endpoint is configured (models.embeddings)".to_owned());
        };
        let made = embedder.get_or_try_init(|| async {
            let (url, key) = (&config.url.0, config.key.as_ref());
            let endpoint = endpoint(Api::OpenAi, url, key, config.timeout).await?;
            Ok(Embedder::new(endpoint, &config.model, config.dimensions))
        });
        made.await
    }

    /// Asks the client's model, or else the configured one.
    pub(crate) async fn ask(
        &self,
        caller: Option<&Arc<dyn Caller>>,
        task: &Task<'_>,
    ) -> Result<ModelAnswer, NoAnswer> {
        if let Some(caller) = caller.filter(|caller| caller.offers().sampling) {
            match self.sample(caller.as_ref(), task).await {
                Err(reason) if self.has_small() => {
                    tracing::debug!(%reason, "the client's model did not answer");
                }
                sampled => return sampled,
            }
        }
        self.ask_small(task).await
    }

    async fn ask_small(&self, task: &Task<'_>) -> Result<ModelAnswer, NoAnswer> {
        let Some((config, model)) = &self.small else {
            return Err(NoAnswer::NoModel);
        };
        let made = model.get_or_try_init(|| async {
            let (url, key) = (&config.url.0, config.key.as_ref());
            let endpoint = endpoint(config.api, url, key, config.timeout).await?;
            Ok(Model::new(endpoint, &config.model))
        });
        let model = made.await.map_err(NoAnswer::Failed)?;
        let prompt = Prompt {
            system: task.system,
            text: task.text,
            schema: task.schema,
            max_tokens: config.max_tokens,
        };
        let said = model.ask(&prompt).await?;
        tracing::debug!(model = config.model, of = task.of, "a model answered");
        Ok(said)
    }

    /// Asks with `sampling/createMessage` (MCP 2025-11-25, client/sampling).
    async fn sample(&self, caller: &dyn Caller, task: &Task<'_>) -> Result<ModelAnswer, NoAnswer> {
        let small = self.small.as_ref();
        let params = json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": task.text } }],
            "systemPrompt": task.system,
            "includeContext": "none",
            "maxTokens": small.map_or(MAX_TOKENS, |(config, _)| config.max_tokens),
        });
        let wanted = Wanted::new(WantedKind::Sample, "callgate", Some(task.of), &params);
        let asked = caller.answer(wanted);
        match tokio::time::timeout(SAMPLING_TIME, asked).await {
            Ok(Ok(message)) => sampled(&message).map_err(NoAnswer::Failed),
            Ok(Err(refusal)) => Err(NoAnswer::Failed(format!(
                "the client's model was not asked: {refusal}"
            ))),
            Err(_) => Err(NoAnswer::Late(format!(
                "the client's model gave no answer within {} s",
                SAMPLING_TIME.as_secs()
            ))),
        }
    }
}

/// The text of a `CreateMessageResult`, whose content is one block or a list of blocks.
fn sampled(message: &Value) -> Result<ModelAnswer, String> {
    let blocks = match message.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        Some(block) => std::slice::from_ref(block),
        None => &[],
    };
    let text: String = blocks
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect();
    if text.is_empty() {
        return Err("the client's model answered without a text".to_owned());
    }
    if text.len() > MAX_SAMPLED {
        return Err(format!(
            "the client's model answered with more than {MAX_SAMPLED} bytes"
        ));
    }
    Ok(ModelAnswer {
        text,
        cut: message["stopReason"] == "maxTokens",
    })
}

async fn endpoint(
    api: Api,
    url: &str,
    key: Option<&Source>,
    timeout: Duration,
) -> Result<Endpoint, String> {
    let key = match key {
        Some(source) => {
            let value = source.look_up().await;
            Some(value.map_err(|error| format!("the key of a model: {error}"))?)
        }
        None => None,
    };
    Endpoint::new(api, url, key, timeout).map_err(|error| error.to_string())
}
