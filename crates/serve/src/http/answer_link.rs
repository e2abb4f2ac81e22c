//! `/answer/{secret}`: the link of one question to the webhook. `GET` shows the question, and `POST`
//! answers it once. The secret is the only permission that a request needs.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, FromRequest as _, Path, Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Form, Json, Router};
use callgate::faces::asking::{AnswerLinks, LinkAnswer};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::door::Door;
use super::newcomers::Newcomer;
use super::refusal::HttpRefusal;

/// The limit of an answer, in bytes.
const MAX_BODY: usize = 64 << 10;

/// The page may send its form to this server, and nothing else. The form's request has an origin.
const PAGE_HEADERS: [(HeaderName, &str); 2] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (REFERRER_POLICY, "same-origin"),
];

const FORM: &str = "<form method=\"post\">\
    <p><button name=\"answer\" value=\"allow\">Allow this call</button></p>\
    <p><label>Reason, which the script reads: <input name=\"reason\" maxlength=\"1000\"></label> \
    <button name=\"answer\" value=\"deny\">Deny it</button></p></form>";

/// An answer, as JSON or as the page's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    answer: Choice,
    /// The sentence for the script, of a denial.
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Allow,
    Deny,
}

/// The route, which needs no token.
pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/answer/{secret}", get(show).post(answer))
        .layer(DefaultBodyLimit::max(MAX_BODY))
}

async fn show(
    State(door): State<Arc<Door>>,
    Extension(newcomer): Extension<Arc<Newcomer>>,
    Path(secret): Path<String>,
) -> Result<Response, HttpRefusal> {
    let (_, question) = open(&door, &newcomer, &secret)?;
    Ok(page(&format!("<pre>{}</pre>{FORM}", escaped(&question))))
}

async fn answer(
    State(door): State<Arc<Door>>,
    Extension(newcomer): Extension<Arc<Newcomer>>,
    Path(secret): Path<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (links, _) = open(&door, &newcomer, &secret)?;
    let kind = request.headers().get(CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form"));
    let read = async {
        if is_form {
            let form = Form::<AnswerBody>::from_request(request, &()).await;
            form.map(|Form(given)| given).map_err(|it| it.body_text())
        } else {
            let json = Json::<AnswerBody>::from_request(request, &()).await;
            json.map(|Json(given)| given).map_err(|it| it.body_text())
        }
    };
    let given = timeout(door.config.request_time, read).await;
    let given = given.unwrap_or_else(|_| Err("it did not arrive in time".to_owned()));
    let given =
        given.map_err(|reason| HttpRefusal::bad(format!("the call is not answered: {reason}")))?;
    let allows = matches!(given.answer, Choice::Allow);
    let reason = given.reason;
    if !links.answer(&secret, LinkAnswer { allows, reason }) {
        return Err(not_open());
    }
    let word = if allows { "allow" } else { "deny" };
    Ok(if is_form {
        page(&format!("<p>The answer is: {word}."))
    } else {
        Json(json!({ "answer": word })).into_response()
    })
}

/// The links, and the question of this one. Each request counts for the rate of its address.
fn open<'a>(
    door: &'a Door,
    newcomer: &Newcomer,
    secret: &str,
) -> Result<(&'a AnswerLinks, String), HttpRefusal> {
    let sender = format!("address {}", newcomer.address);
    door.users.rates.count(&sender)?;
    let links = door.records.links().ok_or_else(not_open)?;
    let question = links.question(secret).ok_or_else(not_open)?;
    newcomer.settle();
    Ok((links, question))
}

fn not_open() -> HttpRefusal {
    let message = "no question is open here: it was answered, it has expired, or the link is wrong";
    HttpRefusal::new(StatusCode::NOT_FOUND, message)
}

fn page(body: &str) -> Response {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Callgate: may this call be \
         sent?</title><h1>May this call be sent?</h1>{body}</html>"
    );
    (PAGE_HEADERS, Html(page)).into_response()
}

/// A text for HTML.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
