//! `callgate questions`: lists the open questions of all runs, and answers them at the terminal.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use callgate::Answer;
use callgate::faces::asking::choice_of;
use callgate::faces::store::{
    Access, AnswerRecord, Body, Choice, QuestionFilter, QuestionRecord, QuestionState,
    QuestionTexts, Settled, Store, StoreError,
};
use callgate_text::{harmless, label, quoted, shown_duration, text_width};
use jiff::Timestamp;
use serde_json::Value;

use crate::args::QuestionsArgs;
use crate::ask::{KEYS, capped, highlighted, person, prompt};
use crate::exit::{INTERRUPTED, USAGE};
use crate::print;
use crate::setup::{self, Sources};
use crate::terminal::{Conversation, is_attended};

/// Time between two looks at the store.
const INTERVAL: Duration = Duration::from_millis(250);
/// Characters shown of a name, or of a call.
const SHOWN: usize = 300;
/// The limit of bytes of edited arguments.
const MAX_EDITED: u64 = 16 << 20;

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
        let mut open = open_questions(store)?;
        open.retain(|question| seen.insert(question.id.clone()));
        if args.json && !args.watch {
            print::json(&open)?;
        } else if look == 0 && open.is_empty() && !args.json {
            print::err("no question is open\n");
        }
        if !args.json && !can_answer && !open.is_empty() {
            code = USAGE;
        }
        for question in &open {
            if args.json {
                if args.watch {
                    print::out(&format!("{}\n", serde_json::to_string(question)?))?;
                }
            } else if can_answer {
                let is_over = tokio::select! {
                    handled = handle(store, question) => !handled?,
                    () = cancel.cancelled() => true,
                };
                if is_over {
                    return Ok(INTERRUPTED);
                }
            } else {
                let text = format!("{}{}\n", heading(store, question), shown(question, None));
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
    }
    if code == USAGE {
        print::note("answers are given at a terminal: run `callgate questions` in one");
    }
    Ok(code)
}

/// The open questions, the oldest first, without those of processes that have ended.
fn open_questions(store: &dyn Store) -> Result<Vec<QuestionRecord>, StoreError> {
    tidy(store)?;
    let mut filter = QuestionFilter {
        state: Some(QuestionState::Open),
        ..QuestionFilter::default()
    };
    let mut all = Vec::new();
    loop {
        let page = store.questions(Access::All, &filter)?;
        all.extend(page.items);
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
    store.expire_questions(Access::All, now)?;
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
    let said = match said {
        Said::Answer(said) => said,
        Said::Skip => return Ok(true),
        Said::Ended => return Ok(false),
    };
    // If there was an answer before, it shows that one.
    let settled = answer(store, question, &said)?;
    print::err(&format!("{}\n", outcome(&settled.question)));
    Ok(true)
}

/// The words of a person about a question.
enum Said {
    Answer(Words),
    Skip,
    /// The terminal has ended.
    Ended,
}

struct Words {
    answer: Answer,
    reason: Option<String>,
    edited: Option<String>,
}

/// Shows a question, and asks until there is an answer.
async fn ask(store: &dyn Store, question: &QuestionRecord) -> io::Result<Said> {
    let texts = question.texts.clone().unwrap_or_default();
    let offers = offered(&texts);
    let mut choices = Vec::new();
    for (key, effect, answer) in &offers {
        if *answer == Answer::Deny {
            if texts.arguments.is_some() {
                choices.push(("e", "this call with other arguments".to_owned()));
            }
            choices.push(("s", "skip".to_owned()));
            choices.push(("w", "show whole".to_owned()));
        }
        choices.push((*key, effect.clone()));
    }
    let prompt = harmless(&prompt(&choices));
    let mut conversation = Conversation::begin().await?;
    let columns = conversation.columns();
    conversation.begin_row().await?;
    let text = heading(store, question) + &shown(question, columns);
    let text = highlighted(&text, &question.function, texts.script);
    conversation.show(&text).await?;
    loop {
        let Some(line) = conversation.ask(&prompt).await? else {
            return Ok(Said::Ended);
        };
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (word, rest) = (word.to_lowercase(), rest.trim());
        let named = offers.iter().find(|(key, _, answer)| {
            let full = KEYS.iter().find(|(.., of)| of == answer);
            word == *key || full.is_some_and(|(_, full, _)| word == *full)
        });
        match (word.as_str(), named.map(|(.., answer)| *answer)) {
            ("s" | "skip", _) if rest.is_empty() => return Ok(Said::Skip),
            ("w" | "whole", _) if rest.is_empty() => {
                let whole = laid_out(&texts.whole, conversation.columns());
                let whole = capped(&whole, conversation.columns());
                let whole = highlighted(&whole, &question.function, texts.script);
                conversation.show(&whole).await?;
            }
            ("e" | "edit", _) if rest.is_empty() && texts.arguments.is_some() => {
                let now = texts.arguments.as_deref().unwrap_or_default();
                if let Some(edited) = edited(&mut conversation, now).await? {
                    return Ok(Said::Answer(Words {
                        answer: Answer::Once,
                        reason: None,
                        edited: Some(edited),
                    }));
                }
            }
            (_, Some(answer)) if rest.is_empty() || !answer.allows() => {
                let mut reason = Some(rest.to_owned());
                if rest.is_empty() && !answer.allows() {
                    let prompt = "└ reason, which the script reads (Enter for none): ";
                    reason = conversation.ask(prompt).await?;
                }
                let reason = reason.map(|reason| reason.trim().to_owned());
                return Ok(Said::Answer(Words {
                    answer,
                    reason: reason.filter(|reason| !reason.is_empty()),
                    edited: None,
                }));
            }
            _ => {
                let keys: Vec<&str> = choices.iter().map(|(key, _)| *key).collect();
                let keys = format!("├ type one of {}, then Enter\n", keys.join(", "));
                conversation.show(&keys).await?;
            }
        }
    }
}

/// The offered answers with their keys and effects, in the order of the terminal's prompt.
fn offered(texts: &QuestionTexts) -> Vec<(&'static str, String, Answer)> {
    let keys = KEYS.iter().filter_map(|(key, _, answer)| {
        let mut offers = texts.offers.iter();
        let offer = offers.find(|offer| Some(offer.choice) == choice_of(*answer))?;
        Some((*key, label(&offer.effect, SHOWN), *answer))
    });
    keys.collect()
}

/// Lets the person change the arguments in an editor. `None` if they are not to be sent.
async fn edited(conversation: &mut Conversation, arguments: &str) -> io::Result<Option<String>> {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
    let before: Value = serde_json::from_str(arguments)?;
    writeln!(file, "{}", serde_json::to_string_pretty(&before)?)?;
    // It blocks: the editor has the terminal until it ends.
    let mut command = Command::new("sh");
    command.args(["-c", "${VISUAL:-${EDITOR:-vi}} \"$1\"", "sh"]);
    if !command.arg(file.path()).status()?.success() {
        conversation.show("├ the editor failed\n").await?;
        return Ok(None);
    }
    let text = callgate_files::read_text(file.path(), MAX_EDITED)?;
    let value = match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => {
            conversation
                .show("├ the arguments must be an object\n")
                .await?;
            return Ok(None);
        }
        Err(error) => {
            let error = label(&error.to_string(), SHOWN);
            conversation.show(&format!("├ not JSON: {error}\n")).await?;
            return Ok(None);
        }
    };
    if value == before {
        conversation.show("├ the arguments are unchanged\n").await?;
        return Ok(None);
    }
    let rows = quoted(&value.to_string(), conversation.columns());
    conversation
        .show(&format!("├ the arguments instead:\n{rows}"))
        .await?;
    let agreed = conversation.agrees("send the call with them?").await?;
    Ok((agreed == Some(true)).then(|| text.trim().to_owned()))
}

