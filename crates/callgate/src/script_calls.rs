//! The calls of a script: a function name becomes a tool, and the tool is called.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use callgate_catalog::{Catalog, Tool};
use callgate_gate::{CallError, CallErrorKind, CallOptions, Dispatcher, code};
use callgate_policy::Rules;
use callgate_sandbox::{CallHandler, ErrorClass, ScriptCall, Thrown, Undelivered};
use callgate_schema::without_lone_surrogates;
use callgate_servers::Caller;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use serde_json::value::RawValue;

use crate::config::ExtractLimits;
use crate::host_functions::extract::{Extractions, SchemaReader};
use crate::live_catalog::LiveCatalog;
use crate::models::Models;
use crate::names::{HostFunction, MAX_SUGGESTIONS, NameProblem};
use crate::run_request::{CallEnd, Event, Observer};
use crate::scope::Scope;
use crate::script_errors::{own_error, thrown};
use crate::search::Searcher;

/// Answers the calls of one run. Clones are the same.
#[derive(Clone)]
pub(crate) struct ScriptCalls(pub(crate) Arc<RunCalls>);

/// The calls of one run, and what answers them.
pub(crate) struct RunCalls {
    /// The catalog at the start of the run.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) live: Arc<LiveCatalog>,
    pub(crate) searcher: Arc<Searcher>,
    pub(crate) models: Arc<Models>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) run: Arc<Dispatcher>,
    pub(crate) scope: Scope,
    /// The caller whose model is asked first.
    pub(crate) caller: Option<Arc<dyn Caller>>,
    pub(crate) extract_limits: ExtractLimits,
    pub(crate) schemas: SchemaReader,
    pub(crate) observer: Option<Observer>,
    /// The author's text.
    pub(crate) source: Arc<str>,
    pub(crate) counts: Counts,
}

/// The counts of one run so far.
#[derive(Default)]
pub(crate) struct Counts {
    next_call: AtomicU64,
    unknown_names: AtomicU64,
    pub(crate) lookups: AtomicU64,
    /// When the first search for vectors began.
    pub(crate) searching_since: OnceLock<Instant>,
    pub(crate) extractions: Mutex<Extractions>,
}

impl CallHandler for ScriptCalls {
    fn printed(&self, text: &str, is_error: bool) {
        if let Some(observer) = &self.0.observer {
            observer(Event::Printed { text, is_error });
        }
    }

    fn approval_time(&self) -> Duration {
        self.0.run.approval_time()
    }

    fn undelivered(&self, function: &str, what: Undelivered, message: String) -> Thrown {
        let calls = &self.0;
        let server = |catalog: &Catalog| Some(catalog.get(function)?.definition.server.clone());
        let server = server(&calls.live.catalog()).or_else(|| server(&calls.catalog));
        let code = match what {
            Undelivered::Call => code::TOO_MANY_CALLS,
            Undelivered::Answer => code::RESULT_TOO_LARGE,
        };
        let server = server.unwrap_or_default();
        thrown(
            function,
            CallError::protocol(function, &server, code, message),
        )
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let calls = self.clone();
        async move { calls.0.answer(call).await }.boxed()
    }
}

impl RunCalls {
    async fn answer(&self, call: ScriptCall) -> Result<Box<RawValue>, Thrown> {
        let _open = self.run.open_call();
        let function = call.function;
        let input = without_lone_surrogates(call.input);
        let options = CallOptions {
            timeout: call.timeout,
            waited: Duration::ZERO,
            line: call.place.and_then(|place| line_in(&self.source, place)),
            whole: false,
        };
        if let Some(own) = HostFunction::named(&function) {
            return self.call_host(own, &input, &options).await;
        }
        let answer = self.call_tool(&function, input, options).await;
        answer.map_err(|error| thrown(&function, error))
    }

    /// Answers a call of the host's own function, within the script's time limit for it.
    async fn call_host(
        &self,
        function: HostFunction,
        input: &RawValue,
        options: &CallOptions,
    ) -> Result<Box<RawValue>, Thrown> {
        let line = options.line;
        let answer = async {
            match function {
                HostFunction::Extract => self.extract(input, line).await,
                _ => self.look_up(function, input, line).await,
            }
        };
        let Some(limit) = options.timeout else {
            return answer.await;
        };
        let answer = tokio::time::timeout(limit, answer).await;
        answer.unwrap_or_else(|_| {
            let name = function.name();
            let message = format!("{name} gave no answer within {} ms", limit.as_millis());
            let fields = json!({ "tool": name, "retryable": true });
            Err(own_error(ErrorClass::Timeout, message, &fields))
        })
    }

