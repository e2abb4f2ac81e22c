//! Answers of a program on loopback, and the signatures of its requests.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, header};
use callgate_auth::Source;
use parking_lot::Mutex;

use super::*;
use crate::asking::AskingOptions;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The reaction to one request.
enum Do {
    /// A status, a content type and a body.
    Answer(u16, &'static str, String),
    Redirect(String),
    Hang,
}

fn json(body: impl Into<String>) -> Do {
    Do::Answer(200, "application/json", body.into())
}

/// A program that does one step per request.
struct Program {
    url: String,
    seen: Seen,
}

#[derive(Clone, Default)]
struct Seen {
    steps: Arc<Mutex<VecDeque<Do>>>,
    requests: Arc<Mutex<Vec<(HeaderMap, String)>>>,
}

impl Program {
    async fn start(steps: impl IntoIterator<Item = Do>) -> Self {
        let seen = Seen::default();
        seen.steps.lock().extend(steps);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}/ask", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(react).with_state(seen.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }

    /// Answers a question that waits for a response as long as `limit`.
    async fn answer(&self, secret: &str, limit: Duration) -> Reply {
        let webhook = Webhook::new(&config(&self.url, secret), limit).expect("a client");
        webhook.answer("q-7", "{\"id\":\"q-7\"}", None).await
    }

