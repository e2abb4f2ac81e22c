//! Questions about calls, and their answers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate_policy::flow::{Finding, FlowRecord};
use callgate_policy::{
    Because, Decision, Definition, DefinitionHash, Inapplicable, Permission, Verdict,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::grant_store::GrantStoreError;
use crate::ids::question_id;

/// The pause before a question that waited for its turn: the answer before it may cover its call.
const AFTER_ANSWER: Duration = Duration::from_millis(100);

/// Answers questions about calls, such as a person at a terminal.
pub trait Asker: Send + Sync {
    /// Asks about one call. A run asks about all calls that wait for approval at once; an asker
    /// that can show one question at a time makes the others wait. The future must not block its
    /// thread, which also runs the run and its limits. It is dropped without an answer when the run
    /// or the call ends first, and when the answer to a different question covers the call.
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply>;

    /// Learns if the grant of an [`Answer::Always`] for this function was kept in its place. By
    /// default it does nothing. The call waits for it.
    fn kept<'a>(
        &'a self,
        function: &'a str,
        place: &'a str,
        kept: Result<(), GrantStoreError>,
    ) -> BoxFuture<'a, ()> {
        let _ = (function, place, kept);
        Box::pin(std::future::ready(()))
    }
}

/// The asker of hosts without one: every answer is [`Answer::NoAsker`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAsker;

impl Asker for NoAsker {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(std::future::ready(Answer::NoAsker.into()))
    }
}

/// An asker that gets one question at a time; the others wait, in their order. A question whose
/// call is covered by an earlier answer is not asked.
pub struct OneAtATime {
    asker: Arc<dyn Asker>,
    turn: Mutex<()>,
}

impl OneAtATime {
    /// Asks this asker.
    pub fn new(asker: Arc<dyn Asker>) -> Self {
        Self {
            asker,
            turn: Mutex::default(),
        }
    }
}

impl Asker for OneAtATime {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let _turn = if let Ok(turn) = self.turn.try_lock() {
                turn
            } else {
                let turn = self.turn.lock().await;
                tokio::time::sleep(AFTER_ANSWER).await;
                turn
            };
            self.asker.ask(question).await
        })
    }

    fn kept<'a>(
        &'a self,
        function: &'a str,
        place: &'a str,
        kept: Result<(), GrantStoreError>,
    ) -> BoxFuture<'a, ()> {
        self.asker.kept(function, place, kept)
    }
}

/// A host that answers itself gives an asynchronous function.
///
/// ```
/// # use std::sync::Arc;
/// # use callgate_gate::{Answer, Asker, Question};
/// let asker: Arc<dyn Asker> = Arc::new(|question: Question| async move {
///     if question.function.starts_with("ticketing_") {
///         Answer::Once
///     } else {
///         Answer::NoAsker
///     }
/// });
/// ```
impl<F, A> Asker for F
where
    F: Fn(Question) -> A + Send + Sync,
    A: Future<Output: Into<Reply>> + Send + 'static,
{
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(self(question).map(Into::into))
    }
}

/// A question about a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The id in records and at other programs.
    #[doc(hidden)]
    pub id: String,
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The tool's name for people, in its server's words.
    pub title: Option<String>,
    /// The tool's whole description, in its server's words, which may mislead.
    pub description: Option<String>,
    /// The whole arguments, as JSON text. Written by a script: control characters are escaped,
    /// but it may be long and may mislead.
    pub arguments: String,
    /// The reason for the question.
    #[doc(hidden)]
    pub decision: Decision,
    /// The question of flow rules or a reviewer that an approval answers, too, if `decision` does
    /// not have it.
    #[doc(hidden)]
    pub also_asked: Option<Decision>,
    /// The call and the data that an approval allows.
    #[doc(hidden)]
    pub about: About,
    /// Other servers' data in the arguments, each with its longest piece. Data that the question
    /// is about comes first.
    #[doc(hidden)]
    pub flows: Vec<Finding>,
    /// True if a script makes the call. Without a script, the call is the whole run.
    pub script: bool,
    /// The script's line that calls, if it is known. The worker says it, and a compromised worker
    /// can name a wrong line.
    pub line: Option<ScriptLine>,
    /// The run's calls so far, by function in the order of the first calls.
    #[doc(hidden)]
    pub done: Vec<Done>,
    /// The change of the tool's definition since it was last allowed.
    #[doc(hidden)]
    pub changed: Option<Changed>,
    /// The place that keeps [`Answer::Always`]; without a place it lasts for the session.
    pub keeps_in: Option<String>,
    /// The answer to a different question, if it covers this call. It is set before the future of
    /// [`Asker::ask`] is dropped.
    #[doc(hidden)]
    pub covered_by: Arc<OnceLock<Reply>>,
}

