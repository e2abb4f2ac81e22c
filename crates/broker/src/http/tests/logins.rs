//! Logins that requests wait for, at a server that issues its tokens itself.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Barrier, watch};
use url::Url;

use super::server::{Request, Server};
use super::{Endpoint, in_time};
use crate::http::endpoint::Exchange;
use crate::spec::{Http, Transport};
use callgate_auth::{Browser, OAuth, OpenUrl, Prompt, TokenPlace, authorize};

/// How the server and its authorization server are.
#[derive(Default)]
struct Ways {
    /// Whether every token is refused.
    refuses: AtomicBool,
    /// Whether tokens are issued without one to renew them by.
    no_refresh: bool,
    /// The status of every answer of the token endpoint, instead of 200.
    token_status: Option<&'static str>,
    /// How a client is registered that has a secret.
    registered_as: Option<&'static str>,
    /// The scope of every token.
    scope: &'static str,
    /// The scope that `/mcp` wants.
    wants: &'static str,
    /// The requests without a token that are refused at the same time.
    together: Option<Barrier>,
    /// Whether the token endpoint may answer with its status.
    goes_on: watch::Sender<bool>,
    issued: AtomicUsize,
}

impl Ways {
    async fn answer(&self, request: &mut Request) {
        let base = format!("http://{}", request.header("host"));
        let path = request
            .line
            .split(' ')
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        let answer = match path.as_str() {
            "/mcp" => return self.serve(request, &base).await,
            "/.well-known/oauth-protected-resource/mcp" => json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [base],
            }),
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }),
            "/register" => {
                request.log.note("registered");
                let asked: Value = serde_json::from_str(&request.body).expect("JSON");
                let mut client = json!({
                    "client_id": "c", "redirect_uris": asked["redirect_uris"],
                });
                if let Some(method) = self.registered_as {
                    client["client_secret"] = "hunter2".into();
                    client["token_endpoint_auth_method"] = method.into();
                }
                client
            }
            "/token" => match self.token_status {
                Some(status) => {
                    let mut goes_on = self.goes_on.subscribe();
                    goes_on.wait_for(|on| *on).await.expect("it is not gone");
                    return request.answer(status, "", "{}").await;
                }
                None => {
                    let form = request.body.contains("client_secret=hunter2");
                    let header = request.header("authorization") != "-";
                    request.log.note(match (form, header) {
                        (false, false) => "without a secret",
                        (true, false) => "with a secret in the form",
                        (_, true) => "with a header",
                    });
                    self.token()
                }
            },
            _ => return request.answer("404 Not Found", "", "").await,
        };
        request.json(&answer.to_string()).await;
    }

    fn token(&self) -> Value {
        let number = self.issued.fetch_add(1, Ordering::SeqCst) + 1;
        let mut answer = json!({
            "access_token": format!("access-{number}"), "token_type": "Bearer",
            "expires_in": 3600, "scope": self.scope,
        });
        if !self.no_refresh {
            answer["refresh_token"] = format!("refresh-{number}").into();
        }
        answer
    }

    async fn serve(&self, request: &mut Request, base: &str) {
        let has_token = request.header("authorization") != "-";
        if let (Some(together), false) = (&self.together, has_token) {
            together.wait().await;
        }
        let (status, more) = if !has_token || self.refuses.load(Ordering::SeqCst) {
            ("401 Unauthorized", String::new())
        } else if !self.scope.split(' ').any(|scope| scope == self.wants) {
            let more = format!(r#", error="insufficient_scope", scope="{}""#, self.wants);
            ("403 Forbidden", more)
        } else {
            return request.json("{}").await;
        };
        let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
        let challenge =
            format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"{more}\r\n");
        request.answer(status, &challenge, "").await;
    }
}

/// Logs in on every page.
#[derive(Default)]
struct Person(AtomicUsize);

impl OpenUrl for Person {
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, io::Result<()>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        async move {
            let page = Url::parse(url).map_err(io::Error::other)?;
            let asked = |name: &str| {
                let found = page.query_pairs().find(|(key, _)| key == name);
                found.map_or_else(String::new, |(_, value)| value.into_owned())
            };
            let back = format!("{}?code=x&state={}", asked("redirect_uri"), asked("state"));
            let client = reqwest::Client::builder().no_proxy().build();
            let gone = client.map_err(io::Error::other)?.get(back).send().await;
            assert_eq!(gone.map_err(io::Error::other)?.status(), 200);
            Ok(())
        }
        .boxed()
    }
}

/// A server, a person, and where their logins are kept.
struct Scene {
    server: Server,
    ways: Arc<Ways>,
    person: Arc<Person>,
    oauth: OAuth,
    _folder: TempDir,
}

impl Scene {
    async fn new(ways: Ways) -> Self {
        let ways = Arc::new(ways);
        let shared = Arc::clone(&ways);
        let server = Server::start(move |mut request| {
            let ways = Arc::clone(&shared);
            async move { ways.answer(&mut request).await }.boxed()
        });
        let folder = TempDir::new().expect("a folder");
        let person = Arc::<Person>::default();
        let oauth = OAuth {
            browser: Some(Browser::new(Arc::clone(&person) as Arc<dyn OpenUrl>)),
            ..kept_in(folder.path())
        };
        Self {
            server: server.await,
            ways,
            person,
            oauth,
            _folder: folder,
        }
    }

    /// A new connection.
    fn connect(&self) -> Endpoint {
        self.connect_with(&self.oauth)
    }

    fn connect_with(&self, oauth: &OAuth) -> Endpoint {
        let http = Http {
            url: self.server.url(),
            oauth: Some(oauth.clone()),
            ..Http::default()
        };
        let secrets = Transport::Http(http.clone()).redact();
        let target = callgate_auth::Endpoint {
            server: "s".to_owned(),
            url: http.url.parse().expect("a URL"),
            oauth: oauth.clone(),
        };
        let authorize = authorize(&target, &secrets);
        Endpoint::new(&http, authorize, secrets).expect("it is a URL")
    }