/// Waits until a question is not open any more.
async fn until_closed(
    store: &dyn Store,
    question: &QuestionRecord,
) -> Result<QuestionRecord, StoreError> {
    loop {
        tokio::time::sleep(INTERVAL).await;
        tidy(store)?;
        let current = store.question(Access::All, &question.id)?;
        if current.state != QuestionState::Open {
            return Ok(current);
        }
    }
}

/// Answers a question in the store, unless it was answered before.
fn answer(store: &dyn Store, question: &QuestionRecord, words: &Words) -> anyhow::Result<Settled> {
    let mut answer = AnswerRecord::default();
    answer.choice = choice_of(words.answer).context("this answer has no choice")?;
    answer.reason.clone_from(&words.reason);
    if let Some(edited) = &words.edited {
        let hash = store.put_blob(&question.user, &question.run, edited.as_bytes())?;
        answer.edited = Some(Body {
            sha256: hash.clone(),
            bytes: edited.len() as u64,
            blob: Some(hash),
        });
    }
    answer.by = person();
    answer.via = "questions".to_owned();
    answer.at = Timestamp::now();
    let access = Access::User(&question.user);
    Ok(store.answer_question(access, &question.id, &answer)?)
}

/// The line above a question: its run, and its times.
fn heading(store: &dyn Store, question: &QuestionRecord) -> String {
    let mut text = format!("question of run {}", question.run);
    // The record of the run may lag.
    if let Ok(run) = store.run(Access::All, &question.run) {
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

/// A question in short, for a number of columns, with the rule that "always" writes.
fn shown(question: &QuestionRecord, columns: Option<usize>) -> String {
    let texts = question.texts.clone().unwrap_or_default();
    let mut text = laid_out(&texts.short, columns);
    let has_always = texts.offers.iter().any(|it| it.choice == Choice::Always);
    if let Some(place) = texts.keeps_in.filter(|_| has_always) {
        let place = label(&place, SHOWN);
        text += &format!("├ [a] adds to permissions.allow of {place}:\n");
        let rule = format!("{:?}, until its server changes the tool", question.function);
        text += &quoted(&rule, columns);
    }
    text
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
                via => format!("by {via}"),
            };
            let said = match answer.choice {
                Choice::Once if answer.edited.is_some() => "allowed once, with other arguments",
                Choice::Once => "allowed once",
                Choice::Run => "allowed in this run",
                Choice::Session => "allowed in this session",
                Choice::Always => "allowed always",
                Choice::DenyRun => "denied in this run",
                _ => "denied",
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
