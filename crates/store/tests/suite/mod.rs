//! Tests that any implementation of `Store` must pass.

use std::thread;

use callgate_store::{
    Access, AnswerRecord, Body, CallRecord, Choice, Offer, QuestionFilter, QuestionRecord,
    QuestionState, QuestionTexts, RunFilter, RunRecord, RunStatus, Store, StoreError,
    StoreErrorKind,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// A store that is empty at first. Each call of `open` is a connection of its own, as of a process of
/// its own.
pub trait Place: Sync {
    type Store: Store;
    fn open(&self) -> Self::Store;
}

const ANA: Access<'_> = Access::User("ana");
const BEN: Access<'_> = Access::User("ben");

/// A time, in seconds after a fixed one.
pub fn at(second: i64) -> Timestamp {
    Timestamp::constant(1_800_000_000, 0) + SignedDuration::from_secs(second)
}

pub fn run(id: &str, user: &str, second: i64) -> RunRecord {
    let mut run = RunRecord::default();
    run.id = id.to_owned();
    run.user = user.to_owned();
    run.owner = "0".to_owned();
    run.face = "stdio".to_owned();
    run.script = Some(Body {
        sha256: "5c".to_owned(),
        ..Body::default()
    });
    run.started = at(second);
    run
}

/// A text that is kept.
fn kept(hash: &str) -> Body {
    Body {
        sha256: hash.to_owned(),
        blob: Some(hash.to_owned()),
        ..Body::default()
    }
}

fn ended(mut run: RunRecord, status: RunStatus) -> RunRecord {
    run.ended = Some(run.started + SignedDuration::from_secs(1));
    run.status = status;
    run.report = Some(json!({ "value": null, "output": ["1.50", 1.50] }));
    run
}

fn call(run: &str, ordinal: u32, function: &str) -> CallRecord {
    let mut call = CallRecord::default();
    call.run = run.to_owned();
    call.ordinal = ordinal;
    call.function = function.to_owned();
    call.tool = "raw-tool".to_owned();
    call.flows = Some(json!([{ "from": "crm", "bytes": 12 }]));
    call.arguments = Some(Body {
        sha256: "ab".to_owned(),
        bytes: 10,
        blob: None,
    });
    call
}

pub fn question(id: &str, run: &str, user: &str) -> QuestionRecord {
    let mut question = QuestionRecord::default();
    question.id = id.to_owned();
    question.run = run.to_owned();
    question.user = user.to_owned();
    question.owner = "0".to_owned();
    question.function = "crm_update".to_owned();
    question.asked = at(10);
    question.expires = at(100);
    question
}

fn answer(choice: Choice, by: &str, second: i64) -> AnswerRecord {
    let mut answer = AnswerRecord::default();
    answer.choice = choice;
    answer.by = by.to_owned();
    answer.via = "terminal".to_owned();
    answer.at = at(second);
    answer
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, StoreError>, kind: StoreErrorKind) {
    assert_eq!(result.expect_err("an error").kind(), kind);
}

#[track_caller]
fn not_found<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    fails(result, StoreErrorKind::NotFound);
}

pub fn records_return_as_they_were_written(place: &impl Place) {
    let store = place.open();
    let mut first = run("r1", "ana", 0);
    first.client = Some("kite 2.1".to_owned());
    first.configuration.folder = Some("/srv/kite".to_owned());
    store.begin_run(&first).expect("no error");
    assert_eq!(store.run(ANA, "r1").expect("no error"), first);

    let mut sent = call("r1", 1, "crm_update");
    store.record_call("ana", &sent).expect("no error");
    sent.ended = Some(at(3));
    sent.took_ms = Some(1_250);
    sent.outcome = Some(json!({ "outcome": "toolError", "message": null }));
    store.record_call("ana", &sent).expect("no error");
    // Once more, as after a lost reply.
    store
        .record_call("ana", &call("r1", 1, "crm_update"))
        .expect("no error");
    store
        .record_call("ana", &call("r1", 2, "git_log"))
        .expect("no error");
    let calls = place.open().calls(ANA, "r1", 0, 0).expect("no error");
    assert_eq!(calls, [sent, call("r1", 2, "git_log")]);
    assert_eq!(store.calls(ANA, "r1", 1, 9).expect("no error").len(), 1);

    let asked = question("q1", "r1", "ana");
    store.open_question(&asked).expect("no error");
    assert_eq!(store.question(ANA, "q1").expect("no error"), asked);

    let first = ended(first, RunStatus::DryRun);
    store.end_run(&first).expect("no error");
    assert_eq!(place.open().run(ANA, "r1").expect("no error"), first);
    let closed = store.question(ANA, "q1").expect("no error");
    assert_eq!(closed.state, QuestionState::Withdrawn);
    assert_eq!(closed.closed, first.ended);
}

