use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{Answer, Asker, Question, Reply};
use callgate_store::{
    Access, AnswerRecord, Body, Choice, OpenStore, QuestionFilter, QuestionRecord, QuestionState,
    Settled, SqliteStore, Store,
};
use jiff::Timestamp;
use tempfile::TempDir;

use super::{Asking, AskingOptions, RecordedAsker, RunContext, Way, record_way};

const ANA: Access<'_> = Access::User("ana");

/// A store in a folder, and the asker of a run that uses it.
struct Place {
    _folder: TempDir,
    store: Arc<OpenStore>,
    /// The store as of a different process.
    other: SqliteStore,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            store: opened(folder.path()),
            other: SqliteStore::open(folder.path()).expect("the store again"),
            _folder: folder,
        }
    }

    fn asker(
        &self,
        expires: Duration,
        ways: Vec<(&'static str, Arc<dyn Asker>)>,
    ) -> Arc<RecordedAsker> {
        asker(Some(Arc::clone(&self.store)), expires, ways)
    }

    /// Waits for the question of the run to be in this state.
    async fn question(&self, state: QuestionState) -> QuestionRecord {
        let filter = QuestionFilter {
            state: Some(state),
            ..QuestionFilter::default()
        };
        loop {
            let mut found = self.other.questions(ANA, &filter).expect("questions").items;
            if let Some(question) = found.pop() {
                // The list has no long texts.
                let whole = self.other.question(ANA, &question.id);
                return whole.expect("the question");
            }
            tokio::task::yield_now().await;
        }
    }

    fn answer(&self, id: &str, answer: &AnswerRecord) -> Settled {
        let settled = self.other.answer_question(ANA, id, answer);
        settled.expect("the question")
    }
}

/// The store in a folder, with an owner.
fn opened(folder: &Path) -> Arc<OpenStore> {
    let store = Arc::new(SqliteStore::open(folder).expect("a store"));
    Arc::new(OpenStore::new(store).expect("an owner"))
}

