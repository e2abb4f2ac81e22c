//! A page that a server asks the person to open.

use std::process::Stdio;

use callgate::faces::Refusal;
use callgate_text::quoted;
use serde_json::{Value, json};
use url::{Host, Url};

use super::{choose, show};
use crate::terminal::Conversation;

/// Bytes of a URL: it is shown whole.
const MAX_URL: usize = 2_000;

/// Shows the page and its host, and opens it only if the person agrees.
pub async fn answer(
    conversation: &mut Conversation,
    server: &str,
    message: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    let url = params.get("url").and_then(Value::as_str);
    let url = read(url.unwrap_or_default()).map_err(Refusal::Failed)?;
    let page = shown(&url, conversation.columns());
    let text = format!("\n┌ Server {server:?} asks you to open a page:\n{message}{page}");
    show(conversation, &text).await?;
    let prompt = "└ open it? [o] open it in a browser  [y] I open it myself  [n] no: ";
    let opens = |typed: &str| match typed {
        "y" | "yes" => Some(false),
        "o" => Some(true),
        _ => None,
    };
    while choose(conversation, prompt, &["o", "y", "n"], opens).await? {
        match open(url.as_str()) {
            Ok(()) => break,
            Err(problem) => show(conversation, &format!("{problem}\n")).await?,
        }
    }
    Ok(json!({ "action": "accept" }))
}

fn read(text: &str) -> Result<Url, String> {
    if text.len() > MAX_URL {
        return Err(format!("the page's URL is longer than {MAX_URL} bytes"));
    }
    // The scheme was checked before.
    let url = Url::parse(text).ok().filter(Url::has_host);
    url.ok_or_else(|| "the page's URL is not valid".to_owned())
}

/// The parsed URL, with the host in ASCII, so that look-alike letters are visible.
fn shown(url: &Url, columns: Option<usize>) -> String {
    let host = url.host_str().unwrap_or_default();
    let [host_rows, page_rows] = [host, url.as_str()].map(|text| quoted(text, columns));
    let mut text = format!("├ its host:\n{host_rows}├ the page:\n{page_rows}");
    if !url.username().is_empty() || url.password().is_some() {
        text.push_str("├ Beware: the part before the @ is not the host.\n");
    }
    if host.split('.').any(|label| label.starts_with("xn--")) {
        text.push_str("├ Beware: the host's name has letters that look like others.\n");
    }
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_loopback {
        text.push_str("├ Beware: the connection is not encrypted.\n");
    }
    text
}

/// Starts `$BROWSER`, or the system's program for web pages.
pub fn open(url: &str) -> Result<(), String> {
    let system = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let program = std::env::var_os("BROWSER").unwrap_or_else(|| system.into());
    let mut command = tokio::process::Command::new(&program);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The runtime reaps the process.
    let started = command.spawn().map(drop);
    started.map_err(|error| {
        let program = program.to_string_lossy();
        format!("could not start {program}: {error}; open the page yourself")
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Expect) {
        let page = read(url).expect("a page");
        expected.assert_eq(&format!("{url:?}\n{}", shown(&page, None)));
    }

    #[test]
    fn page_host_is_shown_separately() {
        check(
            "https://example.com/key?a=b#c",
            expect![[r#"
                "https://example.com/key?a=b#c"
                ├ its host:
                │ example.com
                ├ the page:
                │ https://example.com/key?a=b#c
            "#]],
        );
        check(
            "https://example.com@evil.example/\u{1b}[2K",
            expect![[r#"
                "https://example.com@evil.example/\u{1b}[2K"
                ├ its host:
                │ evil.example
                ├ the page:
                │ https://example.com@evil.example/%1B[2K
                ├ Beware: the part before the @ is not the host.
            "#]],
        );
        check(
            "http://аpple.com",
            expect![[r#"
                "http://аpple.com"
                ├ its host:
                │ xn--pple-43d.com
                ├ the page:
                │ http://xn--pple-43d.com/
                ├ Beware: the host's name has letters that look like others.
                ├ Beware: the connection is not encrypted.
            "#]],
        );
        check(
            "http://127.0.0.1:8080/",
            expect![[r#"
                "http://127.0.0.1:8080/"
                ├ its host:
                │ 127.0.0.1
                ├ the page:
                │ http://127.0.0.1:8080/
            "#]],
        );
    }

    #[test]
    fn invalid_or_long_page_urls_are_refused() {
        let long = format!("https://example.com/{}", "a".repeat(2_000));
        for (text, problem) in [
            ("javascript:alert(1)", "not valid"),
            ("example.com", "not valid"),
            (&long, "longer than 2000 bytes"),
        ] {
            assert!(read(text).is_err_and(|it| it.contains(problem)), "{text}");
        }
    }
}
