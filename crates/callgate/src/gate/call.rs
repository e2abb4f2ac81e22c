//! One call without a script, through the same rules and ledger as a script's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callgate_broker::{Asker, CallError, CallOptions, Caller, DryRun, LedgerLine, Withheld};
use callgate_policy::{Grant, Rules, SessionGrants};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::Gate;
use crate::mended::mended;
use crate::roots::with_roots;
use crate::{report, script_calls};

/// A call to make without a script, and what is different in it.
#[derive(Clone)]
#[must_use]
pub struct CallRequest {
    pub(crate) function: String,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) session: Option<Arc<SessionGrants>>,
    pub(crate) dry_run: Option<Arc<DryRun>>,
    pub(crate) caller: Option<Arc<dyn Caller>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) whole: bool,
    pub(crate) cancel: CancellationToken,
}

impl CallRequest {
    /// A call of a tool by its generated name, with a JSON object of arguments.
    pub fn new(function: impl Into<String>, arguments: Box<RawValue>) -> Self {
        Self {
            function: function.into(),
            arguments,
            rules: None,
            asker: None,
            grants: Vec::new(),
            session: None,
            dry_run: None,
            caller: None,
            timeout: None,
            whole: false,
            cancel: CancellationToken::new(),
        }
    }

    /// What can be done for the server while it works on this call, and who hears
    /// how far it is; as [`RunRequest::caller`](crate::RunRequest::caller).
    pub fn caller(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// How long the call may take; the server's own limits hold all the same.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Has the result be what the server answered (MCP 2026-07-28, server/tools,
    /// "Tool Result"): all its content, `structuredContent`, `isError` and
    /// `_meta`. A tool that failed is a result then, and no error.
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Rules of this call in place of the gate's.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(Arc::new(rules));
        self
    }

    /// Who answers the question of this call in place of the gate's asker.
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Grants something for this call.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.grants.push(grant);
        self
    }

    /// The session it belongs to in place of the gate's: what was granted in it, and what
    /// rules with `maxCalls` have counted of its calls without a script.
    pub fn session(mut self, session: Arc<SessionGrants>) -> Self {
        self.session = Some(session);
        self
    }

    /// Cancelling `token` ends the call with [`CallError::Cancelled`], which says whether it
    /// may have been sent.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// Makes the call only if it reads; see [`DryRun`].
    pub fn dry_run(mut self, dry_run: DryRun) -> Self {
        self.dry_run = Some(Arc::new(dry_run));
        self
    }
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("function", &self.function)
            .field("bytes", &self.arguments.get().len())
            .field("grants", &self.grants)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// What came of one call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Called {
    /// The result, or the error as a script would have caught it; for a name
    /// that is no tool, [`CallError::Protocol`].
    pub result: Result<Box<RawValue>, CallError>,
    /// The ledger's line; `None` for a name that is no tool, and where the time was over, or
    /// the call cancelled, before its server was connected to.
    pub line: Option<LedgerLine>,
    /// What was not called, in a dry run.
    pub withheld: Option<Withheld>,
}

impl Called {
    /// What was not called, as text; empty where everything was.
    #[must_use]
    pub fn problems(&self) -> String {
        let mut text = String::new();
        if let Some(withheld) = &self.withheld {
            // Writing to a string does not fail.
            let _written = report::write_dry_run(&mut text, std::slice::from_ref(withheld));
        }
        text
    }
}

impl Gate {
    /// ScriptCalls one tool without a script, through the same rules and ledger.
    pub async fn call_with(&self, request: CallRequest) -> Called {
        let mut options = CallOptions {
            timeout: request.timeout,
            whole: request.whole,
            ..CallOptions::default()
        };
        let none = |error| Called {
            result: Err(error),
            line: None,
            withheld: None,
        };
        let function = &request.function;
        let cancelled = |server: Option<String>, sent| CallError::Cancelled {
            server: server.unwrap_or_default(),
            function: function.clone(),
            sent,
        };
        let finding = async {
            self.fresh_catalog().await;
            self.live.target_in_time(function, &mut options).await
        };
        let found = tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                let known = script_calls::target(&self.catalog(), function);
                return none(cancelled(known.map(|target| target.server), false));
            }
            found = finding => found,
        };
        let target = match found {
            Ok((_, Some(target))) => target,
            Ok((_, None)) => {
                let message = self.unknown_tool_message(function);
                return none(script_calls::unknown_tool(function, message));
            }
            Err(late) => return none(late),
        };
        let mut setup = self.setup(request.rules.as_ref(), request.asker.as_ref());
        setup.one_call = true;
        if let Some(session) = request.session {
            setup.session = session;
        }
        setup.grants = request.grants;
        setup.dry_run = request.dry_run;
        setup.caller = request.caller.map(|caller| with_roots(&self.roots, caller));
        let run = self.broker.run_with(setup);
        let calling = run.call(target, mended(request.arguments), options);
        let result = tokio::select! {
            biased;
            result = calling => Some(result),
            () = request.cancel.cancelled() => None,
        };
        // Of a call that was decided about anew, the one that was made.
        let line = run.ledger().into_iter().next_back();
        Called {
            result: result.unwrap_or_else(|| {
                let sent = line.as_ref().is_some_and(|line| line.took_ms.is_some());
                let server = line.as_ref().map(|line| line.server.clone());
                Err(cancelled(server, sent))
            }),
            line,
            withheld: run.withheld().into_iter().next(),
        }
    }
}
