//! The isolate: made from the snapshot, locked, and then given its one script.

use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use callgate_sandbox::wire::{
    Done, HostFrame, Jit, Reply, ReturnValue, ScriptException, Settings, Start, WorkerFrame,
};
use callgate_script::author_place;
use deno_core::futures::future::poll_fn;
use deno_core::{JsRuntime, PollEventLoopOptions, RuntimeOptions, v8, v8_set_flags};

use super::buffer_limit::BufferLimit;
use super::failures::{self, exit};
use super::host_channel::{HostChannel, to_usize};
use super::isolate_link::IsolateLink;
use super::jail::Jail;
use super::{parse, rejections, replies};
use crate::ops::{self, Link};
use callgate_sandbox::wire::FrameReader;

static SNAPSHOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/isolate.snapshot"));

/// A frame of the host can be a result of the maximum size.
const MAX_HOST_FRAME: usize = u32::MAX as usize;

/// Heap that is added when the limit is reached, so that the script can be stopped instead of V8
/// aborting the process.
const HEADROOM_BYTES: usize = 16 << 20;

/// Maximum number of times that `HEADROOM_BYTES` are added.
const HEADROOM_TIMES: u32 = 4;

/// Native code in place of a script, for tests of the jail: it gets the code of the script and
/// returns the JSON of the run's value.
#[doc(hidden)]
pub type NativeCode = fn(&str) -> String;

thread_local! {
    /// The function that writes stacks. V8 passes no data to its callback.
    static PREPARE_STACK_TRACE: RefCell<Option<v8::Global<v8::Function>>> = const { RefCell::new(None) };
}

/// Makes the isolate, reports that it is ready, runs the script, and reports its end.
pub(super) fn run(
    socket: UnixStream,
    settings: Settings,
    jail: Jail,
    native: Option<NativeCode>,
) -> i32 {
    failures::report_panics();
    let Ok(reading) = socket.try_clone() else {
        return 1;
    };
    let channel = HostChannel::new(socket);
    let mut tokio = tokio::runtime::Builder::new_current_thread();
    let Ok(tokio) = tokio.enable_all().build() else {
        return 1;
    };
    tokio.block_on(async {
        let Ok(inbox) = FrameReader::new(reading, MAX_HOST_FRAME) else {
            return 1;
        };
        let Ok(mut isolate) = Isolate::new(settings, Arc::clone(&channel), inbox) else {
            return 1;
        };
        let handle = isolate.runtime.v8_isolate().thread_safe_handle();
        if channel.stop_when_asked(handle).is_err() {
            return 1;
        }
        channel.send(WorkerFrame::Ready(jail.shut()));
        let start = loop {
            match poll_fn(|context| poll_frame(&mut isolate.inbox, context)).await {
                HostFrame::Read(read) => channel.send(parse::read(&read)),
                HostFrame::Start(start) => break start,
                // No call has been made yet.
                HostFrame::Reply(_) => return 1,
            }
        };
        channel.set_limits(&start.limits);
        isolate.buffer_limit.set(start.limits.buffer_bytes);
        let heap = to_usize(settings.heap_bytes);
        failures::report_memory(isolate.runtime.v8_isolate(), channel.clone(), heap);
        let done = match native {
            None => isolate.execute(&start).await,
            Some(code) => Done::Returned(ReturnValue::Json(code(&start.code))),
        };
        channel.finish(done);
        0
    })
}

struct Isolate {
    runtime: JsRuntime,
    link: Rc<IsolateLink>,
    inbox: FrameReader<HostFrame>,
    buffer_limit: Arc<BufferLimit>,
    prepare: v8::Global<v8::Function>,
    run: v8::Global<v8::Function>,
    fail: v8::Global<v8::Function>,
    deliver: v8::Global<v8::Function>,
    fire_timer: v8::Global<v8::Function>,
    /// The worker's estimate of when two limits end the run: `script_end` without
    /// [`OpenCalls::waited`](super::open_calls::OpenCalls::waited) and without further calls;
    /// `run_end` with all waiting.
    script_end: Instant,
    run_end: Instant,
}

impl Isolate {
    fn new(
        settings: Settings,
        channel: Arc<HostChannel>,
        inbox: FrameReader<HostFrame>,
    ) -> Result<Self, &'static str> {
        set_flags(settings.jit);
        JsRuntime::init_platform(None);
        let heap = to_usize(settings.heap_bytes);
        let buffer_limit = BufferLimit::new();
        let mut runtime = new_runtime(heap, &buffer_limit)?;
        let link = Rc::new(IsolateLink::new(Arc::clone(&channel)));
        let state = runtime.op_state();
        state.borrow_mut().put::<Rc<dyn Link>>(link.clone());
        stop_at_heap_limit(&mut runtime, heap, channel, Arc::clone(&buffer_limit));
        let isolate = runtime.v8_isolate();
        isolate.set_prepare_stack_trace_callback(prepare_stack_trace);
        isolate.set_promise_reject_callback(rejections::promise_rejected);
        isolate.set_host_import_module_dynamically_callback(refuse_import);
        isolate.set_host_import_module_with_phase_dynamically_callback(refuse_import_phase);

