//! Tests of the store: places, failures of the keyring, and logouts.

use tempfile::TempDir;

use super::*;
use crate::keyring::fake;
use crate::settings::Endpoint;
use crate::{LoggedOut, logout, status};

const URL: &str = "https://mcp.example/mcp";

const LOCKED: &str = "the tokens of server `s` cannot be read or kept: the keyring is locked: \
     it was not unlocked; some may be in it, so log out where it can be reached";

fn oauth(folder: &Path, place: TokenPlace) -> OAuth {
    OAuth {
        folder: Some(folder.to_owned()),
        place,
        ..OAuth::default()
    }
}

fn store(folder: &Path, place: TokenPlace) -> Store {
    Store::new("s", URL, &oauth(folder, place)).expect("a store")
}

fn server(oauth: OAuth) -> Endpoint {
    Endpoint {
        server: "s".to_owned(),
        url: URL.parse().expect("a URL"),
        oauth,
    }
}

/// A login with tokens that contain its identifier.
fn login(id: &str) -> Login {
    let login = format!(
        r#"{{"server":"s","url":"{URL}","resource":"{URL}","issuer":"https://x",
        "tokenEndpoint":"https://x/token","id":"{id}","client":"none",
        "clientId":"c","asked":["read"],"inKeyring":false}}"#
    );
    Login {
        record: serde_json::from_str(&login).expect("a record"),
        tokens: Tokens {
            login: id.to_owned(),
            access_token: format!("access of {id}"),
            refresh_token: Some(format!("refresh of {id}")),
            client_secret: None,
            expires_at: Some(7),
            scopes: vec!["read".to_owned()],
        },
    }
}

async fn create(store: &Store, id: &str) {
    store.create(&mut login(id)).await.expect("it is kept");
}

/// The access token of the login that is kept.
async fn kept(store: &Store) -> Option<String> {
    let login = store.load().await.expect("it can be read")?;
    Some(login.tokens.access_token)
}

fn of(id: &str) -> Option<String> {
    Some(format!("access of {id}"))
}

#[tokio::test]
async fn login_file_format_is_stable() {
    let folder = TempDir::new().expect("a folder");
    let store = store(folder.path(), TokenPlace::File);
    create(&store, "a").await;
    let text = fs::read_to_string(store.file()).expect("the file");
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let expected = serde_json::json!({
        "version": 2, "server": "s", "url": URL, "resource": URL, "issuer": "https://x",
        "tokenEndpoint": "https://x/token", "id": "a",
        "client": "none", "clientId": "c", "asked": ["read"], "inKeyring": false,
        "tokens": {
            "login": "a", "accessToken": "access of a", "refreshToken": "refresh of a", "expiresAt": 7,
            "scopes": ["read"],
        },
    });
    assert_eq!(read, expected);
    let name = store.file();
    let name = name.file_name().expect("a name");
    assert_eq!(name, "40fd1d5b6d479c043cd870e1cd72a221.json");
}

#[tokio::test]
async fn writable_login_folder_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let outer = TempDir::new().expect("a folder");
    let folder = outer.path().join("state/auth");
    fs::create_dir_all(&folder).expect("the folder");
    let store = store(&folder, TokenPlace::File);
    create(&store, "a").await;
    let mode = |place: &Path, mode| {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).expect("its permissions");
    };
    let parent = folder.parent().expect("a parent");
    for (place, bits, is_refused) in [
        (&*folder, 0o757, true),
        (&folder, 0o1777, true),
        (parent, 0o777, true),
        (parent, 0o1777, false),
        (parent, 0o755, false),
    ] {
        mode(place, bits);
        let outcomes = [
            store.load().await.err(),
            store.lock().await.err(),
            store.put(&login("b")).await.err(),
            store.check_folder().await.err(),
            store.login_id().err(),
        ];
        for error in outcomes {
            let said = error.map_or(String::new(), |error| error.to_string());
            let place = place.display().to_string();
            let is_said = said.contains("other users may write to") && said.contains(&place);
            assert_eq!(is_said, is_refused, "{bits:o} {said:?}");
        }
        mode(place, 0o755);
    }
    // A link is as safe as the folder that it leads to.
    let link = outer.path().join("link");
    std::os::unix::fs::symlink(&folder, &link).expect("a link");
    mode(&folder, 0o777);
    let linked = Store::new("s", URL, &oauth(&link, TokenPlace::File)).expect("a store");
    assert!(linked.load().await.is_err());
}

#[tokio::test]
async fn folders_keep_separate_logins_in_one_keyring() {
    let (one, other) = (
        TempDir::new().expect("a folder"),
        TempDir::new().expect("a folder"),
    );
    let one = store(one.path(), TokenPlace::KeyringOrFile);
    let other = store(other.path(), TokenPlace::Keyring);
    for (store, id) in [(&one, "alice"), (&other, "bob")] {
        let mut login = login(id);
        store.create(&mut login).await.expect("it is kept");
        assert!(login.record.in_keyring);
    }
    assert_eq!(kept(&one).await, of("alice"));
    assert_eq!(kept(&other).await, of("bob"));
    assert!(one.remove().await.expect("removed"));
    assert_eq!(kept(&one).await, None);
    assert_eq!(kept(&other).await, of("bob"));
}

