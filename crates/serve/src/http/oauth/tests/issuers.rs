//! The authorization server: asked seldom, away, renewing its keys, and not to be
//! trusted.

use std::time::Duration;

use futures::future::join_all;

use super::*;

#[tokio::test]
async fn names_that_are_made_up_cost_the_issuer_nothing() {
    let server = Server::start().await;
    let resource = server.resource();
    let good = claims(&server, json!({}));
    let tokens: Vec<String> = (0..100)
        .map(|n| {
            signed(
                &header(Algorithm::ES256, Some(&format!("made-up-{n}"))),
                &good,
                ANOTHER,
            )
        })
        .collect();
    let all = join_all(tokens.iter().map(|token| resource.check(token))).await;
    assert!(all.iter().all(Result::is_err));
    // Those that go away before there is an answer, too.
    for token in &tokens {
        let _gone = tokio::time::timeout(Duration::ZERO, resource.check(token)).await;
    }
    let good = signed(&header(Algorithm::ES256, Some("one")), &good, OURS);
    assert_eq!(rejected(&resource, &good).await, "taken: u-1");
    assert_eq!(server.seen.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn new_keys_are_asked_for() {
    let server = Server::start().await;
    let mut resource = server.resource();
    Arc::get_mut(&mut resource.issuer)
        .expect("the only one")
        .pause = Duration::ZERO;
    let good = claims(&server, json!({}));
    let old = signed(&header(Algorithm::ES256, Some("one")), &good, OURS);
    let new = signed(&header(Algorithm::ES256, Some("two")), &good, ANOTHER);
    assert_eq!(rejected(&resource, &old).await, "taken: u-1");
    *server.seen.keys.lock().expect("a lock") = json!({ "keys": [jwk(ANOTHER, "two")] });
    assert_eq!(rejected(&resource, &new).await, "taken: u-1");
    // Taken back.
    assert_eq!(
        rejected(&resource, &old).await,
        "the token is signed with a key that its issuer does not have"
    );
    assert_eq!(server.seen.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn an_issuer_that_is_away_lets_nobody_in() {
    let server = Server::start().await;
    server.seen.away.store(true, Ordering::Relaxed);
    let good = claims(&server, json!({}));
    let token = signed(&header(Algorithm::ES256, Some("one")), &good, OURS);
    let resource = server.resource();
    // Of the last place that was tried.
    assert_eq!(
        rejected(&resource, &token).await,
        "away: it answers with status 404"
    );
    server.seen.away.store(false, Ordering::Relaxed);
    // Not asked again at once.
    assert_eq!(
        rejected(&resource, &token).await,
        "away: it answers with status 404"
    );
    assert_eq!(rejected(&server.resource(), &token).await, "taken: u-1");

    // Keys that are known serve while it is away, and names that are not wait.
    let mut resource = server.resource();
    Arc::get_mut(&mut resource.issuer)
        .expect("the only one")
        .pause = Duration::ZERO;
    assert_eq!(rejected(&resource, &token).await, "taken: u-1");
    server.seen.away.store(true, Ordering::Relaxed);
    assert_eq!(rejected(&resource, &token).await, "taken: u-1");
    let unknown = signed(&header(Algorithm::ES256, Some("two")), &good, OURS);
    assert_eq!(
        rejected(&resource, &unknown).await,
        "away: it answers with status 404"
    );
}

#[tokio::test]
async fn documents_that_cannot_be_trusted() {
    let check = |metadata: Value, keys: Value| async move {
        let server = Server::start().await;
        *server.seen.metadata.lock().expect("a lock") = metadata;
        *server.seen.keys.lock().expect("a lock") = keys;
        let good = claims(&server, json!({}));
        let token = signed(&header(Algorithm::ES256, Some("one")), &good, OURS);
        rejected(&server.resource(), &token).await
    };
    let right = || json!({ "keys": [jwk(OURS, "one")] });
    assert_eq!(check(json!({}), right()).await, "taken: u-1");
    assert_eq!(
        check(json!({ "issuer": "https://evil.example" }), right()).await,
        "away: it answers with status 404"
    );
    assert_eq!(
        check(json!({ "jwks_uri": "http://evil.example/keys" }), right()).await,
        "away: its keys are at no https URL"
    );
    assert_eq!(
        check(json!({ "jwks_uri": "file:///etc/passwd" }), right()).await,
        "away: its keys are at no https URL"
    );
    assert_eq!(
        check(json!({}), json!([])).await,
        "away: its keys are no JWK set"
    );
    let unusable = json!({ "keys": [
        { "kty": "oct", "k": "c2VjcmV0", "kid": "one" }, { "kty": "RSA" }, 7, null,
    ] });
    assert_eq!(
        check(json!({}), unusable).await,
        "away: none of its keys can sign tokens that are taken"
    );
    // For another use.
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["encrypt"])),
        ("alg", json!("ES384")),
        ("alg", json!("ECDH-ES")),
    ] {
        let mut other = jwk(OURS, "one");
        other[name] = value;
        assert_eq!(
            check(json!({}), json!({ "keys": [other] })).await,
            "away: none of its keys can sign tokens that are taken",
            "{name}"
        );
    }
    // One bad key takes no other one down.
    let some = json!({ "keys": [{ "kty": "x" }, jwk(ANOTHER, "three"), jwk(OURS, "one")] });
    assert_eq!(check(json!({}), some).await, "taken: u-1");
    let large = json!({ "keys": [jwk(OURS, "one")], "filling": "x".repeat(1 << 20) });
    assert_eq!(
        check(json!({}), large).await,
        "away: it answers with more than 262144 bytes"
    );
}

#[test]
fn metadata_of_the_resource() {
    let check = |resource: &str, expected: &str| {
        let text = json!({ "serve": { "http": { "oauth": {
            "issuer": "https://login.example", "resource": resource
        } } } });
        let resource = Resource::new(&config(&text).oauth.expect("oauth"), "");
        assert_eq!(resource.expect("a resource").metadata_url(), expected);
    };
    check(
        "https://a.example/mcp",
        "https://a.example/.well-known/oauth-protected-resource/mcp",
    );
    check(
        "https://a.example:8443/x/mcp/",
        "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp",
    );
    check(
        "https://a.example",
        "https://a.example/.well-known/oauth-protected-resource",
    );
}