        let functions = functions(&mut runtime)?;
        let [begin, prepare, run, fail, deliver, fire_timer, stack] = functions;
        PREPARE_STACK_TRACE.with(|slot| *slot.borrow_mut() = Some(stack));
        call(&mut runtime, &begin, |_| Some(Vec::new())).ok_or("the globals cannot be locked")?;
        {
            deno_core::scope!(scope, &mut runtime);
            let context = scope.get_current_context();
            context.set_allow_generation_from_strings(false);
        }
        Ok(Self {
            runtime,
            link,
            inbox,
            buffer_limit,
            prepare,
            run,
            fail,
            deliver,
            fire_timer,
            script_end: Instant::now(),
            run_end: Instant::now(),
        })
    }

    /// Runs the script to its end.
    async fn execute(&mut self, start: &Start) -> Done {
        let limits = &start.limits;
        self.script_end = Instant::now() + Duration::from_millis(limits.script_ms);
        self.run_end = Instant::now() + Duration::from_millis(limits.run_ms);
        let source_map = start.source_map.clone();
        ops::set_places(move |line, column| author_place(&source_map, line, column));
        let prepared = call(&mut self.runtime, &self.prepare, |scope| {
            let functions = strings(scope, &start.functions)?;
            let args = strings(scope, &start.input.args)?;
            let stdin = v8::String::new(scope, &start.input.stdin)?;
            let depth = v8::Number::new(scope, f64::from(start.limits.depth));
            let message = v8::Number::new(scope, start.limits.message_bytes as f64);
            Some(vec![
                functions.into(),
                depth.into(),
                message.into(),
                args.into(),
                stdin.into(),
            ])
        });
        if prepared.is_none() {
            return threw("the functions of the script cannot be defined");
        }
        if !self.start_script(start) && self.link.done.borrow().is_none() {
            return if self.link.channel.is_terminated() {
                Done::Terminated
            } else {
                threw("the script cannot be started")
            };
        }
        poll_fn(|context| {
            let polled = self.poll(context);
            self.link.calls.send_cancels();
            polled
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Done> {
        self.link.channel.wake.register(context.waker());
        if let Some(done) = self.ended() {
            return Poll::Ready(done);
        }
        // From here on the script may be busy, and then it waits for no timer.
        self.link.channel.set_timers(Vec::new());
        let mut replies = Vec::new();
        while let Poll::Ready(frame) = poll_frame(&mut self.inbox, context) {
            match frame {
                // Drops a late reply, to a call that the script no longer waits for.
                HostFrame::Reply(reply) if self.link.calls.settle(reply.call) => {
                    replies.push(reply)
                }
                HostFrame::Reply(_) => {}
                // There is only one script in a worker.
                HostFrame::Read(_) | HostFrame::Start(_) => exit(1),
            }
        }
        if !replies.is_empty() {
            self.deliver(replies);
            if let Some(done) = self.ended() {
                return Poll::Ready(done);
            }
        }
        self.fire_timers();
        let options = PollEventLoopOptions::default();
        let polled = self.runtime.poll_event_loop(context, options);
        self.report_rejection();
        if let Some(done) = self.ended() {
            return Poll::Ready(done);
        }
        self.link.channel.set_timers(self.link.timers.left());
        // A script that has returned may have open calls and timers, such as those of an async
        // function that it did not await. The run waits for them and for what they cause: silently
        // dropping a write would be worse than a wait. Many scripts leave a timer behind that only
        // limited a wait, so the run does not wait for a timer that cannot fire within the limits,
        // unless it was set after the return.
        let calls = self.link.channel.calls.load(Ordering::Relaxed);
        let end = self.run_end.min(self.script_end + self.link.calls.waited());
        if calls == 0
            && !self.link.timers.keep_returned_alive(end)
            && let Some(value) = self.link.returned.borrow_mut().take()
        {
            return Poll::Ready(Done::Returned(value));
        }
        self.link.timers.wake_when_due(context);
        match polled {
            Poll::Pending => Poll::Pending,
            // The event loop does not count calls and timers.
            Poll::Ready(Ok(())) if calls > 0 || self.link.timers.keep_alive() => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(Done::NeverSettled),
            // Every error of a script goes to `fail` in 99_start.js, so this error is the event
            // loop's own.
            Poll::Ready(Err(error)) => Poll::Ready(threw(&error.to_string())),
        }
    }

    /// Runs the timers that are due now, and the microtasks after each.
    fn fire_timers(&mut self) {
        let now = Instant::now();
        while let Some(timer) = self.link.timers.take(now) {
            // `fireTimer` does not throw, and `has_ended` detects a stop.
            let _ = call(&mut self.runtime, &self.fire_timer, |scope| {
                Some(vec![v8::Number::new(scope, timer as f64).into()])
            });
            self.runtime.v8_isolate().perform_microtask_checkpoint();
            self.report_rejection();
            if self.has_ended() {
                return;
            }
        }
    }

    /// Makes a rejection that has no handler the script's error.
    fn report_rejection(&mut self) {
        let Some(promise) = rejections::take() else {
            return;
        };
        let _ = call(&mut self.runtime, &self.fail, |scope| {
            let promise = v8::Local::new(scope, promise);
            Some(vec![promise.result(scope)])
        });
    }

    fn has_ended(&self) -> bool {
        self.link.channel.is_terminated() || self.link.done.borrow().is_some()
    }

    /// Passes replies to the script, which runs in the event loop's next turn.
    fn deliver(&mut self, replies: Vec<Reply>) {
        // `deliver` does not throw, and `ended` detects a stop.
        let _ = call(&mut self.runtime, &self.deliver, |scope| {
            Some(vec![replies::to_list(scope, replies)?])
        });
    }

    fn ended(&self) -> Option<Done> {
        if self.link.channel.is_terminated() {
            return Some(Done::Terminated);
        }
        self.link.done.borrow_mut().take()
    }

    /// Compiles the code and calls the function that it evaluates to; false if that was stopped.
    fn start_script(&mut self, start: &Start) -> bool {
        let (run, fail) = (self.run.clone(), self.fail.clone());
        deno_core::scope!(scope, &mut self.runtime);
        v8::tc_scope!(let scope, scope);
        let run = v8::Local::new(scope, run);
        let fail = v8::Local::new(scope, fail);
        let undefined = v8::undefined(scope).into();
        let function = compile(scope, start).and_then(|script| script.run(scope));
        let called = match function {
            Some(function) => run.call(scope, undefined, &[function]),
            None => {
                let Some(exception) = scope.exception() else {
                    return false;
                };
                let place = scope.message().and_then(|message| {
                    let line = u32::try_from(message.get_line_number(scope)?).ok()?;
                    let column = u32::try_from(message.get_start_column()).ok()?;
                    author_place(&start.source_map, line, column.saturating_add(1))
                });
                let (line, column) = place.unwrap_or_default();
                let line = v8::Integer::new_from_unsigned(scope, line).into();
                let column = v8::Integer::new_from_unsigned(scope, column).into();
                scope.reset();
                fail.call(scope, undefined, &[exception, line, column])
            }
        };
        called.is_some()
    }
}

/// Sets the flags of V8, which hold for the whole process.
fn set_flags(jit: Jit) {
    // The stack of a deep recursion must stay well within that of the main thread.
    let mut flags = vec![String::new(), "--stack-size=900".to_owned()];
    match jit {
        Jit::Keys => {}
        Jit::NoKeys => flags.push("--no-memory-protection-keys".to_owned()),
        Jit::Off => flags.push("--jitless".to_owned()),
    }
    let _ = v8_set_flags(flags);
}

/// A runtime out of the snapshot, with limits for its heap and its array buffers.
fn new_runtime(heap: usize, buffers: &Arc<BufferLimit>) -> Result<JsRuntime, &'static str> {
    let limits = v8::CreateParams::default()
        .heap_limits(0, heap)
        .array_buffer_allocator(buffers.allocator());
    JsRuntime::try_new(RuntimeOptions {
        extensions: vec![ops::extension(Vec::new())],
        startup_snapshot: Some(SNAPSHOT),
        create_params: Some(limits),
        ..RuntimeOptions::default()
    })
    .map_err(|_| "the isolate cannot be made")
}

/// Makes V8 stop the script near the limit of the heap, and report that to the host.
fn stop_at_heap_limit(
    runtime: &mut JsRuntime,
    heap: usize,
    channel: Arc<HostChannel>,
    buffers: Arc<BufferLimit>,
) {
    let handle = runtime.v8_isolate().thread_safe_handle();
    let mut times = 0;
    runtime.add_near_heap_limit_callback(move |current, _initial| {
        if times == 0 {
            // V8 also calls this for a refused buffer.
            let (limit, observed) = buffers.refused().unwrap_or((heap, current));
            channel.send_memory_limit(limit, observed);
        }
        channel.set_terminated();
        handle.terminate_execution();
        times += 1;
        let has_headroom = times <= HEADROOM_TIMES;
        current + if has_headroom { HEADROOM_BYTES } else { 0 }
    });
}

/// The next frame of the host. The end of the stream and an invalid frame end the process.
fn poll_frame(inbox: &mut FrameReader<HostFrame>, context: &mut Context<'_>) -> Poll<HostFrame> {
    loop {
        match inbox.next_read() {
            Ok(Some(frame)) => return Poll::Ready(frame),
            Ok(None) => {}
            Err(_) => exit(1),
        }
        match ready!(inbox.poll_read(context)) {
            Ok(true) => {}
            Ok(false) => exit(0),
            Err(_) => exit(1),
        }
    }
}

fn compile<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    start: &Start,
) -> Option<v8::Local<'s, v8::Script>> {
    let source = v8::String::new(scope, &start.code)?;
    let name = v8::String::new(scope, &start.source_name)?;
    let origin = v8::ScriptOrigin::new(
        scope,
        name.into(),
        0,
        0,
        false,
        -1,
        None,
        false,
        false,
        false,
        None,
    );
    v8::Script::compile(scope, source, Some(&origin))
}

