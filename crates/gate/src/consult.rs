//! Data for a model of the host: under the same rules, flows, reviewers and ledger as a call.

use std::sync::Arc;

use callgate_catalog::Tool;
use serde_json::value::RawValue;

use crate::authority::PendingCall;
use crate::dispatcher::Dispatcher;
use crate::error::CallError;
use crate::ledger::Outcome;

/// The answer of a model of the host, or its error.
#[derive(Debug)]
pub struct Consulted<T> {
    /// The answer or error, for the host.
    pub value: T,
    /// All that a script can read of it, as JSON.
    pub read: String,
    /// The message for the ledger, if there is no answer.
    pub failed: Option<String>,
}

impl Dispatcher {
    /// Hands `input`, a JSON object, to a model of the host, which `work` asks if the rules allow
    /// it. Without a rule they do: the host configured the model.
    ///
    /// `work` gets the input as rules, reviewers and the ledger saw it. What a script can read of
    /// its answer goes past reviewers, and is the model's data from then on.
    /// The error: [`CallError`] if `work` was not begun, or a reviewer keeps its answer back.
    pub async fn consult<T, W>(
        &self,
        model: &Tool,
        input: &RawValue,
        line: Option<u32>,
        work: impl FnOnce(Arc<str>) -> W,
    ) -> Result<T, CallError>
    where
        W: Future<Output = Consulted<T>>,
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
        let consulted = work(Arc::clone(input.text())).await;
        let read = consulted.read.as_str();
        self.release(&call, &mut entry, read).await?;
        match consulted.failed {
            None => entry.close(Outcome::Ok, Some(read)),
            Some(message) => entry.close(Outcome::tool_error(&message), None),
        }
        Ok(consulted.value)
    }
}
