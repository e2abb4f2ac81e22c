//! One prompt, one answer: OpenAI-compatible chat completions, or Anthropic-compatible messages.

use serde_json::{Value, json};

use crate::endpoint::{Api, Endpoint};
use crate::error::{Kind, ModelError};

/// Maximum bytes of an answer.
const MAX_ANSWER: usize = 8 << 20;

/// A model that answers prompts.
#[derive(Debug, Clone)]
pub struct Model {
    endpoint: Endpoint,
    model: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    /// The task.
    pub system: &'a str,
    /// The data for the task.
    pub text: &'a str,
    /// The JSON Schema for the answer. Some endpoints enforce it; the answer must be checked in any
    /// case.
    pub schema: Option<&'a Value>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    pub text: String,
    /// True if the limit of tokens cut the text.
    pub cut: bool,
}

impl ModelAnswer {
    /// The JSON value in the answer: the whole text, the content of its code fence, or the first
    /// array or object.
    pub fn json(&self) -> Option<Value> {
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
        let rest = text.get(text.find(['{', '['])?..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()
    }
}

impl Model {
    pub fn new(endpoint: Endpoint, model: impl Into<String>) -> Self {
        Self {
            endpoint,
            model: model.into(),
        }
    }

    pub async fn ask(&self, prompt: &Prompt<'_>) -> Result<ModelAnswer, ModelError> {
        match self.endpoint.api {
            Api::OpenAi => self.ask_openai(prompt).await,
            Api::Anthropic => self.ask_anthropic(prompt).await,
        }
    }

    async fn ask_openai(&self, prompt: &Prompt<'_>) -> Result<ModelAnswer, ModelError> {
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
        let post = async |body: &Value| {
            let path = "/chat/completions";
            self.endpoint.post(path, body, MAX_ANSWER).await
        };
        let answer = match post(&body).await {
            // Some endpoints do not know schemas, and some models have a different name for the limit.
            Err(error) if matches!(error.kind, Kind::Status(400, _)) => {
                if let Some(body) = body.as_object_mut() {
                    body.remove("response_format");
                    body.remove("max_tokens");
                    body.insert("max_completion_tokens".to_owned(), prompt.max_tokens.into());
                }
                post(&body).await.map_err(|_same| error)?
            }
            other => other?,
        };
        let text = answer.pointer("/choices/0/message/content");
        let text = text.and_then(Value::as_str);
        let none = || self.endpoint.malformed("has no text in \"choices\"");
        Ok(ModelAnswer {
            text: text.ok_or_else(none)?.to_owned(),
            cut: answer["choices"][0]["finish_reason"] == "length",
        })
    }

    async fn ask_anthropic(&self, prompt: &Prompt<'_>) -> Result<ModelAnswer, ModelError> {
        let body = json!({
            "model": self.model,
            "max_tokens": prompt.max_tokens,
            "system": prompt.system,
            "messages": [{ "role": "user", "content": prompt.text }],
        });
        let answer = self.endpoint.post("/messages", &body, MAX_ANSWER).await?;
        let blocks = answer["content"].as_array().into_iter().flatten();
        let texts = blocks.filter(|block| block["type"] == "text");
        let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
        if texts.is_empty() {
            return Err(self.endpoint.malformed("has no text in \"content\""));
        }
        Ok(ModelAnswer {
            text: texts.concat(),
            cut: answer["stop_reason"] == "max_tokens",
        })
    }
}
