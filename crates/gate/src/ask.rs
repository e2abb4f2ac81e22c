//! Questions about calls, and their answers.

use std::sync::Arc;

use callgate_policy::flow::Finding;
use callgate_policy::{Because, Decision, Definition, DefinitionHash, Permission};
use futures::future::BoxFuture;
use serde::Serialize;

/// Answers questions about calls, such as a person at a terminal.
pub trait Asker: Send + Sync {
    /// Asks about one call. A run asks one question at a time. The future must not block its
    /// thread: the run and its limits wait on the same one. It is dropped when the run ends
    /// before there is an answer.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// The asker of hosts without one: every answer is [`Answer::NoAsker`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAsker;

impl Asker for NoAsker {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Answer::NoAsker))
    }
}

/// An asker made of an asynchronous function, for a host that answers itself.
///
/// ```
/// # use callgate_gate::{Answer, ask_with};
/// let asker = ask_with(|question| async move {
///     if question.function.starts_with("ticketing_") {
///         Answer::Once
///     } else {
///         Answer::NoAsker
///     }
/// });
/// ```
pub fn ask_with<F, A>(answer: F) -> Arc<dyn Asker>
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    struct AskWith<F>(F);
    impl<F, A> Asker for AskWith<F>
    where
        F: Fn(Question) -> A + Send + Sync,
        A: Future<Output = Answer> + Send + 'static,
    {
        fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
            Box::pin((self.0)(question))
        }
    }
    Arc::new(AskWith(answer))
}

/// A question about a call.
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
    pub title: Option<String>,
    /// The tool's description, in its server's words: whole, and perhaps misleading.
    pub description: Option<String>,
    /// The whole arguments, as JSON text. Written by a script: control characters are escaped,
    /// but it may be long and may mislead.
    pub arguments: String,
    /// The reason for the question.
    pub decision: Decision,
    /// The question of flow rules or a reviewer besides, where `decision` does not say it.
    pub besides: Option<Decision>,
    /// The call and the data that a yes allows.
    pub about: About,
    /// Other servers' data in the arguments, each with its longest piece. Data that the question
    /// is about comes first.
    pub flows: Vec<Finding>,
    /// True if a script makes the call, and perhaps others. Without one the call is the whole run.
    pub script: bool,
    /// The script's line that calls, if it is known. The worker says so: a worker that a script
    /// took over can name another line.
    pub line: Option<ScriptLine>,
    /// The run's calls so far, by function in the order of the first calls.
    pub done: Vec<Done>,
    /// The change of the tool's definition since it was last allowed, if that is the reason for
    /// the question.
    pub changed: Option<Changed>,
    /// Where [`Answer::Always`] would be kept; without a place it lasts for the session.
    pub keeps_in: Option<String>,
}

impl Question {
    /// The answers that differ in their effect, for a choice.
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

/// The call and the data that a yes allows. If it is neither of these, the question is about this
/// one call, as whenever a reviewer of the host asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct About {
    /// The call itself: longer answers than "once" are for later calls of the same function.
    /// Without this, the question is about the call's data alone.
    pub call: bool,
    /// The functions whose results' data needs permission. Any answer that is longer than "once" lets
    /// their data go to the called function for the rest of the run, and no longer.
    pub data: Vec<String>,
}

impl About {
    /// The answer, limited to the answers that this question offers.
    pub(crate) fn limit(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Run | Answer::Session | Answer::Always if self.call => answer,
            Answer::Run | Answer::Session | Answer::Always if self.data.is_empty() => Answer::Once,
            Answer::Run | Answer::Session | Answer::Always => Answer::Run,
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
    /// The line's text.
    pub text: String,
}

/// A run's calls of one function so far.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// The generated function name.
    pub function: String,
    /// Calls that were sent.
    pub sent: usize,
    /// Sent calls that ended without a result.
    pub failed: usize,
    /// Calls that were denied.
    pub denied: usize,
}

/// A tool that changed since it was allowed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Changed {
    /// Its definition then; `None` if only its hash was kept.
    pub before: Option<Arc<Definition>>,
    /// Its definition now.
    pub now: Option<Arc<Definition>>,
}

impl Changed {
    /// The change of a tool, if the decision says that a grant is void for it. `find` has the
    /// definitions that rules are bound to.
    pub fn of(
        decision: &Decision,
        now: Option<&Arc<Definition>>,
        find: impl FnOnce(&DefinitionHash) -> Option<Arc<Definition>>,
    ) -> Option<Self> {
        let Because::DefinitionChanged(permission) = &decision.because else {
            return None;
        };
        let before = match permission {
            Permission::Grant(grant, _) => grant.definition.clone(),
            Permission::Rule(rule) => rule.definition.as_ref().and_then(find),
        };
        Some(Self {
            before,
            now: now.cloned(),
        })
    }
}

/// An answer to a [`Question`]. [`Question::answers`] has those that differ in their effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// This call is allowed.
    Once,
    /// This call and every later one of the same function in this run is allowed, as long as the
    /// tool's definition stays the same. For data see [`About::data`].
    Run,
    /// As [`Answer::Run`], in every run of the session. Data is let through in this run alone.
    Session,
    /// As [`Answer::Session`], and it is kept for later ones where [`Question::keeps_in`] says.
    Always,
    /// This call is allowed by a standing answer, such as `--yes`.
    Standing,
    /// A person refused: this call is denied, and a waiting one with the same arguments. A host
    /// that decides without a person answers [`Answer::NoAsker`], or has a
    /// [`Reviewer`](crate::Reviewer).
    Deny,
    /// The question was closed without a choice: this call is denied, and a waiting one with the
    /// same arguments.
    Dismissed,
    /// The answer is not one of those that were offered, so the call is denied.
    Unclear,
    /// There is no asker, so the call is denied.
    NoAsker,
    /// There was no answer in time, so the call is denied.
    Late,
    /// The asker failed or went away before there was an answer, so the call is denied.
    Failed,
}

impl Answer {
    /// True if the call is allowed.
    pub fn allows(self) -> bool {
        matches!(
            self,
            Self::Once | Self::Run | Self::Session | Self::Always | Self::Standing
        )
    }
}
