//! What the ops of one isolate act on: its calls, its timers, and the channel to the host.

use std::cell::RefCell;
use std::sync::Arc;

use callgate_sandbox::wire::{Done, ReturnValue, ScriptException};
use deno_core::v8;

use super::host_channel::HostChannel;
use super::open_calls::OpenCalls;
use super::rejections;
use super::timers::Timers;
use crate::ops::{Link, NewCall, ScriptEnd};

pub(super) struct IsolateLink {
    pub(super) channel: Arc<HostChannel>,
    /// The end of the run, once it is known.
    pub(super) done: RefCell<Option<Done>>,
    /// The returned value, while calls that the script did not await are under way.
    pub(super) returned: RefCell<Option<ReturnValue>>,
    pub(super) calls: OpenCalls,
    pub(super) timers: Timers,
}

impl IsolateLink {
    pub(super) fn new(channel: Arc<HostChannel>) -> Self {
        Self {
            calls: OpenCalls::new(Arc::clone(&channel)),
            channel,
            done: RefCell::new(None),
            returned: RefCell::new(None),
            timers: Timers::default(),
        }
    }
}

impl Link for IsolateLink {
    fn call(&self, call: NewCall) -> Result<u64, String> {
        self.calls.make(call)
    }

    fn cancel(&self, call: u64) {
        self.calls.cancel(call);
    }

    fn print(&self, message: String, missing: u64, is_error: bool) {
        self.channel.print(message, missing, is_error);
    }

    fn emit(&self, block: String, data: &str) -> Result<(), String> {
        self.channel.emit(block, data)
    }

    fn set_timer(&self, timer: u64, after_ms: f64, kind: u32, line: u32) {
        let is_late = self.returned.borrow().is_some();
        self.timers.set(timer, after_ms, kind, line, is_late);
    }

    fn clear_timer(&self, timer: u64) {
        self.timers.clear(timer);
    }

    fn take_rejected(&self) -> Option<v8::Global<v8::Promise>> {
        rejections::take()
    }

    fn done(&self, end: ScriptEnd) {
        let max = self.channel.result_bytes();
        let value = match end.kind {
            0 => Some(ReturnValue::Undefined),
            1 => Some(cut(end.text, max, ReturnValue::Json)),
            2 => Some(cut(end.text, max, ReturnValue::Shown)),
            _ => {
                // Only the first end counts.
                self.done
                    .borrow_mut()
                    .get_or_insert(Done::Threw(ScriptException {
                        name: end.name,
                        message: end.text,
                        line: end.line,
                        column: end.column,
                        stack: end.stack,
                    }));
                None
            }
        };
        if let Some(value) = value {
            self.returned.borrow_mut().get_or_insert(value);
        }
        self.channel.wake.wake();
    }
}

/// The whole value, or its head and tail if it is over the limit.
fn cut(text: String, max: usize, whole: impl FnOnce(String) -> ReturnValue) -> ReturnValue {
    if text.len() <= max {
        return whole(text);
    }
    let head = text.floor_char_boundary(max / 2);
    let tail = text.ceil_char_boundary(text.len() - (max - max / 2).min(text.len()));
    ReturnValue::Cut {
        head: text.get(..head).unwrap_or_default().into(),
        tail: text.get(tail..).unwrap_or_default().into(),
        total_bytes: text.len() as u64,
    }
}
