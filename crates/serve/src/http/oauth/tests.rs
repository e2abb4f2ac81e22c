//! Good tokens, forged tokens, and issuers that cannot be reached or trusted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use callgate::config::Loaded;
use futures::future::join_all;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::config::{HttpConfig, ServeConfig};

/// Keys for these tests and nothing else.
const OURS: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjERCJqfqEi774ugHVyEipPgnwiC1aAXkkP/isQbQbOOhRANCAATUc3GL7jmkwn1ALLDAohv2F4O6vAiue/1DrYOJpfcaCEXJkRsulRASoWNdawYoj/F19E5fGxoq2q+scTubqBDG";
const ANOTHER: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgX4SGuNhB+NyTe5mz9actjk8l32mqaYYrcI+S3d1a9nehRANCAATcTHQslosGFH6fQ8IdKh0FWn7JEC5yB/cLNV7pHg1X3aAUzzh5I7VDouNyvRXlIMq2f7BCNPoZ1BivsdQC7+nm";
const AUDIENCE: &str = "https://callgate.example/mcp";

fn key(text: &str) -> EncodingKey {
    EncodingKey::from_ec_der(&BASE64_STANDARD.decode(text).expect("base64"))
}

fn jwk(text: &str, kid: &str) -> Value {
    let jwk = Jwk::from_encoding_key(&key(text), Algorithm::ES256).expect("a key");
    let mut jwk = serde_json::to_value(jwk).expect("JSON");
    jwk["kid"] = kid.into();
    jwk
}

/// An authorization server.
struct Server {
    url: String,
    seen: Arc<Seen>,
    _serving: AbortOnDropHandle<()>,
}

struct Seen {
    url: String,
    keys: Mutex<Value>,
    metadata: Mutex<Value>,
    away: AtomicBool,
    asked: AtomicUsize,
}

