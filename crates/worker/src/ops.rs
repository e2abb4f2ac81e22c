//! The ops: every function of the worker that JavaScript in the isolate can call.
//!
//! The build script uses this file too, for the snapshot, so it reaches the rest of the worker only
//! through [`Link`].

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use deno_core::url::{Url, form_urlencoded, quirks};
use deno_core::v8::{ValueDeserializerHelper as _, ValueSerializerHelper as _};
use deno_core::{Extension, ExtensionFileSource, OpDecl, OpState, ToV8, op2, v8};
use deno_error::JsErrorBox;

/// The functions of the worker that the ops call.
pub(crate) trait Link {
    /// Sends a call and returns its id; the reply goes to `deliver` in `20_mcp.js`. The script
    /// catches an error.
    fn call(&self, call: NewCall) -> Result<u64, String>;
    /// Records that the script no longer waits for the call with this id.
    fn cancel(&self, call: u64);
    /// Takes one console message, which lacks `missing` bytes; `is_error` if it is for standard
    /// error.
    fn print(&self, message: String, missing: u64, is_error: bool);
    /// Sends a block, as JSON text, to the caller; `data` is its base64 part. The script catches an
    /// error.
    fn emit(&self, block: String, data: &str) -> Result<(), String>;
    /// Sets a timer that calls `fireTimer` in `32_web.js` with its id. `kind` is one of the numbers
    /// there; `line` is the author's line that set it, or 0.
    fn set_timer(&self, timer: u64, after_ms: f64, kind: u32, line: u32);
    /// Drops a timer. An unknown id is ignored.
    fn clear_timer(&self, timer: u64);
    /// Takes the first promise that was rejected and has no handler, once.
    fn take_rejected(&self) -> Option<v8::Global<v8::Promise>>;
    /// Takes the end of the script.
    fn done(&self, end: ScriptEnd);
}

/// A call as `20_mcp.js` makes it.
pub(crate) struct NewCall {
    pub(crate) tool: String,
    /// JSON text.
    pub(crate) input: String,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) cancellable: bool,
    /// Line and column of the call in the author's text.
    pub(crate) place: Option<(u32, u32)>,
}

/// The end of the script, as `99_start.js` reports it.
pub(crate) struct ScriptEnd {
    /// One of the numbers at the top of `99_start.js`.
    pub(crate) kind: u32,
    /// JSON, shown value or message.
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) stack: String,
    /// Line and column of the first frame of the stack.
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The extension with the ops, and with the given JavaScript when a snapshot is made.
pub(crate) fn extension(files: Vec<ExtensionFileSource>) -> Extension {
    Extension {
        name: "callgate",
        ops: Cow::Borrowed(OPS),
        js_files: Cow::Owned(files),
        op_state_fn: Some(Box::new(|state| {
            state.put(Clock {
                start: Instant::now(),
                origin: SystemTime::now(),
            });
        })),
        middleware_fn: Some(Box::new(|op| {
            let mut allowed = ALLOWED_BUILTINS.iter().flat_map(|names| names.split(' '));
            let is_allowed =
                op.name.starts_with("op_callgate_") || allowed.any(|name| name == op.name);
            if is_allowed { op } else { op.disable() }
        })),
        ..Extension::default()
    }
}

/// The ops of deno_core that work; all others throw when they are called.
///
/// None of them fills an array by index: a setter that a script puts on `Array.prototype` would get
/// the values, and run inside the op.
const ALLOWED_BUILTINS: [&str; 3] = [
    // Needed by deno_core's own start-up and event loop.
    "op_get_ext_import_meta_proto op_get_extras_binding_object op_run_microtasks \
     op_set_captured_bootstrap",
    // Inspecting values without running any of their code.
    "op_is_any_array_buffer op_is_arguments_object op_is_array_buffer op_is_async_function \
     op_is_big_int_object op_is_boolean_object op_is_boxed_primitive op_is_date \
     op_is_generator_function op_is_map op_is_native_error op_is_number_object op_is_promise \
     op_is_reg_exp op_is_set op_is_string_object op_is_typed_array op_is_weak_map op_is_weak_set",
    // Text.
    "op_str_byte_length",
];

const OPS: &[OpDecl] = &[
    op_callgate_call(),
    op_callgate_cancel(),
    op_callgate_clear_timer(),
    op_callgate_clone(),
    op_callgate_decode(),
    op_callgate_done(),
    op_callgate_emit(),
    op_callgate_encode(),
    op_callgate_form_parse(),
    op_callgate_form_write(),
    op_callgate_line(),
    op_callgate_now(),
    op_callgate_place(),
    op_callgate_print(),
    op_callgate_promise_details(),
    op_callgate_proxy_target(),
    op_callgate_random(),
    op_callgate_rejection(),
    op_callgate_set_timer(),
    op_callgate_time_origin(),
    op_callgate_url_parse(),
    op_callgate_url_set(),
];

