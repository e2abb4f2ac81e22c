//! Questions about calls at the terminal.

mod beforehand;
mod edit;
mod layout;
mod prompt;

use std::env::var;
use std::sync::Arc;

use callgate::config::Config;
use callgate::faces::asking::{Asking, RecordedAsker, RunContext, Way, question_texts, record_way};
use callgate::faces::store::Recorder;
use callgate::faces::{OneAtATime, call_text, question_text};
use callgate::question::{GrantStoreError, Reply};
use callgate::{Answer, Asker, Question};
use callgate_text::label;
use futures::future::BoxFuture;

use crate::print;
use crate::terminal::{Conversation, is_attended};
use layout::summary;

pub use beforehand::choose;
pub use layout::said;
pub use prompt::{Said, ask};

/// Asks on the controlling terminal, because standard input may be the script.
pub struct TerminalAsker;

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let reply = answer(&question).await;
            let mut reply = reply.unwrap_or_else(|_| Answer::Failed.into());
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
        // The call must not wait for a different question, which may be at the terminal.
        print::err(&(label(&text, usize::MAX) + "\n"));
        Box::pin(std::future::ready(()))
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

async fn answer(question: &Question) -> std::io::Result<Reply> {
    let mut conversation = Conversation::begin().await?;
    let text = |shown, columns| question_text(question, shown, columns);
    let (function, texts) = (&question.function, question_texts(question));
    let said = ask(&mut conversation, function, &texts, false, text).await?;
    let Said::Reply(reply) = said else {
        // The person has ended the input (Ctrl-D), or the terminal has ended.
        let ended = if is_attended() {
            Answer::Deny
        } else {
            Answer::Failed
        };
        return Ok(ended.into());
    };
    // The answer counts even if the terminal fails now.
    let _ = conversation
        .shrink(|columns| summary(&call_text(question), reply.answer, columns))
        .await;
    Ok(reply)
}
