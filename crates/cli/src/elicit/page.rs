//! A page that a server wants opened.

use std::process::Stdio;

use callgate::{Refusal, present::quoted};
use serde_json::{Value, json};
use url::{Host, Url};

use super::{choose, inline, show};
use crate::terminal::Conversation;

/// The most bytes of a URL, which is shown whole.
const MAX_URL: usize = 2_000;

/// Shows the page and its host, and opens it only after a yes.
pub async fn answer(
    conversation: &mut Conversation,
    from: &str,
    message: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    let url = params.get("url").and_then(Value::as_str);
    let url = read(url.unwrap_or_default()).map_err(Refusal::Failed)?;
    let page = shown(&url, conversation.columns());
    let text = format!("\n┌ {from} wants you to open a page:\n{message}{page}");
    show(conversation, &text).await?;
    let prompt = "└ open it? [o] open it in a browser  [y] I open it myself  [n] no: ";
    let opens = |said: &str| match said {
        "y" | "yes" => Some(false),
        "o" => Some(true),
        _ => None,
    };
    while choose(conversation, prompt, &["o", "y", "n"], opens).await? {
        match open(url.as_str()) {
            Ok(()) => break,
            Err(reason) => show(conversation, &format!("{reason}\n")).await?,
        }
    }
    Ok(json!({ "action": "accept" }))
}

fn read(text: &str) -> Result<Url, String> {
    if text.len() > MAX_URL {
        return Err(format!("the page's URL is over {MAX_URL} bytes"));
    }
    // The scheme was checked before.
    let url = Url::parse(text).ok().filter(Url::has_host);
    url.ok_or_else(|| "the page has no valid URL".to_owned())
}

/// The parsed form, with the host in ASCII: letters that look like others show.
fn shown(url: &Url, columns: Option<usize>) -> String {
    let host = url.host_str().unwrap_or_default();
    let mut text = format!(
        "├ its host:\n{}├ the page:\n{}",
        quoted(&inline(host), columns),
        quoted(&inline(url.as_str()), columns)
    );
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
        format!("cannot start {program}: {error}; open the page yourself")
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
        for (text, fault) in [
            ("javascript:alert(1)", "the page has no valid URL"),
            ("example.com", "the page has no valid URL"),
            (&long, "the page's URL is over 2000 bytes"),
        ] {
            assert_eq!(read(text), Err(fault.to_owned()));
        }
    }
}