struct Clock {
    start: Instant,
    origin: SystemTime,
}

/// An array of strings, or null.
struct Strings(Option<Vec<String>>);

impl<'a> ToV8<'a> for Strings {
    type Error = JsErrorBox;

    fn to_v8<'i>(
        self,
        scope: &mut v8::PinScope<'a, 'i>,
    ) -> Result<v8::Local<'a, v8::Value>, JsErrorBox> {
        let Some(strings) = self.0 else {
            return Ok(v8::null(scope).into());
        };
        let mut values = Vec::with_capacity(strings.len());
        for text in strings {
            values.push(v8::Local::<v8::Value>::from(string(scope, &text)?));
        }
        Ok(v8::Array::new_with_elements(scope, &values).into())
    }
}

fn string<'a>(
    scope: &mut v8::PinScope<'a, '_>,
    text: &str,
) -> Result<v8::Local<'a, v8::String>, JsErrorBox> {
    v8::String::new(scope, text)
        .ok_or_else(|| JsErrorBox::range_error("the text is longer than a string can be"))
}

/// Makes a call and returns its id. A timeout of 0 means no limit of the script.
#[op2(fast)]
fn op_callgate_call(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[string] tool: String,
    #[string] input: String,
    timeout_ms: f64,
    cancellable: bool,
) -> Result<f64, JsErrorBox> {
    let made = NewCall {
        tool,
        input,
        timeout_ms: (timeout_ms >= 1.0).then_some(timeout_ms as u64),
        cancellable,
        place: place_of_call(scope),
    };
    let link = state.borrow::<Rc<dyn Link>>();
    let id = link.call(made).map_err(JsErrorBox::type_error)?;
    Ok(id as f64)
}

/// Cancels the call with this id.
#[op2(fast)]
fn op_callgate_cancel(state: &mut OpState, call: f64) {
    state.borrow::<Rc<dyn Link>>().cancel(call as u64);
}

/// Frames of a stack that are searched for the script's: those of `runtime-js` come first.
const FRAMES: usize = 4;

thread_local! {
    /// V8's id of the script, once a frame of it was seen: comparing names costs more.
    static SCRIPT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The author's place of the innermost frame of the script, if it is among the first [`FRAMES`].
fn place_of_call(scope: &mut v8::PinScope<'_, '_>) -> Option<(u32, u32)> {
    let stack = v8::StackTrace::current_stack_trace(scope, FRAMES)?;
    let script = SCRIPT.get();
    for index in 0..stack.get_frame_count() {
        let frame = stack.get_frame(scope, index)?;
        let id = frame.get_script_id();
        if script.is_none() {
            let name = frame.get_script_name(scope)?;
            if name.to_rust_string_lossy(scope).starts_with("ext:") {
                continue;
            }
            SCRIPT.set(Some(id));
        } else if script != Some(id) {
            continue;
        }
        let line = u32::try_from(frame.get_line_number()).ok()?;
        let column = u32::try_from(frame.get_column()).ok()?;
        return author_place(line, column);
    }
    None
}

#[op2(fast)]
fn op_callgate_emit(
    state: &mut OpState,
    #[string] block: String,
    #[string] data: &str,
) -> Result<(), JsErrorBox> {
    let link = state.borrow::<Rc<dyn Link>>();
    link.emit(block, data).map_err(JsErrorBox::range_error)
}

#[op2(fast)]
fn op_callgate_print(state: &mut OpState, #[string] message: String, missing: f64, is_error: bool) {
    let link = state.borrow::<Rc<dyn Link>>();
    link.print(message, missing as u64, is_error);
}

#[op2(fast)]
fn op_callgate_set_timer(state: &mut OpState, timer: f64, after_ms: f64, kind: u32, line: u32) {
    let link = state.borrow::<Rc<dyn Link>>();
    link.set_timer(timer as u64, after_ms, kind, line);
}

/// The author's line of the running code; 0 if it is unknown.
#[op2(fast)]
fn op_callgate_line(scope: &mut v8::PinScope<'_, '_>) -> u32 {
    place_of_call(scope).map_or(0, |(line, _)| line)
}

#[op2(fast)]
fn op_callgate_clear_timer(state: &mut OpState, timer: f64) {
    state.borrow::<Rc<dyn Link>>().clear_timer(timer as u64);
}

/// The reason of the first rejection without a handler, in an array, which may be empty.
#[op2]
fn op_callgate_rejection<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &mut OpState,
) -> v8::Local<'s, v8::Array> {
    let promise = state.borrow::<Rc<dyn Link>>().take_rejected();
    let reason = promise.map(|promise| v8::Local::new(scope, promise).result(scope));
    v8::Array::new_with_elements(scope, reason.as_slice())
}

