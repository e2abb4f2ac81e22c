//! `callgate questions`: lists the open questions of all runs, and answers them at the terminal.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use callgate::Answer;
use callgate::faces::Shown;
use callgate::faces::asking::{RunContext, reply_record};
use callgate::faces::store::{
    Access, QuestionFilter, QuestionRecord, QuestionState, Settled, Store, StoreError,
    StoreErrorKind,
};
use callgate::question::Reply;
use callgate_text::{harmless, label, quoted, shown_duration, text_width};
use jiff::Timestamp;

use crate::args::QuestionsArgs;
use crate::ask::{self, Said, person, said};
use crate::exit::{INTERRUPTED, USAGE};
use crate::print;
use crate::setup::{self, Sources};
use crate::terminal::{Conversation, is_attended};

/// Time between two looks at the store.
const INTERVAL: Duration = Duration::from_millis(250);
const ALL: Access<'_> = Access::All;
/// Characters shown of a name, or of a call.
const SHOWN: usize = 300;

/// Runs the command, and returns the exit code.
pub async fn execute(sources: &Sources, args: QuestionsArgs) -> anyhow::Result<u8> {
    let config = setup::configuration(sources).await?;
    let Some(store) = setup::store(config.as_ref()) else {
        bail!("there is no store of questions; they are answered where their run asks");
    };
    let store = &*store;
    let cancel = setup::cancel_on_signal()?;
    // Input from a program is no person's answer.
    let can_answer = io::stdin().is_terminal() && is_attended();
    let mut seen = HashSet::new();
    let mut code = 0;
    for look in 0_u64.. {
        let mut open = match open_questions(store) {
            // A later look sees them.
            Err(error) if args.watch && error.kind() == StoreErrorKind::Locked => Vec::new(),
            open => open?,
        };
        open.retain(|id| seen.insert(id.clone()));
        if args.json && !args.watch {
            let open: Result<Vec<_>, _> = open.iter().map(|id| store.question(ALL, id)).collect();
            print::json(&open?)?;
            return Ok(0);
        }
        if look == 0 && open.is_empty() && !args.json {
            print::err("no question is open\n");
        }
        if !args.json && !can_answer && !open.is_empty() {
            code = USAGE;
        }
        for id in &open {
            let question = store.question(ALL, id)?;
            if question.state != QuestionState::Open {
                // An answer to a different question covers it.
            } else if args.json {
                print::out(&format!("{}\n", serde_json::to_string(&question)?))?;
            } else if can_answer {
                let is_over = tokio::select! {
                    handled = handle(store, &question) => !handled?,
                    () = cancel.cancelled() => true,
                };
                if is_over {
                    return Ok(INTERRUPTED);
                }
            } else {
                let texts = question.texts.clone().unwrap_or_default();
                let rows = laid_out(&texts.short, None);
                let text = format!("{}{rows}\n", heading(store, &question));
                print::out(&text)?;
            }
        }
        if !args.watch {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = cancel.cancelled() => return Ok(INTERRUPTED),
        }
        if print::is_out_closed() {
            break;
        }
    }
    if code == USAGE {
        print::note("answers are given at a terminal: run `callgate questions` in one");
    }
    Ok(code)
}

/// The ids of the open questions, the oldest first, without those of processes that have ended.
fn open_questions(store: &dyn Store) -> Result<Vec<String>, StoreError> {
    tidy(store)?;
    let mut filter = QuestionFilter {
        state: Some(QuestionState::Open),
        ..QuestionFilter::default()
    };
    let mut all = Vec::new();
    loop {
        let page = store.questions(ALL, &filter)?;
        all.extend(page.items.into_iter().map(|question| question.id));
        if page.next.is_none() {
            return Ok(all);
        }
        filter.after = page.next;
    }
}

/// Closes the questions of processes that have ended, and those without an answer in time.
fn tidy(store: &dyn Store) -> Result<(), StoreError> {
    let now = Timestamp::now();
    store.close_lost(now)?;
    store.expire_questions(ALL, now)?;
    Ok(())
}

/// Asks the person about one question, and answers it in the store. False if the terminal has ended.
async fn handle(store: &dyn Store, question: &QuestionRecord) -> anyhow::Result<bool> {
    let said = tokio::select! {
        said = ask(store, question) => said?,
        closed = until_closed(store, question) => {
            print::err(&format!("{}\n", outcome(&closed?)));
            return Ok(true);
        }
    };
    let reply = match said {
        Said::Reply(reply) => reply,
        Said::Skip => return Ok(true),
        Said::Ended => return Ok(false),
    };
    let covers_others = !matches!(reply.answer, Answer::Once | Answer::Deny);
    // If there was an answer before, it shows that one.
    let settled = answer(store, question, reply)?;
    print::err(&format!("{}\n", outcome(&settled.question)));
    if covers_others {
        // The process of the run closes the questions that the answer covers.
        tokio::time::sleep(2 * INTERVAL).await;
    }
    Ok(true)
}

