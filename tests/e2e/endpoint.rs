//! A model endpoint on loopback with the OpenAI API, with answers that a test chooses.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The endpoint's answer to one request.
pub enum Do {
    /// A completion with this text.
    Say(&'static str),
    /// This JSON value as the body.
    Answer(Value),
    /// An error status, with a `retry-after` of an hour.
    Fail(u16),
    /// An error status, with the request's `Authorization` header in the message.
    Blab(u16),
}

/// The endpoint. Its thread ends with the process.
pub struct Endpoint {
    pub url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Endpoint {
    /// Starts an endpoint that gives these answers in order, and then fails.
    pub fn doing(steps: impl IntoIterator<Item = Do>) -> Self {
        let mut steps: VecDeque<Do> = steps.into_iter().collect();
        Self::start(move |_| steps.pop_front().unwrap_or(Do::Fail(500)))
    }

    /// Starts an endpoint that computes each answer from the request's body.
    pub fn answering(answer: impl Fn(&Value) -> Value + Send + 'static) -> Self {
        Self::start(move |body| Do::Answer(answer(body)))
    }

    /// The bodies of all requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("no panic").clone()
    }

    /// The prompts of all requests so far.
    pub fn prompts(&self) -> Vec<String> {
        let asked = self.asked();
        let text = |body: &Value| body["messages"][1]["content"].as_str().map(str::to_owned);
        asked.iter().filter_map(text).collect()
    }

    fn start(mut act: impl FnMut(&Value) -> Do + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                if let Some((authorization, body)) = request(&mut reader) {
                    let step = act(&body);
                    seen.lock().expect("no panic").push(body);
                    answer(reader, step, &authorization);
                }
            }
        });
        Self { url, asked }
    }
}

/// The `Authorization` and the body of a request; `None` if none came.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut length = 0;
    let mut authorization = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return None;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().expect("a length"),
            "authorization" => value.trim().clone_into(&mut authorization),
            _ => {}
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    let body = serde_json::from_slice(&body).expect("JSON");
    Some((authorization, body))
}

fn answer(reader: BufReader<TcpStream>, step: Do, authorization: &str) {
    let (status, text) = match step {
        Do::Say(text) => {
            let answer = json!({ "choices": [{ "message": { "content": text } }] });
            (200, answer.to_string())
        }
        Do::Answer(answer) => (200, answer.to_string()),
        Do::Fail(status) => (status, "{}".to_owned()),
        Do::Blab(status) => {
            let message = format!("no luck with {authorization}");
            let answer = json!({ "error": { "message": message } });
            (status, answer.to_string())
        }
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\nretry-after: 3600\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let mut stream = reader.into_inner();
    let _gone = stream.write_all((head + &text).as_bytes());
}