fn threw(message: &str) -> Done {
    Done::Threw(ScriptException {
        name: "Error".into(),
        message: message.into(),
        ..ScriptException::default()
    })
}

/// `begin`, `prepare`, `run`, `fail`, `deliver`, `fireTimer` and `prepareStackTrace` of `runtime-js`.
fn functions(runtime: &mut JsRuntime) -> Result<[v8::Global<v8::Function>; 7], &'static str> {
    deno_core::scope!(scope, runtime);
    let mut object = scope.get_current_context().global(scope);
    for key in ["__bootstrap", "internals", "callgate"] {
        object = property(scope, object, key).ok_or("runtime-js is not in the snapshot")?;
    }
    let mut function = |name| {
        let function = property::<v8::Function>(scope, object, name);
        let function = function.map(|function| v8::Global::new(scope, function));
        function.ok_or("runtime-js lacks a function")
    };
    Ok([
        function("begin")?,
        function("prepare")?,
        function("run")?,
        function("fail")?,
        function("deliver")?,
        function("fireTimer")?,
        function("prepareStackTrace")?,
    ])
}

fn property<'s, T>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    key: &str,
) -> Option<v8::Local<'s, T>>
where
    v8::Local<'s, T>: TryFrom<v8::Local<'s, v8::Value>>,
{
    let key = v8::String::new(scope, key)?;
    object.get(scope, key.into())?.try_into().ok()
}