#[op2(fast)]
fn op_callgate_done(
    state: &mut OpState,
    kind: u32,
    #[string] text: String,
    #[string] name: String,
    #[string] stack: String,
    line: u32,
    column: u32,
) {
    state.borrow::<Rc<dyn Link>>().done(ScriptEnd {
        kind,
        text,
        name,
        stack,
        line,
        column,
    });
}

/// The author's line and column of a line and a column in the code.
type Places = Box<dyn Fn(u32, u32) -> Option<(u32, u32)>>;

thread_local! {
    /// Maps the script's code to its author's text. Not in the state of the ops, which may be
    /// borrowed when V8 requests a stack.
    static PLACES: RefCell<Option<Places>> = const { RefCell::new(None) };
}

pub(crate) fn set_places(places: impl Fn(u32, u32) -> Option<(u32, u32)> + 'static) {
    PLACES.with(|slot| *slot.borrow_mut() = Some(Box::new(places)));
}

fn author_place(line: u32, column: u32) -> Option<(u32, u32)> {
    PLACES.with(|slot| slot.borrow().as_ref()?(line, column))
}

/// The factor with which `op_callgate_place` packs a line and a column into one number.
const COLUMNS: u32 = 1 << 20;

/// The author's place of a place in the code: the line times `COLUMNS`, plus the column; 0 for
/// generated code.
#[op2(fast)]
fn op_callgate_place(line: u32, column: u32) -> f64 {
    let place = author_place(line, column);
    place.map_or(0.0, |(line, column)| {
        f64::from(line) * f64::from(COLUMNS) + f64::from(column.min(COLUMNS - 1))
    })
}

/// Milliseconds since the worker started.
#[op2(fast)]
fn op_callgate_now(state: &mut OpState) -> f64 {
    state.borrow::<Clock>().start.elapsed().as_secs_f64() * 1000.0
}

/// Milliseconds from 1970 to the start of the worker.
#[op2(fast)]
fn op_callgate_time_origin(state: &mut OpState) -> f64 {
    let since = state.borrow::<Clock>().origin.duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

/// Fills the buffer with random bytes of the kernel.
#[op2(fast)]
fn op_callgate_random(#[buffer] buffer: &mut [u8]) -> Result<(), JsErrorBox> {
    // `getentropy` gives at most 256 bytes at a time.
    for part in buffer.chunks_mut(256) {
        // SAFETY: the pointer and the length are those of one live slice.
        if unsafe { libc::getentropy(part.as_mut_ptr().cast(), part.len()) } != 0 {
            return Err(JsErrorBox::generic("the system gives no random bytes"));
        }
    }
    Ok(())
}

/// The target of a proxy, null if it is revoked, in an array; an empty array for other values.
#[op2]
fn op_callgate_proxy_target<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    value: v8::Local<'s, v8::Value>,
) -> v8::Local<'s, v8::Array> {
    let proxy = v8::Local::<v8::Proxy>::try_from(value);
    let target = proxy.ok().map(|proxy| proxy.get_target(scope));
    v8::Array::new_with_elements(scope, target.as_slice())
}

/// An array: 0 for a pending promise; 1 and the value, or 2 and the reason, for a settled one.
#[op2]
fn op_callgate_promise_details<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    promise: v8::Local<'s, v8::Promise>,
) -> v8::Local<'s, v8::Array> {
    let (state, result) = match promise.state() {
        v8::PromiseState::Pending => (0, None),
        v8::PromiseState::Fulfilled => (1, Some(promise.result(scope))),
        v8::PromiseState::Rejected => (2, Some(promise.result(scope))),
    };
    let state = v8::Integer::new(scope, state).into();
    let details: Vec<_> = std::iter::once(state).chain(result).collect();
    v8::Array::new_with_elements(scope, &details)
}

/// Limits `structuredClone` to V8's own kinds of values. deno_core's op also takes host objects,
/// and panics when a script forges one.
struct OwnKinds;

