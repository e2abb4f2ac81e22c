//! One call without a script.

use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{
    Asker, CallError, CallErrorKind, CallOptions, Dispatcher, DryRun, LedgerLine, Withheld, code,
};
use callgate_policy::{Grant, Rules, SessionGrants};
use callgate_schema::without_lone_surrogates;
use callgate_servers::Caller;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::Gate;
use crate::report::Status;
use crate::report::calls::write_dry_run;
use crate::run_request::CallSettings;
use crate::setters::{call_setters, setters};

/// A call to make without a script, and the settings of this call that differ from the gate's.
#[derive(Clone)]
#[must_use]
pub struct CallRequest {
    function: String,
    arguments: Box<RawValue>,
    settings: CallSettings,
    timeout: Option<Duration>,
    whole: bool,
}

impl CallRequest {
    /// A call of a tool by its generated name, with a JSON object of arguments.
    pub fn new(function: impl Into<String>, arguments: Box<RawValue>) -> Self {
        Self {
            function: function.into(),
            arguments,
            settings: CallSettings::default(),
            timeout: None,
            whole: false,
        }
    }

    call_setters!();

    setters! {
        /// Sets the most time of the call. The server's own limits hold, too.
        timeout(self, timeout: Duration) { self.timeout = Some(timeout); }
    }

    /// Makes the result the server's whole answer (MCP 2026-07-28, server/tools, "Tool
    /// Result"): content, `structuredContent`, `isError` and `_meta`. A failed tool is a
    /// result then, and no error.
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }
}

/// The outcome of one call.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallOutcome {
    /// The result, or the error as a script would catch it; for a name that is not a tool,
    /// [`CallErrorKind::Protocol`].
    pub result: Result<Box<RawValue>, CallError>,
    /// The ledger's line; `None` for a name that is not a tool, and for a call that ended before
    /// its server was connected to.
    pub line: Option<LedgerLine>,
    /// The call, if a dry run did not make it.
    pub withheld: Option<Withheld>,
}

impl CallOutcome {
    /// The call that a dry run did not make, as text; empty for any other call.
    pub fn problems(&self) -> String {
        let mut text = String::new();
        if let Some(withheld) = &self.withheld {
            let _ = write_dry_run(&mut text, std::slice::from_ref(withheld));
        }
        text
    }

    /// The status of the call, as if a script had made it and caught nothing.
    #[doc(hidden)]
    pub fn status(&self) -> Status {
        match self.result.as_ref().map_err(|error| &error.kind) {
            Ok(_) => Status::Completed,
            Err(CallErrorKind::Denied(_)) => Status::Denied,
            Err(CallErrorKind::DryRun { .. }) => Status::DryRun,
            Err(CallErrorKind::Cancelled { .. }) => Status::Cancelled,
            Err(_) => Status::Failed,
        }
    }
}

impl Gate {
    /// Calls one tool without a script, through the same rules and ledger.
    ///
    /// # Errors
    ///
    /// [`CallError`] as a script would catch it.
    pub async fn call(
        &self,
        function: &str,
        arguments: Box<RawValue>,
    ) -> Result<Box<RawValue>, CallError> {
        let request = CallRequest::new(function, arguments);
        self.call_with(request).await.result
    }

    /// As [`Gate::call`], with settings of the call.
    pub async fn call_with(&self, request: CallRequest) -> CallOutcome {
        let mut options = CallOptions {
            timeout: request.timeout,
            whole: request.whole,
            ..CallOptions::default()
        };
        let function = request.function.as_str();
        let mut setup = self.setup(&request.settings);
        setup.options.one_call = true;
        let run = Dispatcher::new(self.live.connections.clone(), setup);
        let arguments = without_lone_surrogates(request.arguments);
        let calling = async {
            match self.live.tool_in_time(function, &mut options).await? {
                Some(tool) => run.call(&tool, arguments, options).await,
                None => {
                    let (code, message) = (
                        code::INVALID_ARGUMENTS,
                        self.view().unknown_tool_message(function),
                    );
                    Err(CallError::protocol(function, "", code, message))
                }
            }
        };
        let result = tokio::select! {
            biased;
            () = request.settings.cancel.cancelled() => None,
            result = calling => Some(result),
        };
        let line = run.lines().into_iter().next();
        let result = result.unwrap_or_else(|| {
            Err(CallError {
                server: self.live.server_of(function),
                function: function.to_owned(),
                kind: CallErrorKind::Cancelled {
                    sent: line.as_ref().is_some_and(|line| line.took_ms.is_some()),
                },
            })
        });
        let outcome = CallOutcome {
            result,
            line,
            withheld: run.withheld().into_iter().next(),
        };
        run.end(outcome.status().name(), None);
        outcome
    }
}
