//! From the sandbox's calls to the broker's: a generated name becomes a
//! server and a tool.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate_broker::{CallError, CallOptions, Place, Run, Target, code};
use callgate_catalog::Catalog;
use callgate_sandbox::{CallHandler, ErrorClass, ScriptCall, Thrown, Undelivered};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;

use crate::gate;
use crate::host_functions::extract::{self, Extractor};
use crate::host_functions::lookup::{Lookup, Lookups};
use crate::live_catalog::LiveCatalog;
use crate::mended::mended;
use crate::run_request::{CallEnd, Event, Observer};
use crate::scope::Scope;
use crate::script_errors::thrown;

/// JSON-RPC's "invalid params", which MCP servers answer for an unknown tool
/// (MCP 2025-11-25, server/tools, "Error Handling").
const UNKNOWN_TOOL: i64 = -32602;

/// Unknown names for which a run is told the nearest tool. Finding it goes
/// through the whole catalog, and a script can ask as often as it likes.
pub(crate) const SUGGESTIONS: u64 = 10;

/// Answers the calls of one run.
pub(crate) struct ScriptCalls {
    /// The tools there were when the run began.
    pub(crate) catalog: Arc<Catalog>,
    /// Those there are now.
    pub(crate) live: Arc<LiveCatalog>,
    pub(crate) run: Arc<Run>,
    /// The servers whose tools it may use.
    pub(crate) scope: Scope,
    /// What the script may look up.
    pub(crate) lookups: Arc<Lookups>,
    /// What has values put into a form.
    pub(crate) extractor: Arc<Extractor>,
    pub(crate) observer: Option<Observer>,
    pub(crate) next: Arc<AtomicU64>,
    /// How many names were no tool.
    pub(crate) unknown: Arc<AtomicU64>,
    /// The author's text.
    pub(crate) source: Arc<str>,
    /// The UTF-16 units of each of its lines; read when the first call has a
    /// place.
    pub(crate) lines: OnceLock<Vec<u32>>,
}

impl ScriptCalls {
    /// The place that a worker says, if the author's text has it.
    fn place(&self, (line, column): (u32, u32)) -> Option<Place> {
        let units = |line: &str| u32::try_from(line.encode_utf16().count()).unwrap_or(u32::MAX);
        let lines = self
            .lines
            .get_or_init(|| self.source.split('\n').map(units).collect());
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let length = *lines.get(index)?;
        // A call can stand at the last unit of a line, and not behind it.
        (1..=length)
            .contains(&column)
            .then_some(Place { line, column })
    }
}

impl CallHandler for ScriptCalls {
    fn printed(&self, text: &str) {
        if let Some(observer) = &self.observer {
            observer(Event::Printed { text });
        }
    }

    fn undelivered(&self, function: &str, what: Undelivered, message: String) -> Thrown {
        let of = |catalog: &Catalog| {
            let tool = catalog.get(function)?;
            Some(tool.definition.server.clone())
        };
        let server = of(&self.live.catalog()).or_else(|| of(&self.catalog));
        let code = match what {
            Undelivered::Call => code::TOO_MANY_CALLS,
            Undelivered::Answer => code::RESULT_TOO_LARGE,
        };
        let error = CallError::Protocol {
            code,
            message,
            server: server.unwrap_or_default(),
            function: function.to_owned(),
            data: None,
            retryable: false,
        };
        thrown(function, error)
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let options = CallOptions {
            timeout: call.timeout,
            waited: Duration::ZERO,
            place: call.place.and_then(|place| self.place(place)),
            whole: false,
        };
        let ScriptCall {
            function, input, ..
        } = call;
        let input = mended(input);
        if let Some(lookup) = Lookup::named(&function) {
            let lookups = Arc::clone(&self.lookups);
            let answer = async move { lookups.answer(lookup, &input, options.place).await };
            return within(options.timeout, function, answer).boxed();
        }
        if function == extract::NAME {
            let extractor = Arc::clone(&self.extractor);
            let answer = async move { extractor.answer(&input, options.place).await };
            return within(options.timeout, function, answer).boxed();
        }
        let begin = Begin {
            run: Arc::clone(&self.run),
            scope: self.scope.clone(),
            observer: self.observer.clone(),
            next: Arc::clone(&self.next),
        };
        if let Some(target) = target(&self.live.catalog(), &function)
            && self.live.is_settled_for(&target)
        {
            return begin.call(target, input, options).boxed();
        }
        let (at_start, live) = (Arc::clone(&self.catalog), Arc::clone(&self.live));
        let (scope, unknown) = (self.scope.clone(), Arc::clone(&self.unknown));
        async move {
            // Its server may just have said that there are other tools, or that this is another.
            let mut options = options;
            let found = live.target_in_time(&function, &mut options).await;
            let (now, found) = found.map_err(|late| thrown(&function, late))?;
            if let Some(target) = found {
                return begin.call(target, input, options).await;
            }
            // A name that is no tool reaches no server, so it is not a call: it
            // has no number and no ledger line.
            if let Some(target) = target(&at_start, &function) {
                let disabled = live.is_disabled(&target.server);
                return Err(thrown(&function, gone(target, disabled)));
            }
            if let Some(message) = live.disabled_message(&function, &scope) {
                return Err(thrown(&function, unknown_tool(&function, message)));
            }
            if let Some(server) = live.unlisted_server_of(&function, &scope) {
                return Err(thrown(&function, unlisted(&function, &server)));
            }
            let told = unknown.fetch_add(1, Ordering::Relaxed);
            let near = (told < SUGGESTIONS)
                .then(|| scope.nearest(&now, &function))
                .flatten();
            let message = unknown_tool_message(&function, near);
            Err(thrown(&function, unknown_tool(&function, message)))
        }
        .boxed()
    }
}

