//! Logging in at authorization servers that differ, and at ones that cannot be trusted.

use std::sync::Arc;

use callgate::auth::{self, LoginRequest};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guarded::{Follow, Guarded};

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

fn metadata(name: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { name: value.into() } })
}

#[test]
fn authorization_servers_that_differ_and_may() {
    let silent = json!({ "authorization_response_iss_parameter_supported": null });
    check(
        [
            json!({}),
            json!({ "wrongStateFirst": true }),
            metadata("token_endpoint", "ELSEWHERE/token"),
            json!({ "secret": "registered with it" }),
            json!({ "metadata": silent, "iss": "" }),
            metadata("scopes_supported", json!(["read", "offline_access"])),
            json!({ "answer": { "expires_in": "3600", "scope": null, "refresh_token": "" } }),
        ],
        expect![[r#"
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read"]
            ISSUER ["read", "offline_access"]
            ISSUER ["read"]
        "#]],
    );
}

#[test]
fn authorization_servers_that_cannot_be_trusted() {
    let resource = |name: &str, value: Value| json!({ "resource": { name: value } });
    let elsewhere = "ELSEWHERE/.well-known/oauth-authorization-server";
    check(
        [
            metadata("issuer", "http://127.0.0.1:1"),
            metadata("issuer", Value::Null),
            metadata("code_challenge_methods_supported", Value::Null),
            metadata("code_challenge_methods_supported", json!(["plain"])),
            metadata("token_endpoint", "http://as.example/token"),
            metadata("token_endpoint", "https://169.254.169.254/token"),
            metadata("authorization_endpoint", "javascript:alert(1)"),
            metadata("registration_endpoint", "https://me:pw@as.example/"),
            metadata("registration_endpoint", Value::Null),
            json!({ "filling": 300_000 }),
            json!({ "answerFilling": 300_000 }),
            json!({ "answerStatus": 307 }),
            json!({ "answer": { "token_type": "DPoP" } }),
            json!({ "redirectMetadata": elsewhere }),
            resource("resource", json!("https://other.example/mcp")),
            resource("authorization_servers", json!(["http://as.example"])),
            resource("authorization_servers", json!(["https://169.254.169.254"])),
            json!({ "iss": "https://evil.example" }),
            json!({ "iss": "https://evil.example", "refuse": "access_denied" }),
            json!({ "iss": "" }),
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
            cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to https://as.example: it holds a user name
            the "oauth" of server `web` cannot be used: the authorization server registers no clients by itself; register one there and write its "clientId" (and "clientSecret")
            cannot find how to log in at server `web`: the metadata at ISSUER cannot be fetched: ISSUER answered with more than 256 KiB
            the login at server `web` failed: ISSUER answered with more than 256 KiB
            the login at server `web` failed: the authorization server answered 307
            the login at server `web` failed: the authorization server issued another kind of token than a bearer token
            cannot find how to log in at server `web`: the metadata at ISSUER cannot be fetched: OAuth discovery redirect to non-same-origin URL rejected: ELSEWHERE/.well-known/oauth-authorization-server
            cannot find how to log in at server `web`: Protected resource metadata at SERVER/.well-known/oauth-protected-resource/mcp is unusable: Protected resource metadata resource mismatch: reference 'URL', permitted 'https://other.example/mcp'
            cannot find how to log in at server `web`: the metadata at http://as.example cannot be fetched: a login must not go to http://as.example: it is not https
            cannot find how to log in at server `web`: Protected resource metadata at SERVER/.well-known/oauth-protected-resource/mcp names authorization servers https://169.254.169.254, but none published usable metadata
            the login at server `web` failed: the browser came back from another issuer
            the login at server `web` failed: the browser came back from another issuer
            the login at server `web` failed: the browser came back without the issuer's name
            the login at server `web` failed: the authorization server refused it with "access_denied"
            the login at server `web` failed: the authorization server refused it with an unknown OAuth error code
        "#]],
    );
}

/// The error of a refused registration has the HTTP status and a known OAuth error code only.
#[test]
fn registrations_that_are_refused() {
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
