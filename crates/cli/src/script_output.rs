//! The console output of a script, written during the run.

use std::io::{IsTerminal as _, stdout};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context as _;
use callgate::RunReport;
use callgate_text::undrawn;
use parking_lot::{Condvar, Mutex};

use crate::{print, progress};

/// Bytes of messages that are joined to one write.
const BATCH: usize = 64 << 10;

/// True during a question, while the output waits.
static HELD: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Holds the output back until [`release`].
pub fn hold() {
    *HELD.0.lock() = true;
}

/// Lets the output continue.
pub fn release() {
    *HELD.0.lock() = false;
    HELD.1.notify_all();
}

/// The output of one run.
#[derive(Clone)]
pub struct ScriptOutput(Arc<Mutex<OutputState>>);

struct OutputState {
    /// Bytes of output so far.
    bytes: u64,
    target: Target,
}

enum Target {
    /// The JSON report, with the output so far.
    Report(String),
    /// Standard output, written by a thread: the run does not wait for a slow reader.
    Stdout(Sender<String>, JoinHandle<anyhow::Result<()>>),
}

impl ScriptOutput {
    /// Begins the output of a run. `is_attended` is true if questions may be asked at the terminal,
    /// where the output must not imitate one.
    pub fn begin(json: bool, is_attended: bool) -> anyhow::Result<Self> {
        let target = if json {
            Target::Report(String::new())
        } else {
            let (sender, messages) = channel();
            let is_asked = is_attended && print::may_be_shown();
            let thread = std::thread::Builder::new().name("callgate-output".to_owned());
            let writer = thread.spawn(move || write(&messages, is_asked));
            Target::Stdout(sender, writer.context("could not start the output thread")?)
        };
        Ok(Self(Arc::new(Mutex::new(OutputState { bytes: 0, target }))))
    }

    /// Adds text that the script has printed.
    pub fn push(&self, text: &str) {
        let mut state = self.0.lock();
        state.bytes += text.len() as u64;
        match &mut state.target {
            Target::Report(all) => all.push_str(text),
            // The send fails after standard output was closed.
            Target::Stdout(sender, _) => drop(sender.send(text.to_owned())),
        }
    }

    /// Ends the output with the report of the run. A JSON report gets the complete output; else the
    /// rest is written and removed from the report. Prints how much was cut.
    pub fn end(self, report: &mut RunReport) -> anyhow::Result<()> {
        let mut state = self.0.lock();
        let (cut, end) = report.output.after(state.bytes);
        if cut > 0 {
            let bytes = report.output.bytes;
            print::note(&format!(
                "{cut} of {bytes} bytes of the output are cut; --output sets the limit"
            ));
        }
        let target = std::mem::replace(&mut state.target, Target::Report(String::new()));
        let written = match target {
            Target::Report(begun) => {
                report.output.begin_with(begun);
                report.require_value();
                Ok(())
            }
            Target::Stdout(sender, writer) => {
                if cut > 0 {
                    drop(sender.send(format!("\n[{cut} bytes are cut here; the end follows]\n")));
                }
                drop(sender.send(end.to_owned()));
                drop(sender);
                report.output.text.clear();
                let written = writer.join();
                written.unwrap_or_else(|_panic| Err(anyhow::anyhow!("the output was not written")))
            }
        };
        if let Some(value) = report.value.as_ref().filter(|value| value.cut_bytes > 0) {
            let (cut, bytes) = (value.cut_bytes, value.bytes);
            print::note(&format!(
                "{cut} of {bytes} bytes of the returned value are cut; --output sets the limit"
            ));
        }
        written
    }
}

/// Writes messages until the sender is dropped. If questions may be asked, text with box-drawing
/// characters, which could imitate one, is held back to the end with all text after it.
fn write(messages: &Receiver<String>, is_asked: bool) -> anyhow::Result<()> {
    let mut held_back = String::new();
    while let Ok(mut text) = messages.recv() {
        while text.len() < BATCH
            && let Ok(more) = messages.try_recv()
        {
            text += &more;
        }
        if !held_back.is_empty() || is_asked && undrawn(&text) != text {
            held_back += &text;
            continue;
        }
        let mut held = HELD.0.lock();
        HELD.1.wait_while(&mut held, |held| *held);
        if stdout().is_terminal() {
            // With the lock, so that no question begins before the write.
            progress::suspend(|| print::out(&text))?;
        } else {
            // The reader of a pipe may be slow.
            drop(held);
            print::out(&text)?;
        }
    }
    print::out(&held_back)
}
