//! The console output of a script, written during the run.

use std::io::IsTerminal as _;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context as _;
use callgate::RunReport;
use callgate_text::undrawn;
use parking_lot::{Condvar, Mutex};
use rustix::stdio::{stderr, stdout};

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
    /// The standard streams, written by a thread: the run does not wait for a slow reader.
    Streams(Sender<Part>, JoinHandle<anyhow::Result<()>>),
}

/// A part of the output for one standard stream.
struct Part {
    text: String,
    /// True for standard error.
    is_error: bool,
}

impl Part {
    fn stream(&self) -> BorrowedFd<'static> {
        if self.is_error { stderr() } else { stdout() }
    }

    /// True if it may be shown at a terminal and has box-drawing characters, which could imitate a
    /// question.
    fn imitates(&self) -> bool {
        print::may_be_shown(&self.stream()) && undrawn(&self.text) != self.text
    }

    fn write(&self) -> anyhow::Result<()> {
        if self.is_error {
            print::err(&self.text);
            Ok(())
        } else {
            print::out(&self.text)
        }
    }
}

impl ScriptOutput {
    /// Begins the output of a run. `is_attended` is true if questions may be asked at the terminal,
    /// where the output must not imitate one.
    pub fn begin(json: bool, is_attended: bool) -> anyhow::Result<Self> {
        let target = if json {
            Target::Report(String::new())
        } else {
            let (sender, parts) = channel();
            let thread = std::thread::Builder::new().name("callgate-output".to_owned());
            let writer = thread.spawn(move || write(&parts, is_attended));
            Target::Streams(sender, writer.context("could not start the output thread")?)
        };
        Ok(Self(Arc::new(Mutex::new(OutputState { bytes: 0, target }))))
    }

    /// Adds text that the script has printed, for standard error if `is_error`.
    pub fn push(&self, text: &str, is_error: bool) {
        let mut state = self.0.lock();
        state.bytes += text.len() as u64;
        match &mut state.target {
            Target::Report(all) => all.push_str(text),
            Target::Streams(sender, _) => send(sender, text.to_owned(), is_error),
        }
    }

    /// Ends the output with the report of the run. A JSON report gets the complete output; else the
    /// rest is written and removed from the report. Prints how much was cut.
    pub fn end(self, report: &mut RunReport) -> anyhow::Result<()> {
        let mut state = self.0.lock();
        let is_error = report.output.end_is_error();
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
            Target::Streams(sender, writer) => {
                if cut > 0 {
                    let gap = format!("\n[{cut} bytes are cut here; the end follows]\n");
                    send(&sender, gap, is_error);
                }
                send(&sender, end.to_owned(), is_error);
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

/// Passes a part to the thread that writes. That fails after standard output could not be written.
fn send(sender: &Sender<Part>, text: String, is_error: bool) {
    drop(sender.send(Part { text, is_error }));
}

/// Writes parts until the sender is dropped. If questions may be asked, a part that could imitate
/// one is held back to the end with all parts after it.
fn write(parts: &Receiver<Part>, is_attended: bool) -> anyhow::Result<()> {
    let mut held_back: Vec<Part> = Vec::new();
    let mut next = None;
    while let Some(mut part) = next.take().or_else(|| parts.recv().ok()) {
        while part.text.len() < BATCH
            && let Ok(more) = parts.try_recv()
        {
            if more.is_error != part.is_error {
                next = Some(more);
                break;
            }
            part.text += &more.text;
        }
        if !held_back.is_empty() || is_attended && part.imitates() {
            held_back.push(part);
            continue;
        }
        let mut held = HELD.0.lock();
        HELD.1.wait_while(&mut held, |held| *held);
        if part.stream().is_terminal() {
            // With the lock, so that no question begins before the write.
            progress::suspend(|| part.write())?;
        } else {
            // The reader of a pipe may be slow.
            drop(held);
            part.write()?;
        }
    }
    held_back.iter().try_for_each(Part::write)
}
