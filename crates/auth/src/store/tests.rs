use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::account::Account;
use crate::keyring::fake::{self, Trouble};
use crate::redact::Redact;
use crate::settings::Endpoint;
use crate::{LoggedOut, logout, status};

const URL: &str = "https://mcp.example/mcp";

const LOCKED: &str = "the tokens of server `s` cannot be read or kept: the keyring is locked: \
     nobody unlocks it; some may be in it, so log out where it can be reached";

fn store(folder: &Path, place: TokenPlace) -> Store {
    let settings = OAuth {
        folder: Some(folder.to_owned()),
        place,
        ..OAuth::default()
    };
    Store::new("s", URL, &settings).expect("a store")
}

/// What is put in the place of a login's file.
fn new_file(store: &Store) -> PathBuf {
    let extension = format!("new-{}", std::process::id());
    store.path.with_extension(extension)
}

fn server(oauth: OAuth) -> Endpoint {
    Endpoint {
        server: "s".to_owned(),
        url: URL.parse().expect("a URL"),
        oauth,
    }
}

/// A login of this name, whose tokens are told by it.
fn login(id: &str, issuer: &str) -> Login {
    Login {
        record: Record {
            server: "s".to_owned(),
            url: URL.to_owned(),
            resource: URL.to_owned(),
            issuer: issuer.to_owned(),
            token_endpoint: format!("{issuer}/token"),
            revocation_endpoint: None,
            published: true,
            made: 1,
            id: id.to_owned(),
            client: ClientAuthentication::None,
            client_id: "c".to_owned(),
            asked: vec!["read".to_owned()],
            kept: Kept::File,
            left_in_keyring: false,
        },
        tokens: Tokens {
            access_token: format!("access of {id}"),
            refresh_token: Some(format!("refresh of {id}")),
            client_secret: None,
            expires_at: Some(7),
            scopes: vec!["read".to_owned()],
        },
    }
}

/// Who issued the login that is kept, and its access token.
async fn kept(store: &Store) -> Option<(String, String)> {
    let login = store.load().await.expect("it can be read")?;
    Some((login.record.issuer, login.tokens.access_token))
}

fn of(issuer: &str, id: &str) -> Option<(String, String)> {
    Some((issuer.to_owned(), format!("access of {id}")))
}

#[tokio::test]
async fn folders_have_logins_of_their_own_in_one_keyring() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let one = store(one.path(), TokenPlace::Keyring);
    let other = store(other.path(), TokenPlace::Keyring);
    one.create(&login("alice", "https://x")).await.unwrap();
    other.create(&login("bob", "https://x")).await.unwrap();
    assert_eq!(kept(&one).await, of("https://x", "alice"));
    assert_eq!(kept(&other).await, of("https://x", "bob"));
    assert!(one.remove().await.unwrap().was_there);
    assert_eq!(kept(&one).await, None);
    assert_eq!(kept(&other).await, of("https://x", "bob"));
}

#[tokio::test]
async fn tokens_do_not_go_with_the_record_of_another_login() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path(), TokenPlace::Keyring);
    store.create(&login("first", "https://x")).await.unwrap();
    let text = fs::read(store.file()).unwrap();
    store.create(&login("second", "https://y")).await.unwrap();
    assert_eq!(kept(&store).await, of("https://y", "second"));
    // As if the second one had come no further than to the keyring.
    fs::write(store.file(), text).unwrap();
    assert_eq!(kept(&store).await, None);
    // A logout has them all the same.
    assert!(store.remove().await.unwrap().was_there);
    assert_eq!(fake::password(SERVICE, &store.account), None);
}

