//! `callgate doctor`: tries everything that a run needs, and advises how to fix what is missing.

use std::path::Path;
use std::time::Instant;

use callgate::config::{Config, ConfigError};
use callgate::faces::auth;
use callgate::faces::{Connect, Transport, Workers};
use callgate::faces::{Jail, JailLayer, JailOptions, WorkerProgram};
use callgate::settings::CheckMode;
use callgate::{Gate, RunReport, ServerSpec};
use callgate_text::{indented, shell_word, undrawn};
use clap::ValueEnum as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clients::{ALLOW_FIRST, Client, Folders};
use crate::setup::{self, Flags, Loaded, Sources};
use crate::trust::NotAccepted;
use crate::{print, progress, runs};

/// A script that uses the worker, V8 and the type check, but no tool.
const SCRIPT: &str = "const answer: number = 42;\nreturn answer;\n";

/// The findings of `doctor`.
#[derive(Serialize)]
pub struct Checkup {
    version: &'static str,
    /// True if runs have everything that they need.
    pub ok: bool,
    checks: Vec<Check>,
    /// True if each check is printed when it ends.
    #[serde(skip)]
    prints: bool,
    /// The number of checks that are printed.
    #[serde(skip)]
    shown: usize,
    /// The width of the column of subjects.
    #[serde(skip)]
    width: usize,
}

/// One line of the output.
#[derive(Serialize)]
struct Check {
    /// The subject, such as `kernel` or `server git`.
    what: String,
    state: Outcome,
    says: String,
    /// The advice, unless `says` contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The finding for programs.
    #[serde(skip_serializing_if = "Value::is_null")]
    facts: Value,
    /// The problem and the advice, if `says` contains both.
    #[serde(skip)]
    parts: Option<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    /// Runs work without it.
    Warning,
    /// Runs fail without it, or those that use this server.
    Missing,
}

/// Prints the findings, and returns 1 if something is missing.
pub async fn execute(sources: &Sources, json: bool) -> anyhow::Result<u8> {
    let cancel = setup::cancel_on_signal()?;
    let checkup = async {
        match setup::load(sources).await {
            // A file that is not accepted must not start servers.
            Err(error) if error.is::<NotAccepted>() => Err(error),
            loaded => Checkup::make(loaded, !json).await,
        }
    };
    let checkup = tokio::select! {
        checkup = checkup => checkup?,
        () = cancel.cancelled() => return Ok(setup::cancelled("the command was cancelled")),
    };
    if json {
        print::json(&checkup)?;
    }
    Ok(u8::from(!checkup.ok))
}

impl Checkup {
    /// Tries everything with what was loaded, the servers concurrently. `prints` says whether to
    /// print each check when it ends.
    pub async fn make(
        loaded: anyhow::Result<Option<Loaded>>,
        prints: bool,
    ) -> anyhow::Result<Self> {
        let mut checkup = Self {
            version: env!("CARGO_PKG_VERSION"),
            ok: true,
            checks: Vec::new(),
            prints,
            shown: 0,
            width: width(&loaded),
        };
        checkup.print(&format!("callgate {}\n", checkup.version))?;
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kernel = format!(
            "{} {} {}",
            std::env::consts::OS,
            kernel.trim(),
            std::env::consts::ARCH
        );
        checkup.add("kernel", Outcome::Ok, kernel);
        let config = checkup.configuration(loaded);
        checkup.show()?;
        let workers = setup::workers(0, config.as_ref(), None);
        checkup.sandbox(config.as_ref(), &workers).await;
        checkup.show()?;
        checkup.gate(config.as_ref(), workers).await?;
        checkup.clients();
        progress::clear();
        checkup.ok = checkup.checks.iter().all(|it| it.state != Outcome::Missing);
        checkup.show()?;
        checkup.print(&checkup.ending())?;
        Ok(checkup)
    }

    fn add(&mut self, what: &str, state: Outcome, says: impl Into<String>) -> &mut Check {
        self.checks.push_mut(Check::new(what, state, says))
    }