impl v8::ValueSerializerImpl for OwnKinds {
    fn throw_data_clone_error<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        message: v8::Local<'s, v8::String>,
    ) {
        let error = v8::Exception::type_error(scope, message);
        scope.throw_exception(error);
    }

    fn write_host_object<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        _object: v8::Local<'s, v8::Object>,
        _serializer: &dyn v8::ValueSerializerHelper,
    ) -> Option<bool> {
        let message = v8::String::new(scope, "the object could not be cloned.")?;
        self.throw_data_clone_error(scope, message);
        None
    }
}

impl v8::ValueDeserializerImpl for OwnKinds {}

/// A deep copy of a value. Throws a `TypeError` for one that cannot be copied.
#[op2(reentrant)]
fn op_callgate_clone<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    value: v8::Local<'s, v8::Value>,
) -> Result<v8::Local<'s, v8::Value>, JsErrorBox> {
    let context = scope.get_current_context();
    let failed = || JsErrorBox::range_error("the value could not be cloned");
    let bytes = {
        v8::tc_scope!(let scope, scope);
        let serializer = v8::ValueSerializer::new(scope, Box::new(OwnKinds));
        serializer.write_header();
        let written = serializer.write_value(context, value);
        if scope.has_caught() {
            scope.rethrow();
            // Ignored, because an exception is pending.
            return Ok(v8::undefined(scope).into());
        }
        if written != Some(true) {
            return Err(failed());
        }
        serializer.release()
    };
    let deserializer = v8::ValueDeserializer::new(scope, Box::new(OwnKinds), &bytes);
    if deserializer.read_header(context) != Some(true) {
        return Err(failed());
    }
    deserializer.read_value(context).ok_or_else(failed)
}

/// Writes the text as UTF-8; the buffer has its length. Lone surrogates become U+FFFD.
#[op2(fast)]
fn op_callgate_encode(#[string] text: String, #[buffer] buffer: &mut [u8]) {
    for (to, from) in buffer.iter_mut().zip(text.as_bytes()) {
        *to = *from;
    }
}

/// Decodes UTF-8; null if `fatal` and the bytes are invalid.
#[op2]
#[string]
fn op_callgate_decode(#[buffer] bytes: &[u8], fatal: bool) -> Option<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        Err(_) if fatal => None,
        Err(_) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// The parts of a URL in the order of `31_url.js`, or null if the URL is invalid.
#[op2]
fn op_callgate_url_parse(
    #[string] text: String,
    #[string] base: String,
    has_base: bool,
) -> Strings {
    let Ok(base) = has_base.then(|| Url::parse(&base)).transpose() else {
        return Strings(None);
    };
    let url = Url::options().base_url(base.as_ref()).parse(&text);
    Strings(url.ok().map(|url| parts(&url)))
}

/// The parts of a URL after one was set, or null if the value is invalid.
#[op2]
fn op_callgate_url_set(#[string] href: String, part: u32, #[string] value: String) -> Strings {
    let Ok(mut url) = Url::parse(&href) else {
        return Strings(None);
    };
    let set = match part {
        0 => quirks::set_href(&mut url, &value).is_ok(),
        2 => quirks::set_protocol(&mut url, &value).is_ok(),
        3 => quirks::set_username(&mut url, &value).is_ok(),
        4 => quirks::set_password(&mut url, &value).is_ok(),
        5 => quirks::set_host(&mut url, &value).is_ok(),
        6 => quirks::set_hostname(&mut url, &value).is_ok(),
        7 => quirks::set_port(&mut url, &value).is_ok(),
        _ => {
            match part {
                8 => quirks::set_pathname(&mut url, &value),
                9 => quirks::set_search(&mut url, &value),
                10 => quirks::set_hash(&mut url, &value),
                _ => return Strings(None),
            }
            true
        }
    };
    Strings(set.then(|| parts(&url)))
}

fn parts(url: &Url) -> Vec<String> {
    [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ]
    .map(str::to_owned)
    .into()
}

/// Names and values in alternation.
#[op2]
fn op_callgate_form_parse(#[string] text: String) -> Strings {
    let pairs = form_urlencoded::parse(text.as_bytes());
    let flat = pairs.flat_map(|(name, value)| [name.into_owned(), value.into_owned()]);
    Strings(Some(flat.collect()))
}

/// The opposite of `op_callgate_form_parse`.
#[op2]
#[string]
fn op_callgate_form_write(
    scope: &mut v8::PinScope<'_, '_>,
    flat: v8::Local<'_, v8::Array>,
) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    let mut index = 0;
    while index + 1 < flat.length() {
        let at = |index| {
            let value = flat.get_index(scope, index);
            value.map_or_else(String::new, |value| value.to_rust_string_lossy(scope))
        };
        let (name, value) = (at(index), at(index + 1));
        text.append_pair(&name, &value);
        index += 2;
    }
    text.finish()
}
