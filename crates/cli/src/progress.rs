//! Live lines on standard error while a script's calls run; nothing when it
//! is not a terminal, and nothing left behind at the end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::Event;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Calls shown at once; the others are in the count.
const SHOWN: usize = 8;

/// Draws what a command waits for.
pub struct Progress {
    lines: MultiProgress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last line: what is waited for on the whole.
    summary: Option<ProgressBar>,
    shown: HashMap<u64, ProgressBar>,
    running: u64,
    done: u64,
    failed: u64,
}

impl Progress {
    pub fn new() -> Self {
        // A hidden target where standard error is no terminal.
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self {
            lines,
            state: Mutex::default(),
        }
    }

    /// The lines, for a prompt that must not be drawn over.
    pub fn lines(&self) -> MultiProgress {
        self.lines.clone()
    }

    /// Says that these servers are being started.
    pub fn starting<'a>(&self, servers: impl Iterator<Item = &'a str>) {
        let servers: Vec<&str> = servers.take(SHOWN).collect();
        if !servers.is_empty() {
            self.summarise(
                &mut self.state(),
                format!("starting {}", servers.join(", ")),
            );
        }
    }

    /// Says what became of a call.
    pub fn on_event(&self, event: Event<'_>) {
        if self.lines.is_hidden() {
            return;
        }
        let mut state = self.state();
        match event {
            Event::CallStarted { call, function, .. } => {
                state.running += 1;
                if state.shown.len() < SHOWN {
                    let line = self.add(function.to_owned(), "  {msg}", &state);
                    state.shown.insert(call, line);
                }
            }
            Event::CallEnded { call, ok, .. } => {
                state.running = state.running.saturating_sub(1);
                state.done += 1;
                state.failed += u64::from(!ok);
                if let Some(line) = state.shown.remove(&call) {
                    line.finish_and_clear();
                }
            }
            _ => {}
        }
        let failed = match state.failed {
            0 => String::new(),
            failed => format!(" ({failed} failed)"),
        };
        let summary = format!("{} running, {} done{failed}", state.running, state.done);
        self.summarise(&mut state, summary);
    }

    /// Takes every line off the terminal.
    pub fn clear(&self) {
        let mut state = self.state();
        for (_, line) in state.shown.drain() {
            line.finish_and_clear();
        }
        if let Some(summary) = state.summary.take() {
            summary.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn summarise(&self, state: &mut State, message: String) {
        if let Some(summary) = &state.summary {
            summary.set_message(message);
            return;
        }
        let summary = self.add(message, "{spinner} {msg} {elapsed:.dim}", state);
        // A thread of its own, which one line can have and each call cannot.
        summary.enable_steady_tick(Duration::from_millis(120));
        state.summary = Some(summary);
    }

    fn add(&self, message: String, template: &str, state: &State) -> ProgressBar {
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        // It joins the others before it draws: on its own it would do so
        // wherever the cursor is.
        let line = match &state.summary {
            Some(summary) => self
                .lines
                .insert_before(summary, ProgressBar::new_spinner()),
            None => self.lines.add(ProgressBar::new_spinner()),
        };
        line.set_style(style);
        line.set_message(message);
        line
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