#[tokio::test]
async fn tokens_are_not_used_with_an_older_record() {
    let folder = TempDir::new().expect("a folder");
    let store = store(folder.path(), TokenPlace::Keyring);
    create(&store, "first").await;
    let text = fs::read(store.file()).expect("the file");
    create(&store, "second").await;
    assert_eq!(kept(&store).await, of("second"));
    // As if the second login had been written to the keyring, but not to the file.
    fs::write(store.file(), text).expect("the file");
    assert_eq!(kept(&store).await, None);
    assert!(store.remove().await.expect("removed"));
    assert_eq!(fake::password(SERVICE, &store.account), None);
}

#[tokio::test]
async fn locked_keyring_keeps_the_earlier_login() {
    let folder = TempDir::new().expect("a folder");
    let in_keyring = store(folder.path(), TokenPlace::Keyring);
    let account = in_keyring.account.as_str();
    create(&in_keyring, "first").await;
    fake::lock(account, true);
    in_keyring
        .create(&mut login("second"))
        .await
        .expect_err("it is locked");
    let error = in_keyring.remove().await.expect_err("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    // The login before stays.
    fake::lock(account, false);
    assert_eq!(kept(&in_keyring).await, of("first"));
    // A file takes its place, and can be removed without the keyring.
    fake::lock(account, true);
    let in_either = store(folder.path(), TokenPlace::KeyringOrFile);
    let mut third = login("third");
    in_either.create(&mut third).await.expect("it is kept");
    assert!(!third.record.in_keyring);
    assert_eq!(kept(&in_either).await, of("third"));
    assert!(in_either.remove().await.expect("removed"));
    // Without a file, the keyring may hold tokens.
    let server = server(oauth(folder.path(), TokenPlace::Keyring));
    let error = logout(&server).await.expect_err("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    fake::lock(account, false);
    assert_eq!(logout(&server).await, Ok(LoggedOut::NotLoggedIn));
    assert_eq!(fake::password(SERVICE, account), None);
}

#[tokio::test]
async fn earlier_tokens_are_removed_from_the_keyring() {
    let folder = TempDir::new().expect("a folder");
    let in_keyring = store(folder.path(), TokenPlace::Keyring);
    create(&in_keyring, "first").await;
    let in_file = store(folder.path(), TokenPlace::File);
    create(&in_file, "second").await;
    assert_eq!(fake::password(SERVICE, &in_file.account), None);
    assert_eq!(kept(&in_file).await, of("second"));
}

#[tokio::test]
async fn unusable_file_is_removed_by_logout() {
    let folder = TempDir::new().expect("a folder");
    let store = store(folder.path(), TokenPlace::KeyringOrFile);
    create(&store, "first").await;
    let text = fs::read_to_string(store.file()).expect("the file");
    let older = text.replace(r#""version": 2"#, r#""version": 1"#);
    assert_ne!(older, text);
    for unusable in [older.as_str(), "{"] {
        fs::write(store.file(), unusable).expect("the file");
        let error = store.load().await.err().expect("it is refused");
        let error = error.to_string();
        assert!(error.ends_with("log in again"), "{error}");
    }
    fake::lock(&store.account, true);
    let error = store.remove().await.expect_err("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    fake::lock(&store.account, false);
    assert!(store.remove().await.expect("removed"));
    assert_eq!(fake::password(SERVICE, &store.account), None);
}

#[tokio::test]
async fn login_at_other_issuer_is_ignored_until_logout() {
    let folder = TempDir::new().expect("a folder");
    let server = |issuer: &str| {
        server(OAuth {
            issuer: Some(issuer.to_owned()),
            ..oauth(folder.path(), TokenPlace::File)
        })
    };
    let store = store(folder.path(), TokenPlace::File);
    create(&store, "first").await;
    let is_used = async |issuer| {
        let status = status(&server(issuer)).await;
        status.expect("it can be read").is_some()
    };
    assert!(is_used("https://x/").await);
    assert!(!is_used("https://y").await);
    assert_eq!(logout(&server("https://y")).await, Ok(LoggedOut::Forgotten));
    assert_eq!(
        logout(&server("https://y")).await,
        Ok(LoggedOut::NotLoggedIn)
    );
}

#[test]
fn renewed_login_repeats_the_granted_scopes() {
    for (asked, granted, expected) in [
        ("read write", "read write", "read write"),
        ("read write", "write", "write"),
        ("read write", "", ""),
        // The server's own names do not say what was granted.
        ("read write", "read,write", "read write"),
        ("read write", "write urn:profile", "read write"),
        ("", "read", ""),
        ("read \u{1b}x", "urn:x", "read"),
    ] {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let mut login = login("x");
        login.record.asked = words(asked);
        login.tokens.scopes = words(granted);
        assert_eq!(
            login.scopes_to_repeat().join(" "),
            expected,
            "{asked} {granted}"
        );
    }
}