/// The answer to something that the host does itself, in the time that the
/// script gives it.
async fn within(
    limit: Option<Duration>,
    function: String,
    answer: impl Future<Output = Result<Box<RawValue>, Thrown>>,
) -> Result<Box<RawValue>, Thrown> {
    let Some(limit) = limit else {
        return answer.await;
    };
    let late = |_late| Thrown {
        class: ErrorClass::Timeout,
        message: format!("{function} gave no answer within {} ms", limit.as_millis()).into(),
        fields: json!({ "tool": function, "retryable": true })
            .to_string()
            .into(),
    };
    tokio::time::timeout(limit, answer).await.map_err(late)?
}

/// What it takes to begin a call.
struct Begin {
    run: Arc<Run>,
    scope: Scope,
    observer: Option<Observer>,
    next: Arc<AtomicU64>,
}

impl Begin {
    /// Numbers the call at once, and makes it when polled.
    fn call(
        self,
        target: Target,
        input: Box<RawValue>,
        options: CallOptions,
    ) -> impl Future<Output = Result<Box<RawValue>, Thrown>> {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        async move {
            let mut watched = Watched::start(self.observer, call, &target);
            let result = match self.scope.refusal(&target) {
                Some(because) => Err(self.run.refuse(target, input, options.place, because)),
                None => self.run.call(target, input, options).await,
            };
            watched.end = match &result {
                Ok(_) => CallEnd::Ok,
                Err(CallError::Denied { .. }) => CallEnd::Denied,
                Err(CallError::DryRun { .. }) => CallEnd::Withheld,
                Err(_) => CallEnd::Failed,
            };
            result.map_err(|error| thrown(&watched.function, error))
        }
    }
}

/// A call that those who watch the run are told of: its end too where it is
/// dropped, which is how a script and a run cancel calls.
struct Watched {
    observer: Option<Observer>,
    call: u64,
    function: String,
    end: CallEnd,
}

impl Watched {
    fn start(observer: Option<Observer>, call: u64, target: &Target) -> Self {
        if let Some(observer) = &observer {
            observer(Event::CallStarted {
                call,
                function: &target.function,
                server: &target.server,
                tool: &target.tool,
            });
        }
        Self {
            observer,
            call,
            function: target.function.clone(),
            end: CallEnd::Failed,
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(observer) = &self.observer {
            observer(Event::CallEnded {
                call: self.call,
                function: &self.function,
                end: self.end,
            });
        }
    }
}

/// What the broker needs to know of the tool with this generated name.
pub(crate) fn target(catalog: &Catalog, function: &str) -> Option<Target> {
    let tool = catalog.get(function)?;
    let definition = &tool.definition;
    Some(Target {
        function: tool.function.clone(),
        other_names: Some(Arc::clone(&tool.other_names)),
        server: definition.server.clone(),
        tool: definition.name.clone(),
        title: definition.title.as_deref().map(Arc::from),
        hints: gate::hints(definition),
        definition: Some(Arc::clone(&definition.identity)),
        output_schema: definition.output_schema.clone(),
    })
}

/// The message for a name that is no tool, with the nearest one that is.
pub(crate) fn unknown_tool_message(function: &str, near: Option<&str>) -> String {
    no_tool("is named", function, near)
}

/// The same for a pattern that matches none.
pub(crate) fn unmatched_message(pattern: &str, near: Option<&str>) -> String {
    no_tool("matches", pattern, near)
}

fn no_tool(is: &str, name: &str, near: Option<&str>) -> String {
    // The name comes from a script: what is printed of it is bounded.
    let shown: String = name.chars().take(80).collect();
    match near {
        Some(near) => format!("no tool {is} {shown:?}; did you mean {near:?}?"),
        None => format!("no tool {is} {shown:?}"),
    }
}

/// The message for a name that would be a tool of a server that is not in use.
pub(crate) fn disabled_message(function: &str, server: &str) -> String {
    unavailable_message(function, server, "is disabled")
}

fn unavailable_message(function: &str, server: &str, why: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = function.chars().map(plain).take(80).collect();
    format!("{shown} is not available: server {server:?} {why}")
}

/// The error for a name that would be a tool of a server that did not start. Why it did not,
/// the report says: that may quote the server.
fn unlisted(function: &str, server: &str) -> CallError {
    CallError::Protocol {
        server: server.to_owned(),
        function: function.to_owned(),
        code: code::CONNECTION_CLOSED,
        message: unavailable_message(function, server, "did not start"),
        data: None,
        retryable: true,
    }
}

/// The error for a tool that its server no longer lists, or whose server is no
/// longer in use.
fn gone(target: Target, disabled: bool) -> CallError {
    let Target {
        function,
        server,
        tool,
        ..
    } = &target;
    let message = match disabled {
        true => format!("{function} is gone: server {server:?} is disabled"),
        false => format!("{function} is gone: its server no longer lists the tool {tool:?}"),
    };
    CallError::Protocol {
        code: UNKNOWN_TOOL,
        message,
        server: target.server,
        function: target.function,
        data: None,
        retryable: false,
    }
}

/// The error for a name that is no tool.
pub(crate) fn unknown_tool(function: &str, message: String) -> CallError {
    CallError::Protocol {
        server: String::new(),
        function: function.to_owned(),
        code: UNKNOWN_TOOL,
        message,
        data: None,
        retryable: false,
    }
}
