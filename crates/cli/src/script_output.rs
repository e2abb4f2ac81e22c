//! The console output of a script, written while it runs.

use std::io::{IsTerminal as _, stdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use callgate::RunReport;
use callgate::present::undrawn;

use crate::{print, progress};

/// Bytes of messages that are written together.
const TOGETHER: usize = 64 << 10;

/// True during a question. The output waits.
static HELD: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Holds the output back until [`release`].
pub fn hold() {
    *held() = true;
}

/// Writes what was held back, and the rest at once.
pub fn release() {
    *held() = false;
    HELD.1.notify_all();
}

fn held() -> MutexGuard<'static, bool> {
    HELD.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of one run so far.
#[derive(Clone)]
pub struct ScriptOutput(Arc<Mutex<State>>);

struct State {
    bytes: u64,
    to: To,
}

/// The place of the output.
enum To {
    /// The JSON report.
    Report(String),
    /// Standard output, by a thread: the run does not wait for a slow reader.
    Stdout(Sender<String>, JoinHandle<anyhow::Result<()>>),
}

impl ScriptOutput {
    /// Begins with no output. A person who may be asked sees no forged question.
    pub fn begin(json: bool, is_attended: bool) -> anyhow::Result<Self> {
        let to = if json {
            To::Report(String::new())
        } else {
            let (sender, messages) = channel();
            let is_asked = is_attended && print::may_be_shown();
            let thread = std::thread::Builder::new().name("callgate-output".to_owned());
            let writer = thread.spawn(move || write(&messages, is_asked));
            To::Stdout(sender, writer.context("no thread can write the output")?)
        };
        Ok(Self(Arc::new(Mutex::new(State { bytes: 0, to }))))
    }

    /// Takes what the script has printed.
    pub fn push(&self, text: &str) {
        let mut state = self.state();
        state.bytes += text.len() as u64;
        match &mut state.to {
            To::Report(all) => all.push_str(text),
            // The writer is gone if standard output is.
            To::Stdout(sender, _) => drop(sender.send(text.to_owned())),
        }
    }

    /// Ends with the report of the run: completes its output, or writes the rest of it, takes it out
    /// of the report, and waits until all is written. Says on standard error what is cut.
    pub fn end(self, report: &mut RunReport) -> anyhow::Result<()> {
        let mut state = self.state();
        let (cut, end) = report.output.after(state.bytes);
        if cut > 0 {
            let bytes = report.output.bytes;
            print::err(&format!(
                "note: {cut} of {bytes} bytes of the output are cut; --output takes another size\n"
            ));
        }
        let to = std::mem::replace(&mut state.to, To::Report(String::new()));
        let written = match to {
            To::Report(begun) => {
                report.output.begin_with(begun);
                report.require_value();
                Ok(())
            }
            To::Stdout(sender, writer) => {
                if cut > 0 {
                    drop(sender.send(format!("\n[{cut} bytes are cut here; the end follows]\n")));
                }
                drop(sender.send(end.to_owned()));
                drop(sender);
                report.output.text.clear();
                let written = writer.join();
                written.unwrap_or_else(|_panic| Err(anyhow::anyhow!("the output is not written")))
            }
        };
        if let Some(value) = report.value.as_ref().filter(|value| value.cut_bytes > 0) {
            let (cut, bytes) = (value.cut_bytes, value.bytes);
            print::err(&format!(
                "note: {cut} of {bytes} bytes of the returned value are cut; --output takes another \
                 size\n"
            ));
        }
        written
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes messages until there are no more. Where a person may be asked, text that could draw a
/// question is written at the end, with all that comes after it.
fn write(messages: &Receiver<String>, is_asked: bool) -> anyhow::Result<()> {
    let mut last = String::new();
    while let Ok(mut text) = messages.recv() {
        while text.len() < TOGETHER
            && let Ok(more) = messages.try_recv()
        {
            text += &more;
        }
        if !last.is_empty() || is_asked && undrawn(&text) != text {
            last += &text;
            continue;
        }
        let held = HELD.1.wait_while(held(), |held| *held);
        let held = held.unwrap_or_else(PoisonError::into_inner);
        if stdout().is_terminal() {
            // No question begins in between.
            progress::suspend(|| print::out(&text))?;
        } else {
            // The reader of a pipe may be slow.
            drop(held);
            print::out(&text)?;
        }
    }
    print::out(&last)
}