pub fn records_of_other_users_are_not_found(place: &impl Place) {
    let store = place.open();
    let secret = b"const pin = 4711;";
    let mut first = run("r1", "ana", 0);
    let hash = store.put_blob("ana", "r1", secret).expect("no error");
    first.script = Some(kept(&hash));
    store.begin_run(&first).expect("no error");
    store
        .record_call("ana", &call("r1", 1, "crm_update"))
        .expect("no error");
    store
        .open_question(&question("q1", "r1", "ana"))
        .expect("no error");

    not_found(store.run(BEN, "r1"));
    not_found(store.end_run(&ended(run("r1", "ben", 0), RunStatus::Failed)));
    not_found(store.remove_run(BEN, "r1"));
    not_found(store.record_call("ben", &call("r1", 2, "crm_update")));
    not_found(store.calls(BEN, "r1", 0, 0));
    not_found(store.open_question(&question("q2", "r1", "ben")));
    not_found(store.answer_question(BEN, "q1", &answer(Choice::Once, "ben", 20)));
    not_found(store.withdraw_question("ben", "q1", "mine", at(20)));
    not_found(store.question(BEN, "q1"));
    not_found(store.put_blob("ben", "r1", b"4712"));
    not_found(store.blob(BEN, &hash));
    assert_eq!(store.expire_questions(BEN, at(1_000)).expect("no error"), 0);
    assert!(
        store
            .runs(BEN, &RunFilter::default())
            .expect("no error")
            .items
            .is_empty()
    );
    assert!(
        store
            .questions(BEN, &QuestionFilter::default())
            .expect("no error")
            .items
            .is_empty()
    );
    // Not even a script with a known text.
    let filter = RunFilter {
        text: Some("4711".to_owned()),
        ..RunFilter::default()
    };
    assert!(store.runs(BEN, &filter).expect("no error").items.is_empty());
    // The records are as they were.
    assert_eq!(store.run(ANA, "r1").expect("no error"), first);
    assert_eq!(
        store.question(ANA, "q1").expect("no error"),
        question("q1", "r1", "ana")
    );

    let names = ["zoe".to_owned(), "ana".to_owned()];
    for access in [Access::Users(&names), Access::All] {
        assert_eq!(
            store.runs(access, &filter).expect("no error").items.len(),
            1
        );
        assert_eq!(store.blob(access, &hash).expect("no error"), secret);
        assert_eq!(store.question(access, "q1").expect("no error").user, "ana");
    }
    not_found(store.run(Access::Users(&names[..1]), "r1"));
}

pub fn records_in_a_wrong_state_conflict(place: &impl Place) {
    let store = place.open();
    store.begin_run(&run("r1", "ana", 0)).expect("no error");
    fails(
        store.begin_run(&run("r1", "ben", 0)),
        StoreErrorKind::Conflict,
    );
    fails(store.remove_run(ANA, "r1"), StoreErrorKind::Conflict);
    fails(
        store.end_run(&run("r1", "ana", 0)),
        StoreErrorKind::Conflict,
    );
    let done = ended(run("r1", "ana", 0), RunStatus::Completed);
    store.end_run(&done).expect("no error");
    let other = ended(run("r1", "ana", 0), RunStatus::Failed);
    fails(store.end_run(&other), StoreErrorKind::Conflict);
    assert_eq!(store.run(ANA, "r1").expect("no error"), done);

    store
        .open_question(&question("q1", "r9", "ana"))
        .expect("no error");
    fails(
        store.open_question(&question("q1", "r9", "ben")),
        StoreErrorKind::Conflict,
    );
    let mut closed = question("q2", "r9", "ana");
    closed.state = QuestionState::Answered;
    fails(store.open_question(&closed), StoreErrorKind::Conflict);
    not_found(store.question(ANA, "q2"));
}

