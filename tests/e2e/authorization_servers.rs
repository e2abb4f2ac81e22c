//! Logging in at authorization servers that differ, and at ones that cannot be trusted.

use std::sync::Arc;

use callgate::auth::{self, LoginRequest};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guarded::{Follow, Guarded};

/// What comes of a login with these quirks.
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

#[track_caller]
fn check(quirks: Value, expected: Expect) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    expected.assert_eq(&runtime.block_on(outcome(quirks)));
}

#[test]
fn authorization_servers_that_differ_and_may() {
    check(json!({}), expect![[r#"ISSUER ["read"]"#]]);
    check(
        json!({ "wrongStateFirst": true }),
        expect![[r#"ISSUER ["read"]"#]],
    );
    check(
        json!({ "metadata": { "token_endpoint": "ELSEWHERE/token" } }),
        expect![[r#"ISSUER ["read"]"#]],
    );
    check(
        json!({ "secret": "registered with it" }),
        expect![[r#"ISSUER ["read"]"#]],
    );
    check(
        json!({ "metadata": { "scopes_supported": ["read", "offline_access"] } }),
        expect![[r#"ISSUER ["read", "offline_access"]"#]],
    );
    let silent = json!({ "authorization_response_iss_parameter_supported": null });
    check(
        json!({ "metadata": silent, "iss": "" }),
        expect![[r#"ISSUER ["read"]"#]],
    );
}

#[test]
fn authorization_servers_that_cannot_be_trusted() {
    let metadata = |name: &str, value: Value| json!({ "metadata": { name: value } });
    check(
        metadata("issuer", json!("http://127.0.0.1:1")),
        expect![[
            r#"cannot find how to log in at server `web`: Authorization server issuer mismatch: expected ISSUER/, received http://127.0.0.1:1"#
        ]],
    );
    check(
        metadata("issuer", Value::Null),
        expect![[
            r#"cannot find how to log in at server `web`: Authorization server response missing required issuer: expected ISSUER/"#
        ]],
    );
    check(
        metadata("code_challenge_methods_supported", Value::Null),
        expect![
            "cannot find how to log in at server `web`: its authorization server does not say that it checks PKCE by S256"
        ],
    );
    check(
        metadata("code_challenge_methods_supported", json!(["plain"])),
        expect![
            "cannot find how to log in at server `web`: its authorization server does not say that it checks PKCE by S256"
        ],
    );
    check(
        metadata("token_endpoint", json!("http://as.example/token")),
        expect![
            "cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to http://as.example: it is not https"
        ],
    );
    check(
        metadata("token_endpoint", json!("https://169.254.169.254/token")),
        expect![
            "cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to https://169.254.169.254: it is a private address"
        ],
    );
    check(
        metadata("authorization_endpoint", json!("javascript:alert(1)")),
        expect![
            "cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to a javascript: URL: it is not a web address"
        ],
    );
    check(
        metadata("registration_endpoint", json!("https://me:pw@as.example/")),
        expect![
            "cannot find how to log in at server `web`: an endpoint cannot be used: a login must not go to https://as.example: it holds a user name"
        ],
    );
    check(
        metadata("registration_endpoint", Value::Null),
        expect![[
            r#"the "oauth" of server `web` cannot be used: the authorization server registers no clients by itself; register one there and write its "clientId" (and "clientSecret")"#
        ]],
    );
    check(
        json!({ "filling": 300_000 }),
        expect![
            "cannot find how to log in at server `web`: the metadata at ISSUER cannot be fetched: ISSUER answered with more than 256 KiB"
        ],
    );
    check(
        json!({ "redirectMetadata": "ELSEWHERE/.well-known/oauth-authorization-server" }),
        expect![
            "cannot find how to log in at server `web`: the metadata at ISSUER cannot be fetched: OAuth discovery redirect to non-same-origin URL rejected: ELSEWHERE/.well-known/oauth-authorization-server"
        ],
    );
    let resource = |name: &str, value: &str| json!({ "resource": { name: value } });
    check(
        resource("resource", "https://other.example/mcp"),
        expect![
            "cannot find how to log in at server `web`: Protected resource metadata at SERVER/.well-known/oauth-protected-resource/mcp is unusable: Protected resource metadata resource mismatch: reference 'URL', permitted 'https://other.example/mcp'"
        ],
    );
    check(
        json!({ "resource": { "authorization_servers": ["http://as.example"] } }),
        expect![
            "cannot find how to log in at server `web`: the metadata at http://as.example cannot be fetched: a login must not go to http://as.example: it is not https"
        ],
    );
    check(
        json!({ "resource": { "authorization_servers": ["https://169.254.169.254"] } }),
        expect![
            "cannot find how to log in at server `web`: Protected resource metadata at SERVER/.well-known/oauth-protected-resource/mcp names authorization servers https://169.254.169.254, but none published usable metadata"
        ],
    );
    check(
        json!({ "iss": "https://evil.example" }),
        expect!["the login at server `web` failed: the browser came back from another issuer"],
    );
    check(
        json!({ "iss": "https://evil.example", "refuse": "access_denied" }),
        expect!["the login at server `web` failed: the browser came back from another issuer"],
    );
    check(
        json!({ "iss": "" }),
        expect![
            "the login at server `web` failed: the browser came back without the issuer's name"
        ],
    );
    check(
        json!({ "refuse": "access_denied" }),
        expect![[
            r#"the login at server `web` failed: the authorization server refused it with "access_denied""#
        ]],
    );
    check(
        json!({ "refuse": "call 0800-1234 now" }),
        expect![
            "the login at server `web` failed: the authorization server refused it with an unknown OAuth error code"
        ],
    );
}

/// Of a registration that is refused, the code is told and nothing else.
#[test]
fn registrations_that_are_refused() {
    check(
        json!({ "refuseRegistration": {
            "error": "invalid_redirect_uri", "error_description": "call 0800-1234 now",
        } }),
        expect![[
            r#"the login at server `web` failed: the client could not be registered: HTTP 400 Bad Request, "invalid_redirect_uri""#
        ]],
    );
    check(
        json!({ "refuseRegistration": { "error": "call 0800-1234 now" } }),
        expect![
            "the login at server `web` failed: the client could not be registered: HTTP 400 Bad Request, an unknown OAuth error code"
        ],
    );
    check(
        json!({ "refuseRegistration": "invalid_redirect_uri" }),
        expect![
            "the login at server `web` failed: the client could not be registered: HTTP 400 Bad Request"
        ],
    );
}

/// A login takes what a renewal takes, and says what it does not take.
#[test]
fn answers_with_tokens_that_differ() {
    let answer = |name: &str, value: Value| json!({ "answer": { name: value } });
    for seconds in [
        json!("3600"),
        json!(3600.5),
        json!(-5),
        json!(1e30),
        json!("soon"),
    ] {
        check(
            answer("expires_in", seconds),
            expect![[r#"ISSUER ["read"]"#]],
        );
    }
    check(
        answer("scope", Value::Null),
        expect![[r#"ISSUER ["read"]"#]],
    );
    check(
        answer("refresh_token", json!("")),
        expect![[r#"ISSUER ["read"]"#]],
    );
    check(
        answer("token_type", Value::Null),
        expect![
            "the login at server `web` failed: the authorization server does not say what kind of token it issued"
        ],
    );
    check(
        answer("token_type", json!("DPoP")),
        expect![
            "the login at server `web` failed: the authorization server issued another kind of token than a bearer token"
        ],
    );
    check(
        answer("access_token", json!(7)),
        expect![
            "the login at server `web` failed: the authorization server's answer is not one with a token"
        ],
    );
    check(
        json!({ "answerFilling": 300_000 }),
        expect!["the login at server `web` failed: ISSUER answered with more than 256 KiB"],
    );
    check(
        json!({ "answerStatus": 307 }),
        expect!["the login at server `web` failed: the authorization server answered 307"],
    );
    check(
        json!({ "answerStatus": 503 }),
        expect!["the login at server `web` failed: the authorization server answered 503"],
    );
}