#[tokio::test]
async fn a_login_whose_file_cannot_be_written_leaves_what_was_there() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path(), TokenPlace::Keyring);
    // Even of somebody who may write anywhere: what is put in its place cannot be made.
    let new = new_file(&store);
    let fails = async || {
        fs::create_dir(&new).unwrap();
        let failed = store.create(&login("failed", "https://y")).await;
        failed.expect_err("a folder is in the way");
        fs::remove_dir(&new).unwrap();
    };
    fails().await;
    assert_eq!(fake::password(SERVICE, &store.account), None);
    assert_eq!(kept(&store).await, None);
    store.create(&login("first", "https://x")).await.unwrap();
    fails().await;
    assert_eq!(kept(&store).await, of("https://x", "first"));
}

#[tokio::test]
async fn an_entry_that_is_no_text_is_in_no_logins_way() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path(), TokenPlace::Keyring);
    let account = store.account.as_str();
    store.create(&login("first", "https://x")).await.unwrap();
    fake::garble(SERVICE, account);
    assert_eq!(
        store.load().await.unwrap_err().to_string(),
        "the tokens of server `s` cannot be read or kept: the keyring's entry is not UTF-8 text"
    );
    // Of a login that cannot be kept, nothing stays in its place.
    let new = new_file(&store);
    fs::create_dir(&new).unwrap();
    let failed = store.create(&login("failed", "https://y")).await;
    failed.expect_err("a folder is in the way");
    assert_eq!(fake::password(SERVICE, account), None);
    fs::remove_dir(&new).unwrap();
    fake::garble(SERVICE, account);
    store.create(&login("second", "https://y")).await.unwrap();
    assert_eq!(kept(&store).await, of("https://y", "second"));
}

#[tokio::test]
async fn a_renewed_login_is_the_same_login() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path(), TokenPlace::Keyring);
    let mut first = login("first", "https://x");
    first.record.kept = store.create(&first).await.unwrap();
    let mut renewed = first.clone();
    renewed.tokens.access_token = "access of a renewal".to_owned();
    store.replace(&renewed, &first).await;
    assert_eq!(kept(&store).await, of("https://x", "a renewal"));
}