pub fn one_of_eight_answers_is_first(place: &impl Place) {
    let store = place.open();
    let questions: Vec<String> = (0..25).map(|number| format!("q{number}")).collect();
    for id in &questions {
        store
            .open_question(&question(id, "r1", "ana"))
            .expect("no error");
    }
    let wins = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let questions = &questions;
                scope.spawn(move || {
                    let store = place.open();
                    let mine = answer(Choice::Once, &format!("person {number}"), 20);
                    let wins = questions.iter().filter(|id| {
                        let settled = store.answer_question(ANA, id, &mine).expect("no error");
                        let by_me = settled.question.answer.as_ref() == Some(&mine);
                        assert_eq!(settled.is_first, by_me, "{id}");
                        by_me
                    });
                    wins.count()
                })
            })
            .collect();
        let wins = threads
            .into_iter()
            .map(|thread| thread.join().expect("no error"));
        wins.sum::<usize>()
    });
    assert_eq!(wins, questions.len());
}

pub fn late_and_repeated_answers_have_no_effect(place: &impl Place) {
    let store = place.open();
    let yes = answer(Choice::Run, "ana", 20);
    for id in ["late", "gone", "again"] {
        store
            .open_question(&question(id, "r1", "ana"))
            .expect("no error");
    }
    let late = answer(Choice::Once, "ana", 100);
    let settled = store.answer_question(ANA, "late", &late).expect("no error");
    assert!(!settled.is_first);
    assert_eq!(settled.question.state, QuestionState::Expired);
    assert_eq!(settled.question.closed, Some(at(100)));

    assert!(
        store
            .withdraw_question("ana", "gone", "no client", at(15))
            .expect("no error")
            .is_first
    );
    assert!(
        !store
            .withdraw_question("ana", "gone", "again", at(16))
            .expect("no error")
            .is_first
    );
    let settled = store.answer_question(ANA, "gone", &yes).expect("no error");
    assert!(!settled.is_first);
    assert_eq!(settled.question.withdrawn.as_deref(), Some("no client"));

    assert!(
        store
            .answer_question(ANA, "again", &yes)
            .expect("no error")
            .is_first
    );
    // The same answer again.
    let settled = store.answer_question(ANA, "again", &yes).expect("no error");
    assert_eq!(
        (settled.is_first, settled.question.answer.as_ref()),
        (false, Some(&yes))
    );
}

pub fn expired_questions_leave_the_open_ones(place: &impl Place) {
    let store = place.open();
    for (id, user, expires) in [("q1", "ana", 50), ("q2", "ben", 51), ("q3", "ana", 52)] {
        let mut question = question(id, "r1", user);
        question.expires = at(expires);
        store.open_question(&question).expect("no error");
    }
    assert_eq!(store.expire_questions(ANA, at(51)).expect("no error"), 1);
    assert_eq!(
        store
            .expire_questions(Access::All, at(51))
            .expect("no error"),
        1
    );
    assert_eq!(
        store
            .expire_questions(Access::All, at(51))
            .expect("no error"),
        0
    );
    let open = QuestionFilter {
        state: Some(QuestionState::Open),
        ..QuestionFilter::default()
    };
    let open = store.questions(Access::All, &open).expect("no error").items;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].id, "q3");
}

