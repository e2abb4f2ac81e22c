//! The system's keyring, against a real one: the Secret Service of
//! gnome-keyring on a message bus of its own, unlocked, below a temporary home.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use callgate_tests::Ran;
use serde_json::json;
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::logins::log_in_by;

/// A keyring and its bus, both killed on drop.
pub struct Keyring {
    _home: TempDir,
    bus: Child,
    daemon: Child,
    address: String,
}

impl Keyring {
    /// Starts a keyring; `None`, with a message on stderr, where no keyring is installed.
    ///
    /// # Panics
    ///
    /// If no keyring is installed in CI, where the set-up has to install one.
    pub fn start() -> Option<Self> {
        let home = TempDir::new().expect("a home");
        let run = home.path().join("run");
        std::fs::create_dir(&run).expect("a folder");
        let command = |program: &str| {
            let mut command = Command::new(program);
            command
                .env("HOME", home.path())
                .env("XDG_RUNTIME_DIR", &run)
                .env("XDG_DATA_HOME", home.path().join("data"))
                .stderr(Stdio::null());
            command
        };
        let bus = command("dbus-daemon")
            .args(["--session", "--nofork", "--print-address=1"])
            .stdout(Stdio::piped())
            .spawn();
        let mut bus = match bus {
            Ok(bus) => bus,
            Err(error) => return not_run("dbus-daemon", &error),
        };
        let mut address = String::new();
        BufReader::new(bus.stdout.take().expect("a piped stdout"))
            .read_line(&mut address)
            .expect("the bus says its address");
        let address = address.trim().to_owned();
        let daemon = command("gnome-keyring-daemon")
            .args(["--foreground", "--unlock", "--components=secrets"])
            .env("DBUS_SESSION_BUS_ADDRESS", &address)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut daemon = match daemon {
            Ok(daemon) => daemon,
            Err(error) => {
                drop(bus.kill());
                drop(bus.wait());
                return not_run("gnome-keyring-daemon", &error);
            }
        };
        // An empty password unlocks it.
        let mut input = daemon.stdin.take().expect("a piped stdin");
        input.write_all(b"\n").expect("the password");
        drop(input);
        let mut this = Self {
            _home: home,
            bus,
            daemon,
            address,
        };
        this.wait_until_there();
        Some(this)
    }

    /// Sets a command's environment for this keyring.
    pub fn reach(&self, command: &mut Command) {
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
    }

    /// The value of `DBUS_SESSION_BUS_ADDRESS` for this keyring.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Keeps a password.
    pub fn set(&self, service: &str, account: &str, password: &str) {
        let mut tool = self.tool(&[
            "store",
            "--label=x",
            "service",
            service,
            "username",
            account,
        ]);
        let mut tool = tool
            .stdin(Stdio::piped())
            .spawn()
            .expect("start secret-tool");
        let mut input = tool.stdin.take().expect("a piped stdin");
        input.write_all(password.as_bytes()).expect("the password");
        drop(input);
        assert!(tool.wait().expect("the end").success());
    }

    /// The passwords of a service, as `secret-tool search` prints them.
    pub fn search(&self, service: &str) -> String {
        let found = self.tool(&["search", "--all", "service", service]).output();
        let found = found.expect("start secret-tool");
        String::from_utf8_lossy(&found.stdout).into_owned()
    }

    fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("secret-tool");
        command.args(arguments);
        self.reach(&mut command);
        command
    }

    /// Asks the bus: a request to the service itself would make the bus start a second daemon.
    fn wait_until_there(&mut self) {
        loop {
            let asked = Command::new("dbus-send")
                .args([
                    "--session",
                    "--print-reply",
                    "--dest=org.freedesktop.DBus",
                    "/",
                ])
                .args([
                    "org.freedesktop.DBus.NameHasOwner",
                    "string:org.freedesktop.secrets",
                ])
                .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
                .output()
                .expect("start dbus-send");
            if String::from_utf8_lossy(&asked.stdout).contains("boolean true") {
                return;
            }
            let ended = self.daemon.try_wait().expect("its state");
            assert_eq!(ended, None, "the keyring ended early");
        }
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        for process in [&mut self.daemon, &mut self.bus] {
            drop(process.kill());
            drop(process.wait());
        }
    }
}

fn not_run(program: &str, error: &std::io::Error) -> Option<Keyring> {
    let why =
        format!("{program} cannot be started ({error}); run `cargo xtask setup --tests` as root");
    assert!(
        std::env::var_os("CI").is_none(),
        "in CI there must be a keyring: {why}"
    );
    // Past the test runner's capture, which shows nothing of tests that pass.
    drop(writeln!(std::io::stderr(), "THIS TEST DID NOT RUN: {why}"));
    None
}

#[test]
fn tokens_are_stored_only_in_the_keyring() {
    let Some(keyring) = Keyring::start() else {
        return;
    };
    let guarded = Guarded::start(&json!({ "tokens": ["access-canary", "refresh-canary"] }));
    let bench = guarded.bench(&json!(true));
    let run = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        keyring.reach(&mut command);
        Ran::from(command.output().expect("start callgate"))
    };
    let mut command = bench.command(&["auth", "login", "web", "--no-browser"]);
    keyring.reach(&mut command);
    let login = log_in_by(command);
    assert!(
        login.stdout.ends_with("tokens: in the keyring\n"),
        "{login:?}"
    );

    assert!(keyring.search("callgate").contains("refresh-canary"));
    let state = bench.state().join("callgate/auth");
    for file in std::fs::read_dir(state).expect("the folder of logins") {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a text");
        assert!(!text.contains("canary"), "{text}");
    }
    let status = run(&["auth", "status", "web"]);
    assert!(
        status.code == 0 && status.stdout.contains("in the keyring"),
        "{status:?}"
    );
    assert!(!status.stdout.contains("canary"), "{status:?}");
    let logout = run(&["auth", "logout", "web"]);
    assert_eq!(logout.code, 0, "{logout:?}");
    assert!(!keyring.search("callgate").contains("canary"));
}

/// A bus without a keyring is not one with an empty keyring.
#[test]
fn login_fails_without_the_required_keyring() {
    let guarded = Guarded::start(&json!({}));
    let bench = guarded.bench(&json!({ "tokens": "keyring" }));
    let mut command = bench.command(&["auth", "login", "web", "--no-browser"]);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
    let login = log_in_by(command);
    assert_eq!(login.code, 1, "{login:?}");
    let said = "the tokens of server `web` cannot be read or kept: there is no keyring to reach";
    assert!(login.stderr.contains(said), "{login:?}");
}