    fn configuration(&mut self, loaded: anyhow::Result<Option<Loaded>>) -> Option<Config> {
        const WHAT: &str = "config";
        let config = match loaded {
            Ok(loaded) => loaded.map(|loaded| loaded.config),
            Err(error) => {
                let problems = error.downcast_ref().map(ConfigError::problems);
                let problems = problems.map(|all| all.map(ToString::to_string).collect());
                for problem in problems.unwrap_or_else(|| vec![format!("{error:#}")]) {
                    self.add(WHAT, Outcome::Missing, problem).split_advice();
                }
                return None;
            }
        };
        let Some(config) = config else {
            let says = setup::NO_CONFIGURATION;
            self.add(WHAT, Outcome::Missing, says).split_advice();
            return None;
        };
        let is_left_out = |name: &&String| config.left_out.iter().any(|it| it.server == **name);
        let off = config.disabled.iter().filter(|name| !is_left_out(name));
        let off: Vec<&str> = off.map(String::as_str).collect();
        let servers = config.servers.len();
        let mut says = format!("{}: {}", config.path.display(), count(servers, "server"));
        if !off.is_empty() {
            says += &format!(", and turned off: {}", off.join(", "));
        }
        self.add(WHAT, Outcome::Ok, says).facts = json!({ "path": config.path, "off": off });
        if servers == 0 {
            let advice = "write servers under \"mcpServers\", or run `callgate init --force`";
            self.add(WHAT, Outcome::Warning, "it names no server that is on")
                .advise(advice);
        }
        for warning in &config.warnings {
            self.add(WHAT, Outcome::Warning, warning.to_string());
        }
        for left_out in &config.left_out {
            let what = format!("server {}", left_out.server);
            let says = left_out.problem.to_string();
            self.add(&what, Outcome::Missing, says).split_advice();
        }
        Some(config)
    }

    async fn sandbox(&mut self, config: Option<&Config>, workers: &Workers) {
        const WHAT: &str = "sandbox";
        let options = config.map(|config| config.jail.clone()).unwrap_or_default();
        let jail = match workers.jail().await {
            Ok(jail) => {
                self.add(WHAT, Outcome::Ok, jail.to_string()).facts = json!(jail);
                Some(jail)
            }
            Err(reason) => {
                self.add(
                    WHAT,
                    Outcome::Missing,
                    format!("no script can run: {reason}"),
                );
                let mut any = options.clone();
                any.required.clear();
                let limits = setup::limits(config, None);
                let workers = Workers::new(WorkerProgram::Installed, 0, &limits, &any);
                workers.jail().await.ok()
            }
        };
        for layer in JailLayer::ALL {
            if let Some((why, advice)) = jail.as_ref().and_then(|it| absence(layer, it, &options)) {
                self.add(
                    WHAT,
                    Outcome::Warning,
                    format!("no {}: {why}", layer.name()),
                )
                .advise(&advice);
            }
        }
    }

    async fn gate(&mut self, config: Option<&Config>, workers: Workers) -> anyhow::Result<()> {
        let mode = config.and_then(|config| config.check.mode);
        let mode = mode.unwrap_or_default();
        let flags = Flags {
            // A failed check must not hide whether the worker works.
            check: Some(if mode == CheckMode::Off {
                CheckMode::Off
            } else {
                CheckMode::Warn
            }),
            ..Flags::default()
        };
        // Each server is started by itself.
        let unconnected = config.cloned().map(|mut config| {
            for server in &mut config.servers {
                server.connect = Connect::Manual;
            }
            config
        });
        let gate = async {
            let builder = setup::builder(unconnected.as_ref(), &flags)?;
            Ok(builder.workers(workers.clone()).build().await?)
        };
        let gate: Gate = match gate.await {
            Ok(gate) => gate,
            Err(error) => {
                let error: anyhow::Error = error;
                self.add("config", Outcome::Missing, format!("{error:#}"));
                return Ok(());
            }
        };
        let report = gate.run(SCRIPT).await;
        self.script(&gate, &report, mode);
        if let Some(config) = config {
            self.show()?;
            self.servers(&gate, config).await?;
            self.rules(&gate, config);
            self.ledger(config, workers).await;
            self.store(config);
            self.cache(&gate);
        }
        gate.shutdown().await;
        Ok(())
    }

    /// Starts the servers, and prints each when it has started or failed.
    async fn servers(&mut self, gate: &Gate, config: &Config) -> anyhow::Result<()> {
        let servers = config.servers.iter().enumerate();
        let starts = servers.map(|(place, spec)| async move { (place, started(gate, spec).await) });
        let mut starts: FuturesUnordered<_> = starts.collect();
        let names = config.servers.iter().map(|server| server.name.clone());
        let (mut left, mut checks): (Vec<String>, Vec<(usize, Check)>) = (names.collect(), vec![]);
        progress::starting(&left);
        while let Some((place, check)) = starts.next().await {
            self.print(&check.line(self.width))?;
            left.retain(|name| check.what.strip_prefix("server ") != Some(name.as_str()));
            progress::starting(&left);
            checks.push((place, check));
        }
        checks.sort_by_key(|(place, _)| *place);
        self.checks
            .extend(checks.into_iter().map(|(_, check)| check));
        self.shown = self.checks.len();
        Ok(())
    }