#[tokio::test]
async fn tokens_of_a_login_before_do_not_stay_in_the_keyring() {
    let folder = TempDir::new().unwrap();
    let in_keyring = store(folder.path(), TokenPlace::KeyringOrFile);
    let account = in_keyring.account.as_str();
    let first = in_keyring.create(&login("first", "https://x")).await;
    assert_eq!(first.unwrap(), Kept::Keyring);
    fake::lock(account, true);
    let second = in_keyring.create(&login("second", "https://x")).await;
    assert_eq!(second.unwrap(), Kept::File);
    // It could not be asked to. No logout says that they are gone before it could.
    let error = in_keyring.remove().await.err().expect("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    assert_eq!(kept(&in_keyring).await, of("https://x", "second"));
    fake::lock(account, false);
    assert!(fake::password(SERVICE, account).is_some());
    assert!(in_keyring.remove().await.unwrap().was_there);
    assert_eq!(fake::password(SERVICE, account), None);

    in_keyring
        .create(&login("third", "https://x"))
        .await
        .unwrap();
    assert!(fake::password(SERVICE, account).is_some());
    let in_file = store(folder.path(), TokenPlace::File);
    in_file.create(&login("fourth", "https://x")).await.unwrap();
    assert_eq!(fake::password(SERVICE, account), None);
    assert_eq!(kept(&in_file).await, of("https://x", "fourth"));
    // Nothing is left there, so a logout needs none.
    fake::lock(account, true);
    assert!(in_file.remove().await.unwrap().was_there);
    fake::lock(account, false);
}

/// The keyring has the tokens though it was given up, and there is a file with others.
#[tokio::test]
async fn tokens_of_a_write_that_was_given_up_go_with_a_logout() {
    let folder = TempDir::new().unwrap();
    let in_either = store(folder.path(), TokenPlace::KeyringOrFile);
    let account = in_either.account.as_str();
    fake::trouble(account, Some(Trouble::Late));
    let first = in_either.create(&login("first", "https://x")).await;
    assert_eq!(first.unwrap(), Kept::File);
    assert_eq!(kept(&in_either).await, of("https://x", "first"));
    assert!(fake::password(SERVICE, account).is_some());
    fake::lock(account, true);
    let error = in_either.remove().await.err().expect("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    fake::lock(account, false);
    assert!(in_either.remove().await.unwrap().was_there);
    assert_eq!(fake::password(SERVICE, account), None);

    let in_keyring = store(folder.path(), TokenPlace::Keyring);
    fake::trouble(account, Some(Trouble::Late));
    let second = in_keyring.create(&login("second", "https://x")).await;
    assert_eq!(
        second.unwrap_err().to_string(),
        "the tokens of server `s` cannot be read or kept: the keyring failed: it is busy; tokens \
         may be in it all the same, so log out where it can be reached"
    );
    assert_eq!(kept(&in_keyring).await, None);

    // Into one that is not there nothing has been put.
    fake::trouble(account, Some(Trouble::Absent));
    let third = in_either.create(&login("third", "https://x")).await;
    assert_eq!(third.unwrap(), Kept::File);
    fake::lock(account, true);
    let removed = in_either.remove().await.unwrap();
    assert_eq!((removed.was_there, removed.may_be_left), (true, None));
}

#[tokio::test]
async fn a_keyring_that_was_locked_at_a_login_is_asked_at_the_logout() {
    let folder = TempDir::new().unwrap();
    let in_file = store(folder.path(), TokenPlace::File);
    let account = in_file.account.as_str();
    let in_keyring = store(folder.path(), TokenPlace::Keyring);
    in_keyring
        .create(&login("first", "https://x"))
        .await
        .unwrap();
    fake::lock(account, true);
    for id in ["second", "third"] {
        in_file.create(&login(id, "https://x")).await.unwrap();
        assert_eq!(kept(&in_file).await, of("https://x", id));
        let error = in_file.remove().await.err().expect("it is locked");
        assert_eq!(error.to_string(), LOCKED);
    }
    fake::lock(account, false);
    in_file.create(&login("fourth", "https://x")).await.unwrap();
    assert_eq!(fake::password(SERVICE, account), None);
}

#[tokio::test]
async fn a_logout_takes_what_no_file_tells_of() {
    let folder = TempDir::new().unwrap();
    let server = server(OAuth {
        folder: Some(folder.path().to_owned()),
        place: TokenPlace::Keyring,
        ..OAuth::default()
    });
    let store = store(folder.path(), TokenPlace::Keyring);
    store.create(&login("first", "https://x")).await.unwrap();
    fs::remove_file(store.file()).unwrap();
    fake::lock(&store.account, true);
    assert_eq!(logout(&server).await, may_be_left());
    fake::lock(&store.account, false);
    assert!(fake::password(SERVICE, &store.account).is_some());
    assert_eq!(logout(&server).await, Ok(LoggedOut::WasNot));
    assert_eq!(fake::password(SERVICE, &store.account), None);
}

fn may_be_left() -> Result<LoggedOut, AuthError> {
    let reason = "the keyring is locked: nobody unlocks it".to_owned();
    Ok(LoggedOut::MayBeLeft { reason })
}

/// A folder of logins that is not there stays so, and need not be one that can be made.
#[tokio::test]
async fn a_logout_writes_nothing_where_there_was_no_login() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [folder.path().join("new"), file.join("new")] {
        let server = server(OAuth {
            folder: Some(place.clone()),
            ..OAuth::default()
        });
        let store = store(&place, TokenPlace::KeyringOrFile);
        let with = async |trouble| {
            fake::trouble(&store.account, trouble);
            logout(&server).await
        };
        assert_eq!(with(None).await, Ok(LoggedOut::WasNot));
        assert_eq!(with(Some(Trouble::Locked)).await, may_be_left());
        assert_eq!(with(Some(Trouble::Absent)).await, Ok(LoggedOut::WasNot));
        assert!(!place.exists());
    }
}

/// It may have said that the tokens are in the keyring.
#[tokio::test]
async fn a_damaged_file_stays_until_the_keyring_was_looked_at() {
    let locked = || Err(LOCKED.to_owned());
    let may_be_left = may_be_left().map_err(|error| error.to_string());
    for (place, trouble, expected, stays) in [
        (TokenPlace::Keyring, Some(Trouble::Locked), locked(), true),
        (
            TokenPlace::KeyringOrFile,
            Some(Trouble::Locked),
            locked(),
            true,
        ),
        (TokenPlace::File, Some(Trouble::Locked), may_be_left, false),
        (
            TokenPlace::Keyring,
            Some(Trouble::Absent),
            Ok(LoggedOut::Forgotten),
            false,
        ),
        (TokenPlace::Keyring, None, Ok(LoggedOut::Forgotten), false),
    ] {
        let folder = TempDir::new().unwrap();
        let server = server(OAuth {
            folder: Some(folder.path().to_owned()),
            place,
            ..OAuth::default()
        });
        let store = store(folder.path(), place);
        store.create(&login("first", "https://x")).await.unwrap();
        fs::write(store.file(), "{").unwrap();
        fake::trouble(&store.account, trouble);
        let came = logout(&server).await.map_err(|error| error.to_string());
        assert_eq!(came, expected, "{place:?}");
        assert_eq!(store.file().exists(), stays, "{place:?}");
    }
}

/// A login in the place of one whose file is damaged goes to a file itself.
#[tokio::test]
async fn what_a_damaged_file_may_have_said_is_not_forgotten_with_a_new_login() {
    for (place, trouble, expected) in [
        (
            TokenPlace::KeyringOrFile,
            Some(Trouble::Locked),
            Err(LOCKED.to_owned()),
        ),
        (
            TokenPlace::File,
            Some(Trouble::Locked),
            Err(LOCKED.to_owned()),
        ),
        (
            TokenPlace::KeyringOrFile,
            Some(Trouble::Absent),
            Ok((true, None)),
        ),
        (TokenPlace::File, Some(Trouble::Absent), Ok((true, None))),
        // The keyring has given up what it had.
        (TokenPlace::File, None, Ok((true, None))),
    ] {
        let folder = TempDir::new().unwrap();
        let in_keyring = store(folder.path(), TokenPlace::Keyring);
        let account = in_keyring.account.as_str();
        in_keyring
            .create(&login("first", "https://x"))
            .await
            .unwrap();
        fs::write(in_keyring.file(), "{").unwrap();
        fake::trouble(account, trouble);
        let store = store(folder.path(), place);
        let second = store.create(&login("second", "https://x")).await;
        assert_eq!(second.unwrap(), Kept::File);
        assert_eq!(kept(&store).await, of("https://x", "second"));
        // What is gone, no logout has to reach.
        fake::trouble(account, trouble.or(Some(Trouble::Locked)));
        let came = store.remove().await;
        let came = came.map(|removed| (removed.was_there, removed.may_be_left));
        let came = came.map_err(|error| error.to_string());
        assert_eq!(came, expected, "{place:?}");
    }
}

/// Its file says then that something may be in the keyring still.
#[tokio::test]
async fn a_login_is_kept_though_its_file_cannot_be_written_twice() {
    let folder = TempDir::new().unwrap();
    let in_keyring = store(folder.path(), TokenPlace::Keyring);
    let first = in_keyring.create(&login("first", "https://x")).await;
    first.unwrap();
    let store = store(folder.path(), TokenPlace::File);
    let account = store.account.as_str();
    let new = new_file(&store);
    fake::at_removal(account, {
        let new = new.clone();
        move || fs::create_dir(new).unwrap()
    });
    let second = store.create(&login("second", "https://y")).await;
    assert_eq!(second.unwrap(), Kept::File);
    fs::remove_dir(&new).expect("it was in the way");
    assert_eq!(fake::password(SERVICE, account), None);
    assert_eq!(kept(&store).await, of("https://y", "second"));
    fake::lock(account, true);
    let error = store.remove().await.err().expect("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    fake::lock(account, false);
    assert!(store.remove().await.unwrap().was_there);
}

#[tokio::test]
async fn a_login_in_a_file_ends_without_a_keyring() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path(), TokenPlace::File);
    store.create(&login("first", "https://x")).await.unwrap();
    fake::lock(&store.account, true);
    assert!(store.remove().await.unwrap().was_there);
    assert_eq!(kept(&store).await, None);
}

