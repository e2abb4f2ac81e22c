//! Progress and log of a run, for requests that wait for it.

use std::fmt;

use callgate::Event;
use callgate::faces::LogLevel;
use callgate_text::label;
use rmcp::model::ServerNotification;
use tokio::sync::{broadcast, watch};

use super::answerer::Answerer;

/// The limit of notices that wait to be sent. Further notices replace the oldest.
const MAX_NOTICES: usize = 64;
/// The limit of named subjects of open questions.
const MAX_SUBJECTS: usize = 5;
/// The limit of a printed line, in characters.
const MAX_LINE: usize = 120;

#[derive(Debug)]
pub(crate) struct RunProgress {
    notices: broadcast::Sender<Notice>,
    state: watch::Sender<RunState>,
}

/// A server's message about its work.
#[derive(Debug, Clone)]
pub(crate) enum Notice {
    Progress(String),
    /// For clients that want this level.
    Log(LogLevel, Box<ServerNotification>),
}

/// The work of a run so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunState {
    calls: u64,
    open_calls: u64,
    last_call: String,
    lines: u64,
    last_line: String,
    /// The subjects of questions to a person without an answer. With an answerer, the question is
    /// answered outside of the client.
    asking: Vec<(String, Option<Answerer>)>,
}

/// A question to a person. Dropping it ends the wait for the answer.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    progress: &'a RunProgress,
    subject: (String, Option<Answerer>),
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.progress.state.send_modify(|state| {
            if let Some(at) = state.asking.iter().position(|it| *it == self.subject) {
                state.asking.remove(at);
            }
        });
    }
}

impl RunProgress {
    pub(crate) fn new() -> Self {
        Self {
            notices: broadcast::Sender::new(MAX_NOTICES),
            state: watch::Sender::default(),
        }
    }

    /// Receives the notices that follow.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Passes a notice on to waiting requests.
    pub(crate) fn notify(&self, notice: Notice) {
        let _ = self.notices.send(notice);
    }

    /// Notes a question to the client's user about something.
    pub(crate) fn asking(&self, about: String) -> Asking<'_> {
        self.ask((about, None))
    }

    /// Notes a question that is answered outside of the client.
    pub(crate) fn asking_outside(&self, about: String, answerer: Answerer) -> Asking<'_> {
        self.ask((about, Some(answerer)))
    }

    /// Changes with each question to a person, and when it is answered.
    pub(crate) fn questions(&self) -> watch::Receiver<RunState> {
        self.state.subscribe()
    }

    fn ask(&self, subject: (String, Option<Answerer>)) -> Asking<'_> {
        self.state
            .send_modify(|state| state.asking.push(subject.clone()));
        Asking {
            progress: self,
            subject,
        }
    }

    /// Counts an event of the run.
    pub(crate) fn count(&self, event: Event<'_>) {
        self.state.send_if_modified(|state| {
            match event {
                Event::CallStarted { function, .. } => {
                    state.calls += 1;
                    state.open_calls += 1;
                    function.clone_into(&mut state.last_call);
                }
                Event::CallEnded { .. } => state.open_calls = state.open_calls.saturating_sub(1),
                Event::Printed { text, .. } => {
                    state.lines += text.matches('\n').count() as u64;
                    if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                        state.last_line = label(line, MAX_LINE);
                    }
                }
                // An event that is added later.
                _ => {}
            }
            false
        });
    }

    pub(crate) fn state(&self) -> RunState {
        self.state.borrow().clone()
    }
}

impl RunState {
    /// The people who can answer the open questions, if the client cannot.
    pub(crate) fn answerer(&self) -> Option<Answerer> {
        let answerers = self.asking.iter().map(|(_, answerer)| *answerer);
        answerers.reduce(|one, other| one.and(other)).flatten()
    }

    /// The subjects of the open questions.
    pub(crate) fn asked(&self) -> String {
        let mut subjects: Vec<&str> = Vec::new();
        for (about, _) in &self.asking {
            if !subjects.contains(&about.as_str()) {
                subjects.push(about);
            }
        }
        let more = subjects.len().saturating_sub(MAX_SUBJECTS);
        subjects.truncate(MAX_SUBJECTS);
        let more = (more > 0).then(|| format!(" and {more} more"));
        subjects.join(" and ") + &more.unwrap_or_default()
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.asking.is_empty() {
            let about = self.asked();
            let advice = self.answerer().map_or("tell the user", Answerer::advice);
            write!(f, "waiting for a person's answer about {about}: {advice}; ")?;
        }
        match self.calls {
            0 => f.write_str("no calls")?,
            1 => write!(f, "1 call, {}", self.last_call)?,
            calls => write!(f, "{calls} calls, the last {}", self.last_call)?,
        }
        if self.open_calls > 0 {
            write!(f, "; {} in progress", self.open_calls)?;
        }
        if self.lines > 0 {
            let s = if self.lines == 1 { "" } else { "s" };
            let (lines, last) = (self.lines, &self.last_line);
            write!(f, "; {lines} line{s} printed, the last: {last}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use callgate::CallEnd;

    use super::*;

    #[test]
    fn the_state_is_one_line() {
        let progress = RunProgress::new();
        let started = |call| Event::CallStarted {
            call,
            function: "a_b",
            server: "a",
            tool: "b",
        };
        let ended = |call| Event::CallEnded {
            call,
            function: "a_b",
            end: CallEnd::Ok,
        };
        assert_eq!(progress.state().to_string(), "no calls");
        for event in [started(0), started(1), ended(0)] {
            progress.count(event);
        }
        let under_way = "2 calls, the last a_b; 1 in progress";
        assert_eq!(progress.state().to_string(), under_way);
        let asked = progress.asking("a_b (line 2)".to_owned());
        let other = progress.asking("a question of server \"c\"".to_owned());
        assert_eq!(
            progress.state().to_string(),
            format!(
                "waiting for a person's answer about a_b (line 2) and a question of server \"c\": \
                 tell the user; {under_way}"
            )
        );
        drop((asked, other));
        let by_form = progress.asking("e_f".to_owned());
        let outside = progress.asking_outside("g_h (line 7)".to_owned(), Answerer::Terminal);
        assert_eq!(progress.state().answerer(), None);
        drop(by_form);
        assert_eq!(progress.state().answerer(), Some(Answerer::Terminal));
        assert_eq!(
            progress.state().to_string(),
            format!(
                "waiting for a person's answer about g_h (line 7): tell the user to run `callgate \
                 questions` in a terminal; {under_way}"
            )
        );
        drop(outside);
        assert_eq!(progress.state().answerer(), None);
        let (text, is_error) = ("a\nb\n\n", false);
        for event in [ended(1), ended(2), Event::Printed { text, is_error }] {
            progress.count(event);
        }
        let printed = "2 calls, the last a_b; 3 lines printed, the last: b";
        assert_eq!(progress.state().to_string(), printed);
    }
}
