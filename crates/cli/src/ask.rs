//! Questions about calls at the terminal.

mod beforehand;
mod layout;

use std::env::var;
use std::sync::Arc;

use callgate::config::Config;
use callgate::faces::asking::{Asking, RecordedAsker, RunContext, Way, record_way};
use callgate::faces::store::Recorder;
use callgate::faces::{OneAtATime, Shown, answer_text, call_text, question_text};
use callgate::question::{GrantStoreError, Reply};
use callgate::{Answer, Asker, Question};
use callgate_text::label;
use futures::future::BoxFuture;

use crate::print;
use crate::terminal::{Conversation, is_attended};
use layout::summary;

pub use beforehand::choose;
pub use layout::{capped, highlighted};

/// The keys and words of answers, in the order of the prompt.
pub const KEYS: [(&str, &str, Answer); 5] = [
    ("y", "yes", Answer::Once),
    ("r", "run", Answer::Run),
    ("a", "always", Answer::Always),
    ("x", "never", Answer::DenyRun),
    ("n", "no", Answer::Deny),
];

/// Asks on the controlling terminal, because standard input may be the script.
pub struct TerminalAsker;

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let answer = answer(&question).await.unwrap_or(Answer::Failed);
            let mut reply = Reply::from(answer);
            reply.by = Some(person());
            reply
        })
    }

    fn kept<'a>(
        &'a self,
        function: &'a str,
        place: &'a str,
        kept: Result<(), GrantStoreError>,
    ) -> BoxFuture<'a, ()> {
        let text = match kept {
            Ok(()) => format!("wrote {function:?} to permissions.allow of {place}"),
            Err(reason) => format!("warning: {function} is allowed in this run only: {reason}"),
        };
        Box::pin(async move {
            // The terminal may have ended.
            if let Ok(mut conversation) = Conversation::begin().await {
                let text = label(&text, usize::MAX) + "\n";
                let _ = conversation.show(&text).await;
            }
        })
    }
}

/// The asker of one run: by the ways of the configuration, or those of a terminal. `None` if no way
/// can be used, so that calls that need approval are denied.
pub async fn recorded(
    config: Option<&Config>,
    recorder: Option<&Arc<Recorder>>,
    run: &str,
) -> Option<Arc<dyn Asker>> {
    let options = config.map(|config| config.asking.clone());
    let options = options.unwrap_or_default();
    let is_attended = is_attended();
    let usual: &[Way] = if is_attended {
        &[Way::Terminal, Way::Record]
    } else {
        &[]
    };
    let chosen = options.ways.clone().unwrap_or_else(|| usual.to_vec());
    let opened = match recorder.filter(|_| chosen.contains(&Way::Record)) {
        Some(recorder) => recorder.opened().await,
        None => None,
    };
    let asking = Asking::new(opened, options).on_elsewhere(|function, reply| {
        let by = reply.by.as_deref().unwrap_or("a different process");
        let (function, by) = (label(function, usize::MAX), label(by, usize::MAX));
        let said = if reply.answer.allows() { "yes" } else { "no" };
        print::err(&format!("{function}: answered elsewhere by {by}: {said}\n"));
    });
    let run = RunContext {
        id: run.to_owned(),
        ..RunContext::default()
    };
    let mut ways: Vec<(&'static str, Arc<dyn Asker>)> = Vec::new();
    for way in chosen {
        match way {
            Way::Terminal if is_attended => {
                let terminal = OneAtATime::new(Arc::new(TerminalAsker));
                ways.push((way.name(), Arc::new(terminal)));
            }
            Way::Record if asking.store().is_some() => ways.push(record_way()),
            Way::Webhook => ways.extend(asking.webhook_way(run.clone())),
            // Clients are of `serve` alone.
            _ => {}
        }
    }
    if ways.is_empty() {
        return None;
    }
    let asker: Arc<dyn Asker> = RecordedAsker::new(Arc::new(asking), run, ways);
    Some(asker)
}

/// The name of the person at the terminal, for records.
pub fn person() -> String {
    let mut named = ["USER", "LOGNAME"]
        .into_iter()
        .filter_map(|it| var(it).ok());
    let name = named.find(|name| !name.is_empty());
    name.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()))
}

/// The prompt for these choices: keys with their effects.
pub fn prompt(choices: &[(&str, String)]) -> String {
    let choices = choices.iter();
    let choices: Vec<String> = choices
        .map(|(key, effect)| format!("[{key}] {effect}"))
        .collect();
    format!("└ allow? {}: ", choices.join("  "))
}

async fn answer(question: &Question) -> std::io::Result<Answer> {
    let offered = question.answers();
    let offered = KEYS.iter().filter(|(.., answer)| offered.contains(answer));
    let mut choices = Vec::new();
    for (key, _, answer) in offered.clone() {
        if *answer == Answer::Deny {
            choices.push(("w", "show whole".to_owned()));
        }
        choices.push((*key, answer_text(question, *answer)));
    }
    let prompt = prompt(&choices);
    let keys: Vec<&str> = choices.iter().map(|(key, _)| *key).collect();
    let (function, script) = (question.function.as_str(), question.script);
    let mut conversation = Conversation::begin().await?;
    let text = question_text(question, Shown::Short, conversation.columns());
    conversation.begin_row().await?;
    conversation
        .show(&highlighted(&text, function, script))
        .await?;
    let read = |typed: &str| {
        let mut offered = offered.clone();
        let named = offered.find(|(key, word, _)| typed == *key || typed == *word);
        named.map(|(.., answer)| *answer)
    };
    let whole = |columns| {
        let text = question_text(question, Shown::Whole, columns);
        highlighted(&capped(&text, columns), function, script)
    };
    let answer = conversation
        .choose_or_show(&prompt, &keys, read, whole)
        .await?;
    let Some(answer) = answer else {
        // The person has ended the input (Ctrl-D), or the terminal has ended.
        let ended = if is_attended() {
            Answer::Deny
        } else {
            Answer::Failed
        };
        return Ok(ended);
    };
    // The answer counts even if the terminal fails now.
    let _ = conversation
        .shrink(|columns| summary(&call_text(question), answer, columns))
        .await;
    Ok(answer)
}