pub fn lists_have_pages_and_filters(place: &impl Place) {
    let store = place.open();
    for number in 0..7 {
        // Two of each second.
        let mut run = run(&format!("r{number}"), "ana", number / 2);
        let script = format!("await crm_update({{ id: {number} }})");
        let hash = store
            .put_blob("ana", &run.id, script.as_bytes())
            .expect("no error");
        run.script = Some(kept(&hash));
        store.begin_run(&run).expect("no error");
        store
            .open_question(&question(&format!("q{number}"), &run.id, "ana"))
            .expect("no error");
    }
    store
        .record_call("ana", &call("r2", 1, "git_log"))
        .expect("no error");
    store
        .end_run(&ended(
            store.run(ANA, "r5").expect("no error"),
            RunStatus::Denied,
        ))
        .expect("no error");

    let all = |mut filter: RunFilter| {
        let mut ids = Vec::new();
        loop {
            let page = store.runs(ANA, &filter).expect("no error");
            assert!(page.items.iter().all(|run| run.report.is_none()));
            ids.extend(page.items.into_iter().map(|run| run.id));
            filter.after = match page.next {
                Some(next) => Some(next.to_string().into()),
                None => break ids.join(" "),
            };
        }
    };
    let filter = RunFilter::default;
    let newest_first = "r6 r5 r4 r3 r2 r1 r0";
    assert_eq!(all(filter()), newest_first);
    assert_eq!(
        all(RunFilter {
            limit: 2,
            ..filter()
        }),
        newest_first
    );
    assert_eq!(
        all(RunFilter {
            since: Some(at(2)),
            ..filter()
        }),
        "r6 r5 r4"
    );
    assert_eq!(
        all(RunFilter {
            until: Some(at(1)),
            ..filter()
        }),
        "r1 r0"
    );
    let status = Some(RunStatus::Denied);
    assert_eq!(all(RunFilter { status, ..filter() }), "r5");
    for tool in ["git_log", "raw-tool"] {
        let tool = Some(tool.to_owned());
        assert_eq!(all(RunFilter { tool, ..filter() }), "r2");
    }
    let text = Some("id: 3 }".to_owned());
    assert_eq!(
        all(RunFilter {
            text,
            limit: 1,
            ..filter()
        }),
        "r3"
    );
    let after = Some("nowhere".to_owned().into());
    not_found(store.runs(ANA, &RunFilter { after, ..filter() }));

    let mut filter = QuestionFilter {
        limit: 3,
        ..QuestionFilter::default()
    };
    let first = store.questions(ANA, &filter).expect("no error");
    filter.after = first.next;
    let second = store.questions(ANA, &filter).expect("no error");
    let ids: Vec<String> = first
        .items
        .into_iter()
        .chain(second.items)
        .map(|it| it.id)
        .collect();
    assert_eq!(ids, ["q0", "q1", "q2", "q3", "q4", "q5"]);
    let of_run = QuestionFilter {
        run: Some("r5".to_owned()),
        owner: Some("0".to_owned()),
        state: Some(QuestionState::Withdrawn),
        ..QuestionFilter::default()
    };
    assert_eq!(
        store.questions(ANA, &of_run).expect("no error").items.len(),
        1
    );
}

