//! `callgate doctor`: tries everything that a run needs, and advises how to fix what is missing.

mod check;
mod layers;

use std::time::Instant;

use callgate::config::{Config, ConfigError};
use callgate::faces::auth;
use callgate::faces::store::StoreErrorKind;
use callgate::faces::{JailLayer, Transport, WorkerProgram, Workers};
use callgate::settings::CheckMode;
use callgate::{Gate, RunReport, ServerSpec};
use callgate_text::shell_word;
use clap::ValueEnum as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::json;

use crate::auth::needs_login;
use crate::clients::{ALLOW_FIRST, Client, Folders};
use crate::setup::{self, Flags, Loaded, Sources, Start};
use crate::trust::NotAccepted;
use crate::{print, progress, runs};
use check::{Check, Outcome};

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
        };
        checkup.print(&format!("callgate {}\n", checkup.version))?;
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kernel = format!(
            "{} {} {}",
            std::env::consts::OS,
            kernel.trim(),
            std::env::consts::ARCH
        );
        checkup.add(Check::ok("kernel", kernel))?;
        let config = checkup.configuration(loaded)?;
        let workers = setup::workers(0, config.as_ref(), None);
        checkup.sandbox(config.as_ref(), &workers).await?;
        checkup.gate(config.as_ref(), workers).await?;
        checkup.clients()?;
        progress::clear();
        checkup.print(&checkup.ending())?;
        Ok(checkup)
    }

    /// Keeps a check, and prints its line.
    fn add(&mut self, check: Check) -> anyhow::Result<()> {
        self.print(&check.line())?;
        self.ok &= check.state != Outcome::Missing;
        self.checks.push(check);
        Ok(())
    }

    fn configuration(
        &mut self,
        loaded: anyhow::Result<Option<Loaded>>,
    ) -> anyhow::Result<Option<Config>> {
        const WHAT: &str = "config";
        let config = match loaded {
            Ok(loaded) => loaded.map(|loaded| loaded.config),
            Err(error) => {
                let problems = error.downcast_ref().map(ConfigError::problems);
                let problems = problems.map(|all| all.map(ToString::to_string).collect());
                for problem in problems.unwrap_or_else(|| vec![format!("{error:#}")]) {
                    self.add(Check::missing(WHAT, &problem))?;
                }
                return Ok(None);
            }
        };
        let Some(config) = config else {
            self.add(Check::missing(WHAT, setup::NO_CONFIGURATION))?;
            return Ok(None);
        };
        let is_left_out = |name: &&String| config.left_out.iter().any(|it| it.server == **name);
        let off = config.disabled.iter().filter(|name| !is_left_out(name));
        let off: Vec<&str> = off.map(String::as_str).collect();
        let servers = config.servers.len();
        let mut says = format!("{}: {}", config.path.display(), count(servers, "server"));
        if !off.is_empty() {
            says += &format!(", and turned off: {}", off.join(", "));
        }
        let facts = json!({ "path": config.path, "off": off });
        self.add(Check::ok(WHAT, says).facts(facts))?;
        if servers == 0 {
            let advice = "write servers under \"mcpServers\", or run `callgate init --force`";
            self.add(Check::warning(WHAT, "it names no server that is on").advise(advice))?;
        }
        for warning in &config.warnings {
            self.add(Check::warning(WHAT, warning.to_string()))?;
        }
        for left_out in &config.left_out {
            let what = format!("server {}", left_out.server);
            self.add(Check::missing(what, &left_out.problem.to_string()))?;
        }
        Ok(Some(config))
    }

    async fn sandbox(&mut self, config: Option<&Config>, workers: &Workers) -> anyhow::Result<()> {
        const WHAT: &str = "sandbox";
        let options = config.map(|config| config.jail.clone()).unwrap_or_default();
        let jail = match workers.jail().await {
            Ok(jail) => {
                self.add(Check::ok(WHAT, jail.to_string()).facts(json!(jail)))?;
                Some(jail)
            }
            Err(reason) => {
                let says = format!("no script can run: {reason}");
                self.add(Check::new(WHAT, Outcome::Missing, says))?;
                let mut any = options.clone();
                any.required.clear();
                let limits = setup::limits(config, None);
                let workers = Workers::new(WorkerProgram::Installed, 0, &limits, &any);
                workers.jail().await.ok()
            }
        };
        for layer in JailLayer::ALL {
            let jail = jail.as_ref();
            let absence = jail.and_then(|jail| layers::absence(layer, jail, &options));
            if let Some((why, advice)) = absence {
                let says = format!("no {}: {why}", layer.name());
                self.add(Check::warning(WHAT, says).advise(advice))?;
            }
        }
        Ok(())
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
            // Each server is started by itself.
            start: Start::Manual,
            ..Flags::default()
        };
        let gate = async {
            let builder = setup::builder(config, &flags)?.workers(workers.clone());
            anyhow::Ok(builder.build().await?)
        };
        let gate: Gate = match gate.await {
            Ok(gate) => gate,
            Err(error) => {
                let says = format!("{error:#}");
                return self.add(Check::new("config", Outcome::Missing, says));
            }
        };
        let report = gate.run(SCRIPT).await;
        self.script(&gate, &report, mode)?;
        if let Some(config) = config {
            self.servers(&gate, config).await?;
            self.rules(&gate, config)?;
            self.ledger(config, workers).await?;
            self.store(config)?;
            self.cache(&gate)?;
        }
        gate.shutdown().await;
        Ok(())
    }

    /// Starts the servers.
    async fn servers(&mut self, gate: &Gate, config: &Config) -> anyhow::Result<()> {
        let servers = config.servers.iter();
        let starts = servers.map(|spec| async move { (&spec.name, started(gate, spec).await) });
        let mut starts: FuturesUnordered<_> = starts.collect();
        let names = config.servers.iter().map(|server| server.name.clone());
        let mut left: Vec<String> = names.collect();
        progress::starting(&left);
        while let Some((name, check)) = starts.next().await {
            self.add(check)?;
            left.retain(|it| it != name);
            progress::starting(&left);
        }
        Ok(())
    }

    fn script(&mut self, gate: &Gate, report: &RunReport, mode: CheckMode) -> anyhow::Result<()> {
        self.add(match &report.error {
            None => {
                let ms = report.total_ms;
                let says = format!("a script ran in V8 in {ms} ms");
                Check::ok("worker", says).facts(json!({ "ms": ms }))
            }
            Some(error) => {
                let says = format!("a test script failed: {}", error.message);
                Check::new("worker", Outcome::Missing, says)
            }
        })?;
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
        self.add(Check::new("types", state, says))
    }

    fn rules(&mut self, gate: &Gate, config: &Config) -> anyhow::Result<()> {
        let uncached = gate.view().cache_folder().err().map(|why| why.to_string());
        for warning in gate.warnings() {
            if Some(&warning) != uncached.as_ref() {
                let advice = "report it to the author of the server; its other tools work";
                self.add(Check::warning("tools", warning).advise(advice))?;
            }
        }
        let (unmatched, forbidding) = (
            gate.unmatched_rules(),
            gate.view().unmatched_forbidding_rules(),
        );
        if unmatched.is_empty() {
            let says = "each rule matches a tool, as far as servers have started";
            self.add(Check::ok("rules", says))?;
        }
        for rule in unmatched {
            let state = if !config.allow_unmatched && forbidding.contains(&rule) {
                Outcome::Missing
            } else {
                Outcome::Warning
            };
            self.add(Check::new("rules", state, rule).advise("correct or remove it"))?;
        }
        Ok(())
    }

    async fn ledger(&mut self, config: &Config, workers: Workers) -> anyhow::Result<()> {
        const WHAT: &str = "ledger";
        let Some(ledger) = config.ledger.clone() else {
            return self.add(Check::ok(
                WHAT,
                "no file; a run's report contains its calls",
            ));
        };
        let shown = ledger.0.display().to_string();
        let gate = Gate::builder().workers(workers).check(CheckMode::Off);
        let opened = gate.ledger_file(Some(ledger)).build().await;
        self.add(match opened {
            Ok(_) => Check::ok(WHAT, shown),
            Err(error) => Check::missing(WHAT, &error.to_string()),
        })
    }

    fn store(&mut self, config: &Config) -> anyhow::Result<()> {
        const WHAT: &str = "store";
        let Some(settings) = &config.store else {
            return self.add(Check::ok(WHAT, "off in the configuration"));
        };
        match runs::summary(settings) {
            Ok((says, warnings)) => {
                self.add(Check::ok(WHAT, says))?;
                for warning in warnings {
                    self.add(Check::warning(WHAT, warning))?;
                }
                Ok(())
            }
            Err(error) => {
                let says = format!("runs are not recorded: {error}");
                let advice = match error.kind() {
                    StoreErrorKind::Full => "free space, or set a lower \"bytes\" in \"store\"",
                    StoreErrorKind::Locked => "try again when other processes of callgate are idle",
                    StoreErrorKind::Newer => "update callgate to the newer version",
                    _ => "set \"path\" in \"store\" to a different folder",
                };
                self.add(Check::warning(WHAT, says).advise(advice))
            }
        }
    }

    fn cache(&mut self, gate: &Gate) -> anyhow::Result<()> {
        const WHAT: &str = "cache";
        let advice = "make the folder writable, or set \"path\" in \"cache\" to a different one";
        self.add(match gate.view().cache_folder() {
            Ok(Some(folder)) => Check::ok(WHAT, folder.display().to_string()),
            Ok(None) => Check::ok(WHAT, "off in the configuration"),
            Err(reason) => Check::warning(WHAT, reason.to_string()).advise(advice),
        })
    }

    /// Names the clients that have Callgate and cannot ask their user, and those with a shell.
    fn clients(&mut self) -> anyhow::Result<()> {
        let Ok(folder) = std::env::current_dir() else {
            return Ok(());
        };
        let folders = Folders::of(folder);
        let clients = Client::value_variants().iter();
        let mut with_shell = Vec::new();
        for client in clients.filter(|client| folders.has_callgate(**client)) {
            if let Some(says) = client.cannot_ask() {
                self.add(Check::warning("client", says).advise(ALLOW_FIRST))?;
            }
            if client.has_shell() {
                with_shell.push(client.name());
            }
        }
        if with_shell.is_empty() {
            return Ok(());
        }
        let says = format!(
            "models of {} have a shell of this account, in which they could answer questions \
             themselves (SECURITY.md)",
            with_shell.join(", ")
        );
        self.add(Check::ok("client", says))
    }

    fn print(&self, text: &str) -> anyhow::Result<()> {
        if self.prints {
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
        let missing = self.checks.iter();
        let missing = missing.filter(|check| check.state == Outcome::Missing);
        let to_do: String = missing.map(Check::to_do).collect();
        format!("something that runs need is MISSING; what to do:\n{to_do}")
    }
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
            let facts =
                json!({ "ms": ms, "revision": revision, "tools": server.tools, "login": login });
            Check::ok(what, says).facts(facts)
        }
        Err(error) => {
            let mut unavailable = gate.unavailable().into_iter();
            let reason = unavailable.find(|it| it.server == spec.name);
            let reason = reason.map_or_else(|| error.to_string(), |it| it.reason);
            let named = format!("server `{}` ", spec.name);
            let says = reason.strip_prefix(&named).unwrap_or(&reason);
            let check = |says: &str| Check::new(what, Outcome::Missing, says);
            let check = if let Some((problem, _)) = says.split_once("; run `callgate auth login") {
                check(problem).advise(format!("run `{}`", login_command(spec)))
            } else if says.lines().next().is_some_and(|line| line.contains("; ")) {
                // It has advice of its own, before the server's words.
                check(says)
            } else {
                check(says).advise(advice)
            };
            check.facts(json!({ "login": login }))
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
        Ok(Some(status)) if needs_login(&status) => {
            let name = &spec.name;
            format!("its login has ended; run `callgate auth login {name}`")
        }
        Ok(Some(_)) => "logged in".to_owned(),
        Ok(None) => "not logged in".to_owned(),
        Err(error) => error.to_string(),
    })
}

/// A number with a noun.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