    fn script(&mut self, gate: &Gate, report: &RunReport, mode: CheckMode) {
        match &report.error {
            None => {
                let ms = report.total_ms;
                let says = format!("a script ran in V8 in {ms} ms");
                self.add("worker", Outcome::Ok, says).facts = json!({ "ms": ms });
            }
            Some(error) => {
                let says = format!("a test script failed: {}", error.message);
                self.add("worker", Outcome::Missing, says);
            }
        }
        let unchecked = report.check.as_ref().and_then(|it| it.reason.clone());
        let program = match unchecked {
            Some(reason) => Err(reason),
            None => gate.view().typescript().map_err(|why| why.to_string()),
        };
        let (state, says) = match (mode, program) {
            (CheckMode::Off, _) => (
                Outcome::Ok,
                "the check is off in the configuration".to_owned(),
            ),
            (_, Ok(program)) => (Outcome::Ok, program),
            (CheckMode::Require, Err(reason)) => (Outcome::Missing, reason),
            (_, Err(reason)) => (Outcome::Warning, reason),
        };
        self.add("types", state, says);
    }

    fn rules(&mut self, gate: &Gate, config: &Config) {
        let uncached = gate.view().cache_folder().err().map(|why| why.to_string());
        for warning in gate.warnings() {
            if Some(&warning) != uncached.as_ref() {
                self.add("tools", Outcome::Warning, warning)
                    .advise("report it to the author of the server; its other tools work");
            }
        }
        let (unmatched, forbidding) = (
            gate.unmatched_rules(),
            gate.view().unmatched_forbidding_rules(),
        );
        if unmatched.is_empty() {
            let says = "each rule matches a tool, as far as servers have started";
            self.add("rules", Outcome::Ok, says);
        }
        for rule in unmatched {
            let state = if !config.allow_unmatched && forbidding.contains(&rule) {
                Outcome::Missing
            } else {
                Outcome::Warning
            };
            self.add("rules", state, rule)
                .advise("correct or remove it");
        }
    }

    async fn ledger(&mut self, config: &Config, workers: Workers) {
        let Some(ledger) = config.ledger.clone() else {
            let says = "no file; a run's report contains its calls";
            self.add("ledger", Outcome::Ok, says);
            return;
        };
        let shown = ledger.0.display().to_string();
        let gate = Gate::builder().workers(workers).check(CheckMode::Off);
        match gate.ledger_file(Some(ledger)).build().await {
            Ok(_) => self.add("ledger", Outcome::Ok, shown),
            Err(error) => self
                .add("ledger", Outcome::Missing, error.to_string())
                .split_advice(),
        };
    }

    fn store(&mut self, config: &Config) {
        const WHAT: &str = "store";
        let Some(settings) = &config.store else {
            self.add(WHAT, Outcome::Ok, "off in the configuration");
            return;
        };
        match runs::summary(settings) {
            Ok((says, warnings)) => {
                self.add(WHAT, Outcome::Ok, says);
                for warning in warnings {
                    self.add(WHAT, Outcome::Warning, warning);
                }
            }
            Err(error) => {
                let says = format!("runs are not recorded: {error}");
                self.add(WHAT, Outcome::Warning, says)
                    .advise("set \"path\" in \"store\" to a different folder");
            }
        }
    }

    fn cache(&mut self, gate: &Gate) {
        match gate.view().cache_folder() {
            Ok(Some(folder)) => self.add("cache", Outcome::Ok, folder.display().to_string()),
            Ok(None) => self.add("cache", Outcome::Ok, "off in the configuration"),
            Err(reason) => self
                .add("cache", Outcome::Warning, reason.to_string())
                .advise(
                    "make the folder writable, or set \"path\" in \"cache\" to a different one",
                ),
        };
    }