pub fn lists_leave_long_texts_out(place: &impl Place) {
    let store = place.open();
    let mut texts = QuestionTexts::default();
    texts.short = "closes case 31".to_owned();
    texts.offers = vec![Offer::new(Choice::Once, "this call".to_owned())];
    let mut long = texts.clone();
    long.whole = "closes case 31 for ever".to_owned();
    long.arguments = Some(r#"{"case":31}"#.to_owned());
    let mut asked = question("q1", "r1", "ana");
    asked.texts = Some(long);
    store.open_question(&asked).expect("no error");
    store
        .open_question(&question("q2", "r1", "ana"))
        .expect("no error");
    let listed = store.questions(ANA, &QuestionFilter::default());
    let listed = listed.expect("no error").items.into_iter();
    let listed: Vec<_> = listed.map(|question| question.texts).collect();
    assert_eq!(listed, [Some(texts), None]);
    assert_eq!(store.question(ANA, "q1").expect("no error"), asked);
}

pub fn records_of_dead_owners_are_lost(place: &impl Place) {
    let store = place.open();
    let (gone, alive) = (
        store.register_owner().expect("no error"),
        store.register_owner().expect("no error"),
    );
    for (number, owner) in [&gone, &alive].into_iter().enumerate() {
        let mut run = run(&format!("r{number}"), "ana", 0);
        run.owner = owner.id().to_owned();
        store.begin_run(&run).expect("no error");
        let mut question = question(&format!("q{number}"), &run.id, "ana");
        question.owner = run.owner;
        store.open_question(&question).expect("no error");
    }
    let other = place.open();
    assert_eq!(other.close_lost(at(20)).expect("no error").runs, 0);
    drop(gone);
    let lost = other.close_lost(at(21)).expect("no error");
    assert_eq!((lost.runs, lost.questions), (1, 1));
    assert_eq!(other.close_lost(at(22)).expect("no error").questions, 0);
    let run = store.run(ANA, "r0").expect("no error");
    assert_eq!((run.status, run.ended), (RunStatus::Lost, Some(at(21))));
    let question = store.question(ANA, "q0").expect("no error");
    assert_eq!(question.state, QuestionState::Withdrawn);
    assert_eq!(
        store.run(ANA, "r1").expect("no error").status,
        RunStatus::Running
    );
    assert_eq!(
        store.question(ANA, "q1").expect("no error").state,
        QuestionState::Open
    );
    // It was slow, not gone.
    store
        .end_run(&ended(run, RunStatus::Completed))
        .expect("no error");
    assert_eq!(
        store.run(ANA, "r0").expect("no error").status,
        RunStatus::Completed
    );
}

pub fn blobs_last_as_long_as_their_runs(place: &impl Place) {
    let store = place.open();
    let (shared, own) = (b"shared".as_slice(), b"only of r1".as_slice());
    let mut hashes = Vec::new();
    for (run_id, bytes) in [("r1", shared), ("r1", own), ("r2", shared), ("r2", shared)] {
        hashes.push(store.put_blob("ana", run_id, bytes).expect("no error"));
    }
    for id in ["r1", "r2"] {
        store.begin_run(&run(id, "ana", 0)).expect("no error");
        store
            .end_run(&ended(run(id, "ana", 0), RunStatus::Completed))
            .expect("no error");
    }
    assert_eq!(store.blob(ANA, &hashes[1]).expect("no error"), own);
    store.remove_run(ANA, "r1").expect("no error");
    not_found(store.run(ANA, "r1"));
    not_found(store.blob(ANA, &hashes[1]));
    assert_eq!(store.blob(ANA, &hashes[0]).expect("no error"), shared);
    store.remove_run(ANA, "r2").expect("no error");
    not_found(store.blob(ANA, &hashes[0]));
    not_found(store.blob(Access::All, "../store.db"));
}

pub fn prune_removes_old_then_large(place: &impl Place) {
    let store = place.open();
    for number in 0..60_u8 {
        let id = format!("r{number}");
        store
            .put_blob("ana", &id, &vec![number; 20_000])
            .expect("no error");
        let run = run(&id, "ana", number.into());
        store.begin_run(&run).expect("no error");
        store
            .record_call("ana", &call(&id, 1, "crm_update"))
            .expect("no error");
        store
            .open_question(&question(&format!("q{number}"), &id, "ana"))
            .expect("no error");
        if number != 3 {
            store
                .end_run(&ended(run, RunStatus::Completed))
                .expect("no error");
        }
    }
    let pruned = store.prune(at(30), u64::MAX).expect("no error");
    assert_eq!(pruned.runs, 29);
    not_found(store.run(ANA, "r29"));
    not_found(store.question(ANA, "q29"));
    store.run(ANA, "r30").expect("no error");
    store.run(ANA, "r3").expect("no error");

    let limit = pruned.bytes - 100_000;
    let smaller = store.prune(at(30), limit).expect("no error");
    assert!(smaller.bytes <= limit, "{smaller:?}");
    assert!((5..10).contains(&smaller.runs), "{smaller:?}");
    not_found(store.run(ANA, "r30"));
    store.prune(at(30), 0).expect("no error");
    let left = store
        .runs(ANA, &RunFilter::default())
        .expect("no error")
        .items;
    let left: Vec<_> = left.into_iter().map(|run| run.id).collect();
    assert_eq!(left, ["r3"]);
    assert_eq!(
        store.question(ANA, "q3").expect("no error").state,
        QuestionState::Open
    );
}

pub fn changes_grow_with_writes_of_all(place: &impl Place) {
    let (store, other) = (place.open(), place.open());
    let before = store.changes().expect("no error");
    assert_eq!(store.changes().expect("no error"), before);
    other.begin_run(&run("r1", "ana", 0)).expect("no error");
    let after_other = store.changes().expect("no error");
    assert!(after_other > before);
    store.begin_run(&run("r2", "ana", 0)).expect("no error");
    let after_own = store.changes().expect("no error");
    assert!(after_own > after_other);
    other.runs(ANA, &RunFilter::default()).expect("no error");
    assert_eq!(store.changes().expect("no error"), after_own);
}