impl Server {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}/realm", listener.local_addr().expect("a port"));
        let seen = Arc::new(Seen {
            url: url.clone(),
            keys: Mutex::new(json!({ "keys": [jwk(OURS, "one")] })),
            metadata: Mutex::new(json!({})),
            away: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route(
                "/.well-known/oauth-authorization-server/realm",
                get(metadata),
            )
            .route("/realm/keys", get(keys))
            .with_state(Arc::clone(&seen));
        let serving = async move {
            axum::serve(listener, router).await.expect("it serves");
        };
        Self {
            url,
            seen,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    /// The resource that takes its tokens, and asks for keys whenever it has not got one.
    fn impatient_resource(&self) -> Resource {
        let mut resource = self.resource();
        let issuer = Arc::get_mut(&mut resource.issuer);
        issuer.expect("the only one").pause = Duration::ZERO;
        resource
    }

    /// The resource that takes its tokens.
    fn resource(&self) -> Resource {
        let text = json!({ "serve": { "http": { "oauth": {
            "issuer": self.url, "resource": AUDIENCE, "scopes": ["use"]
        } } } });
        Resource::new(&config(&text).oauth.expect("oauth"), "").expect("a resource")
    }
}

fn config(file: &Value) -> HttpConfig {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("callgate.json");
    std::fs::write(&path, file.to_string()).expect("a file");
    let loaded = Loaded::<ServeConfig>::load(&path, |_| None);
    loaded.expect("a configuration").serve.http
}

async fn metadata(State(seen): State<Arc<Seen>>) -> Response {
    if seen.away.load(Ordering::Relaxed) {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let mut right = json!({ "issuer": seen.url, "jwks_uri": format!("{}/keys", seen.url) });
    let changed = seen.metadata.lock().expect("a lock");
    for (name, value) in changed.as_object().expect("an object") {
        right[name] = value.clone();
    }
    Json(right).into_response()
}

async fn keys(State(seen): State<Arc<Seen>>) -> Response {
    seen.asked.fetch_add(1, Ordering::Relaxed);
    Json(seen.keys.lock().expect("a lock").clone()).into_response()
}

fn header(algorithm: Algorithm, kid: Option<&str>) -> Header {
    let mut header = Header::new(algorithm);
    header.kid = kid.map(str::to_owned);
    header
}

/// A good token's claims, but for these.
fn claims(server: &Server, changed: Value) -> Value {
    let now = get_current_timestamp();
    let mut claims = json!({
        "iss": server.url, "aud": AUDIENCE, "sub": "u-1", "scope": "use more",
        "exp": now + 600, "nbf": now - 1, "iat": now,
    });
    for (name, value) in changed.as_object().expect("an object") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

fn signed(header: &Header, claims: &Value, with: &str) -> String {
    jsonwebtoken::encode(header, claims, &key(with)).expect("a token")
}

/// A token with good claims, signed with one of our keys, which it calls so.
fn token(server: &Server, kid: Option<&str>, with: &str) -> String {
    let header = header(Algorithm::ES256, kid);
    signed(&header, &claims(server, json!({})), with)
}

fn by_hand(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let part = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let (header, claims) = (header.to_string(), claims.to_string());
    [header.as_bytes(), claims.as_bytes(), signature]
        .map(part)
        .join(".")
}

/// The reason why a token is rejected.
async fn rejected(resource: &Resource, token: &str) -> String {
    match resource.check(token).await {
        Ok((subject, _)) => format!("taken: {subject}"),
        Err(Rejected::Invalid(why)) => why,
        Err(Rejected::Scope(scope)) => format!("scope {scope}"),
        Err(Rejected::NoKeys(why)) => {
            let (_, why) = why.split_once(" cannot be fetched: ").expect("the reason");
            format!("away: {why}")
        }
        Err(other) => format!("{other:?}"),
    }
}

/// Checks why a token is rejected.
async fn check(resource: &Resource, token: &str, expected: &str) {
    let shown: String = token.chars().take(400).collect();
    assert_eq!(rejected(resource, token).await, expected, "{shown}");
}

#[tokio::test]
async fn claims_are_checked() {
    let server = Server::start().await;
    let resource = server.resource();
    let now = get_current_timestamp();
    let audience = "the token is for a different audience";
    let issuer = "the token's issuer is not trusted";
    let owner = "the token has no usable owner (\"sub\")";
    let no_end = "the token has no \"exp\"";
    for (changed, expected) in [
        (json!({}), "taken: u-1"),
        (json!({ "aud": ["x", AUDIENCE] }), "taken: u-1"),
        (json!({ "scope": null, "scp": ["use"] }), "taken: u-1"),
        // Within the leeway.
        (json!({ "exp": now - 30 }), "taken: u-1"),
        (json!({ "nbf": now + 30 }), "taken: u-1"),
        (json!({ "exp": now - 90 }), "the token has expired"),
        (json!({ "nbf": now + 90 }), "the token is not valid yet"),
        (json!({ "exp": null }), no_end),
        (json!({ "exp": "later" }), no_end),
        (json!({ "exp": -1 }), no_end),
        (json!({ "nbf": "x" }), "the token cannot be read"),
        (json!({ "aud": "https://other.example/mcp" }), audience),
        (json!({ "aud": format!("{AUDIENCE}/") }), audience),
        (json!({ "aud": [] }), audience),
        (json!({ "aud": null }), "the token has no \"aud\""),
        (json!({ "iss": "https://evil.example" }), issuer),
        (json!({ "iss": [server.url, "https://a.b"] }), issuer),
        (json!({ "iss": null }), "the token has no \"iss\""),
        (json!({ "sub": null }), owner),
        (json!({ "sub": "a\u{0}b" }), owner),
        (json!({ "sub": 7 }), owner),
        (json!({ "scope": "more" }), "scope use"),
        (json!({ "scope": "useless" }), "scope use"),
        (json!({ "scope": null }), "scope use"),
    ] {
        let header = header(Algorithm::ES256, Some("one"));
        let token = signed(&header, &claims(&server, changed), OURS);
        check(&resource, &token, expected).await;
    }
    assert_eq!(server.seen.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn forged_tokens_are_rejected() {
    let server = Server::start().await;
    let resource = server.resource();
    let good = claims(&server, json!({}));
    let long = "k".repeat(300);
    let es256 = |kid| header(Algorithm::ES256, kid);
    let with = |header: &Header| signed(header, &good, OURS);
    let unread = "the token's header cannot be read, or its algorithm is not accepted";
    let unknown = "the token is signed with a key that its issuer does not have";
    let wrong = "the token's signature is wrong";

    // The public key as a shared secret.
    let public = serde_json::to_vec(&jwk(OURS, "one")).expect("JSON");
    let secret = EncodingKey::from_secret(&public);
    let shared = jsonwebtoken::encode(&header(Algorithm::HS256, Some("one")), &good, &secret);
    // A key in the token.
    let mut with_key = es256(Some("two"));
    with_key.jwk = Some(Jwk::from_encoding_key(&key(ANOTHER), Algorithm::ES256).expect("a key"));
    with_key.jku = Some(format!("{}/keys", server.url));
    let mut demanding = es256(Some("one"));
    demanding.crit = Some(vec!["exp".to_owned()]);
    let of_type = |typ: &str| {
        let mut header = es256(Some("one"));
        header.typ = Some(typ.to_owned());
        with(&header)
    };
    // The claims of one token with the signature of another.
    let token = with(&es256(Some("one")));
    let root = claims(&server, json!({ "sub": "root" }));
    let other = signed(&es256(Some("one")), &root, OURS);
    let part = |token: &'_ str, nth| token.split('.').nth(nth).expect("a part").to_owned();
    let mixed = [part(&token, 0), part(&other, 1), part(&token, 2)].join(".");
    let none = by_hand(&json!({ "alg": "nOnE", "kid": "one" }), &good, b"");
    let unsigned = by_hand(&json!({ "alg": "ES256", "kid": "one" }), &good, b"x");
    let no_access = "the token is not an access token";
    let demands = "the token's header requires unsupported extensions";

    for (token, expected) in [
        (by_hand(&json!({ "alg": "none" }), &good, b""), unread),
        (none, unread),
        (
            shared.expect("a token"),
            "the token's algorithm is not accepted",
        ),
        (signed(&es256(Some("one")), &good, ANOTHER), wrong),
        (signed(&es256(None), &good, ANOTHER), wrong),
        (with(&es256(None)), "taken: u-1"),
        (signed(&with_key, &good, ANOTHER), unknown),
        (with(&es256(Some(&long))), "the token's key id is too long"),
        (with(&demanding), demands),
        (of_type("at+JWT"), "taken: u-1"),
        (of_type("dpop+jwt"), no_access),
        (mixed, wrong),
        (unsigned, wrong),
    ] {
        check(&resource, &token, expected).await;
    }
    for kid in ["../../dev/null", "one\u{0}", "' OR 1=1 --", "ONE", ""] {
        check(&resource, &with(&es256(Some(kid))), unknown).await;
    }
    let (longer, large) = (format!("{token}.x"), "x".repeat(1 << 20));
    for malformed in ["", ".", "a.b.c", &longer, &large] {
        let why = rejected(&resource, malformed).await;
        assert!(!why.starts_with("taken"), "{why}");
    }
}

#[tokio::test]
async fn unknown_key_ids_do_not_reload_keys() {
    let server = Server::start().await;
    let resource = server.resource();
    let names = (0..100).map(|n| format!("made-up-{n}"));
    let tokens = names.map(|name| token(&server, Some(&name), ANOTHER));
    let tokens: Vec<String> = tokens.collect();
    let all = join_all(tokens.iter().map(|token| resource.check(token))).await;
    assert!(all.iter().all(Result::is_err));
    // The same for requests that are cancelled before their answer.
    for token in &tokens {
        let _gone = tokio::time::timeout(Duration::ZERO, resource.check(token)).await;
    }
    let good = token(&server, Some("one"), OURS);
    check(&resource, &good, "taken: u-1").await;
    assert_eq!(server.seen.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn new_keys_are_fetched() {
    let server = Server::start().await;
    let resource = server.impatient_resource();
    let old = token(&server, Some("one"), OURS);
    let new = token(&server, Some("two"), ANOTHER);
    check(&resource, &old, "taken: u-1").await;
    *server.seen.keys.lock().expect("a lock") = json!({ "keys": [jwk(ANOTHER, "two")] });
    check(&resource, &new, "taken: u-1").await;
    // Taken back.
    let unknown = "the token is signed with a key that its issuer does not have";
    check(&resource, &old, unknown).await;
    assert_eq!(server.seen.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn an_unreachable_issuer_lets_no_token_in() {
    let server = Server::start().await;
    server.seen.away.store(true, Ordering::Relaxed);
    let unknown = token(&server, Some("two"), OURS);
    let token = token(&server, Some("one"), OURS);
    let resource = server.resource();
    // Of the last place that was tried.
    check(&resource, &token, "away: it answers with status 404").await;
    server.seen.away.store(false, Ordering::Relaxed);
    // Not asked again at once.
    check(&resource, &token, "away: it answers with status 404").await;
    assert_eq!(rejected(&server.resource(), &token).await, "taken: u-1");

    // Keys that are known serve while it is away, and names that are not wait.
    let resource = server.impatient_resource();
    check(&resource, &token, "taken: u-1").await;
    server.seen.away.store(true, Ordering::Relaxed);
    check(&resource, &token, "taken: u-1").await;
    check(&resource, &unknown, "away: it answers with status 404").await;
}

#[tokio::test]
async fn untrusted_documents_are_refused() {
    let outcome = |metadata: Value, keys: Value| async move {
        let server = Server::start().await;
        *server.seen.metadata.lock().expect("a lock") = metadata;
        *server.seen.keys.lock().expect("a lock") = keys;
        let token = token(&server, Some("one"), OURS);
        rejected(&server.resource(), &token).await
    };
    let right = || json!({ "keys": [jwk(OURS, "one")] });
    let unusable = json!({ "keys": [
        { "kty": "oct", "k": "c2VjcmV0", "kid": "one" }, { "kty": "RSA" }, 7, null,
    ] });
    // One bad key takes no other one down.
    let some = json!({ "keys": [{ "kty": "x" }, jwk(ANOTHER, "three"), jwk(OURS, "one")] });
    let large = json!({ "keys": [jwk(OURS, "one")], "filling": "x".repeat(1 << 20) });
    let elsewhere = |keys: &str| json!({ "jwks_uri": keys });
    let no_keys = "away: it has no key for an accepted algorithm";
    let no_https = "away: the URL of its keys is not https";
    let foreign = json!({ "issuer": "https://evil.example" });
    for (metadata, keys, expected) in [
        (json!({}), right(), "taken: u-1"),
        (foreign, right(), "away: it answers with status 404"),
        (elsewhere("http://evil.example/keys"), right(), no_https),
        (elsewhere("file:///etc/passwd"), right(), no_https),
        (json!({}), json!([]), "away: its keys are not a JWK set"),
        (json!({}), unusable, no_keys),
        (json!({}), some, "taken: u-1"),
        (
            json!({}),
            large,
            "away: it answers with more than 262144 bytes",
        ),
    ] {
        assert_eq!(outcome(metadata, keys).await, expected);
    }
    // For another use.
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["encrypt"])),
        ("alg", json!("ES384")),
        ("alg", json!("ECDH-ES")),
    ] {
        let mut other = jwk(OURS, "one");
        other[name] = value;
        let said = outcome(json!({}), json!({ "keys": [other] })).await;
        assert_eq!(said, no_keys, "{name}");
    }
}

#[test]
fn metadata_of_the_resource() {
    let check = |resource: &str, expected: &str| {
        let text = json!({ "serve": { "http": { "oauth": {
            "issuer": "https://login.example", "resource": resource
        } } } });
        let resource = Resource::new(&config(&text).oauth.expect("oauth"), "");
        assert_eq!(resource.expect("a resource").metadata_url, expected);
    };
    for (origin, path, expected) in [
        ("https://a.example", "/mcp", "/mcp"),
        ("https://a.example:8443", "/x/mcp/", "/x/mcp"),
        ("https://a.example", "", ""),
    ] {
        let expected = format!("{origin}/.well-known/oauth-protected-resource{expected}");
        check(&format!("{origin}{path}"), &expected);
    }
}
