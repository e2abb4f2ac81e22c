//! Asking somebody whether a call may be made.

use std::sync::Arc;

use callgate_policy::flow::Finding;
use callgate_policy::{Because, Decision, Definition, DefinitionHash, Leave};
use futures::future::BoxFuture;
use serde::Serialize;

/// Somebody who can say yes or no to a call.
pub trait Asker: Send + Sync {
    /// Asks about one call. A run asks one question at a time. The future must
    /// not block its thread: the run and its limits wait on the same one. It is
    /// dropped when the run ends before there is an answer.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// The asker that denies: every question is answered with [`Answer::Nobody`].
/// It is the one of hosts that have none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

impl Asker for NobodyToAsk {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}

/// An asker made of an asynchronous function, for a host that answers itself.
///
/// ```
/// # use callgate_broker::{Answer, ask_with};
/// let asker = ask_with(|question| async move {
///     match question.function.starts_with("ticketing_") {
///         true => Answer::Once,
///         false => Answer::Deny,
///     }
/// });
/// ```
pub fn ask_with<F, A>(answer: F) -> Arc<dyn Asker>
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    Arc::new(With(answer))
}

struct With<F>(F);

impl<F, A> Asker for With<F>
where
    F: Fn(Question) -> A + Send + Sync,
    A: Future<Output = Answer> + Send + 'static,
{
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin((self.0)(question))
    }
}

/// A call somebody is asked about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The tool's name for people, in its server's words.
    pub title: Option<Arc<str>>,
    /// What the tool does, in its server's words: whole, and perhaps
    /// misleading.
    pub description: Option<Arc<str>>,
    /// The whole arguments, as JSON text. Written by a script: control
    /// characters are escaped, but it may be long and may mislead.
    pub arguments: String,
    /// Why it is asked.
    pub decision: Decision,
    /// What rules over flows or a reviewer ask besides, where `decision` does not say it.
    pub besides: Option<Decision>,
    /// What a yes is leave for.
    pub about: About,
    /// Other servers' data in the arguments, each with its longest piece: those first that are
    /// asked about.
    pub flows: Vec<Finding>,
    /// Whether a script makes the call, and perhaps others; without one it is all
    /// there is of its run.
    pub script: bool,
    /// Where the script calls, if that is known. The worker's word: a worker
    /// that a script took over can name another line.
    pub line: Option<ScriptLine>,
    /// What the run has called so far, by function in the order of the first calls: the first
    /// hundred.
    pub done: Vec<Done>,
    /// How many functions it has called besides those in `done`.
    pub more_done: usize,
    /// How the tool's definition changed since it was last allowed, if that is
    /// why it is asked.
    pub changed: Option<Changed>,
    /// Where [`Answer::Always`] would be kept; without a place it lasts for the
    /// session.
    pub keeps_in: Option<String>,
}

impl Question {
    /// The answers that differ in what they do, for whoever offers a choice.
    pub fn answers(&self) -> Vec<Answer> {
        let About { call, data, .. } = &self.about;
        let offered = [
            (Answer::Once, true),
            (Answer::Run, self.script && (*call || !data.is_empty())),
            (Answer::Session, *call),
            (Answer::Always, *call && self.keeps_in.is_some()),
            (Answer::Deny, true),
        ];
        let offered = offered.into_iter().filter(|(_, offered)| *offered);
        offered.map(|(answer, _)| answer).collect()
    }
}

/// What a yes is leave for. If it is for neither of these, only this one call is
/// asked about, as whenever a reviewer of the host's says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct About {
    /// The call itself: longer answers than "once" are for later calls of the same
    /// function. Without this, the call may be made, but for what it carries.
    pub call: bool,
    /// The functions whose data, that of their tools' results, needs leave to go where it
    /// would. Any answer that is longer than "once" lets data of theirs go to the function
    /// that is called for the rest of the run, and no longer.
    pub data: Vec<String>,
}

impl About {
    /// The answer, without what it cannot mean here.
    pub(crate) fn limit(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Run | Answer::Session | Answer::Always if !self.call => {
                match self.data.is_empty() {
                    true => Answer::Once,
                    false => Answer::Run,
                }
            }
            answer => answer,
        }
    }
}

/// A line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptLine {
    /// Counts from 1.
    pub number: u32,
    /// The line as its author wrote it; `None` if there is no such line.
    pub text: Option<String>,
}

/// What a run has done with one function so far.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// The generated function name.
    pub function: String,
    /// Calls that were sent.
    pub sent: usize,
    /// Those of them that ended without a result.
    pub failed: usize,
    /// Calls that were denied.
    pub denied: usize,
}

/// A tool that is not what it was when it was allowed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Changed {
    /// What it was; `None` if only its hash was kept.
    pub before: Option<Arc<Definition>>,
    /// What it is now.
    pub now: Option<Arc<Definition>>,
}

impl Changed {
    /// How a tool has changed, if a decision was that leave is void for that. `find` has what
    /// tools were that rules are for.
    pub fn of(
        decision: &Decision,
        now: Option<&Arc<Definition>>,
        find: impl FnOnce(&DefinitionHash) -> Option<Arc<Definition>>,
    ) -> Option<Self> {
        let Because::DefinitionChanged(leave) = &decision.because else {
            return None;
        };
        let before = match leave {
            Leave::Grant(grant, _) => grant.definition.clone(),
            Leave::Rule(rule) => rule.definition.as_ref().and_then(find),
            _ => None,
        };
        Some(Self {
            before,
            now: now.cloned(),
        })
    }
}

/// What somebody answers. Which of them differ in what they do is in
/// [`Question::answers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// This call may go.
    Once,
    /// This call and every later one of the same function in this run may go,
    /// as long as the tool's definition stays what it is; of data that is asked
    /// about, see [`About::data`].
    Run,
    /// As [`Answer::Run`], in every run of the session. Data is let through in this
    /// run alone.
    Session,
    /// As [`Answer::Session`], and it is kept for later ones where
    /// [`Question::keeps_in`] says.
    Always,
    /// This call may go, and nobody was asked: a standing answer, as `--yes` gives it.
    Standing,
    /// This call may not go, nor one with the same arguments that waits.
    Deny,
    /// There is nobody to ask, so the call may not go.
    Nobody,
    /// Somebody was asked and did not answer in time, so the call may not go.
    Late,
}

impl Answer {
    /// Whether the call may go.
    #[must_use]
    pub fn allows(self) -> bool {
        match self {
            Self::Once | Self::Run | Self::Session | Self::Always | Self::Standing => true,
            Self::Deny | Self::Nobody | Self::Late => false,
        }
    }
}