    /// Names the clients that have Callgate and cannot ask their user, and those with a shell.
    fn clients(&mut self) {
        let Ok(folder) = std::env::current_dir() else {
            return;
        };
        let folders = Folders::of(folder);
        for client in Client::value_variants() {
            if let Some(says) = client
                .cannot_ask()
                .filter(|_| folders.has_callgate(*client))
            {
                self.add("client", Outcome::Warning, says)
                    .advise(ALLOW_FIRST);
            }
        }
        let clients = Client::value_variants().iter();
        let with_shell = clients.filter(|it| it.has_shell() && folders.has_callgate(**it));
        let names: Vec<&str> = with_shell.map(|client| client.name()).collect();
        if !names.is_empty() {
            let says = format!(
                "models of {} have a shell of this account, in which they could answer questions \
                 themselves (SECURITY.md)",
                names.join(", ")
            );
            self.add("client", Outcome::Ok, says);
        }
    }

    /// Prints the checks that are not printed yet.
    fn show(&mut self) -> anyhow::Result<()> {
        let new = self.checks.iter().skip(self.shown);
        let lines: String = new.map(|check| check.line(self.width)).collect();
        self.shown = self.checks.len();
        self.print(&lines)
    }

    fn print(&self, text: &str) -> anyhow::Result<()> {
        if self.prints && !text.is_empty() {
            progress::clear();
            print::out(text)?;
        }
        Ok(())
    }

    /// The end of the output: what to do about each problem.
    fn ending(&self) -> String {
        if self.ok {
            return "everything that a run needs is there\n".to_owned();
        }
        let mut text = "something that runs need is MISSING; what to do:\n".to_owned();
        let missing = self.checks.iter();
        for check in missing.filter(|check| check.state == Outcome::Missing) {
            let (_, advice) = check.parts();
            let advice = advice.unwrap_or("see its line above");
            let line = indented(&format!("  {}: {advice}", check.what));
            text += &format!("{}\n", undrawn(&line));
        }
        text
    }
}

impl Check {
    fn new(what: &str, state: Outcome, says: impl Into<String>) -> Self {
        Self {
            what: what.to_owned(),
            state,
            says: says.into(),
            advice: None,
            facts: Value::Null,
            parts: None,
        }
    }

    fn advise(&mut self, advice: &str) -> &mut Self {
        self.advice = Some(advice.to_owned());
        self
    }

    /// Takes the advice out of a message of Callgate, where it follows a semicolon.
    fn split_advice(&mut self) -> &mut Self {
        let parts = self.says.split_once("; ");
        self.parts = parts.map(|(problem, advice)| (problem.to_owned(), advice.to_owned()));
        self
    }

    /// The problem, and the advice about it.
    fn parts(&self) -> (&str, Option<&str>) {
        match &self.parts {
            Some((problem, advice)) => (problem.as_str(), Some(advice.as_str())),
            None => (self.says.as_str(), self.advice.as_deref()),
        }
    }

    /// The line for a terminal. The advice about something missing is at the end of the output.
    fn line(&self, width: usize) -> String {
        let (what, (says, advice)) = (&self.what, self.parts());
        let state = match self.state {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Missing => "MISSING",
        };
        // The stderr of a server is shown on lines of its own.
        let then = if says.contains('\n') { "\n" } else { "; " };
        let advice = advice.filter(|_| self.state != Outcome::Missing);
        let advice = advice.map(|advice| format!("{then}{advice}"));
        let advice = advice.unwrap_or_default();
        let line = indented(&format!("{state:7}  {what:width$}  {says}{advice}"));
        format!("{}\n", undrawn(&line))
    }
}

/// The width of the column of subjects.
fn width(loaded: &anyhow::Result<Option<Loaded>>) -> usize {
    let loaded = loaded.iter().flatten();
    let names = loaded.flat_map(|loaded| {
        let left_out = loaded.config.left_out.iter().map(|it| &it.server);
        let servers = loaded.config.servers.iter();
        servers.map(|server| &server.name).chain(left_out)
    });
    let widths = names.map(|name| "server ".len() + name.chars().count());
    widths.chain(["sandbox".len()]).max().unwrap_or_default()
}

