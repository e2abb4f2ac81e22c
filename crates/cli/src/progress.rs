//! A live line on standard error while calls run, if it is a terminal. It does not stay at the end.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::{CallEnd, Event, present::label};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The most names in the line.
const SHOWN: usize = 8;
/// Characters of a server's progress message.
const SHOWN_MESSAGE: usize = 60;

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct State {
    /// Holds the line, and can hide it. Hidden if standard error is no terminal.
    lines: MultiProgress,
    line: Option<ProgressBar>,
    /// The functions of the calls under way.
    running: BTreeMap<u64, String>,
    done: u64,
    /// The calls without a result, by what became of them.
    without_result: BTreeMap<&'static str, u64>,
    /// The last progress that a server told.
    told: String,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn text(&self) -> String {
        let counted = self.without_result.iter();
        let counted: Vec<String> = counted
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        let running: Vec<&str> = self.running.values().map(String::as_str).collect();
        let names = running.get(..SHOWN).unwrap_or(&running).join(", ");
        let within = |text: &str| match text {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        let (running, names) = (running.len(), within(&names));
        let (done, counted) = (self.done, within(&counted.join(", ")));
        let told = &self.told;
        let text = format!("{running} running{names}, {done} done{counted}  {told}");
        text.trim_end().to_owned()
    }

    fn show(&mut self, text: String) {
        if self.lines.is_hidden() {
            return;
        }
        let line = self.line.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}");
            let line = self.lines.add(ProgressBar::new_spinner());
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.enable_steady_tick(Duration::from_millis(120));
            line
        });
        line.set_message(text);
    }
}

/// Shows which servers are awaited.
pub fn starting(servers: &[String]) {
    if servers.is_empty() {
        return;
    }
    let named = servers.iter().take(SHOWN);
    let named: Vec<String> = named.map(|it| label(it, SHOWN_MESSAGE)).collect();
    let mut text = format!("starting {}", named.join(", "));
    if servers.len() > SHOWN {
        text += &format!(" and {} more", servers.len() - SHOWN);
    }
    state().show(text);
}

/// Shows the start and the end of a call.
pub fn on_event(event: Event<'_>) {
    let mut state = state();
    match event {
        Event::CallStarted { call, function, .. } => {
            state.running.insert(call, function.to_owned());
        }
        Event::CallEnded { call, end, .. } => {
            state.running.remove(&call);
            state.told.clear();
            state.done += 1;
            let what = match end {
                CallEnd::Ok => None,
                CallEnd::Denied => Some("denied"),
                CallEnd::Withheld => Some("not made"),
                _ => Some("failed"),
            };
            if let Some(what) = what {
                *state.without_result.entry(what).or_default() += 1;
            }
        }
        _ => return,
    }
    let text = state.text();
    state.show(text);
}

/// Shows a call's progress.
pub fn on_progress(progress: callgate::caller::Progress<'_>) {
    let mut state = state();
    let tool = label(progress.tool, SHOWN_MESSAGE);
    state.told = format!("{tool}: {}", progress_text(&progress));
    let text = state.text();
    state.show(text);
}

/// Hides the line while `write` writes.
pub fn suspend<T>(write: impl FnOnce() -> T) -> T {
    // The run does not wait for the terminal.
    let lines = state().lines.clone();
    lines.suspend(write)
}

/// Hides the line during a question.
pub fn hide() {
    let state = state();
    let _ = state.lines.clear();
    state.lines.set_draw_target(ProgressDrawTarget::hidden());
}

/// Shows the line again.
pub fn unhide() {
    state().lines.set_draw_target(ProgressDrawTarget::stderr());
}

/// Removes the line.
pub fn clear() {
    if let Some(line) = state().line.take() {
        line.finish_and_clear();
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
        text += &format!("  {}", label(message, SHOWN_MESSAGE));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_result_are_counted_by_outcome() {
        let text = |without_result: &[(&'static str, u64)]| {
            let state = State {
                running: BTreeMap::from([(3, "git_log".to_owned())]),
                done: 7,
                without_result: without_result.iter().copied().collect(),
                ..State::default()
            };
            state.text()
        };
        assert_eq!(text(&[]), "1 running (git_log), 7 done");
        assert_eq!(
            text(&[("failed", 1), ("denied", 2)]),
            "1 running (git_log), 7 done (2 denied, 1 failed)"
        );
    }
}