    async fn call_tool(
        &self,
        function: &str,
        input: Box<RawValue>,
        mut options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        // The server may just have said that its tools are others.
        let Some(tool) = self.live.tool_in_time(function, &mut options).await? else {
            return Err(self.no_tool(function));
        };
        let number = self.counts.next_call.fetch_add(1, Ordering::Relaxed);
        let mut watched = WatchedCall::start(self.observer.as_ref(), number, &tool);
        let refusal = self.scope.refusal(function, &tool.definition.server);
        let result = match refusal {
            Some(because) => Err(self.run.refuse(&tool, input, options.line, because)),
            None => self.run.call(&tool, input, options).await,
        };
        watched.end = match result.as_ref().map_err(|error| &error.kind) {
            Ok(_) => CallEnd::Ok,
            Err(CallErrorKind::Denied(_)) => CallEnd::Denied,
            Err(CallErrorKind::DryRun { .. }) => CallEnd::Withheld,
            Err(_) => CallEnd::Failed,
        };
        result
    }

    /// The error for a name that is not a tool now. Such a name reaches no server, so it has no
    /// number and no ledger line.
    fn no_tool(&self, function: &str) -> CallError {
        let error =
            |server: &str, code, message| CallError::protocol(function, server, code, message);
        let suggest = self.may_suggest();
        let problem = self.live.explain(function, &self.scope, suggest);
        let problem = problem.unwrap_or(NameProblem::Unknown { near: None });
        if let NameProblem::NotListed { server } = &problem {
            // The report says why it did not start: that may quote the server.
            return error(server, code::CONNECTION_CLOSED, problem.message(function));
        }
        let before = self.catalog.get(function).map(|tool| &tool.definition);
        let message = match (&problem, before) {
            (NameProblem::Unknown { .. }, Some(tool)) => format!(
                "{function} is gone: its server no longer lists the tool {:?}",
                tool.name
            ),
            _ => problem.message(function),
        };
        let server = before.map_or("", |tool| tool.server.as_str());
        error(server, code::INVALID_ARGUMENTS, message)
    }

    /// True for the first unknown names of a run, for which the nearest tool is searched.
    fn may_suggest(&self) -> bool {
        let unknown = self.counts.unknown_names.fetch_add(1, Ordering::Relaxed);
        unknown < MAX_SUGGESTIONS
    }

    /// The tool most like a name that is not a tool, for the first such names of a run.
    pub(crate) fn suggestion<'c>(&self, catalog: &'c Catalog, name: &str) -> Option<&'c str> {
        let near = self
            .may_suggest()
            .then(|| self.scope.nearest(catalog, name));
        near.flatten()
    }
}

/// The line of the place that a worker names, if the author's text has the place.
fn line_in(source: &str, (line, column): (u32, u32)) -> Option<u32> {
    let units = callgate_script::line(source, line)?.encode_utf16().count();
    (1..=units)
        .contains(&usize::try_from(column).ok()?)
        .then_some(line)
}

/// A call that the run's observer is told about. Scripts and runs cancel calls by dropping
/// them, so the end is told on drop.
struct WatchedCall<'a> {
    observer: Option<&'a Observer>,
    number: u64,
    function: &'a str,
    end: CallEnd,
}

impl<'a> WatchedCall<'a> {
    fn start(observer: Option<&'a Observer>, number: u64, tool: &'a Tool) -> Self {
        if let Some(observer) = observer {
            observer(Event::CallStarted {
                call: number,
                function: &tool.function,
                server: &tool.definition.server,
                tool: &tool.definition.name,
            });
        }
        Self {
            observer,
            number,
            function: &tool.function,
            end: CallEnd::Failed,
        }
    }
}

impl Drop for WatchedCall<'_> {
    fn drop(&mut self) {
        if let Some(observer) = self.observer {
            observer(Event::CallEnded {
                call: self.number,
                function: self.function,
                end: self.end,
            });
        }
    }
}
