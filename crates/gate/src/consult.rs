//! Data for a model of the host: under the same rules, flows, reviewers and ledger as a call.

use std::sync::Arc;

use callgate_catalog::Tool;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::authority::PendingCall;
use crate::dispatcher::Dispatcher;
use crate::error::CallError;
use crate::ledger::Outcome;

/// The reason why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered<E> {
    /// The host's error.
    pub error: E,
    /// The message for the ledger.
    pub said: String,
    /// All that a script can read of it: it may quote the model.
    pub read: Value,
}

impl Dispatcher {
    /// Hands `input`, a JSON object, to a model of the host, which `work` asks if the rules allow
    /// it. Without a rule they do: the host configured the model.
    ///
    /// `work` gets the input as rules, reviewers and the ledger saw it. Its answer, or its error,
    /// goes past reviewers, and is the model's data from then on.
    /// The error: [`CallError`] if `work` was not begun, or a reviewer keeps its answer back.
    pub async fn consult<E, W>(
        &self,
        model: &Tool,
        input: &RawValue,
        line: Option<u32>,
        work: impl FnOnce(Arc<str>) -> W,
    ) -> Result<Result<Box<RawValue>, E>, CallError>
    where
        W: Future<Output = Result<Box<RawValue>, Unanswered<E>>>,
    {
        let mut entry = self.ledger.open(model, input, line)?;
        let input = entry.parse(input, "input")?;
        let flows = self.flows.find(model, &input).await;
        entry.found(&flows);
        let call = PendingCall {
            tool: model,
            arguments: &input,
            flows: &flows,
            line,
            // The host's own.
            is_trusted: true,
            is_sent: true,
        };
        let ruling = self.authority.decide(&call, &self.ledger).await;
        entry.decided(&ruling);
        if !ruling.allows() {
            return Err(entry.denied(ruling));
        }
        entry.sending()?;
        match work(Arc::clone(input.text())).await {
            Ok(answer) => {
                self.release(&call, &mut entry, answer.get()).await?;
                entry.close(Outcome::Ok, Some(answer.get()));
                Ok(Ok(answer))
            }
            Err(unanswered) => {
                let read = unanswered.read.to_string();
                self.release(&call, &mut entry, &read).await?;
                entry.close(Outcome::tool_error(&unanswered.said), None);
                Ok(Err(unanswered.error))
            }
        }
    }
}