    fn pages(&self) -> usize {
        self.person.0.load(Ordering::SeqCst)
    }
}

fn kept_in(folder: &Path) -> OAuth {
    OAuth {
        folder: Some(folder.to_owned()),
        place: TokenPlace::File,
        ..OAuth::default()
    }
}

/// The status of a request's answer, or why there is none.
async fn ask(endpoint: &Endpoint) -> String {
    ask_as(endpoint, None).await
}

async fn ask_as(endpoint: &Endpoint, id: Option<u64>) -> String {
    let (headers, body) = (HeaderMap::new(), Bytes::new());
    let exchange = Exchange {
        id,
        ..Exchange::new(Method::POST, headers, body, Prompt::Allowed)
    };
    let asked = endpoint.exchange(exchange);
    match in_time(asked).await {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) => error.reason,
    }
}

#[tokio::test]
async fn a_login_that_the_server_takes_is_made_anew_when_it_has_ended() {
    let scene = Scene::new(Ways {
        no_refresh: true,
        scope: "read",
        wants: "read",
        ..Ways::default()
    })
    .await;
    assert_eq!(ask(&scene.connect()).await, "200");
    scene.ways.refuses.store(true, Ordering::SeqCst);
    // The next page is the last one, until the server takes tokens again.
    for _ in 0..3 {
        let ended = "server `s` needs a new login: it refuses the token, and there is nothing to \
                     renew it by; run `callgate auth login s`";
        assert_eq!(ask(&scene.connect()).await, ended);
        assert_eq!(scene.pages(), 2);
    }
    scene.ways.refuses.store(false, Ordering::SeqCst);
    assert_eq!(ask(&scene.connect()).await, "200");
    assert_eq!(
        scene.server.log(),
        "registered\nwithout a secret\n".repeat(2)
    );
}

#[tokio::test]
async fn a_server_that_refuses_each_new_token_has_one_page_shown() {
    let scene = Scene::new(Ways {
        refuses: AtomicBool::new(true),
        scope: "read",
        wants: "read",
        ..Ways::default()
    })
    .await;
    assert_eq!(ask(&scene.connect()).await, "401");
    for _ in 0..3 {
        let refused = "server `s` refuses its token; run `callgate auth login s`";
        assert_eq!(ask(&scene.connect()).await, refused);
    }
    assert_eq!(scene.pages(), 1);
    let log = scene.server.log();
    assert_eq!(log.matches("registered").count(), 1, "{log}");
}

#[tokio::test]
async fn a_scope_that_is_not_granted_is_asked_for_once() {
    let scene = Scene::new(Ways {
        scope: "read",
        wants: "write",
        ..Ways::default()
    })
    .await;
    let endpoint = scene.connect();
    let narrow = "server `s` wants the scope \"write\"; run `callgate auth login s --scope write`";
    for expected in ["403", narrow, narrow] {
        assert_eq!(ask(&endpoint).await, expected);
        // One for a login, and one for the scope.
        assert_eq!(scene.pages(), 2);
    }
}

#[tokio::test]
async fn requests_that_wait_for_a_login_that_fails_show_one_page() {
    const REQUESTS: u64 = 10;
    let scene = Scene::new(Ways {
        token_status: Some("503 Service Unavailable"),
        scope: "read",
        wants: "read",
        together: Some(Barrier::new(REQUESTS as usize)),
        ..Ways::default()
    })
    .await;
    let endpoint = scene.connect();
    let all_wait = async {
        while !(0..REQUESTS).all(|id| endpoint.held_up(id).is_some()) {
            tokio::task::yield_now().await;
        }
        scene.ways.goes_on.send_replace(true);
    };
    let asked = join_all((0..REQUESTS).map(|id| ask_as(&endpoint, Some(id))));
    let (asked, ()) = in_time(join(asked, all_wait)).await;
    let failed = "the login at server `s` failed: the authorization server answered 503";
    assert_eq!(asked, vec![failed; REQUESTS as usize]);
    assert_eq!(scene.pages(), 1);
}

#[tokio::test]
async fn a_login_at_another_issuer_than_the_configured_one_does_not_count() {
    let scene = Scene::new(Ways {
        scope: "read",
        wants: "read",
        ..Ways::default()
    })
    .await;
    assert_eq!(ask(&scene.connect()).await, "200");
    let pinned = |issuer: String| OAuth {
        issuer: Some(issuer),
        browser: None,
        ..scene.oauth.clone()
    };
    let right = pinned(format!("http://{}", scene.server.address));
    assert_eq!(ask(&scene.connect_with(&right)).await, "200");
    let other = pinned("https://other.example".to_owned());
    assert_eq!(
        ask(&scene.connect_with(&other)).await,
        "server `s` has a login at another authorization server than its \"issuer\"; run \
         `callgate auth login s`"
    );
}

#[tokio::test]
async fn a_client_shows_who_it_is_as_it_is_registered() {
    for (method, shown) in [
        ("client_secret_basic", "with a header"),
        ("client_secret_post", "with a secret in the form"),
        ("none", "without a secret"),
        // No way that is known: then by what the authorization server takes.
        ("private_key_jwt", "with a header"),
    ] {
        let scene = Scene::new(Ways {
            registered_as: Some(method),
            scope: "read",
            wants: "read",
            ..Ways::default()
        })
        .await;
        assert_eq!(ask(&scene.connect()).await, "200", "{method}");
        assert_eq!(scene.server.log(), format!("registered\n{shown}\n"));
    }
}