impl Question {
    /// A question about a call without a script that no rule matches.
    #[doc(hidden)]
    pub fn of_call(server: &str, tool: &str, arguments: &str) -> Self {
        Self {
            id: question_id(),
            function: format!("{server}_{tool}"),
            server: server.to_owned(),
            tool: tool.to_owned(),
            title: None,
            description: None,
            arguments: arguments.to_owned(),
            decision: Decision::new(Verdict::Ask, Because::NoRule),
            also_asked: None,
            about: About {
                call: true,
                data: Vec::new(),
            },
            flows: Vec::new(),
            script: false,
            line: None,
            done: Vec::new(),
            changed: None,
            keeps_in: None,
            covered_by: Arc::default(),
        }
    }

    /// The reason for the question, such as the rule that asks.
    pub fn reason(&self) -> String {
        self.decision.to_string()
    }

    /// Other servers' data in the arguments. Data that the question is about comes first.
    pub fn flow_records(&self) -> Vec<FlowRecord> {
        self.flows.iter().map(Finding::record).collect()
    }

    /// The answers that differ in their effect, for a choice.
    pub fn answers(&self) -> Vec<Answer> {
        let About { call, data, .. } = &self.about;
        let offered = [
            (Answer::Once, true),
            (Answer::Run, self.script && (*call || !data.is_empty())),
            (Answer::Session, *call),
            (Answer::Always, *call && self.keeps_in.is_some()),
            (Answer::Deny, true),
            (Answer::DenyRun, self.script),
        ];
        let offered = offered.into_iter().filter(|(_, offered)| *offered);
        offered.map(|(answer, _)| answer).collect()
    }
}

/// The call and the data that an approval allows. If both are empty, the question is about this one
/// call, as always when a reviewer of the host asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct About {
    /// True if the question is about the call itself: then answers longer than "once" allow later
    /// calls of the same function. If false, the question is only about the call's data.
    pub call: bool,
    /// The functions whose results' data needs permission. Each answer longer than "once" lets
    /// their data go to the called function for the rest of this run.
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
    /// The line's number, from 1.
    pub number: u32,
    pub text: String,
}

/// A run's calls of one function so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// The change of a tool, if the decision says that a permission does not apply to its new
    /// definition. `find` has the definitions that rules are bound to.
    pub fn of(
        decision: &Decision,
        now: Option<&Arc<Definition>>,
        find: impl FnOnce(&DefinitionHash) -> Option<Arc<Definition>>,
    ) -> Option<Self> {
        let before = match &decision.because {
            Because::Inapplicable(Inapplicable::OtherDefinition, permission) => match permission {
                Permission::Grant(grant, _) => grant.definition.clone(),
                Permission::Rule(rule) => rule.definition.as_ref().and_then(find),
            },
            _ => return None,
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
    /// tool's definition stays the same. Data goes to the called function for the rest of this run only.
    Run,
    /// As [`Answer::Run`], in every run of the session. Data is allowed in this run only.
    Session,
    /// As [`Answer::Session`], and also in later sessions: [`Question::keeps_in`] has the place
    /// that keeps it.
    Always,
    /// This call is allowed by an answer given in advance, such as `--yes`.
    Standing,
    /// A person refused: this call is denied, and each waiting call with the same arguments. A host
    /// that decides without a person answers [`Answer::NoAsker`], or has a
    /// [`Reviewer`](crate::Reviewer).
    Deny,
    /// As [`Answer::Deny`], and later calls of the same function in this run are denied, too,
    /// where a question would be asked about them.
    DenyRun,
    /// The question was closed without a choice: this call is denied, and each waiting call with
    /// the same arguments.
    Dismissed,
    /// The answer was not among those offered, so the call is denied.
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

/// The reply to a [`Question`]: an answer, and its details.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// The arguments to send in place of the script's, as the JSON text of an object. Rules, flows
    /// and reviewers may still deny them. An answer with other arguments is for this call only.
    pub arguments: Option<String>,
    /// The reason for a refusal, in the words of the answering person or program. The script
    /// reads the first 500 characters.
    pub reason: Option<String>,
    /// The name of the answering person or program, if it is known.
    pub by: Option<String>,
    /// The way by which the answer came, such as `terminal`.
    pub via: Option<String>,
    /// The time from the display of the question to the answer, if it is known.
    #[doc(hidden)]
    pub took: Option<Duration>,
}

impl From<Answer> for Reply {
    /// A reply without details.
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            arguments: None,
            reason: None,
            by: None,
            via: None,
            took: None,
        }
    }
}