    /// The number of requests so far. Each has a valid signature and the question's id.
    fn requests(&self) -> usize {
        let requests = self.seen.requests.lock();
        for (headers, body) in requests.iter() {
            let header = |name: &str| headers[name].to_str().expect("ASCII");
            assert_eq!(
                (header("webhook-id"), body.as_str()),
                ("q-7", "{\"id\":\"q-7\"}")
            );
            let timestamp: i64 = header("webhook-timestamp").parse().expect("seconds");
            assert!(
                Timestamp::now().as_second() - timestamp < 600,
                "{timestamp}"
            );
            let key = BASE64_STANDARD.decode(&SECRET[6..]).expect("Base64");
            let mut mac: Hmac<Sha256> = hmac::KeyInit::new_from_slice(&key).expect("a key");
            mac.update(format!("q-7.{timestamp}.{body}").as_bytes());
            let (version, code) = header("webhook-signature").split_once(',').expect("v1");
            let code = BASE64_STANDARD.decode(code).expect("Base64");
            assert_eq!(version, "v1");
            mac.verify_slice(&code).expect("a valid signature");
        }
        requests.len()
    }
}

async fn react(State(seen): State<Seen>, headers: HeaderMap, body: String) -> Response<Body> {
    seen.requests.lock().push((headers, body));
    let step = seen.steps.lock().pop_front();
    let (status, name, value, body) = match step {
        Some(Do::Answer(status, kind, body)) => {
            (status, header::CONTENT_TYPE, kind.to_owned(), body)
        }
        Some(Do::Redirect(to)) => (307, header::LOCATION, to, String::new()),
        Some(Do::Hang) => std::future::pending().await,
        None => panic!("a request too many"),
    };
    let response = Response::builder().status(status).header(name, value);
    response.body(Body::from(body)).expect("a response")
}

fn config(url: &str, secret: &str) -> WebhookConfig {
    let config = json!({ "url": url, "secret": secret });
    let mut config: WebhookConfig = serde_json::from_value(config).expect("a configuration");
    config.poll = Duration::from_millis(1);
    config
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn clear_answers_decide_the_call() {
    for (body, answer, reason) in [
        (r#"{"answer":"allow"}"#, Answer::Once, None),
        (
            r#" { "answer": "allow", "reason": null } "#,
            Answer::Once,
            None,
        ),
        (r#"{"answer":"deny"}"#, Answer::Deny, None),
        (r#"{"answer":"deny","reason":" "}"#, Answer::Deny, None),
        (
            r#"{"reason":"the window\nis closed","answer":"deny"}"#,
            Answer::Deny,
            Some("the window\\nis closed"),
        ),
    ] {
        let program = Program::start([json(body)]).await;
        let reply = program.answer(SECRET, LONG).await;
        assert_eq!(
            (reply.answer, reply.reason.as_deref()),
            (answer, reason),
            "{body}"
        );
        let names = (reply.by.as_deref(), reply.via.as_deref());
        assert_eq!(names, (Some("webhook"), Some("webhook")));
        assert_eq!((reply.arguments, program.requests()), (None, 1));
    }
}

#[tokio::test]
async fn ask_passes_the_question_on() {
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        let step = Do::Answer(201, kind, r#"{"answer":"ask"}"#.to_owned());
        let program = Program::start([step]).await;
        let reply = program.answer(SECRET, LONG).await;
        assert_eq!(reply, Reply::from(Answer::NoAsker));
        assert_eq!(program.requests(), 1);
    }
}

#[tokio::test]
async fn later_is_asked_again_with_same_id() {
    for (last, answer) in [("allow", Answer::Once), ("deny", Answer::Deny)] {
        let later = || json(r#"{"answer":"later"}"#);
        let last = json(format!("{{\"answer\":\"{last}\"}}"));
        let program = Program::start([later(), later(), last]).await;
        assert_eq!(program.answer(SECRET, LONG).await.answer, answer);
        assert_eq!(program.requests(), 3);
    }
}

#[tokio::test]
async fn anything_else_never_allows() {
    let allow = r#"{"answer":"allow"}"#;
    let answer = |status, kind| Do::Answer(status, kind, allow.to_owned());
    let other = Program::start([json(allow)]).await;
    let mut steps = vec![
        answer(500, "application/json"),
        answer(403, "application/json"),
        answer(200, "text/html"),
        answer(200, "application/jsonp"),
        answer(200, ""),
        Do::Redirect(other.url.clone()),
        json(format!("{allow}{}", " ".repeat(64 << 10))),
    ];
    let malformed = [
        "",
        "allow",
        "null",
        r#"{"answer":"Allow"}"#,
        r#"{"answer":"always"}"#,
        r#"{"answer":["allow"]}"#,
        r#"{"reason":"allow"}"#,
        r#"{"answer":"allow","reason":5}"#,
        r#"{"answer":"allow","arguments":{}}"#,
        r#"{"answer":"deny","answer":"allow"}"#,
        r#"{"answer":"allow"} {"answer":"deny"}"#,
    ];
    steps.extend(malformed.map(json));
    for (number, step) in steps.into_iter().enumerate() {
        let program = Program::start([step]).await;
        let reply = program.answer(SECRET, LONG).await;
        assert_eq!(reply, Reply::from(Answer::Failed), "step {number}");
        assert_eq!(program.requests(), 1, "step {number}");
    }
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn slow_or_unreachable_program_passes_question_on() {
    let program = Program::start([Do::Hang]).await;
    let reply = program.answer(SECRET, Duration::from_millis(50)).await;
    assert_eq!(reply, Reply::from(Answer::Failed));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let address = listener.and_then(|listener| listener.local_addr());
    let url = format!("http://{}/", address.expect("a port"));
    let webhook = Webhook::new(&config(&url, SECRET), LONG).expect("a client");
    let reply = webhook.answer("q-8", "{}", None).await;
    assert_eq!(reply, Reply::from(Answer::Failed));
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let program = Program::start([json(r#"{"answer":"allow"}"#)]).await;
    for secret in ["whsec_", "whsec_not Base64"] {
        let reply = program.answer(secret, LONG).await;
        assert_eq!(reply, Reply::from(Answer::Failed), "{secret}");
    }
    let mut config = config(&program.url, SECRET);
    config.secret = Source::command(["false"]);
    let webhook = Webhook::new(&config, LONG).expect("a client");
    assert_eq!(
        webhook.answer("q-9", "{}", None).await,
        Reply::from(Answer::Failed)
    );
    assert_eq!(program.requests(), 0);
}

#[tokio::test]
async fn answer_at_link_counts_before_the_program() {
    for step in [
        Do::Hang,
        json(r#"{"answer":"allow"}"#),
        Do::Answer(500, "text/plain", "down".to_owned()),
    ] {
        let program = Program::start([step]).await;
        let links = AnswerLinks::new("https://gate.example");
        let link = links.add("a question".to_owned());
        let url = link.url();
        let (_, secret) = url.rsplit_once('/').expect("a secret");
        let no = LinkAnswer {
            allows: false,
            reason: Some("low tide".to_owned()),
        };
        assert!(links.answer(secret, no));
        let webhook = Webhook::new(&config(&program.url, SECRET), LONG).expect("a client");
        let reply = webhook.answer("q-7", "{}", Some(link)).await;
        assert_eq!(
            (reply.answer, reply.reason.as_deref()),
            (Answer::Deny, Some("low tide"))
        );
    }
}

#[test]
fn signatures_are_those_of_standard_webhooks() {
    for (secret, id, timestamp, body, signature) in [
        // The example of the specification's libraries.
        (
            SECRET,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (
            "plain text",
            "q-7",
            1_700_000_000,
            "{}",
            "v1,yURi0+Nr7QqPkKdtv67j0jjn0X6efSiuVHkv3n2tUbk=",
        ),
    ] {
        let key = signing_key(secret).expect("a key");
        assert_eq!(sign(&key, id, timestamp, body), signature);
    }
}

/// The body of the request about a call.
async fn posted(arguments: bool, question: Question) -> Value {
    let program = Program::start([json(r#"{"answer":"ask"}"#)]).await;
    let mut config = config(&program.url, SECRET);
    config.arguments = arguments;
    let options = AskingOptions {
        webhook: Some(config),
        ..AskingOptions::default()
    };
    let asking = Asking::new(None, options);
    let run = RunContext {
        id: "r-00c0ffee00c0ffee".to_owned(),
        user: String::new(),
        client: Some("editor 1.2".to_owned()),
    };
    let (name, way) = asking.webhook_way(run).expect("a way");
    assert_eq!(name, "webhook");
    assert_eq!(way.ask(question).await, Reply::from(Answer::NoAsker));
    let (headers, body) = program.seen.requests.lock().pop().expect("a request");
    let mut body: Value = serde_json::from_str(&body).expect("JSON");
    let id = body["id"].take();
    assert_eq!(headers["webhook-id"].to_str().ok(), id.as_str());
    let expires = body["expires"].take();
    let expires: Timestamp = expires.as_str().expect("a time").parse().expect("a time");
    assert!(expires > Timestamp::now());
    body
}

#[tokio::test]
async fn a_question_is_sent_with_its_circumstances() {
    for arguments in [r#"{"to":"ops","size":3}"#, "{}"] {
        let hash = hex::encode(Sha256::digest(arguments));
        let mut expected = json!({
            "type": "question",
            "id": null,
            "run": "r-00c0ffee00c0ffee",
            "user": "",
            "client": "editor 1.2",
            "function": "mail_send",
            "server": "mail",
            "tool": "send",
            "reason": "needs approval: no rule matches",
            "line": null,
            "flows": [],
            "done": [],
            "answerUrl": null,
            "answers": ["allow", "deny", "ask", "later"],
            "expires": null,
            "argumentsHash": { "bytes": arguments.len(), "sha256": hash },
            "arguments": serde_json::from_str::<Value>(arguments).expect("JSON"),
        });
        let question = || Question::of_call("mail", "send", arguments);
        assert_eq!(posted(true, question()).await, expected);
        expected["arguments"] = Value::Null;
        assert_eq!(posted(false, question()).await, expected);
    }
}

#[test]
fn arguments_are_sent_as_they_are_written() {
    for arguments in [r#"{"id":18446744073709551616000}"#, r#"{"at":1.50}"#] {
        let question = Question::of_call("mail", "send", arguments);
        let run = RunContext::default();
        let body = message(&run, Timestamp::MAX, &question, true, None).expect("JSON");
        assert!(
            body.contains(&format!("\"arguments\":{arguments}")),
            "{body}"
        );
    }
}
