//! Handing data to something that is no server, such as the host's model: under
//! the same rules, flows, reviewers and ledger as a call.

use std::sync::Arc;

use callgate_policy::{Definition, Hints};
use serde_json::Value;
use serde_json::value::RawValue;

use super::line::{Opened, denied, kept, sending};
use super::{Outcome, Run, Target};
use crate::error::CallError;
use crate::judge::Case;
use crate::options::Place;

/// Something of the host's own that a script hands data to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consultant {
    /// What rules and the ledger know it by.
    pub function: String,
    /// What stands where a server's name stands.
    pub server: String,
    /// What stands where a tool's name stands.
    pub tool: String,
    /// What it does, to which grants are bound. It is the host's word, so it is another only
    /// where the host is.
    pub definition: Arc<Definition>,
}

/// Why something of the host's own gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered<E> {
    /// The host's word for it.
    pub error: E,
    /// What the ledger says of it.
    pub said: String,
    /// All that a script can read of it: it may quote whoever was asked.
    pub read: Value,
}

impl Run {
    /// Hands `input`, a JSON object, to something of the host's own, which
    /// `work` does if it may be done. Without a rule it may: whoever set it up
    /// said so.
    ///
    /// `work` gets the input as rules, reviewers and the ledger saw it, which is not
    /// how `input` is written where that names a key twice or writes a number in
    /// its own way. What it gives, an answer or none, goes past reviewers, and is
    /// the consultant's data from then on.
    ///
    /// # Errors
    ///
    /// [`CallError`] where `work` was not begun, or what came of it is kept back.
    pub async fn consult<E, W>(
        &self,
        consultant: &Consultant,
        input: &RawValue,
        place: Option<Place>,
        work: impl FnOnce(Arc<String>) -> W,
    ) -> Result<Result<Box<RawValue>, E>, CallError>
    where
        W: Future<Output = Result<Box<RawValue>, Unanswered<E>>>,
    {
        let target = Target {
            function: consultant.function.clone(),
            other_names: None,
            server: consultant.server.clone(),
            tool: consultant.tool.clone(),
            hints: Hints {
                read_only: Some(true),
                ..Hints::default()
            },
            definition: Some(Arc::clone(&consultant.definition)),
            ..Target::default()
        };
        let given = Arc::new(input.get().to_owned());
        let Opened {
            mut entry,
            arguments,
            text,
        } = self.open(&target, "input", given, place)?;
        let reviews = &self.inner.reviews;
        let findings = reviews.arguments(&target, &text).await;
        entry.carries(&reviews.weighed(&findings));
        let case = Case {
            target: &target,
            // It is the host's own.
            trusted: true,
            arguments: &arguments,
            text: &text,
            place,
        };
        let judge = &self.inner.judge;
        let decision = judge.take(&case, &findings);
        let ledger = &self.inner.ledger;
        let ruling = judge.settle(&case, &findings, decision, ledger).await;
        if !ruling.allows() {
            return Err(denied(entry, target, ruling));
        }
        // For the work, the text will do.
        drop(arguments);
        let entry = sending(entry, &target, &ruling)?;
        let answer = match work(Arc::clone(&text)).await {
            Ok(answer) => answer,
            Err(unanswered) => {
                let read = unanswered.read.to_string();
                let refused = reviews.result(&target, &text, &findings, &read).await;
                if let Some(reason) = refused {
                    return Err(kept(entry, target, reason, &read));
                }
                reviews.learn(&target, entry.ordinal(), &read);
                entry.close(Outcome::tool_error(&unanswered.said), None);
                return Ok(Err(unanswered.error));
            }
        };
        let refused = reviews
            .result(&target, &text, &findings, answer.get())
            .await;
        if let Some(reason) = refused {
            return Err(kept(entry, target, reason, answer.get()));
        }
        reviews.learn(&target, entry.ordinal(), answer.get());
        entry.close(Outcome::Ok, Some(answer.get()));
        Ok(Ok(answer))
    }
}