#[tokio::test]
async fn a_login_in_the_keyring_does_not_end_without_it() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path(), TokenPlace::Keyring);
    store.create(&login("first", "https://x")).await.unwrap();
    fake::lock(&store.account, true);
    let error = store.remove().await.err().expect("it is locked");
    assert_eq!(error.to_string(), LOCKED);
    fake::lock(&store.account, false);
    assert_eq!(kept(&store).await, of("https://x", "first"));
}

#[tokio::test]
async fn a_login_that_is_not_used_is_no_login_until_it_is_ended() {
    let folder = TempDir::new().unwrap();
    let server = |issuer: Option<&str>| {
        server(OAuth {
            folder: Some(folder.path().to_owned()),
            place: TokenPlace::File,
            issuer: issuer.map(str::to_owned),
            ..OAuth::default()
        })
    };
    let store = store(folder.path(), TokenPlace::File);
    store.create(&login("first", "https://x")).await.unwrap();
    let issuer = async |configured| {
        let status = status(&server(configured)).await.expect("it can be read");
        status.map(|status| status.issuer)
    };
    assert_eq!(issuer(None).await.as_deref(), Some("https://x"));
    assert_eq!(
        issuer(Some("https://x")).await.as_deref(),
        Some("https://x")
    );
    assert_eq!(issuer(Some("https://y")).await, None);
    let server = server(Some("https://y"));
    assert_eq!(logout(&server).await, Ok(LoggedOut::Forgotten));
    assert_eq!(logout(&server).await, Ok(LoggedOut::WasNot));
}

