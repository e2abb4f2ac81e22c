//! A live line on standard error during calls, if that is a terminal. It is removed at the end.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use callgate::{CallEnd, Event};
use callgate_text::label;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

/// Names in the line.
const MAX_NAMES: usize = 8;
/// Characters of a name or of a server's progress message.
const MAX_LABEL: usize = 60;

static LIVE_LINE: LazyLock<Mutex<LiveLine>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct LiveLine {
    /// The owner of the line, which can hide it. It is hidden without a terminal.
    lines: MultiProgress,
    line: Option<ProgressBar>,
    /// The functions of the calls under way.
    running: BTreeMap<u64, String>,
    done: u64,
    /// The number of calls without a result, by outcome.
    without_result: BTreeMap<&'static str, u64>,
    /// The last progress message of a server.
    progress: String,
}

impl LiveLine {
    fn text(&self) -> String {
        let counted = self.without_result.iter();
        let counted: Vec<String> = counted
            .map(|(outcome, count)| format!("{count} {outcome}"))
            .collect();
        let running: Vec<&str> = self.running.values().map(String::as_str).collect();
        let names = running.get(..MAX_NAMES).unwrap_or(&running).join(", ");
        let in_brackets = |text: &str| match text {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        let (running, names) = (running.len(), in_brackets(&names));
        let (done, counted) = (self.done, in_brackets(&counted.join(", ")));
        let progress = &self.progress;
        let text = format!("{running} running{names}, {done} done{counted}  {progress}");
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

/// Shows the servers that have not started yet.
pub fn starting(servers: &[String]) {
    if servers.is_empty() {
        return;
    }
    let named = servers.iter().take(MAX_NAMES);
    let named: Vec<String> = named.map(|it| label(it, MAX_LABEL)).collect();
    let mut text = format!("starting {}", named.join(", "));
    if servers.len() > MAX_NAMES {
        text += &format!(" and {} more", servers.len() - MAX_NAMES);
    }
    LIVE_LINE.lock().show(text);
}

/// Shows the start and the end of a call.
pub fn on_event(event: Event<'_>) {
    let mut live = LIVE_LINE.lock();
    match event {
        Event::CallStarted { call, function, .. } => {
            live.running.insert(call, function.to_owned());
        }
        Event::CallEnded { call, end, .. } => {
            live.running.remove(&call);
            live.progress.clear();
            live.done += 1;
            let outcome = match end {
                CallEnd::Ok => None,
                CallEnd::Denied => Some("denied"),
                CallEnd::Withheld => Some("not made"),
                _ => Some("failed"),
            };
            if let Some(outcome) = outcome {
                *live.without_result.entry(outcome).or_default() += 1;
            }
        }
        _ => return,
    }
    let text = live.text();
    live.show(text);
}

/// Shows a call's progress.
pub fn on_progress(progress: callgate::faces::Progress<'_>) {
    let mut live = LIVE_LINE.lock();
    let tool = label(progress.tool, MAX_LABEL);
    live.progress = format!("{tool}: {}", progress_text(&progress));
    let text = live.text();
    live.show(text);
}

/// Hides the line during a write.
pub fn suspend<T>(write: impl FnOnce() -> T) -> T {
    // The lock is released first: the run must not wait for the terminal.
    let lines = LIVE_LINE.lock().lines.clone();
    lines.suspend(write)
}

/// Hides the line during a question.
pub fn hide() {
    let live = LIVE_LINE.lock();
    let _ = live.lines.clear();
    live.lines.set_draw_target(ProgressDrawTarget::hidden());
}

/// Shows the line again.
pub fn unhide() {
    LIVE_LINE
        .lock()
        .lines
        .set_draw_target(ProgressDrawTarget::stderr());
}

/// Removes the line.
pub fn clear() {
    if let Some(line) = LIVE_LINE.lock().line.take() {
        line.finish_and_clear();
    }
}

/// A server's progress in a few words.
fn progress_text(progress: &callgate::faces::Progress<'_>) -> String {
    let done = progress.progress;
    let mut text = match progress.total {
        Some(total) if total > 0.0 && done.is_finite() => {
            format!("{:.0} %", (done / total).clamp(0.0, 1.0) * 100.0)
        }
        _ => format!("{done}"),
    };
    if let Some(message) = progress.message {
        text += &format!("  {}", label(message, MAX_LABEL));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_result_are_counted_by_outcome() {
        let text = |without_result: &[(&'static str, u64)]| {
            let live = LiveLine {
                running: BTreeMap::from([(3, "git_log".to_owned())]),
                done: 7,
                without_result: without_result.iter().copied().collect(),
                ..LiveLine::default()
            };
            live.text()
        };
        assert_eq!(text(&[]), "1 running (git_log), 7 done");
        assert_eq!(
            text(&[("failed", 1), ("denied", 2)]),
            "1 running (git_log), 7 done (2 denied, 1 failed)"
        );
    }
}
