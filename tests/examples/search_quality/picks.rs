//! A client whose model picks tools: its answers were written down before, so that
//! what they are worth can be measured again without the model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use callgate::{
    Caller, Refusal,
    caller::{Offers, Sample},
};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::Fallible;

/// Answers written down, by query.
#[derive(Debug, Default)]
pub(crate) struct Picks {
    answers: BTreeMap<String, Value>,
    /// What was asked, whether there was an answer or not.
    asked: Mutex<Vec<Asked>>,
}

/// What a model was asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) system: String,
    pub(crate) text: String,
}

impl Picks {
    /// Those of a file: `{"query": …, "names": […]}` a line.
    pub(crate) fn read(file: &Path) -> Fallible<Self> {
        let mut picks = Self::default();
        for line in std::fs::read_to_string(file)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            let query = line["query"].as_str().ok_or("a line without a query")?;
            let names = json!({ "names": line["names"] });
            if picks.answers.insert(query.to_owned(), names).is_some() {
                return Err(format!("two answers to {query:?}").into());
            }
        }
        Ok(picks)
    }

    /// The prompts since this was asked last.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Caller for Picks {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.sampling = true;
        offers
    }

    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let text = request.params.pointer("/messages/0/content/text");
        let prompt = text.and_then(Value::as_str).unwrap_or_default();
        let query = prompt.lines().next().unwrap_or_default();
        let query = query.strip_prefix("Looked for: ").unwrap_or_default();
        let none = json!({ "names": [] });
        let answer = self.answers.get(query).unwrap_or(&none).to_string();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(Asked {
            system: request.params["systemPrompt"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            text: prompt.to_owned(),
        });
        let content = json!({ "type": "text", "text": answer });
        let message = json!({ "role": "assistant", "model": "recorded", "content": content });
        Box::pin(std::future::ready(Ok(message)))
    }
}
