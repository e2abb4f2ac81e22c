//! Logging in at authorization servers that differ, and at ones that cannot be trusted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::faces::auth;
use callgate::faces::auth::{LoginPage, LoginRequest, OAuth, OpenUrl, TokenPlace};
use expect_test::{Expect, expect};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guarded::{Follow, Guarded, follow};

/// The outcome of a login with these quirks: issuer and scopes, or the error message.
async fn outcome(quirks: Value) -> String {
    let guarded = Guarded::start(&quirks);
    let folder = TempDir::new().expect("a folder");
    let server = guarded.spec(folder.path());
    let login = auth::login(&server, LoginRequest::new(Arc::new(Follow))).await;
    let kept = std::fs::read_dir(folder.path())
        .expect("the folder")
        .count();
    let text = match login {
        Ok(status) => format!("{} {:?}", status.issuer, status.scopes),
        Err(error) => {
            assert_eq!(kept, 0, "nothing is kept of a login that failed");
            error.to_string()
        }
    };
    guarded.plain(&text)
}

/// The outcome of a login with each of these quirks, a line each.
#[track_caller]
fn check<const N: usize>(quirks: [Value; N], expected: Expect) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let outcomes = quirks.map(|quirks| runtime.block_on(outcome(quirks)) + "\n");
    expected.assert_eq(&outcomes.concat());
}

/// A page at the third origin that names this issuer, with these members of the metadata.
fn apart(iss: &str, mut metadata: Value) -> Value {
    metadata["authorization_endpoint"] = "ELSEWHERE/authorize".into();
    json!({ "iss": iss, "metadata": metadata })
}

fn metadata(name: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { name: value.into() } })
}

