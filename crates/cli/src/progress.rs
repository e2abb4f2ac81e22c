//! Live lines on standard error while calls run, if it is a terminal. None stay at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::{CallEnd, Event, present::harmless};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The most calls with a line. Others are counted.
const SHOWN: usize = 8;
/// Characters of a server's progress message.
const SHOWN_MESSAGE: usize = 60;

/// The live lines of a command.
pub struct Progress {
    lines: MultiProgress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last line, about all calls.
    summary: Option<ProgressBar>,
    shown: BTreeMap<u64, Line>,
    running: u64,
    done: u64,
    denied: u64,
    withheld: u64,
    failed: u64,
}

impl State {
    /// The numbers of calls in a line.
    fn summary(&self) -> String {
        let without_result = [
            (self.denied, "denied"),
            (self.withheld, "not made"),
            (self.failed, "failed"),
        ];
        let counted = without_result.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let of_those = match counted.as_slice() {
            [] => String::new(),
            counted => format!(" ({})", counted.join(", ")),
        };
        format!("{} running, {} done{of_those}", self.running, self.done)
    }
}

/// The live line of a call.
struct Line {
    bar: ProgressBar,
    function: String,
    server: String,
    tool: String,
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

    /// The lines, for a prompt that hides them.
    pub fn lines(&self) -> MultiProgress {
        self.lines.clone()
    }

    /// Shows that these servers start.
    pub fn starting<'a>(&self, servers: impl Iterator<Item = &'a str>) {
        let servers: Vec<&str> = servers.take(SHOWN).collect();
        if !servers.is_empty() {
            self.summarise(
                &mut self.state(),
                format!("starting {}", servers.join(", ")),
            );
        }
    }

    /// Shows the start and the end of a call.
    pub fn on_event(&self, event: Event<'_>) {
        if self.lines.is_hidden() {
            return;
        }
        let mut state = self.state();
        match event {
            Event::CallStarted {
                call,
                function,
                server,
                tool,
            } => {
                state.running += 1;
                if state.shown.len() < SHOWN {
                    let line = Line {
                        bar: self.add(function.to_owned(), "  {msg}", &state),
                        function: function.to_owned(),
                        server: server.to_owned(),
                        tool: tool.to_owned(),
                    };
                    state.shown.insert(call, line);
                }
            }
            Event::CallEnded { call, end, .. } => {
                state.running = state.running.saturating_sub(1);
                state.done += 1;
                match end {
                    CallEnd::Ok => {}
                    CallEnd::Denied => state.denied += 1,
                    CallEnd::Withheld => state.withheld += 1,
                    _ => state.failed += 1,
                }
                if let Some(line) = state.shown.remove(&call) {
                    line.bar.finish_and_clear();
                }
            }
            _ => {}
        }
        let summary = state.summary();
        self.summarise(&mut state, summary);
    }

    /// Shows a call's progress. Of several calls of one tool the first has the line: a server does
    /// not know which call it is.
    pub fn on_progress(&self, progress: callgate::caller::Progress<'_>) {
        if self.lines.is_hidden() {
            return;
        }
        let state = self.state();
        let is_of = |line: &&Line| line.server == progress.server && line.tool == progress.tool;
        if let Some(line) = state.shown.values().find(is_of) {
            line.bar
                .set_message(format!("{}  {}", line.function, progress_text(&progress)));
        }
    }

    /// Removes all lines.
    pub fn clear(&self) {
        let mut state = self.state();
        for (_, line) in std::mem::take(&mut state.shown) {
            line.bar.finish_and_clear();
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
        // The tick takes a thread, so only this line has one.
        summary.enable_steady_tick(Duration::from_millis(120));
        state.summary = Some(summary);
    }

    fn add(&self, message: String, template: &str, state: &State) -> ProgressBar {
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        // Added before it draws, since it would else draw at the cursor.
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

/// A server's progress in one short line.
fn progress_text(progress: &callgate::caller::Progress<'_>) -> String {
    let done = progress.progress;
    let mut text = match progress.total {
        Some(total) if total > 0.0 && done.is_finite() => {
            format!("{:.0} %", (done / total).clamp(0.0, 1.0) * 100.0)
        }
        _ => format!("{done}"),
    };
    if let Some(message) = progress.message {
        let shown = harmless(message).replace(['\n', '\t'], " ");
        text.push_str("  ");
        match shown.char_indices().nth(SHOWN_MESSAGE) {
            None => text.push_str(&shown),
            Some((end, _)) => {
                text.push_str(shown.get(..end).unwrap_or_default());
                text.push('…');
            }
        }
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
        let summary = |denied, withheld, failed| {
            let state = State {
                running: 1,
                done: 7,
                denied,
                withheld,
                failed,
                ..State::default()
            };
            state.summary()
        };
        assert_eq!(summary(0, 0, 0), "1 running, 7 done");
        assert_eq!(summary(2, 0, 0), "1 running, 7 done (2 denied)");
        assert_eq!(summary(2, 0, 1), "1 running, 7 done (2 denied, 1 failed)");
        assert_eq!(summary(0, 3, 1), "1 running, 7 done (3 not made, 1 failed)");
    }
}
