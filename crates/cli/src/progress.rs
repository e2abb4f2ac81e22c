//! A live line on standard error while calls run, if it is a terminal. It does not stay at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::{CallEnd, Event, present::one_line};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The most names in the line.
const SHOWN: usize = 8;
/// Characters of a server's progress message.
const SHOWN_MESSAGE: usize = 60;

/// The live line of a command.
pub struct Progress {
    /// Holds the line, and can hide it.
    lines: MultiProgress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    line: Option<ProgressBar>,
    /// The functions of the calls under way.
    running: BTreeMap<u64, String>,
    done: u64,
    denied: u64,
    withheld: u64,
    failed: u64,
    /// The last progress that a server told.
    told: String,
}

impl State {
    fn text(&self) -> String {
        let without_result = [
            (self.denied, "denied"),
            (self.withheld, "not made"),
            (self.failed, "failed"),
        ];
        let counted = without_result.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let running: Vec<&str> = self.running.values().map(String::as_str).collect();
        let names = running.get(..SHOWN).unwrap_or(&running).join(", ");
        let within = |text: &str| match text {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        let (running, names) = (running.len(), within(&names));
        let (done, counted) = (self.done, within(&counted.join(", ")));
        let text = format!(
            "{running} running{names}, {done} done{counted}  {}",
            self.told
        );
        text.trim_end().to_owned()
    }
}

impl Progress {
    pub fn new() -> Self {
        // Hidden if standard error is no terminal.
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self {
            lines,
            state: Mutex::default(),
        }
    }

    /// The line, for a prompt that hides it.
    pub fn lines(&self) -> MultiProgress {
        self.lines.clone()
    }

    /// Shows that these servers start.
    pub fn starting<'a>(&self, servers: impl Iterator<Item = &'a str>) {
        let servers: Vec<&str> = servers.take(SHOWN).collect();
        if !servers.is_empty() {
            let text = format!("starting {}", servers.join(", "));
            self.show(&mut self.state(), text);
        }
    }

    /// Shows the start and the end of a call.
    pub fn on_event(&self, event: Event<'_>) {
        let mut state = self.state();
        match event {
            Event::CallStarted { call, function, .. } => {
                state.running.insert(call, function.to_owned());
            }
            Event::CallEnded { call, end, .. } => {
                state.running.remove(&call);
                state.told.clear();
                state.done += 1;
                match end {
                    CallEnd::Ok => {}
                    CallEnd::Denied => state.denied += 1,
                    CallEnd::Withheld => state.withheld += 1,
                    _ => state.failed += 1,
                }
            }
            _ => return,
        }
        let text = state.text();
        self.show(&mut state, text);
    }

    /// Shows a call's progress.
    pub fn on_progress(&self, progress: callgate::caller::Progress<'_>) {
        let mut state = self.state();
        let tool = one_line(progress.tool, SHOWN_MESSAGE);
        state.told = format!("{tool}: {}", progress_text(&progress));
        let text = state.text();
        self.show(&mut state, text);
    }

    /// Removes the line.
    pub fn clear(&self) {
        if let Some(line) = self.state().line.take() {
            line.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, state: &mut State, text: String) {
        if self.lines.is_hidden() {
            return;
        }
        let line = state.line.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}");
            let line = self.lines.add(ProgressBar::new_spinner());
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.enable_steady_tick(Duration::from_millis(120));
            line
        });
        line.set_message(text);
    }
}

/// A server's progress in a few words.
fn progress_text(progress: &callgate::caller::Progress<'_>) -> String {
    let done = progress.progress;
    let mut text = match progress.total {
        Some(total) if total > 0.0 && done.is_finite() => {
            format!("{:.0} %", (done / total).clamp(0.0, 1.0) * 100.0)
        }
        _ => format!("{done}"),
    };
    if let Some(message) = progress.message {
        text += &format!("  {}", one_line(message, SHOWN_MESSAGE));
    }
    text
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_result_are_told_apart() {
        let text = |denied, withheld, failed| {
            let state = State {
                running: BTreeMap::from([(3, "git_log".to_owned())]),
                done: 7,
                denied,
                withheld,
                failed,
                ..State::default()
            };
            state.text()
        };
        assert_eq!(text(0, 0, 0), "1 running (git_log), 7 done");
        assert_eq!(
            text(2, 0, 1),
            "1 running (git_log), 7 done (2 denied, 1 failed)"
        );
        assert_eq!(
            text(0, 3, 1),
            "1 running (git_log), 7 done (3 not made, 1 failed)"
        );
    }
}
