//! Logging in at a real authorization server, and out again.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use callgate_tests::{Ran, Workbench};
use expect_test::expect;
use serde_json::json;

use crate::guarded::{Guarded, follow};
use crate::pty::at_terminal;

/// Logs in through the command, as a person with a browser does.
pub fn log_in(bench: &Workbench, flags: &[&str]) -> Ran {
    log_in_by(bench.command(&[&["auth", "login", "web", "--no-browser"], flags].concat()))
}

/// Logs in by this command.
pub fn log_in_by(mut command: Command) -> Ran {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let mut said = BufReader::new(child.stderr.take().expect("a piped stderr"));
    let mut stderr = String::new();
    while let Ok(1..) = said.read_line(&mut stderr) {
        let last = stderr.lines().last().unwrap_or_default();
        if last.starts_with("http://") {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(follow(last)).expect("the browser's way");
            break;
        }
    }
    said.read_to_string(&mut stderr).expect("the rest");
    let output = child.wait_with_output().expect("the end");
    Ran {
        stderr,
        ..Ran::from(output)
    }
}

#[test]
fn login_and_logout_change_the_status() {
    let guarded = Guarded::start(&json!({ "tokens": ["canary-access", "canary-refresh"] }));
    // Without a keyring, tokens go to a file.
    let bench = guarded.bench(&json!(true));
    let plain = |ran: &Ran| {
        let text = format!("{}{}exit code {}\n", ran.stderr, ran.stdout, ran.code);
        let lines = guarded
            .plain(&text)
            .replace(&bench.path().display().to_string(), "FOLDER");
        let lines = lines.lines().map(|line| match line.split_once('?') {
            Some((page, _)) => format!("{page}?…"),
            None => match line.split_once("callgate/auth/") {
                Some((before, after)) => format!(
                    "{before}callgate/auth/…{}",
                    after.get(32..).unwrap_or_default()
                ),
                None => line.to_owned(),
            },
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        web: not logged in (set "oauth": false if it needs no login)
        exit code 1"#]]
    .assert_eq(&plain(&bench.callgate(&["auth", "status", "web"])));
    expect![[r#"
        server web sends you to ISSUER_HOST (issuer ISSUER)
        open this page in a browser on this machine, and log in there:
        ISSUER/authorize?…
        the tokens are in a file that only you can read; a keyring would be safer
        web: logged in, for 60 minutes, then renewed
          at:     ISSUER
          for:    URL
          client: client-1
          scopes: read
          tokens: in FOLDER/state/callgate/auth/….json
        exit code 0"#]]
    .assert_eq(&plain(&log_in(&bench, &[])));
    let files: Vec<PathBuf> = std::fs::read_dir(bench.path().join("state/callgate/auth"))
        .expect("the folder of logins")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    for file in &files {
        let mode = std::fs::metadata(file)
            .expect("its rights")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    let status = bench.callgate(&["auth", "status"]);
    assert!(!format!("{status:?}").contains("canary"), "{status:?}");
    expect![[r#"
        web: logged in, for 60 minutes, then renewed
          at:     ISSUER
          for:    URL
          client: client-1
          scopes: read
          tokens: in FOLDER/state/callgate/auth/….json
        exit code 0"#]]
    .assert_eq(&plain(&status));
    let status = bench.callgate(&["auth", "status", "--json"]);
    assert!(!format!("{status:?}").contains("canary"), "{status:?}");
    let web = &status.json()[0];
    let is_usable = web["loggedIn"] == true && web["login"]["renewable"] == true;
    assert!(
        is_usable && web["login"]["scopes"] == json!(["read"]),
        "{web}"
    );
    expect![[r#"
        web: logged out; the tokens are deleted and revoked
        exit code 0"#]]
    .assert_eq(&plain(&bench.callgate(&["auth", "logout", "web"])));
    expect![[r#"
        web: was not logged in
        exit code 0"#]]
    .assert_eq(&plain(&bench.callgate(&["auth", "logout", "web"])));
    expect![[r#"
        web: not logged in (set "oauth": false if it needs no login)
        exit code 1"#]]
    .assert_eq(&plain(&bench.callgate(&["auth", "status"])));
    let left = files.iter().filter(|file| file.exists());
    let left: Vec<_> = left.filter_map(|file| file.extension()).collect();
    assert_eq!(left, ["lock"]);
}

/// Names from an authorization server are shown, but cannot add lines to the output.
#[test]
fn authorization_server_text_adds_no_output_lines() {
    let guarded = Guarded::start(&json!({ "clientId": "c-\n  scopes: admin\u{1b}[2J" }));
    let ran = log_in(&guarded.bench(&json!({ "tokens": "file" })), &[]);
    let said = "the client was registered without an id that can be used\n";
    assert!(
        ran.stdout.is_empty() && ran.stderr.ends_with(said),
        "{ran:?}"
    );

    let scope = "read \u{1b}[2J x\u{2028}y\nweb:\tlogged-in";
    let guarded = Guarded::start(&json!({ "answer": { "scope": scope } }));
    let bench = guarded.bench(&json!({ "tokens": "file" }));
    let shown = log_in(&bench, &[]).stdout;
    assert!(
        shown.contains("\n  scopes: read x y web: logged-in\n"),
        "{shown}"
    );
    // The same holds for a name in a stored login.
    let files = std::fs::read_dir(bench.path().join("state/callgate/auth"));
    let mut files = files
        .expect("the logins")
        .map(|entry| entry.expect("an entry").path());
    let file = files.find(|file| file.extension().is_some_and(|has| has == "json"));
    let file = file.expect("the login");
    let login = std::fs::read_to_string(&file).expect("the login");
    let forged = login.replace(r#""client-1""#, r#""c-\n  scopes: admin\u001b[2J""#);
    assert_ne!(forged, login);
    std::fs::write(&file, forged).expect("the login");
    let shown = bench.callgate(&["auth", "status", "web"]).stdout;
    assert!(
        shown.contains("\n  client: c-\\n  scopes: admin\\u001b[2J\n"),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 6, "{shown}");
}

#[test]
fn auth_commands_reject_unsuitable_servers() {
    let guarded = Guarded::start(&json!({}));
    let bench = Workbench::new(json!({
        "web": { "url": guarded.url },
        "key": { "url": guarded.url, "headers": { "Authorization": "Bearer x" } },
        "off": { "url": guarded.url, "oauth": false },
        "git": { "command": "git" },
        "own": { "url": guarded.url, "oauth": {
            "grant": "client_credentials", "clientId": "registered",
            "clientSecret": "registered-secret", "issuer": guarded.issuer,
        } },
    }));
    for (command, server, phrase) in [
        ("login", "web", "add --no-browser"),
        ("login", "git", "server `git` takes no login"),
        ("login", "own", "server `own` takes no login"),
        ("status", "no", "the servers are: web, key, off, git, own"),
        (
            "status",
            "key",
            "its \"Authorization\" header is configured",
        ),
        ("status", "off", "its \"oauth\" is false"),
        ("status", "own", "\"client_credentials\""),
        ("logout", "git", "server `git` takes no login"),
    ] {
        let ran = bench.callgate(&["auth", command, server]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(phrase), "{ran:?}");
    }
}

#[test]
fn login_page_on_other_host_needs_approval() {
    let guarded = Guarded::start(&json!({ "iss": "", "metadata": {
        "authorization_endpoint": "ELSEWHERE/authorize",
        "authorization_response_iss_parameter_supported": null,
    } }));
    let bench = guarded.bench(&json!({ "tokens": "file" }));
    let mut terminal = at_terminal(&bench, &["auth", "login", "web"]);
    let host = guarded.elsewhere.trim_start_matches("http://");
    for text in [
        &format!("server web sends you to {host} (issuer {})", guarded.issuer),
        "do they belong together",
    ] {
        terminal.exp_string(text).expect(text);
    }
    terminal.send_line("n").expect("an answer");
    let said = terminal.exp_eof().expect("the end");
    assert!(said.contains("and that was not approved"), "{said}");
    assert!(!said.contains("open this page"), "{said}");
    // Without a terminal nobody is asked, and the issuer's name is needed.
    let ran = log_in(&bench, &[]);
    let expected = "the browser came back without the issuer's name, and its page is at";
    assert!(ran.stderr.contains(expected), "{ran:#?}");
}
