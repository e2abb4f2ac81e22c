//! The models that a gate can ask: those of its configuration, and that of the
//! client which stands behind a run.

use std::sync::Arc;
use std::time::Duration;

use callgate_broker::{Caller, Sample, Source};
use callgate_models::{Embedder, Endpoint, ErrorKind, Key, Model, ModelError, Prompt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::config::{EmbeddingsConfig, ModelsConfig, SmallModelConfig};

/// How long a client may take to have its model answer: a person may look at it
/// first.
const SAMPLING_TIME: Duration = Duration::from_secs(300);
/// The most bytes that are taken of a client's answer.
const MAX_SAMPLED: usize = 8 << 20;
/// The most tokens of an answer where no configuration says otherwise.
const MAX_TOKENS: u32 = 4096;

/// The models of one gate. Keys are looked up when a model is asked first.
pub(crate) struct Models {
    embeddings: Option<(EmbeddingsConfig, OnceCell<Embedder>)>,
    small: Option<(SmallModelConfig, OnceCell<Model>)>,
}

/// What a model is asked.
pub(crate) struct Task<'a> {
    /// What it is asked for: the name of a function of `mcp`.
    pub(crate) of: &'a str,
    pub(crate) system: &'a str,
    pub(crate) text: &'a str,
    pub(crate) schema: Option<&'a Value>,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// Whether it was cut off where an answer may be no longer.
    pub(crate) cut: bool,
}

impl Said {
    /// The JSON value in it: the whole of it, or what stands in its code fence,
    /// or the first list or object.
    pub(crate) fn json(&self) -> Option<Value> {
        let text = self.text.trim();
        if let Ok(value) = serde_json::from_str(text) {
            return Some(value);
        }
        let fenced = text.split_once("```").and_then(|(_, rest)| {
            let (_language, body) = rest.split_once('\n')?;
            Some(body.split_once("```")?.0)
        });
        if let Some(value) = fenced.and_then(|body| serde_json::from_str(body.trim()).ok()) {
            return Some(value);
        }
        let start = text.find(['{', '['])?;
        let rest = text.get(start..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()
    }
}

/// Why no model said anything. The texts hold no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silent {
    /// There is none.
    Nobody,
    /// It took too long.
    Late(String),
    /// It failed.
    Failed(String),
}

impl Silent {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Nobody => "there is no model to ask: the client offers none (sampling), and the \
                 configuration names none (models.small)"
                .to_owned(),
            Self::Late(message) | Self::Failed(message) => message.clone(),
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

    /// Whether a model is configured that answers prompts.
    pub(crate) fn has_small(&self) -> bool {
        self.small.is_some()
    }

    /// Whether there is an endpoint of embeddings.
    pub(crate) fn has_embeddings(&self) -> bool {
        self.embeddings.is_some()
    }

    /// What makes vectors; `None` where nothing is configured.
    pub(crate) async fn embedder(&self) -> Option<Result<&Embedder, String>> {
        let (config, embedder) = self.embeddings.as_ref()?;
        let made = embedder.get_or_try_init(|| async {
            let endpoint = endpoint(&config.url, config.key.as_ref(), config.timeout).await?;
            Ok(Embedder::new(endpoint, &config.model, config.dimensions))
        });
        Some(made.await)
    }

    /// Asks the client's model, else the one of the configuration.
    pub(crate) async fn ask(
        &self,
        caller: Option<&Arc<dyn Caller>>,
        task: &Task<'_>,
    ) -> Result<Said, Silent> {
        let sampled = match caller {
            Some(caller) if caller.offers().sampling => self.sample(caller.as_ref(), task).await,
            _ => Err(Silent::Nobody),
        };
        match (sampled, &self.small) {
            (Err(silent), Some(_)) => {
                if silent != Silent::Nobody {
                    tracing::debug!(
                        reason = silent.message(),
                        "the client's model did not answer"
                    );
                }
                self.ask_small(task).await
            }
            (sampled, _) => sampled,
        }
    }

    async fn ask_small(&self, task: &Task<'_>) -> Result<Said, Silent> {
        let Some((config, model)) = &self.small else {
            return Err(Silent::Nobody);
        };
        let made = model.get_or_try_init(|| async {
            let endpoint = endpoint(&config.url, config.key.as_ref(), config.timeout).await?;
            Ok(Model::new(endpoint, config.api, &config.model))
        });
        let model = made.await.map_err(Silent::Failed)?;
        let prompt = Prompt {
            system: task.system,
            text: task.text,
            schema: task.schema,
            max_tokens: config.max_tokens,
        };
        let said = model.ask(&prompt).await.map_err(silent)?;
        tracing::debug!(
            model = config.model,
            of = task.of,
            input_tokens = said.usage.input,
            output_tokens = said.usage.output,
            "a model answered"
        );
        Ok(Said {
            text: said.text,
            cut: said.cut,
        })
    }

    /// Asks by `sampling/createMessage` (MCP 2025-11-25, client/sampling).
    async fn sample(&self, caller: &dyn Caller, task: &Task<'_>) -> Result<Said, Silent> {
        let most = self
            .small
            .as_ref()
            .map_or(MAX_TOKENS, |(config, _)| config.max_tokens);
        let params = json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": task.text } }],
            "systemPrompt": task.system,
            "includeContext": "none",
            "maxTokens": most,
        });
        let asked = caller.sample(Sample::new("callgate", Some(task.of), &params));
        match tokio::time::timeout(SAMPLING_TIME, asked).await {
            Ok(Ok(message)) => sampled(&message).map_err(Silent::Failed),
            Ok(Err(refusal)) => Err(Silent::Failed(format!(
                "the client's model was not asked: {refusal}"
            ))),
            Err(_elapsed) => {
                let limit = SAMPLING_TIME.as_secs();
                Err(Silent::Late(format!(
                    "the client's model gave no answer within {limit} s"
                )))
            }
        }
    }
}

/// The text of a `CreateMessageResult`, whose content is one block or a list.
fn sampled(message: &Value) -> Result<Said, String> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut text = String::new();
    for block in blocks {
        if block.get("type").and_then(Value::as_str) == Some("text") {
            text.push_str(
                block
                    .get("text")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            );
        }
    }
    if text.is_empty() {
        return Err("the client's model answered without a text".to_owned());
    }
    if text.len() > MAX_SAMPLED {
        return Err(format!(
            "the client's model answered with more than {MAX_SAMPLED} bytes"
        ));
    }
    let reason = message.get("stopReason").and_then(Value::as_str);
    Ok(Said {
        text,
        cut: reason == Some("maxTokens"),
    })
}

async fn endpoint(url: &str, key: Option<&Source>, timeout: Duration) -> Result<Endpoint, String> {
    let key = match key {
        Some(source) => {
            let value = source.look_up().await;
            let value = value.map_err(|error| format!("the key of a model: {error}"))?;
            Some(Key::new(value))
        }
        None => None,
    };
    Endpoint::new(url, key, timeout).map_err(|error| error.to_string())
}

fn silent(error: ModelError) -> Silent {
    match error.kind() {
        ErrorKind::TimedOut => Silent::Late(error.to_string()),
        _ => Silent::Failed(error.to_string()),
    }
}
