//! One prompt, one answer: OpenAI-compatible chat completions, or Anthropic-compatible messages.

use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::error::{ErrorKind, ModelError};

/// The most bytes of an answer.
const MAX_ANSWER: usize = 8 << 20;
/// The revision of the Anthropic API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The API of a model's endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// `POST /chat/completions`, as of OpenAI.
    OpenAi,
    /// `POST /messages`, as of Anthropic.
    Anthropic,
}

/// A model that answers prompts.
#[derive(Debug, Clone)]
pub struct Model {
    endpoint: Endpoint,
    api: Api,
    model: String,
}

/// A question to a model.
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    /// The task.
    pub system: &'a str,
    /// The data for the task.
    pub text: &'a str,
    /// The JSON Schema that its answer is to fit. An endpoint may know how to
    /// hold its model to it; nothing says that the answer fits.
    pub schema: Option<&'a Value>,
    /// The most tokens of its answer.
    pub max_tokens: u32,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The text.
    pub text: String,
    /// True if the limit of tokens cut it off.
    pub cut: bool,
    /// Its cost.
    pub usage: Usage,
}

/// Tokens, as the endpoint counts them; 0 where it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of the prompt.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
}

impl Model {
    /// The model of this name.
    pub fn new(endpoint: Endpoint, api: Api, model: impl Into<String>) -> Self {
        Self {
            endpoint,
            api,
            model: model.into(),
        }
    }

    /// Asks it.
    pub async fn ask(&self, prompt: &Prompt<'_>) -> Result<Said, ModelError> {
        match self.api {
            Api::OpenAi => self.ask_openai(prompt).await,
            Api::Anthropic => self.ask_anthropic(prompt).await,
        }
    }

    async fn ask_openai(&self, prompt: &Prompt<'_>) -> Result<Said, ModelError> {
        let mut body = json!({
            "model": self.model,
            "max_tokens": prompt.max_tokens,
            "messages": [
                { "role": "system", "content": prompt.system },
                { "role": "user", "content": prompt.text },
            ],
        });
        if let Some(schema) = prompt.schema {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": { "name": "answer", "schema": schema, "strict": false },
            });
        }
        let answer = match self.post_openai(&body).await {
            // Not every endpoint knows schemas, and of some models the limit has another name.
            Err(error) if error.kind() == ErrorKind::Status(400) => {
                if let Some(body) = body.as_object_mut() {
                    body.remove("response_format");
                    body.remove("max_tokens");
                    body.insert("max_completion_tokens".to_owned(), prompt.max_tokens.into());
                }
                self.post_openai(&body).await.map_err(|_same| error)?
            }
            other => other?,
        };
        let choice = answer.pointer("/choices/0");
        let text = choice.and_then(|choice| choice.pointer("/message/content"));
        let Some(text) = text.and_then(Value::as_str) else {
            return Err(self.malformed("the answer has no text in \"choices\""));
        };
        let reason = choice.and_then(|choice| choice.get("finish_reason"));
        Ok(Said {
            text: text.to_owned(),
            cut: reason.and_then(Value::as_str) == Some("length"),
            usage: usage(&answer, "prompt_tokens", "completion_tokens"),
        })
    }

    async fn post_openai(&self, body: &Value) -> Result<Value, ModelError> {
        let headers = self.endpoint.bearer();
        let posted = self
            .endpoint
            .post("/chat/completions", &headers, body, MAX_ANSWER);
        posted.await
    }

    async fn ask_anthropic(&self, prompt: &Prompt<'_>) -> Result<Said, ModelError> {
        let body = json!({
            "model": self.model,
            "max_tokens": prompt.max_tokens,
            "system": prompt.system,
            "messages": [{ "role": "user", "content": prompt.text }],
        });
        let mut headers = self.endpoint.key_in("x-api-key");
        let version = reqwest::header::HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert("anthropic-version", version);
        let posted = self.endpoint.post("/messages", &headers, &body, MAX_ANSWER);
        let answer = posted.await?;
        let Some(content) = answer.get("content").and_then(Value::as_array) else {
            return Err(self.malformed("the answer has no \"content\""));
        };
        let blocks = content.iter().filter_map(|block| {
            let is_text = block.get("type").and_then(Value::as_str) == Some("text");
            block
                .get("text")
                .and_then(Value::as_str)
                .filter(|_| is_text)
        });
        let text: Vec<&str> = blocks.collect();
        if text.is_empty() {
            return Err(self.malformed("the answer has no text in \"content\""));
        }
        let reason = answer.get("stop_reason").and_then(Value::as_str);
        Ok(Said {
            text: text.concat(),
            cut: reason == Some("max_tokens"),
            usage: usage(&answer, "input_tokens", "output_tokens"),
        })
    }

    fn malformed(&self, what: &str) -> ModelError {
        self.endpoint.error(ErrorKind::Malformed, what)
    }
}

fn usage(answer: &Value, input: &str, output: &str) -> Usage {
    let count = |key: &str| {
        let count = answer.get("usage").and_then(|usage| usage.get(key));
        count.and_then(Value::as_u64).unwrap_or_default()
    };
    Usage {
        input: count(input),
        output: count(output),
    }
}
