//! A server that wants a token, with the authorization server that issues it,
//! and a browser that logs in by itself.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use callgate::ServerSpec;
use callgate::faces::auth::{LoginPage, OAuth, OpenUrl, TokenPlace};
use callgate::faces::{Http, Transport};
use callgate_tests::{Workbench, binary};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// The process of the two servers, killed on drop.
pub struct Guarded {
    process: Child,
    _input: ChildStdin,
    pub url: String,
    pub issuer: String,
    pub elsewhere: String,
}

impl Guarded {
    pub fn start(quirks: &Value) -> Self {
        let mut process = Command::new(binary("callgate-guarded-server"))
            .arg(quirks.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the guarded server");
        let input = process.stdin.take().expect("a piped stdin");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a piped stdout"))
            .read_line(&mut line)
            .expect("its places");
        let places: Value = serde_json::from_str(&line).expect("its places as JSON");
        let place = |name: &str| places[name].as_str().expect("a place").to_owned();
        Self {
            url: place("url"),
            issuer: place("issuer"),
            elsewhere: place("elsewhere"),
            process,
            _input: input,
        }
    }

    /// A server named `web`, whose tokens are kept in a file below `folder`.
    pub fn spec(&self, folder: &Path) -> ServerSpec {
        self.spec_with(OAuth {
            place: TokenPlace::File,
            folder: Some(folder.to_owned()),
            ..OAuth::default()
        })
    }

    pub fn spec_with(&self, oauth: OAuth) -> ServerSpec {
        let http = Http {
            url: self.url.clone(),
            oauth: Some(oauth),
            ..Http::default()
        };
        ServerSpec::new("web", Transport::Http(http))
    }

    /// A folder with a configuration that has the server as `web`, with this `oauth`.
    pub fn bench(&self, oauth: &Value) -> Workbench {
        Workbench::new(json!({ "web": { "url": self.url, "oauth": oauth } }))
    }

    /// The requests so far, counted by kind.
    pub async fn seen(&self) -> Value {
        self.get("seen").await
    }

    /// The authorization code of each exchange, with its PKCE verifier.
    pub async fn proofs(&self) -> Vec<(String, String)> {
        let proofs = self.get("proofs").await;
        serde_json::from_value(proofs).expect("pairs of texts")
    }

    async fn get(&self, what: &str) -> Value {
        let url = format!("{}/{what}", self.issuer);
        let answer = client().get(url).send().await.expect("an answer");
        let text = answer.text().await.expect("its text");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Makes every token of a kind invalid: `forget` refresh tokens, `expire` access tokens.
    pub async fn post(&self, what: &str) {
        let url = format!("{}/{what}", self.issuer);
        client().post(url).send().await.expect("an answer");
    }

    /// `text` with the ports of this process taken out.
    pub fn plain(&self, text: &str) -> String {
        let host = |place: &str| place.trim_start_matches("http://").to_owned();
        text.replace(&self.url, "URL")
            .replace(&self.issuer, "ISSUER")
            .replace(&self.elsewhere, "ELSEWHERE")
            .replace(self.url.trim_end_matches("/mcp"), "SERVER")
            .replace(&host(&self.issuer), "ISSUER_HOST")
            .replace(&host(&self.elsewhere), "ELSEWHERE_HOST")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A browser that logs in by itself: opens the login page and follows the redirect back.
pub struct Follow;

impl OpenUrl for Follow {
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>> {
        async move { follow(page.url.as_str()).await.map_err(io::Error::other) }.boxed()
    }
}

pub async fn follow(url: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let page = client().get(url).send().await?;
    let place = |name: &str| {
        let value = page.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    // A request with a wrong state comes first.
    if let Some(also) = place("also") {
        let answer = client().get(also).send().await?;
        assert_eq!(answer.status(), 404);
    }
    let back = place("location");
    let back = back.ok_or_else(|| format!("{} without a way back", page.status()))?;
    let answer = client().get(back).send().await?;
    assert_eq!(answer.status(), 200);
    Ok(())
}

/// Goes back without having logged in.
pub async fn decline(
    url: &str,
    issuer: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let page = reqwest::Url::parse(url)?;
    let asked = |name: &str| {
        let mut pairs = page.query_pairs();
        let value = pairs.find(|(key, _)| key == name);
        value.map(|(_, value)| value.into_owned())
    };
    let mut back = reqwest::Url::parse(&asked("redirect_uri").ok_or("no way back")?)?;
    back.query_pairs_mut()
        .append_pair("error", "access_denied")
        .append_pair("state", &asked("state").ok_or("no state")?)
        .append_pair("iss", issuer);
    let answer = client().get(back).send().await?;
    assert_eq!(answer.status(), 200);
    Ok(())
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client")
}
