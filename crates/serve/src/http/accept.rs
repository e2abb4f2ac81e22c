//! The forms of an answer: JSON or a stream of events, as the client's `Accept` says.

use std::future::ready;

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures::TryStreamExt as _;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::refusal::HttpRefusal;
use crate::runs::OneMessage;

/// From this revision on, a stream may start with an event without data, which older clients treat
/// as a broken message.
const PRIMED: &[u8] = b"2025-11-25";

/// The form of the answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One JSON message.
    Json,
    /// A stream of events.
    Stream,
    /// A stream of events that all have data.
    Unprimed,
}

impl Form {
    /// Chooses the form of the answer, and makes the request accept both forms, as rmcp requires.
    pub(super) fn choose(parts: &mut Parts, method: Option<&str>) -> Result<Self, HttpRefusal> {
        let headers = &parts.headers;
        let version = headers.get("mcp-protocol-version");
        let form = if accepts(headers, ["text/event-stream", "text/*", "*/*"]) {
            // The answer to `initialize` agrees on the revision.
            let is_agreed = method != Some("initialize");
            if version.is_some_and(|it| is_agreed && it.as_bytes() >= PRIMED) {
                Self::Stream
            } else {
                Self::Unprimed
            }
        } else if parts.method == Method::POST
            && accepts(headers, ["application/json", "application/*", "*/*"])
        {
            parts.extensions.insert(OneMessage);
            Self::Json
        } else if parts.method == Method::POST || parts.method == Method::GET {
            return Err(HttpRefusal::new(
                StatusCode::NOT_ACCEPTABLE,
                "the Accept header excludes every form of the answer: a POST is answered with \
                 application/json or text/event-stream, a GET with text/event-stream",
            ));
        } else {
            return Ok(Self::Stream);
        };
        let both = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(ACCEPT, both);
        Ok(form)
    }

    /// Converts a response to this form.
    pub(super) async fn convert(self, response: Response) -> Result<Response, HttpRefusal> {
        let kind = response.headers().get(CONTENT_TYPE);
        if self == Self::Stream || kind.is_none_or(|kind| kind != "text/event-stream") {
            return Ok(response);
        }
        let (mut parts, body) = response.into_parts();
        // rmcp sends one event, or one comment, in a frame.
        let mut frames = body.into_data_stream();
        if self == Self::Unprimed {
            let events = frames.try_filter(|frame| ready(data(frame) != Some(b"")));
            return Ok(Response::from_parts(parts, Body::from_stream(events)));
        }
        while let Ok(Some(frame)) = frames.try_next().await {
            if let Some(data) = data(&frame).filter(|data| is_answer(data)) {
                let json = HeaderValue::from_static("application/json");
                parts.headers.insert(CONTENT_TYPE, json);
                let body = Body::from(frame.slice_ref(data));
                return Ok(Response::from_parts(parts, body));
            }
        }
        Err(HttpRefusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "no answer: the session or the server has ended",
        ))
    }
}

/// True if `Accept` includes a media type. `names` has the type and its wildcards, the narrowest
/// first; the narrowest of them that the header has decides.
fn accepts(headers: &HeaderMap, names: [&str; 3]) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let ranges: Vec<_> = values
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .filter(|range| !range.trim().is_empty())
        .map(|range| {
            let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
            (name.trim(), !parameters.split(';').any(is_zero_weight))
        })
        .collect();
    let taken = |name: &str| {
        let named = ranges.iter().filter(|it| it.0.eq_ignore_ascii_case(name));
        named.map(|it| it.1).reduce(|one, other| one || other)
    };
    let taken = names.into_iter().find_map(taken);
    taken.unwrap_or(ranges.is_empty())
}

fn is_zero_weight(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, weight)| {
        let weight = weight.trim().parse::<f32>();
        name.trim().eq_ignore_ascii_case("q") && weight.is_ok_and(|weight| weight <= 0.0)
    })
}

/// The data of an event; `None` for a comment.
fn data(frame: &[u8]) -> Option<&[u8]> {
    let mut lines = frame.split(|byte| *byte == b'\n');
    lines.find_map(|line| Some(line.strip_prefix(b"data:")?.trim_ascii()))
}

/// True for the answer to a request, false for a notification before it.
fn is_answer(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message {
        method: Option<IgnoredAny>,
    }
    serde_json::from_slice(message).is_ok_and(|it: Message| it.method.is_none())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn chosen(method: Method, accept: &[&str]) -> Option<Form> {
        let mut request = Request::builder().method(method);
        for value in accept {
            request = request.header(ACCEPT, *value);
        }
        let request = request.header("mcp-protocol-version", "2025-11-25");
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        Form::choose(&mut parts, None).ok()
    }

    #[test]
    fn narrowest_range_decides() {
        for (accept, form) in [
            (
                &["application/json, text/event-stream"][..],
                Some(Form::Stream),
            ),
            (
                &["Application/JSON", "TEXT/Event-Stream"],
                Some(Form::Stream),
            ),
            (&[], Some(Form::Stream)),
            (&["  ,"], Some(Form::Stream)),
            (&["*/*;q=0.1"], Some(Form::Stream)),
            (&["text/html, */*; Q=.2"], Some(Form::Stream)),
            (&["application/json;q=0.5, text/*"], Some(Form::Stream)),
            (&["text/event-stream; charset=utf-8"], Some(Form::Stream)),
            (&["application/*"], Some(Form::Json)),
            (&["APPLICATION/JSON ;charset=utf-8"], Some(Form::Json)),
            (&["*/*, text/event-stream;q=0.000"], Some(Form::Json)),
            (&["application/json;v=\"a;q=0\""], Some(Form::Json)),
            (
                &["application/json;q=0;v=1, application/json"],
                Some(Form::Json),
            ),
            (&["application/json;q=0, application/*"], None),
            (&["*/*;q=0"], None),
            (&["text/html", "image/*"], None),
            (&["json"], None),
        ] {
            assert_eq!(chosen(Method::POST, accept), form, "{accept:?}");
            let streamed = form.filter(|form| *form == Form::Stream);
            assert_eq!(chosen(Method::GET, accept), streamed, "GET {accept:?}");
        }
    }
}