#[test]
fn scopes_that_are_asked_for_again() {
    for (asked, granted, expected) in [
        ("read write", "read write", "read write"),
        ("read write", "write", "write"),
        ("read write", "", ""),
        // Names of its own do not tell what was granted.
        ("read write", "read,write", "read write"),
        ("read write", "write urn:profile", "read write"),
        // Of an older login, what was asked for is not known.
        ("", "read", ""),
        ("read \u{1b}x", "urn:x", "read"),
    ] {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let mut login = login("x", "https://x");
        login.record.asked = words(asked);
        login.tokens.scopes = words(granted);
        assert_eq!(login.repeated(), words(expected), "{asked} {granted}");
    }
}

#[tokio::test]
async fn scopes_of_a_login_that_cannot_be_read_just_then_are_those_of_the_one_in_use() {
    let folder = TempDir::new().expect("a folder");
    let settings = OAuth {
        folder: Some(folder.path().to_owned()),
        place: TokenPlace::File,
        ..OAuth::default()
    };
    let account = Account::new(&server(settings), &Redact::default()).expect("an account");
    let mut used = login("used", "https://x");
    used.record.asked = vec!["write".to_owned()];
    used.tokens.scopes.clone_from(&used.record.asked);
    // Somebody has logged out meanwhile, to be asked for less.
    assert_eq!(account.repeated(Some(&used)).await, [""; 0]);
    let kept = login("kept", "https://x");
    account.store.create(&kept).await.expect("it is kept");
    assert_eq!(account.repeated(Some(&used)).await, ["read"]);
    fs::write(account.store.file(), "{").expect("a damaged file");
    assert_eq!(account.repeated(Some(&used)).await, ["write"]);
    assert_eq!(account.repeated(None).await, [""; 0]);
}
