//! Signs of life on standard error: a live line at a terminal, which is removed at the end, else
//! one line that stays.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr};
use std::pin::pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use callgate::Event;
use callgate_text::label;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::print;

/// Names in the line.
const MAX_NAMES: usize = 8;
/// Characters of a name or of a server's progress message.
const MAX_LABEL: usize = 60;

/// Time until work without an event has a live line, and between looks at it.
const LIVE_AFTER: Duration = Duration::from_secs(1);
/// Time until work has a line that stays, where a live one cannot be drawn.
const STATIC_AFTER: Duration = Duration::from_secs(5);

static LIVE_LINE: LazyLock<Mutex<LiveLine>> = LazyLock::new(Mutex::default);

/// True if standard error is a terminal that can draw a line over.
static IS_DRAWN: LazyLock<bool> = LazyLock::new(|| {
    stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
});

#[derive(Default)]
struct LiveLine {
    /// The owner of the line, which can hide it.
    lines: MultiProgress,
    line: Option<ProgressBar>,
    /// True during a question.
    is_held: bool,
    /// When the work under way began.
    began: Option<Instant>,
    /// True once the state of that work is printed.
    is_printed: bool,
    /// The servers that have not started yet, in words.
    starting: String,
    /// The functions of the calls under way.
    running: BTreeMap<u64, String>,
    done: u64,
    /// The last progress message of a server.
    progress: String,
}

impl LiveLine {
    fn text(&self) -> String {
        if self.running.is_empty() && !self.starting.is_empty() {
            return self.starting.clone();
        }
        let names = self.running.values().take(MAX_NAMES);
        let names: Vec<&str> = names.map(String::as_str).collect();
        let mut text = match self.running.len() {
            0 => "running".to_owned(),
            count => format!("{count} running ({})", names.join(", ")),
        };
        if self.done > 0 || !names.is_empty() {
            text += &format!(", {} done", self.done);
        }
        text += &format!("  {}", self.progress);
        text.trim_end().to_owned()
    }

    /// The state in words, for a line that stays.
    fn state(&self) -> String {
        match self.done {
            _ if !self.starting.is_empty() => self.starting.clone(),
            0 => "running".to_owned(),
            1 => "running: 1 call done".to_owned(),
            done => format!("running: {done} calls done"),
        }
    }

    /// Shows the line if nothing else did, or where it cannot be drawn prints the state once.
    fn sign(&mut self) {
        let elapsed = self.began.map(|began| began.elapsed());
        if *IS_DRAWN && self.line.is_none() {
            self.show();
        } else if !*IS_DRAWN && !self.is_held && !self.is_printed && elapsed >= Some(STATIC_AFTER) {
            self.is_printed = true;
            let line = format!("still {}\n", self.state());
            // The reader of a pipe may be slow, and the run does not wait for it.
            drop(tokio::task::spawn_blocking(move || print::err(&line)));
        }
    }

    fn show(&mut self) {
        if !*IS_DRAWN || self.lines.is_hidden() {
            return;
        }
        let text = self.text();
        let elapsed = self.began.map(|began| began.elapsed());
        let line = self.line.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}");
            let line = self.lines.add(ProgressBar::new_spinner());
            let line = line.with_elapsed(elapsed.unwrap_or_default());
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.enable_steady_tick(Duration::from_millis(120));
            line
        });
        line.set_message(text);
    }
}

/// Awaits work, with a sign of life if it takes long.
pub async fn alive<T>(work: impl Future<Output = T>) -> T {
    {
        let mut live = LIVE_LINE.lock();
        live.began = Some(Instant::now());
        live.is_printed = false;
    }
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(LIVE_AFTER, work.as_mut()).await {
            Ok(done) => return done,
            Err(_elapsed) => LIVE_LINE.lock().sign(),
        }
    }
}

/// Shows the servers that have not started yet.
pub fn starting(servers: &[String]) {
    let named = servers.iter().take(MAX_NAMES);
    let named: Vec<String> = named.map(|it| label(it, MAX_LABEL)).collect();
    let mut live = LIVE_LINE.lock();
    live.starting = match servers.len() {
        0 => String::new(),
        count if count > MAX_NAMES => {
            let more = count - MAX_NAMES;
            format!("starting {} and {more} more", named.join(", "))
        }
        _ => format!("starting {}", named.join(", ")),
    };
    if !servers.is_empty() || live.line.is_some() {
        live.show();
    }
}

/// Shows the start and the end of a call.
pub fn on_event(event: Event<'_>) {
    let mut live = LIVE_LINE.lock();
    match event {
        Event::CallStarted { call, function, .. } => {
            live.running.insert(call, function.to_owned());
        }
        Event::CallEnded { call, .. } => {
            live.running.remove(&call);
            live.progress.clear();
            live.done += 1;
        }
        _ => return,
    }
    live.show();
}

/// Shows a call's progress.
pub fn on_progress(progress: callgate::faces::Progress<'_>) {
    let mut live = LIVE_LINE.lock();
    let tool = label(progress.tool, MAX_LABEL);
    live.progress = format!("{tool}: {}", progress_text(&progress));
    live.show();
}

/// Hides the line during a write.
pub fn suspend<T>(write: impl FnOnce() -> T) -> T {
    // The lock is released first: the run must not wait for the terminal.
    let lines = LIVE_LINE.lock().lines.clone();
    lines.suspend(write)
}

/// Hides the line during a question.
pub fn hide() {
    let mut live = LIVE_LINE.lock();
    live.is_held = true;
    let _ = live.lines.clear();
    live.lines.set_draw_target(ProgressDrawTarget::hidden());
}

/// Shows the line again.
pub fn unhide() {
    let mut live = LIVE_LINE.lock();
    live.is_held = false;
    live.lines.set_draw_target(ProgressDrawTarget::stderr());
}

/// Removes the line.
pub fn clear() {
    let mut live = LIVE_LINE.lock();
    live.starting.clear();
    if let Some(line) = live.line.take() {
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
    fn state_counts_calls_or_names_servers() {
        let starting = "starting crm, wiki";
        for (done, starting, line, stays) in [
            (0, "", "running", "running"),
            (1, "", "running, 1 done", "running: 1 call done"),
            (40, "", "running, 40 done", "running: 40 calls done"),
            (2, starting, starting, starting),
        ] {
            let mut live = LiveLine {
                done,
                starting: starting.to_owned(),
                ..LiveLine::default()
            };
            assert_eq!((live.text().as_str(), live.state().as_str()), (line, stays));
            live.running.insert(3, "git_log".to_owned());
            let running = format!("1 running (git_log), {done} done");
            assert_eq!(live.text(), running);
        }
    }
}
