//! Servers that name an unexpected authorization server: the requests of a login, and their
//! recipients.

use std::sync::Arc;

use callgate::Gate;
use callgate::faces::Source;
use callgate::faces::auth;
use callgate::faces::auth::{Grant, LoggedOut, LoginRequest, OAuth, TokenPlace};
use callgate_tests::binary;
use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guarded::{Follow, Guarded};

/// The kinds of requests that both origins of the authorization server have received.
async fn asked(guarded: &Guarded) -> Value {
    let mut seen = guarded.seen().await;
    let seen = seen.as_object_mut().expect("counts");
    seen.remove("lastScope");
    json!(seen.keys().collect::<Vec<_>>())
}

/// Without a configured issuer, a login takes the first authorization server of the list.
#[tokio::test]
async fn configured_authorization_server_is_chosen_among_several() {
    let other = Guarded::start(&json!({ "anyResource": true }));
    let logged_in_at = async |listed: &Value, issuer: Option<&str>| {
        let guarded = Guarded::start(&json!({ "resource": { "authorization_servers": listed } }));
        let folder = TempDir::new().expect("a folder");
        let server = guarded.spec_with(OAuth {
            issuer: issuer.map(|issuer| issuer.replace("ISSUER", &guarded.issuer)),
            place: TokenPlace::File,
            folder: Some(folder.path().to_owned()),
            ..OAuth::default()
        });
        let login = auth::login(&server, LoginRequest::new(Arc::new(Follow))).await;
        let text = match login {
            Ok(status) => status.issuer,
            Err(error) => error.to_string(),
        };
        guarded.plain(&text).replace(&other.issuer, "OTHER")
    };
    let listed = json!([other.issuer, "ISSUER"]);
    assert_eq!(logged_in_at(&listed, None).await, "OTHER");
    let seen = other.seen().await;
    assert_eq!(logged_in_at(&listed, Some("ISSUER")).await, "ISSUER");
    assert_eq!(logged_in_at(&listed, Some("ISSUER/")).await, "ISSUER");
    assert_eq!(other.seen().await, seen, "it is not asked");
    expect![[r#"the "oauth" of server `web` cannot be used: its authorization server is "OTHER", and the "issuer" is "https://as.example""#]]
        .assert_eq(&logged_in_at(&listed, Some("https://as.example")).await);
    // An unreachable authorization server does not prevent a login at the next one in the list.
    let listed = json!(["http://127.0.0.1:1", "ISSUER/"]);
    assert_eq!(logged_in_at(&listed, Some("ISSUER")).await, "ISSUER");
}

/// A client id is bound to the authorization server of its first use.
#[tokio::test]
async fn client_id_is_not_sent_to_other_issuer() {
    let guarded = Guarded::start(&json!({}));
    let folder = TempDir::new().expect("a folder");
    let spec = |client: &str, issuer: Option<&str>| {
        guarded.spec_with(OAuth {
            client_id: Some(client.to_owned()),
            issuer: issuer.map(str::to_owned),
            place: TokenPlace::File,
            folder: Some(folder.path().to_owned()),
            ..OAuth::default()
        })
    };
    // The authorization server takes clients of these names without a registration.
    let server = spec("https://client.example/1", None);
    let log_in = async |server| {
        let login = auth::login(server, LoginRequest::new(Arc::new(Follow))).await;
        login.map(|status| status.issuer)
    };
    let file = auth::login(&server, LoginRequest::new(Arc::new(Follow))).await;
    let file = file.expect("a login").file;
    let at_another = || {
        let text = std::fs::read_to_string(&file).expect("the login");
        let mut login: Value = serde_json::from_str(&text).expect("JSON");
        login["issuer"] = "https://as.example".into();
        std::fs::write(&file, login.to_string()).expect("the login");
    };
    at_another();
    let seen = guarded.seen().await;
    let error = log_in(&server).await.expect_err("no login");
    expect![[r#"the "oauth" of server `web` cannot be used: its "clientId" was used at "https://as.example" before, and the server names "ISSUER" now; write the "issuer" that the client is registered at"#]]
        .assert_eq(&guarded.plain(&error.to_string()));
    assert_eq!(
        guarded.seen().await["authorizations"],
        seen["authorizations"]
    );
    // A configured issuer overrides the record, and the record does not bind another client id.
    let issuer = guarded.issuer.as_str();
    let says = spec("https://client.example/1", Some(issuer));
    assert_eq!(log_in(&says).await.as_deref(), Ok(issuer));
    at_another();
    let another = spec("https://client.example/2", None);
    assert_eq!(log_in(&another).await.as_deref(), Ok(issuer));
    at_another();
    // A logout also removes the record.
    assert_eq!(auth::logout(&server).await, Ok(LoggedOut::Revoked));
    assert_eq!(log_in(&server).await.as_deref(), Ok(issuer));
}

/// The client's secret is not read if the server names a different authorization server than the
/// configuration, even if its metadata is consistent.
#[tokio::test]
async fn a_clients_secret_goes_to_no_other_issuer() {
    let guarded = Guarded::start(&json!({
        "resource": { "authorization_servers": ["ELSEWHERE"] },
        "metadata": { "issuer": "ELSEWHERE" },
    }));
    let folder = TempDir::new().expect("a folder");
    let looked_up = folder.path().join("looked-up");
    let command = format!("touch {}; echo registered-secret", looked_up.display());
    let person = OAuth {
        client_id: Some("registered".to_owned()),
        client_secret: Some(Source::command(["sh", "-c", &command])),
        issuer: Some(guarded.issuer.clone()),
        place: TokenPlace::File,
        folder: Some(folder.path().join("tokens")),
        ..OAuth::default()
    };
    let itself = OAuth {
        grant: Grant::ClientCredentials,
        ..person.clone()
    };

    let server = guarded.spec_with(person);
    let login = auth::login(&server, LoginRequest::new(Arc::new(Follow))).await;
    let error = login.expect_err("no login");
    expect![[r#"the "oauth" of server `web` cannot be used: its authorization server is "ELSEWHERE", and the "issuer" is "ISSUER""#]]
        .assert_eq(&guarded.plain(&error.to_string()));

    let gate = Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .spare_workers(0)
        .server(guarded.spec_with(itself))
        .build()
        .await
        .expect("a gate");
    expect![[r#"server `web` did not start: the "oauth" of server `web` cannot be used: its authorization server is "ELSEWHERE", and the "issuer" is "ISSUER""#]]
        .assert_eq(&guarded.plain(&gate.unavailable()[0].reason));
    gate.shutdown().await;

    assert!(!looked_up.exists());
    assert_eq!(
        asked(&guarded).await,
        json!(["metadata", "without a token"])
    );
}
