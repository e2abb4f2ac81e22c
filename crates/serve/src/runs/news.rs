//! How far a run is, for those who wait for it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate::{Event, LogLevel};
use serde_json::Value;
use tokio::sync::broadcast;

/// News of servers that wait to be told. Of more, the oldest are not told: the
/// newer ones say more.
const ROOM: usize = 64;

/// Characters of a printed line that are shown.
const SHOWN: usize = 120;

/// How far one run is.
#[derive(Debug)]
pub(crate) struct News {
    told: broadcast::Sender<Told>,
    so_far: Mutex<SoFar>,
}

/// What servers tell whoever waits for a run.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// How far they are.
    Progress(Arc<str>),
    /// What they log.
    Log(Arc<Line>),
}

/// What a server logs.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) level: LogLevel,
    /// The server, and its part that says it.
    pub(crate) logger: String,
    pub(crate) data: Value,
}

/// What a run has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SoFar {
    /// Calls that it made.
    pub(crate) calls: u64,
    /// Those of them that have no outcome yet.
    pub(crate) under_way: u64,
    /// The function that was called last.
    pub(crate) last_call: String,
    /// Lines that it printed, as far as they were told.
    pub(crate) lines: u64,
    /// The last of them.
    pub(crate) last_line: String,
}

impl News {
    pub(crate) fn new() -> Self {
        Self {
            told: broadcast::Sender::new(ROOM),
            so_far: Mutex::default(),
        }
    }

    /// Hears what servers say of their work.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Told> {
        self.told.subscribe()
    }

    /// Tells what a server says of its work.
    pub(crate) fn tell(&self, line: String) {
        let _nobody = self.told.send(Told::Progress(line.into()));
    }

    /// Tells what a server logs.
    pub(crate) fn log(&self, line: Line) {
        let _nobody = self.told.send(Told::Log(Arc::new(line)));
    }

    /// Takes note of something that happened in the run.
    pub(crate) fn note(&self, event: Event<'_>) {
        let mut so_far = self.lock();
        match event {
            Event::CallStarted { function, .. } => {
                so_far.calls += 1;
                so_far.under_way += 1;
                so_far.last_call.clear();
                so_far.last_call.push_str(function);
            }
            Event::CallEnded { .. } => so_far.under_way = so_far.under_way.saturating_sub(1),
            Event::Printed { text } => {
                so_far.lines += text.matches('\n').count() as u64;
                if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                    so_far.last_line = line.chars().take(SHOWN).collect();
                }
            }
            // An event that is added later is no news here.
            _ => {}
        }
    }

    /// What the run has done so far.
    pub(crate) fn so_far(&self) -> SoFar {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for SoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calls {
            0 => f.write_str("no calls")?,
            1 => write!(f, "1 call, {}", self.last_call)?,
            calls => write!(f, "{calls} calls, the last {}", self.last_call)?,
        }
        if self.under_way > 0 {
            write!(f, "; {} under way", self.under_way)?;
        }
        if self.lines > 0 {
            let s = if self.lines == 1 { "" } else { "s" };
            write!(
                f,
                "; {} line{s} printed, the last: {}",
                self.lines, self.last_line
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use callgate::CallEnd;

    use super::*;

    #[test]
    fn so_far_is_said_in_a_line() {
        let news = News::new();
        assert_eq!(news.so_far().to_string(), "no calls");
        for call in 0..2 {
            news.note(started(call));
        }
        news.note(ended(0));
        // One too many is a bug elsewhere, and none here.
        assert_eq!(
            news.so_far().to_string(),
            "2 calls, the last a_b; 1 under way"
        );
        news.note(ended(1));
        news.note(ended(2));
        assert_eq!(news.so_far().to_string(), "2 calls, the last a_b");
        news.note(Event::Printed { text: "a\nb\n\n" });
        assert_eq!(
            news.so_far().to_string(),
            "2 calls, the last a_b; 3 lines printed, the last: b"
        );
    }

    fn started(call: u64) -> Event<'static> {
        Event::CallStarted {
            call,
            function: "a_b",
            server: "a",
            tool: "b",
        }
    }

    fn ended(call: u64) -> Event<'static> {
        Event::CallEnded {
            call,
            function: "a_b",
            end: CallEnd::Ok,
        }
    }
}
