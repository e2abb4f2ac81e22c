//! Data for a model of the host: under the same rules, flows, reviewers and ledger as a call.

use std::sync::Arc;

use callgate_catalog::Tool;
use serde_json::value::RawValue;

use crate::dispatcher::Dispatcher;
use crate::error::CallError;
use crate::ledger::Outcome;
use crate::pending_call::PendingCall;

/// The answer of a model of the host, or its error.
#[derive(Debug)]
pub struct Consulted<T> {
    /// The answer or error, for the host.
    pub value: T,
    /// The part that a script can read, as JSON.
    pub read: String,
    /// The message for the ledger, if there is no answer.
    pub failed: Option<String>,
}

impl Dispatcher {
    /// Gives `input`, a JSON object, to a model of the host: `work` asks the model if the rules
    /// allow it. Without a rule it is allowed, because the host configured the model.
    ///
    /// `work` gets the input as rules, reviewers and the ledger saw it. Reviewers see the part of
    /// the answer that a script can read, and flow rules treat it as the model's data.
    /// The error: [`CallError`] if `work` did not start, or a reviewer withholds its answer.
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
        let mut call = PendingCall {
            tool: model,
            ordinal: entry.ordinal(),
            flows: self.authority.flows.find(model, &input).await,
            arguments: input,
            line,
            // It belongs to the host.
            is_trusted: true,
            is_sent: true,
            unsent: None,
        };
        let ruling = self.decide(&mut call, &mut entry).await;
        if !ruling.allows() {
            return Err(entry.denied(ruling));
        }
        entry.sending()?;
        let consulted = work(Arc::clone(call.arguments.text())).await;
        let read = consulted.read.as_str();
        self.release(&call, &mut entry, read).await?;
        match consulted.failed {
            None => entry.close(Outcome::Ok, Some(read)),
            Some(message) => entry.close(Outcome::tool_error(&message), None),
        }
        Ok(consulted.value)
    }
}