fn asker(
    store: Option<Arc<OpenStore>>,
    expires: Duration,
    ways: Vec<(&'static str, Arc<dyn Asker>)>,
) -> Arc<RecordedAsker> {
    let options = AskingOptions {
        expires,
        ..AskingOptions::default()
    };
    let run = RunContext {
        id: "r-0123456789abcdef".to_owned(),
        user: "ana".to_owned(),
        client: None,
    };
    RecordedAsker::new(Arc::new(Asking::new(store, options)), run, ways)
}

fn question() -> Question {
    Question::of_call("crm", "merge", r#"{"from":7,"into":9}"#)
}

fn answered(choice: Choice, by: &str) -> AnswerRecord {
    let mut answer = AnswerRecord::default();
    answer.choice = choice;
    answer.by = by.to_owned();
    answer.via = "questions".to_owned();
    answer.at = Timestamp::now();
    answer
}

/// A way that gives this answer at once, under this name.
fn way(name: &'static str, answer: Answer) -> (&'static str, Arc<dyn Asker>) {
    let asker = move |_: Question| std::future::ready(answer);
    (name, Arc::new(asker))
}

/// A way that never answers.
fn silent(name: &'static str) -> (&'static str, Arc<dyn Asker>) {
    let asker = |_: Question| std::future::pending::<Answer>();
    (name, Arc::new(asker))
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn answer_in_the_store_ends_the_wait() {
    for (choice, expected) in [
        (Choice::Run, Answer::Run),
        (Choice::DenyRun, Answer::DenyRun),
    ] {
        let place = Place::new();
        let asker = place.asker(LONG, vec![silent("terminal"), record_way()]);
        let asked = tokio::spawn(async move { asker.ask(question()).await });
        let open = place.question(QuestionState::Open).await;
        assert_eq!((open.server.as_str(), open.tool.as_str()), ("crm", "merge"));
        let texts = open.texts.clone().expect("texts");
        assert!(texts.whole.contains(r#"{"from":7,"into":9}"#), "{texts:?}");
        let mut answer = answered(choice, "cleo");
        answer.reason = Some("not now".to_owned());
        assert!(place.answer(&open.id, &answer).is_first);
        let reply = asked.await.expect("a reply");
        assert_eq!(reply.answer, expected);
        assert_eq!(reply.by.as_deref(), Some("cleo"));
        assert_eq!(reply.via.as_deref(), Some("questions"));
        assert_eq!(reply.reason.as_deref(), Some("not now"));
        let second = place.answer(&open.id, &answered(Choice::Once, "ben"));
        assert!(!second.is_first);
        let first = second.question.answer.expect("the first answer");
        assert_eq!(first.by, "cleo");
        assert_eq!(second.question.texts, None);
    }
}

#[tokio::test]
async fn answer_of_a_way_is_recorded() {
    for (answer, choice) in [(Answer::Once, Choice::Once), (Answer::Deny, Choice::Deny)] {
        let place = Place::new();
        let asker = place.asker(LONG, vec![way("terminal", answer), record_way()]);
        let reply = asker.ask(question()).await;
        assert_eq!(reply.answer, answer);
        assert_eq!(reply.via.as_deref(), Some("terminal"));
        let closed = place.question(QuestionState::Answered).await;
        let recorded = closed.answer.expect("an answer");
        assert_eq!(
            (recorded.choice, recorded.via.as_str()),
            (choice, "terminal")
        );
        let late = place.answer(&closed.id, &answered(Choice::Always, "ben"));
        assert!(!late.is_first);
    }
}

#[tokio::test]
async fn way_after_an_answer_elsewhere_does_not_count() {
    let place = Place::new();
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    let told = Arc::new(tokio::sync::Mutex::new(Some(told)));
    let slow = move |_: Question| {
        let told = Arc::clone(&told);
        async move {
            let told = told.lock().await.take().expect("one question");
            told.await.expect("the other answer");
            Answer::Once
        }
    };
    let slow: Arc<dyn Asker> = Arc::new(slow);
    let asker = place.asker(LONG, vec![("terminal", slow), record_way()]);
    let asked = tokio::spawn(async move { asker.ask(question()).await });
    let open = place.question(QuestionState::Open).await;
    assert!(
        place
            .answer(&open.id, &answered(Choice::Deny, "cleo"))
            .is_first
    );
    tell.send(()).expect("the way waits");
    let reply = asked.await.expect("a reply");
    assert_eq!(reply.answer, Answer::Deny);
    assert_eq!(reply.by.as_deref(), Some("cleo"));
}

#[tokio::test]
async fn question_without_an_answer_expires() {
    for ways in [vec![record_way()], vec![silent("terminal"), record_way()]] {
        let place = Place::new();
        let asker = place.asker(Duration::from_millis(50), ways);
        assert_eq!(asker.ask(question()).await.answer, Answer::Late);
        let expired = place.question(QuestionState::Expired).await;
        assert_eq!(expired.texts, None);
        let late = place.answer(&expired.id, &answered(Choice::Once, "cleo"));
        assert!(!late.is_first);
        assert_eq!(late.question.state, QuestionState::Expired);
    }
}

#[tokio::test]
async fn question_of_an_ended_run_is_withdrawn() {
    let place = Place::new();
    let asker = place.asker(LONG, vec![silent("client"), record_way()]);
    let asked = tokio::spawn(async move { asker.ask(question()).await });
    let open = place.question(QuestionState::Open).await;
    asked.abort();
    let withdrawn = place.question(QuestionState::Withdrawn).await;
    assert_eq!(withdrawn.id, open.id);
    assert_eq!(withdrawn.texts, None);
    assert!(
        !place
            .answer(&open.id, &answered(Choice::Once, "cleo"))
            .is_first
    );
}

#[tokio::test]
async fn edited_arguments_come_with_the_answer() {
    for edited in [r#"{"from":7,"into":8}"#, "{}"] {
        let place = Place::new();
        let asker = place.asker(LONG, vec![record_way()]);
        let asked = tokio::spawn(async move { asker.ask(question()).await });
        let open = place.question(QuestionState::Open).await;
        let blob = place.other.put_blob("ana", &open.run, edited.as_bytes());
        let mut answer = answered(Choice::Once, "cleo");
        answer.edited = Some(Body {
            blob: Some(blob.expect("a blob")),
            ..Body::default()
        });
        place.answer(&open.id, &answer);
        let reply = asked.await.expect("a reply");
        assert_eq!(reply.arguments.as_deref(), Some(edited));
        assert_eq!(reply.answer, Answer::Once);
    }
}

#[tokio::test]
async fn unreadable_edited_arguments_send_nothing() {
    let place = Place::new();
    let asker = place.asker(LONG, vec![record_way()]);
    let asked = tokio::spawn(async move { asker.ask(question()).await });
    let open = place.question(QuestionState::Open).await;
    let mut answer = answered(Choice::Run, "cleo");
    answer.edited = Some(Body {
        blob: Some("00ff".to_owned()),
        ..Body::default()
    });
    place.answer(&open.id, &answer);
    assert_eq!(asked.await.expect("a reply").answer, Answer::Failed);
}

#[tokio::test]
async fn ways_pass_questions_on_in_order() {
    for (first, expected) in [
        (way("terminal", Answer::Failed), Answer::Session),
        (way("client", Answer::Dismissed), Answer::Session),
        // Faster than a person.
        (way("client", Answer::Deny), Answer::Session),
        (way("terminal", Answer::Deny), Answer::Deny),
        (way("client", Answer::Once), Answer::Session),
        (way("terminal", Answer::Once), Answer::Once),
    ] {
        let asker = asker(None, LONG, vec![first, way("webhook", Answer::Session)]);
        assert_eq!(asker.ask(question()).await.answer, expected);
    }
}

#[tokio::test]
async fn covered_question_has_its_answer_in_the_store() {
    for (answer, choice) in [
        (Answer::Run, Choice::Run),
        (Answer::DenyRun, Choice::DenyRun),
    ] {
        let place = Place::new();
        let asker = place.asker(LONG, vec![record_way()]);
        let question = question();
        let covered_by = Arc::clone(&question.covered_by);
        let asking = tokio::spawn(async move { asker.ask(question).await });
        let open = place.question(QuestionState::Open).await;
        let mut reply = Reply::from(answer);
        reply.via = Some("question about call 2".to_owned());
        covered_by.set(reply).expect("no answer yet");
        asking.abort();
        let closed = place.question(QuestionState::Answered).await;
        assert_eq!(closed.id, open.id);
        let answer = closed.answer.expect("an answer");
        assert_eq!(
            (answer.choice, &*answer.via),
            (choice, "question about call 2")
        );
    }
}

#[tokio::test]
async fn questions_without_a_store_are_in_memory() {
    let asker = asker(None, LONG, vec![record_way(), way("terminal", Answer::Run)]);
    assert_eq!(asker.ask(question()).await, {
        let mut reply = Reply::from(Answer::Run);
        reply.via = Some(Way::Terminal.name().to_owned());
        reply
    });
    let none = super::RecordedAsker::new(
        Arc::new(Asking::new(None, AskingOptions::default())),
        RunContext::default(),
        vec![record_way()],
    );
    assert_eq!(none.ask(question()).await.answer, Answer::NoAsker);
}

#[tokio::test]
async fn unusable_store_leaves_the_other_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let store = opened(&state);
    std::fs::remove_dir_all(&state).expect("the folder");
    std::fs::write(&state, "not a folder").expect("a file");
    let ways = vec![record_way(), way("terminal", Answer::Once)];
    let asker = asker(Some(store), LONG, ways);
    assert_eq!(asker.ask(question()).await.answer, Answer::Once);
}
