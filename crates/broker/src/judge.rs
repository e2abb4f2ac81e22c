//! Whether a call may go: by the rules of its run, by what was granted in it,
//! and by asking.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use callgate_policy::{Authority, CallFacts, Hints, Rules, Verdict};
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::ask::{Answer, Asker, Question};
use crate::ruling::Ruling;
use crate::target::Target;

/// Decides the calls of one run.
pub(crate) struct Judge {
    authority: Authority,
    asker: Arc<dyn Asker>,
    /// The functions granted for this run. Held while somebody is asked, so
    /// that questions come one at a time and an answer serves those who wait.
    granted: Mutex<HashSet<String>>,
}

impl Judge {
    pub(crate) fn new(rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Self {
        Self {
            authority: Authority::new(rules, Arc::default()),
            asker,
            granted: Mutex::default(),
        }
    }

    /// Decides one call, if need be by asking. `trusted` says whether the
    /// target's server is marked so; `arguments` are those that will be sent.
    pub(crate) async fn decide(&self, target: &Target, trusted: bool, arguments: &str) -> Ruling {
        let parsed = serde_json::from_str(arguments).ok();
        let decision = self.authority.take(&CallFacts {
            function: &target.function,
            server: &target.server,
            tool: &target.tool,
            hints: Hints {
                read_only: Some(target.read_only_hint),
                ..Hints::default()
            },
            trusted,
            definition: None,
            arguments: parsed.as_ref(),
            now: Timestamp::now(),
        });
        if decision.verdict != Verdict::Ask {
            return Ruling {
                decision,
                answer: None,
            };
        }
        let mut granted = self.granted.lock().await;
        if granted.contains(&target.function) {
            return Ruling {
                decision,
                answer: Some(Answer::Run),
            };
        }
        let question = Question {
            function: target.function.clone(),
            server: target.server.clone(),
            tool: target.tool.clone(),
            arguments: arguments.to_owned(),
            decision: decision.clone(),
        };
        let answer = self.asker.ask(question).await;
        if answer == Answer::Run {
            granted.insert(target.function.clone());
        }
        Ruling {
            decision,
            answer: Some(answer),
        }
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}