#[test]
fn authorization_servers_with_permitted_differences_are_accepted() {
    let silent = json!({ "authorization_response_iss_parameter_supported": null });
    // The page names the issuer unasked.
    let mut apart_by_name = apart("", silent.clone());
    apart_by_name["iss"] = Value::Null;
    check(
        [
            json!({}),
            json!({ "wrongStateFirst": true }),
            metadata("token_endpoint", "ELSEWHERE/token"),
            json!({ "secret": "registered with it" }),
            json!({ "metadata": silent, "iss": "" }),
            metadata("scopes_supported", json!(["read", "offline_access"])),
            json!({ "answer": { "expires_in": "3600", "scope": null, "refresh_token": "" } }),
            json!({ "tokens": ["ab".repeat(8 << 10), "c".repeat(16 << 10)] }),
            metadata("authorization_endpoint", "ELSEWHERE/authorize"),
            apart_by_name,
        ],
        expect![[r#"
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read", "offline_access"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
        "#]],
    );
}

#[test]
fn untrustworthy_authorization_servers_are_refused() {
    let resource = |name: &str, value: Value| json!({ "resource": { name: value } });
    let elsewhere = "ELSEWHERE/.well-known/oauth-authorization-server";
    let silent = json!({ "authorization_response_iss_parameter_supported": null });
    check(
        [
            metadata("issuer", "http://127.0.0.1:1"),
            metadata("issuer", Value::Null),
            metadata("code_challenge_methods_supported", Value::Null),
            metadata("code_challenge_methods_supported", json!(["plain"])),
            metadata("token_endpoint", "http://as.example/token"),
            metadata("token_endpoint", "https://169.254.169.254/token"),
            metadata("authorization_endpoint", "javascript:alert(1)"),
            metadata(
                "authorization_endpoint",
                "ISSUER/authorize?redirect_uri=x:y",
            ),
            metadata("registration_endpoint", "https://me:pw@as.example/"),
            metadata("registration_endpoint", Value::Null),
            json!({ "filling": 300_000 }),
            json!({ "answerFilling": 300_000 }),
            json!({ "answerStatus": 307 }),
            json!({ "answer": { "token_type": "DPoP" } }),
            json!({ "redirectMetadata": elsewhere }),
            resource("resource", json!("https://other.example/mcp")),
            resource("resource", json!(7)),
            resource("authorization_servers", json!("ISSUER")),
            resource("authorization_servers", json!(["http://as.example"])),
            resource("authorization_servers", json!(["https://169.254.169.254"])),
            json!({ "iss": "https://evil.example" }),
            json!({ "iss": "https://evil.example", "refuse": "access_denied" }),
            json!({ "iss": "" }),
            apart("", silent.clone()),
            apart("https://elsewhere.example", silent),
            json!({ "tokens": ["ab".repeat(8 << 10) + "c"] }),
            json!({ "secret": "é" }),
            json!({ "refuse": "access_denied" }),
            json!({ "refuse": "call 0800-1234 now" }),
        ],
        expect![[r#"
            cannot find how to log in at server `web`: Authorization server issuer mismatch: expected ISSUER/, received http://127.0.0.1:1
            cannot find how to log in at server `web`: Authorization server response missing required issuer: expected ISSUER/
            cannot find how to log in at server `web`: its authorization server does not say that it checks PKCE by S256
            cannot find how to log in at server `web`: its authorization server does not say that it checks PKCE by S256
            cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to http://as.example: it is not https
            cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to https://169.254.169.254: it is a private address
            cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to a javascript: URL: it is not a web address
            the login at server `web` failed: the URL of its page has a parameter twice
            cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to https://as.example: it holds a user name
            the "oauth" of server `web` cannot be used: the authorization server registers no clients by itself; register one there and write its "clientId" (and "clientSecret")
            cannot find how to log in at server `web`: the metadata at ISSUER cannot be fetched: ISSUER answered with more than 256 KiB
            the login at server `web` failed: ISSUER answered with more than 256 KiB
            the login at server `web` failed: the authorization server answered 307
            the login at server `web` failed: the authorization server issued a token that is not a bearer token
            cannot find how to log in at server `web`: the metadata at ISSUER cannot be fetched: OAuth discovery redirect to non-same-origin URL rejected: ELSEWHERE/.well-known/oauth-authorization-server
            cannot find how to log in at server `web`: Protected resource metadata at SERVER/.well-known/oauth-protected-resource/mcp is unusable: Protected resource metadata resource mismatch: reference 'URL', permitted 'https://other.example/mcp'
            cannot find how to log in at server `web`: the metadata at SERVER cannot be fetched: its "resource" has the wrong type (RFC 9728)
            cannot find how to log in at server `web`: the metadata at SERVER cannot be fetched: its "authorization_servers" has the wrong type (RFC 9728)
            cannot find how to log in at server `web`: the metadata at http://as.example cannot be fetched: a login must not go to http://as.example: it is not https
            cannot find how to log in at server `web`: Protected resource metadata at SERVER/.well-known/oauth-protected-resource/mcp names authorization servers https://169.254.169.254, but none published usable metadata
            the login at server `web` failed: the browser came back from another issuer
            the login at server `web` failed: the browser came back from another issuer
            the login at server `web` failed: the browser came back without the issuer's name
            the login at server `web` failed: the browser came back without the issuer's name, and its page is at "ELSEWHERE_HOST" and its issuer is "ISSUER"; if both belong together, write that "issuer" in the server's "oauth", or run `callgate auth login web` in a terminal
            the login at server `web` failed: the browser came back from another issuer
            the login at server `web` failed: the authorization server issued a token of more than 16 KiB
            the login at server `web` failed: the client was registered with a secret with characters that OAuth does not allow
            the login at server `web` failed: the authorization server refused it with "access_denied"
            the login at server `web` failed: the authorization server refused it with an unknown OAuth error code
        "#]],
    );
}

/// The error of a refused registration has the HTTP status and a known OAuth error code only.
#[test]
fn refused_registration_error_shows_known_code_only() {
    let (error, description) = ("invalid_redirect_uri", "call 0800-1234 now");
    check(
        [
            json!({ "refuseRegistration": { "error": error, "error_description": description } }),
            json!({ "refuseRegistration": { "error": description } }),
            json!({ "refuseRegistration": error }),
        ],
        expect![[r#"
            the login at server `web` failed: the client could not be registered: HTTP 400 Bad Request, "invalid_redirect_uri"
            the login at server `web` failed: the client could not be registered: HTTP 400 Bad Request, an unknown OAuth error code
            the login at server `web` failed: the client could not be registered: HTTP 400 Bad Request
        "#]],
    );
}

/// A person who logs in, and who says this about pages that are not at their issuers.
struct Says {
    yes: bool,
    asked: AtomicUsize,
}

impl OpenUrl for Says {
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>> {
        async { follow(page.url.as_str()).await.map_err(io::Error::other) }.boxed()
    }

    fn approve<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<Option<bool>>> {
        assert!(
            page.to_string()
                .starts_with("server web sends you to 127.0.0.1:")
        );
        self.asked.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(Some(self.yes))).boxed()
    }
}

#[tokio::test]
async fn login_page_on_other_host_is_approved_once() {
    let silent = json!({ "authorization_response_iss_parameter_supported": null });
    let guarded = Guarded::start(&apart("", silent));
    let folder = TempDir::new().expect("a folder");
    let log_in = async |yes, issuer: Option<&str>| {
        let person = Arc::new(Says {
            yes,
            asked: AtomicUsize::new(0),
        });
        let server = guarded.spec_with(OAuth {
            issuer: issuer.map(str::to_owned),
            place: TokenPlace::File,
            folder: Some(folder.path().to_owned()),
            ..OAuth::default()
        });
        let login = auth::login(&server, LoginRequest::new(person.clone())).await;
        let error = login.err().map_or(String::new(), |error| error.to_string());
        (guarded.plain(&error), person.asked.load(Ordering::SeqCst))
    };
    let (error, asked) = log_in(false, None).await;
    expect![[r#"the login at server `web` failed: its page is at "ELSEWHERE_HOST" and its issuer is "ISSUER", and that was not approved"#]].assert_eq(&error);
    assert_eq!(asked, 1);
    assert_eq!(guarded.seen().await["authorizations"], Value::Null);
    // The issuer of the configuration is one that a person has named.
    let issuer = guarded.issuer.as_str();
    assert_eq!(log_in(false, Some(issuer)).await, (String::new(), 0));
    // That is no approval of the page, once the configuration names no issuer.
    assert_eq!(log_in(true, None).await, (String::new(), 1));
    assert_eq!(log_in(false, None).await, (String::new(), 0));
    assert_eq!(log_in(false, None).await, (String::new(), 0));
}