/// Calls a function of `runtime-js`; `None` if it threw or was stopped.
fn call(
    runtime: &mut JsRuntime,
    function: &v8::Global<v8::Function>,
    arguments: impl for<'s> FnOnce(&mut v8::PinScope<'s, '_>) -> Option<Vec<v8::Local<'s, v8::Value>>>,
) -> Option<()> {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    let arguments = arguments(scope)?;
    let function = v8::Local::new(scope, function);
    let undefined = v8::undefined(scope).into();
    function.call(scope, undefined, &arguments).map(|_| ())
}

/// An array of these texts; `None` if V8 is stopped.
fn strings<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    texts: &[String],
) -> Option<v8::Local<'s, v8::Array>> {
    let mut strings: Vec<v8::Local<'s, v8::Value>> = Vec::with_capacity(texts.len());
    for text in texts {
        strings.push(v8::String::new(scope, text)?.into());
    }
    Some(v8::Array::new_with_elements(scope, &strings))
}

/// Called by V8 when `stack` of an error is first read. With it set, `Error.prepareStackTrace` of a
/// script has no effect.
fn prepare_stack_trace<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    let function = PREPARE_STACK_TRACE.with(|slot| slot.borrow().clone());
    let made = function.and_then(|function| {
        v8::tc_scope!(let scope, scope);
        let function = v8::Local::new(scope, function);
        let undefined = v8::undefined(scope).into();
        function.call(scope, undefined, &[error, sites.into()])
    });
    // V8 needs a value, even while the script is being stopped.
    made.unwrap_or_else(|| v8::String::empty(scope).into())
}

fn refuse_import<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    _options: v8::Local<'s, v8::Data>,
    _referrer: v8::Local<'s, v8::Value>,
    _specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    refused_import(scope)
}

/// `import()` and `import.source()` in a script.
fn refuse_import_phase<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    _options: v8::Local<'s, v8::Data>,
    _referrer: v8::Local<'s, v8::Value>,
    _specifier: v8::Local<'s, v8::String>,
    _phase: v8::ModuleImportPhase,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    refused_import(scope)
}

fn refused_import<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Promise>> {
    let resolver = v8::PromiseResolver::new(scope)?;
    let message = "a script cannot import modules; call the global functions instead";
    let message = v8::String::new(scope, message)?;
    let error = v8::Exception::type_error(scope, message);
    resolver.reject(scope, error)?;
    Some(resolver.get_promise(scope))
}
