//! Live lines on standard error while a script's calls run; nothing when it
//! is not a terminal, and nothing left behind at the end.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use callgate::Event;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Calls shown at once; the others are in the count.
const SHOWN: usize = 8;

/// Draws the calls of one run.
pub struct Progress {
    lines: MultiProgress,
    state: Mutex<State>,
}

struct State {
    summary: ProgressBar,
    shown: HashMap<u64, ProgressBar>,
    running: u64,
    done: u64,
    failed: u64,
}

impl Progress {
    pub fn new() -> Self {
        // A hidden target where standard error is no terminal.
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let summary = lines.add(spinner());
        let state = State {
            summary,
            shown: HashMap::new(),
            running: 0,
            done: 0,
            failed: 0,
        };
        Self {
            lines,
            state: Mutex::new(state),
        }
    }

    /// The lines, for a prompt that must not be drawn over.
    pub fn lines(&self) -> MultiProgress {
        self.lines.clone()
    }

    pub fn on_event(&self, event: Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CallStarted { call, function } => {
                state.running += 1;
                if state.shown.len() < SHOWN {
                    let line = self.lines.insert_before(&state.summary, spinner());
                    line.set_message(function.to_owned());
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
        state.summary.set_message(format!(
            "{} running, {} done{failed}",
            state.running, state.done
        ));
    }

    /// Takes every line off the terminal.
    pub fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, line) in state.shown.drain() {
            line.finish_and_clear();
        }
        state.summary.finish_and_clear();
    }
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
