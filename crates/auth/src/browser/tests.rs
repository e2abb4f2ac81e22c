use std::time::Duration;

use super::*;

struct Shown;

impl OpenUrl for Shown {
    fn open<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn browser() -> Browser {
    Browser::new(Arc::new(Shown))
}

/// Why a person is not asked; nothing if one would be.
fn refused(browser: &Browser, place: &str, made: Option<u64>, scope: &str) -> String {
    shown(turn(browser, place, made, scope, Instant::now(), false))
}

/// The same at the place `/one`, after the server has refused what there was.
fn refused_after(browser: &Browser, made: u64, scope: &str) -> String {
    let now = Instant::now();
    shown(turn(browser, "/one", Some(made), scope, now, true))
}

fn shown(turn: Result<Turn, NotAsked>) -> String {
    match turn {
        Ok(Turn::Own(_)) => String::new(),
        Ok(Turn::Another { same: true, .. }) => "another asks".to_owned(),
        Ok(Turn::Another { same: false, .. }) => "another asks for another".to_owned(),
        Err(NotAsked::For(kind)) => format!("{kind:?}"),
        Err(NotAsked::Failed(error)) => error.to_string(),
        Err(NotAsked::OfNoUse) => "of no use".to_owned(),
    }
}

fn turn(
    browser: &Browser,
    place: &str,
    made: Option<u64>,
    scope: &str,
    since: Instant,
    refused: bool,
) -> Result<Turn, NotAsked> {
    let scopes: Vec<String> = scope.split_whitespace().map(str::to_owned).collect();
    browser.ask(Request {
        place: PathBuf::from(place),
        made,
        scopes: &scopes,
        since,
        refused,
    })
}

/// A person is asked, at the place `/one`.
fn asking(browser: &Browser, made: Option<u64>, scope: &str) -> Asking {
    match turn(browser, "/one", made, scope, Instant::now(), false) {
        Ok(Turn::Own(asking)) => asking,
        _ => panic!("nobody is asked"),
    }
}

fn error() -> AuthError {
    let reason = "why".to_owned();
    AuthError::new("s", AuthErrorKind::Exchange { reason })
}

fn refuse(browser: &Browser, made: Option<u64>, scope: &str) {
    let outcome = asking(browser, made, scope).has_come_to(Err(NoLogin::Refused(error())));
    assert_eq!(outcome.err(), Some(error()));
}

/// A person agrees, and the login is made then.
fn grant(browser: &Browser, before: Option<u64>, scope: &str, made: u64) {
    let asking = asking(browser, before, scope);
    asking.has_come_to(Ok(login(made))).expect("a login");
}

/// What was agreed to was that long ago.
fn granted_before(browser: &Browser, since: Duration) {
    let at = Instant::now().checked_sub(since).expect("a time");
    for asked in browser.asked().values_mut() {
        asked.agreed = asked.agreed.and(Some(at));
    }
}

fn login(made: u64) -> Login {
    let login = serde_json::json!({
        "made": made, "server": "s", "url": "u", "resource": "u", "issuer": "i", "tokenEndpoint": "t",
        "client": "none", "clientId": "c", "kept": "file",
    });
    let tokens = serde_json::json!({ "accessToken": "a", "scopes": [] });
    Login {
        record: serde_json::from_value(login).expect("a record"),
        tokens: serde_json::from_value(tokens).expect("tokens"),
    }
}

#[test]
fn a_person_is_asked_once_for_a_login() {
    let browser = browser();
    refuse(&browser, Some(1), "");
    // A clone, as each link to the server has one.
    let browser = browser.clone();
    assert_eq!(
        refused(&browser, "/one", Some(1), ""),
        "Declined { scope: None }"
    );
    assert_eq!(refused(&browser, "/other", Some(1), ""), "");
}

#[test]
fn what_has_come_of_a_login_is_for_all_who_want_the_same() {
    let browser = browser();
    let outcomes = || -> [Result<Login, NoLogin>; 3] {
        [
            Ok(login(0)),
            Err(NoLogin::Refused(error())),
            Err(NoLogin::Failed(error())),
        ]
    };
    let then = ["", "Declined { scope: None }", ""];
    for (made, (outcome, then)) in (1..).zip(outcomes().into_iter().zip(then)) {
        let asking = asking(&browser, Some(made), "");
        let waits = match turn(
            &browser.clone(),
            "/one",
            Some(made),
            "",
            Instant::now(),
            false,
        ) {
            Ok(Turn::Another { outcome, .. }) => outcome,
            _ => panic!("a person is asked"),
        };
        assert!(waits.borrow().is_none());
        let outcome = asking.has_come_to(outcome).map(|login| login.tokens);
        let told = waits.borrow().clone().expect("it is told");
        assert!(told.map(|login| login.tokens) == outcome);
        assert_eq!(refused(&browser, "/one", Some(made), ""), then);
    }
}

#[test]
fn another_login_is_asked_for_anew() {
    for made in [Some(2), None] {
        let browser = browser();
        refuse(&browser, Some(1), "");
        assert_eq!(refused(&browser, "/one", made, ""), "");
    }
}

#[test]
fn what_was_refused_is_refused_for_its_scopes_alone() {
    let browser = browser();
    refuse(&browser, Some(1), "a b");
    assert_eq!(
        refused(&browser, "/one", Some(1), "b a"),
        r#"Declined { scope: Some("b a") }"#
    );
    for scope in ["", "a", "a c"] {
        assert_eq!(refused(&browser, "/one", Some(1), scope), "", "{scope}");
    }
}

#[test]
fn a_person_is_asked_for_one_thing_at_a_time() {
    let browser = browser();
    refuse(&browser, Some(1), "in vain");
    let asking = asking(&browser, Some(1), "a");
    for (made, scope) in [(Some(1), ""), (Some(1), "b"), (Some(2), "a"), (None, "a")] {
        let refused = refused(&browser, "/one", made, scope);
        assert_eq!(refused, "another asks for another", "{made:?} {scope}");
    }
    assert_eq!(refused(&browser, "/one", Some(1), "a"), "another asks");
    assert_eq!(refused(&browser, "/other", Some(1), "b"), "");
    drop(asking);
    assert_eq!(refused(&browser, "/one", Some(1), "b"), "");
    // What was refused before still is.
    assert_eq!(
        refused(&browser, "/one", Some(1), "in vain"),
        r#"Declined { scope: Some("in vain") }"#
    );
}

#[test]
fn what_failed_is_asked_for_again() {
    let browser = browser();
    let asking = asking(&browser, None, "");
    assert_eq!(refused(&browser, "/one", None, ""), "another asks");
    drop(asking);
    assert_eq!(refused(&browser, "/one", None, ""), "");
}

#[test]
fn a_server_that_names_another_scope_each_time_is_not_followed_for_ever() {
    let browser = browser();
    for number in 0..MAX_PAGES {
        refuse(&browser, Some(1), &format!("scope-{number}"));
    }
    assert_eq!(
        refused(&browser, "/one", Some(1), "more"),
        r#"InsufficientScope { scope: Some("more"), grant: AuthorizationCode }"#
    );
    assert_eq!(refused(&browser, "/one", Some(1), ""), "");
}

#[test]
fn granting_it_another_scope_each_time_does_not_have_it_followed_either() {
    let browser = browser();
    let one = Path::new("/one");
    let mut made = 1;
    for number in 0..MAX_PAGES {
        grant(&browser, Some(made), &format!("scope-{number}"), made + 1);
        made += 1;
        // Nor does it help to take each, or to have a login made anew in between.
        browser.taken(one, made);
        if number % 2 == 0 {
            granted_before(&browser, RIGHT_AWAY);
            assert_eq!(refused_after(&browser, made, ""), "");
            grant(&browser, Some(made), "", made + 1);
            made += 1;
        }
    }
    let more = r#"InsufficientScope { scope: Some("more"), grant: AuthorizationCode }"#;
    assert_eq!(refused_after(&browser, made, "more"), more);
    granted_before(&browser, RIGHT_AWAY);
    assert_eq!(refused_after(&browser, made, "more"), more);
    assert_eq!(refused(&browser, "/one", Some(made), ""), "");
    assert_eq!(refused(&browser, "/other", Some(made), "more"), "");
    // A login that no page here has led to.
    assert_eq!(refused_after(&browser, made + 1, "more"), "");
}

#[test]
fn taking_each_login_for_a_moment_does_not_have_it_followed_either() {
    let browser = browser();
    let one = Path::new("/one");
    grant(&browser, None, "", 1);
    for made in 1..=MAX_PAGES as u64 {
        browser.taken(one, made);
        grant(&browser, Some(made), "", made + 1);
    }
    let made = MAX_PAGES as u64 + 1;
    browser.taken(one, made);
    assert_eq!(refused_after(&browser, made, ""), "of no use");
    assert_eq!(refused(&browser, "/one", Some(made), ""), "of no use");
    // One that was good for a while is made anew.
    granted_before(&browser, RIGHT_AWAY);
    assert_eq!(refused_after(&browser, made, ""), "");
}

#[test]
fn a_login_for_a_scope_that_is_refused_right_away_is_not_made_anew() {
    let browser = browser();
    grant(&browser, Some(1), "a", 2);
    for _ in 0..2 {
        assert_eq!(refused_after(&browser, 2, ""), "of no use");
    }
    grant(&browser, Some(2), "b", 3);
    browser.taken(Path::new("/one"), 3);
    assert_eq!(refused_after(&browser, 3, ""), "");
}

#[test]
fn what_is_being_asked_for_is_not_asked_for_beside_it() {
    let browser = browser();
    grant(&browser, Some(1), "a", 2);
    let asking = asking(&browser, Some(2), "");
    browser.of_no_use(Path::new("/one"), 2);
    assert_eq!(refused(&browser, "/one", Some(2), ""), "another asks");
    let outcome = asking
        .has_come_to(Ok(login(3)))
        .map(|login| login.record.made);
    assert_eq!(outcome, Ok(3));
}

#[test]
fn whoever_waited_when_it_failed_is_not_asked() {
    let browser = browser();
    let asking = asking(&browser, Some(1), "a");
    let before = Instant::now();
    let outcome = asking.has_come_to(Err(NoLogin::Failed(error())));
    assert_eq!(outcome.err(), Some(error()));
    for _ in 0..2 {
        let turn = turn(&browser, "/one", Some(1), "a", before, true);
        assert_eq!(shown(turn), error().to_string());
    }
    // Something else may come of something else, and of another time.
    assert_eq!(shown(turn(&browser, "/one", Some(1), "", before, true)), "");
    assert_eq!(
        shown(turn(&browser, "/one", Some(2), "a", before, true)),
        ""
    );
    assert_eq!(refused(&browser, "/one", Some(1), "a"), "");
}

#[test]
fn failures_are_not_remembered_without_end() {
    let browser = browser();
    for number in 0..4 * MAX_WISHES {
        let asking = asking(&browser, Some(1), &format!("scope-{number}"));
        let outcome = asking.has_come_to(Err(NoLogin::Failed(error())));
        assert_eq!(outcome.err(), Some(error()));
        let remembered = browser.asked()[Path::new("/one")].wishes.len();
        assert!(remembered <= MAX_WISHES, "{remembered}");
    }
}

#[test]
fn a_scope_that_was_granted_in_vain_is_asked_for_once() {
    let browser = browser();
    grant(&browser, Some(1), "a b", 2);
    // The server takes what the login is good for.
    browser.taken(Path::new("/one"), 2);
    granted_before(&browser, RIGHT_AWAY);
    for _ in 0..2 {
        assert_eq!(refused_after(&browser, 2, "b a"), "of no use");
    }
    assert_eq!(refused_after(&browser, 2, "a c"), "");
    assert_eq!(refused_after(&browser, 2, ""), "");
    // Another login is another matter.
    assert_eq!(refused_after(&browser, 3, "a b"), "");
}

#[test]
fn a_login_that_is_refused_right_away_is_asked_for_once() {
    let browser = browser();
    grant(&browser, None, "", 1);
    for _ in 0..2 {
        assert_eq!(refused_after(&browser, 1, ""), "of no use");
    }
    assert_eq!(refused(&browser, "/one", Some(1), ""), "of no use");
    assert_eq!(refused_after(&browser, 2, ""), "");
}

#[test]
fn a_login_that_was_good_for_a_time_is_asked_for_again() {
    for after in ["it was taken", "a while", "it has ended"] {
        let browser = browser();
        grant(&browser, None, "", 1);
        match after {
            "it was taken" => browser.taken(Path::new("/one"), 1),
            "a while" => granted_before(&browser, RIGHT_AWAY),
            _ => {
                assert_eq!(refused(&browser, "/one", Some(1), ""), "", "{after}");
                continue;
            }
        }
        assert_eq!(refused_after(&browser, 1, ""), "", "{after}");
    }
}

#[test]
fn a_login_whose_renewed_token_is_refused_too_is_of_no_use() {
    let browser = browser();
    let one = Path::new("/one");
    grant(&browser, None, "", 1);
    browser.of_no_use(one, 2);
    browser.of_no_use(one, 1);
    // A request of another kind that goes through mends nothing.
    browser.taken(one, 1);
    assert_eq!(refused(&browser, "/one", Some(1), ""), "of no use");
    // Nor does a request that was refused long after a page make the next one useless.
    grant(&browser, Some(2), "", 3);
    granted_before(&browser, RIGHT_AWAY);
    browser.of_no_use(one, 3);
    assert_eq!(refused_after(&browser, 3, ""), "");
}