/// Shows a question, and asks until there is an answer.
async fn ask(store: &dyn Store, question: &QuestionRecord) -> io::Result<Said> {
    let texts = question.texts.clone().unwrap_or_default();
    let text = |extent, columns| match extent {
        Shown::Whole => laid_out(&texts.whole, columns),
        _ => heading(store, question) + &laid_out(&texts.short, columns),
    };
    let mut conversation = Conversation::begin().await?;
    ask::ask(&mut conversation, &question.function, &texts, true, text).await
}

/// Waits until a question is not open any more.
async fn until_closed(
    store: &dyn Store,
    question: &QuestionRecord,
) -> Result<QuestionRecord, StoreError> {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let current = tidy(store).and_then(|()| store.question(ALL, &question.id));
        match current {
            Ok(current) if current.state != QuestionState::Open => return Ok(current),
            Err(error) if error.kind() != StoreErrorKind::Locked => return Err(error),
            _ => {}
        }
    }
}

/// Answers a question in the store, unless it was answered before.
fn answer(
    store: &dyn Store,
    question: &QuestionRecord,
    mut reply: Reply,
) -> anyhow::Result<Settled> {
    reply.by = Some(person());
    reply.via = Some("questions".to_owned());
    let run = RunContext {
        id: question.run.clone(),
        user: question.user.clone(),
        ..RunContext::default()
    };
    let answer = reply_record(store, &run, &reply)?.context("this answer has no choice")?;
    let access = Access::User(&question.user);
    Ok(store.answer_question(access, &question.id, &answer)?)
}

/// The line above a question: its run, and its times.
fn heading(store: &dyn Store, question: &QuestionRecord) -> String {
    let mut text = format!("question of run {}", question.run);
    // The record of the run may lag.
    if let Ok(run) = store.run(ALL, &question.run) {
        let client = run.client.map(|client| format!(" of {client}"));
        let folder = run.configuration.folder.map(|it| format!(" in {it}"));
        text += &[client, folder].map(Option::unwrap_or_default).concat();
    }
    if !question.user.is_empty() {
        text += &format!(" for {}", question.user);
    }
    let now = Timestamp::now();
    let asked = span(question.asked, now);
    let left = span(now, question.expires);
    label(
        &format!("{text}, asked {asked} ago, expires in {left}"),
        SHOWN,
    ) + "\n"
}

/// Rows that were made without a width, laid out for a number of columns.
fn laid_out(text: &str, columns: Option<usize>) -> String {
    let mut out = String::new();
    for row in harmless(text).lines() {
        match row.strip_prefix("│ ") {
            Some(foreign) => out += &quoted(foreign, columns),
            None if columns.is_some_and(|columns| text_width(row) > columns) => {
                // It has a long name, which must not begin a row.
                out += &quoted(row.trim_start_matches(['┌', '├', ' ']), columns);
            }
            None => {
                out += row;
                out.push('\n');
            }
        }
    }
    out
}

/// The outcome of a question that is not open, in words.
fn outcome(question: &QuestionRecord) -> String {
    let closed = question.closed.unwrap_or(question.expires);
    let ago = format!("{} ago", span(closed, Timestamp::now()));
    let function = &question.function;
    let text = match (&question.answer, question.state) {
        (Some(answer), _) => {
            let place = match answer.via.as_str() {
                "terminal" => format!("at the terminal of run {}", question.run),
                "client" => format!("in the client of run {}", question.run),
                "questions" => "in `callgate questions`".to_owned(),
                via if via.starts_with("question ") => format!("in the {via}"),
                via => format!("by {via}"),
            };
            let said = match &answer.edited {
                Some(_) => "allowed once, with other arguments",
                None => said(answer.choice),
            };
            let by = &answer.by;
            format!("{function}: answered by {by} {place}, {ago}: {said}")
        }
        (None, QuestionState::Expired) => {
            format!("{function}: the question expired {ago}; the call was denied")
        }
        (None, _) => {
            let reason = question.withdrawn.as_deref().unwrap_or_default();
            format!("{function}: the question was withdrawn {ago}: {reason}")
        }
    };
    label(&text, usize::MAX)
}

/// The time between two times, in whole seconds.
fn span(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs();
    shown_duration(Duration::from_secs(seconds.try_into().unwrap_or(0)))
}