/// Starts one server, and checks its login.
async fn started(gate: &Gate, spec: &ServerSpec) -> Check {
    let began = Instant::now();
    let enabled = gate.enable(&spec.name).await;
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let login = login(spec).await;
    let what = format!("server {}", spec.name);
    let (verb, advice) = match spec.transport {
        Transport::Stdio(_) => ("started", "start its command by hand to see more"),
        Transport::Http(_) => (
            "answered",
            "check that it runs, and that its \"url\" is right",
        ),
    };
    match enabled {
        Ok(server) => {
            let revision = server.revision.unwrap_or_default();
            let tools = count(server.tools, "tool");
            let login_says = login.iter().map(|login| format!(", {login}"));
            let login_says: String = login_says.collect();
            let says = format!("{verb} in {ms} ms, MCP {revision}, {tools}{login_says}");
            let mut check = Check::new(&what, Outcome::Ok, says);
            check.facts =
                json!({ "ms": ms, "revision": revision, "tools": server.tools, "login": login });
            check
        }
        Err(error) => {
            let mut unavailable = gate.unavailable().into_iter();
            let reason = unavailable.find(|it| it.server == spec.name);
            let reason = reason.map_or_else(|| error.to_string(), |it| it.reason);
            let named = format!("server `{}` ", spec.name);
            let says = reason.strip_prefix(&named).unwrap_or(&reason);
            let mut check = Check::new(&what, Outcome::Missing, says);
            check.facts = json!({ "login": login });
            if let Some((problem, _)) = says.split_once("; run `callgate auth login") {
                let command = format!("run `{}`", login_command(spec));
                check.parts = Some((problem.to_owned(), command));
            }
            // Advice of the reason itself follows a semicolon, before the server's own words.
            if !says.lines().next().is_some_and(|line| line.contains("; ")) {
                check.advise(advice);
            }
            check
        }
    }
}

/// The command that logs in at a server.
fn login_command(spec: &ServerSpec) -> String {
    let flags = match &spec.transport {
        Transport::Http(http) => http
            .oauth
            .as_ref()
            .map(|oauth| oauth.login_flags.as_slice()),
        Transport::Stdio(_) => None,
    };
    let words = [spec.name.as_str()].into_iter();
    let words = words.chain(flags.unwrap_or_default().iter().map(String::as_str));
    let words = words.map(|word| format!(" {}", shell_word(word)));
    format!("callgate auth login{}", words.collect::<String>())
}

/// The login at a server that takes one.
async fn login(spec: &ServerSpec) -> Option<String> {
    auth::takes_login(spec).ok()?;
    Some(match auth::status(spec).await {
        Ok(Some(status)) if status.ended || (status.expired && !status.renewable) => {
            let name = &spec.name;
            format!("its login has ended; run `callgate auth login {name}`")
        }
        Ok(Some(_)) => "logged in".to_owned(),
        Ok(None) => "not logged in".to_owned(),
        Err(error) => error.to_string(),
    })
}

/// Why a layer is not in force, and what to do; `None` if it is.
fn absence(layer: JailLayer, jail: &Jail, options: &JailOptions) -> Option<(String, String)> {
    if jail.has(layer) {
        return None;
    }
    let modules = || std::fs::read_to_string("/sys/kernel/security/lsm");
    let (why, advice) = match layer {
        _ if !options.layers.contains(&layer) => (
            "it is off in the configuration",
            "remove \"level\" from \"sandbox\"",
        ),
        _ if !cfg!(target_os = "linux") => ("it is available on Linux only", "use Linux"),
        JailLayer::Landlock if modules().is_ok_and(|it| !it.contains("landlock")) => (
            "the kernel was started without it",
            "add landlock to `lsm=` on the kernel's command line",
        ),
        JailLayer::Landlock => (
            "the kernel is older than 5.13 or was built without it, or a container forbids it",
            "use a kernel that has it, or permit landlock_create_ruleset in the container",
        ),
        JailLayer::Seccomp if !Path::new("/proc/sys/kernel/seccomp").exists() => (
            "the kernel was built without it",
            "use a kernel with CONFIG_SECCOMP_FILTER",
        ),
        JailLayer::Namespaces => return Some(namespaces_absence()),
        _ => (
            "the kernel or a container refuses it",
            "permit the system call seccomp in the container",
        ),
    };
    Some((why.to_owned(), advice.to_owned()))
}

/// Why user namespaces are not available, and what to do.
fn namespaces_absence() -> (String, String) {
    // A setting, its value that forbids user namespaces, and one that permits them.
    let settings = [
        ("user.max_user_namespaces", "0", "10000"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let forbids = |(name, off, _): &&(&str, &str, &str)| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(path).is_ok_and(|value| value.trim() == *off)
    };
    match settings.iter().find(forbids) {
        Some((name, off, on)) => (
            format!("the kernel's setting {name} is {off}"),
            format!("it is optional; `sysctl {name}={on}` permits it"),
        ),
        None => (
            "the kernel or a container forbids user namespaces".to_owned(),
            "it is optional: no action is needed".to_owned(),
        ),
    }
}

/// A number with a noun.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
