//! From flags and configuration to a gate.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use callgate::config::{Config, ServeConfig, ToolMode};
use callgate::{
    Answer, Audience, CancellationToken, CheckMode, Connect, DryRun, Gate, GateBuilder,
    LedgerOptions, Limits, Rules, ServerState, Skill, Status, Workers, ask_with,
    present::{indented, one_line},
    sandbox::WorkerProgram,
};

use crate::args::{DryRunArgs, LedgerArgs, LimitArgs, PermissionArgs, ServeArgs};
use crate::exit::{INTERRUPTED, USAGE};
use crate::rules::RuleArgs;
use crate::trust::Found;
use crate::{print, progress};

/// Advice about a server that is not in use.
pub const TO_USE_A_SERVER: &str =
    "name it in a skill (--skill), or give it \"connect\": \"lazy\" in the configuration";

/// The time that a command about tools waits for servers whose lists are not in the cache.
const LISTS: Duration = Duration::from_secs(5);

/// The flags that all commands have.
#[derive(Clone)]
pub struct Sources {
    /// The named configuration file.
    pub config: Option<PathBuf>,
    /// The folders of skills.
    pub skills: Vec<PathBuf>,
}

/// Loads the configuration, from the named file or the nearest one, and the skills. Prints its
/// warnings. The nearest file is used if the person has accepted it, or does so now.
pub async fn configuration(sources: &Sources) -> anyhow::Result<Option<Config>> {
    let config = load(sources).await?;
    config.iter().for_each(tell_warnings);
    Ok(config)
}

/// Prints the warnings of a configuration.
pub fn tell_warnings(config: &Config) {
    let left_out = config.left_out.iter().map(|it| &it.problem);
    for warning in config.warnings.iter().chain(left_out) {
        print::warning(&warning.to_string());
    }
}

/// [`configuration`], without printing.
pub async fn load(sources: &Sources) -> anyhow::Result<Option<Config>> {
    let found = match &sources.config {
        Some(path) => return with_skills(named(path)?, sources).map(Some),
        None => Found::look()?,
    };
    let config = match found {
        Some(found) => Some(found.accepted().await?),
        None => None,
    };
    if config.is_none() && !sources.skills.is_empty() {
        bail!("a skill needs the servers of a configuration; name one with --config");
    }
    config
        .map(|config| with_skills(config, sources))
        .transpose()
}

/// The configuration with the skills of the flags.
pub fn with_skills(mut config: Config, sources: &Sources) -> anyhow::Result<Config> {
    for folder in &sources.skills {
        config.skills.push(Skill::load(folder)?);
    }
    Ok(config)
}

/// Loads this configuration file. Messages that advise a login name the file.
pub fn named(path: &Path) -> anyhow::Result<Config> {
    let mut config = Config::load(path)?;
    for oauth in config.logins_mut() {
        oauth.login_flags = vec!["--config".to_owned(), path.display().to_string()];
    }
    Ok(config)
}

/// Bytes for the scripts of a server on a machine that does not say how much memory it has.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// The message for a missing configuration.
pub const NO_CONFIGURATION: &str = "there is no callgate.json or .mcp.json in this folder or above; \
     `callgate init` makes one from the servers of your other MCP clients, or name a file with \
     --config";

/// Loads the configuration, for commands that need servers.
pub async fn required_configuration(sources: &Sources) -> anyhow::Result<Config> {
    match configuration(sources).await? {
        Some(config) => Ok(config),
        None => bail!(NO_CONFIGURATION),
    }
}

/// Notes why a failed script lacked tools: there is no configuration, or a server that the script
/// names is not in use.
pub fn tell_what_was_missing(config: Option<&Config>, gate: &Gate, source: &str, status: Status) {
    if status != Status::Failed {
        return;
    }
    if config.is_none() {
        print::err(&format!("note: {NO_CONFIGURATION}\n"));
    }
    let mut words = source.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut servers = gate.servers().into_iter();
    if servers.any(|server| server.state == ServerState::Disabled)
        && let Some(server) = words.find_map(|word| gate.disabled_server_of(word))
    {
        print::err(&format!(
            "note: to use server {server:?}, {TO_USE_A_SERVER}\n"
        ));
    }
}

/// The flags of a command for its gate.
#[derive(Default)]
pub struct Flags<'a> {
    /// `None` for commands that decide nothing.
    pub rules: Option<&'a RuleArgs>,
    /// True if rules that deny may match no tool.
    pub allow_unmatched: bool,
    pub limits: Option<&'a LimitArgs>,
    /// `None` for commands that make no calls.
    pub ledger: Option<&'a LedgerArgs>,
    /// `None` for the configuration's mode.
    pub check: Option<CheckMode>,
    pub start: Start,
}

/// The servers that a command starts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// All servers, as the configuration says.
    #[default]
    Configured,
    /// Servers without a cached list. Slow ones are not waited for long.
    Unlisted,
    /// Servers with a function that is called or named in the script.
    OnDemand,
}

impl Start {
    /// The servers to start for a command that lists tools.
    pub fn for_lists(refresh: bool) -> Self {
        if refresh {
            Self::Configured
        } else {
            Self::Unlisted
        }
    }

    fn apply(self, config: &mut Config) {
        let connect = match self {
            Self::Configured => return,
            Self::Unlisted => Connect::Lazy,
            Self::OnDemand => Connect::OnDemand,
        };
        let servers = config.servers.iter_mut();
        for server in servers.filter(|server| server.connect != Connect::Manual) {
            server.connect = connect;
        }
    }
}

/// A builder with the configuration and the flags.
pub fn builder(config: Option<&Config>, flags: &Flags<'_>) -> anyhow::Result<GateBuilder> {
    let mut builder = Gate::builder();
    let mut rules = Rules::default();
    if let Some(config) = config {
        let mut config = config.clone();
        flags.start.apply(&mut config);
        builder = builder.config(&config);
        rules = config.permissions;
    }
    if flags.start == Start::Unlisted {
        builder = builder.patience(LISTS);
    }
    if let Some(mode) = flags.check {
        builder = builder.check(mode);
    }
    for rule in flags.rules.into_iter().flat_map(RuleArgs::iter) {
        rules.push_for_run(rule.clone());
    }
    // Commands without a ledger call nothing.
    let allow_unmatched = flags.allow_unmatched
        || flags.ledger.is_none()
        || config.is_some_and(|config| config.allow_unmatched);
    Ok(builder
        .allow_unmatched(allow_unmatched)
        .ledger(ledger(config, flags.ledger)?)
        .limits(limits(config, flags.limits))
        .rules(rules))
}

/// The line about the jail at the start of `serve`.
pub async fn jail_line(workers: &Workers) -> String {
    match workers.jail().await {
        Ok(jail) => format!("sandbox: {jail}\n"),
        Err(reason) => format!("warning: no script can run: {reason}\n"),
    }
}

/// Workers for scripts, some started ahead of time.
pub fn workers(spares: usize, config: Option<&Config>, flags: Option<&LimitArgs>) -> Workers {
    let jail = config.map(|config| config.jail.clone()).unwrap_or_default();
    let limits = limits(config, flags);
    Workers::new(WorkerProgram::Installed, spares, &limits, &jail)
}

/// Workers for the scripts of a server, which share its memory.
pub fn serve_workers(spares: usize, config: &Config, flags: &LimitArgs) -> Workers {
    let half = || callgate::sandbox::machine_memory().map_or(UNKNOWN_MEMORY, |bytes| bytes / 2);
    let memory = config.serve.memory.unwrap_or_else(half);
    workers(spares, Some(config), Some(flags)).within_memory(memory)
}

/// The limits of a run. Flags win over the configuration.
pub fn limits(config: Option<&Config>, flags: Option<&LimitArgs>) -> Limits {
    let mut limits = config.map_or_else(Limits::default, |config| config.limits.clone());
    if let Some(flags) = flags {
        limits.script_time = flags.timeout.unwrap_or(limits.script_time);
        limits.heap_bytes = flags.memory.unwrap_or(limits.heap_bytes);
        limits.buffer_bytes = flags.memory.unwrap_or(limits.buffer_bytes);
        if let Some(output) = flags.output {
            limits.keep_output(output);
        }
    }
    limits
}

/// The bytes of output, and of the returned value, that `run` writes.
const OUTPUT: u64 = 64 << 20;

/// The limits of `run`. Its output is not for a model, so the configuration's `output` is not its
/// limit.
pub fn run_limits(config: Option<&Config>, flags: &LimitArgs) -> Limits {
    let mut limits = limits(config, Some(flags));
    limits.pass_output_on(flags.output.unwrap_or(OUTPUT));
    limits
}

/// The options of serving. Flags win over the configuration.
pub fn serve_options(config: &Config, flags: &ServeArgs) -> ServeConfig {
    let mut options = config.serve.clone();
    options.asks = !flags.permissions.yes;
    options.answer_time = flags.answer_time.unwrap_or(options.answer_time);
    options.wait = flags.wait.unwrap_or(options.wait);
    options.mode = flags.mode.unwrap_or(options.mode);
    if !config.flows.is_empty() {
        options.modes.get_or_insert_default();
    }
    let context = &mut options.context;
    context.window = flags.context_window.unwrap_or(context.window);
    context.share = flags.context_share.unwrap_or(context.share);
    options
}

/// Warns about rules over data between servers in a mode in which they find nothing.
pub fn tell_blind_flow_rules(config: &Config, mode: ToolMode) {
    if mode != ToolMode::Code && !config.flows.is_empty() {
        print::warning(&format!(
            "`flows` and labels see what goes from server to server within a script, and in mode \
             \"{mode}\" each call stands for itself: they stop none; use mode \"code\", or \
             `permissions` over the calls"
        ));
    }
}

/// The ledger's file. Flags win over the configuration.
fn ledger(
    config: Option<&Config>,
    flags: Option<&LedgerArgs>,
) -> anyhow::Result<Option<(PathBuf, LedgerOptions)>> {
    let Some(flags) = flags else { return Ok(None) };
    let mut ledger = config.and_then(|config| config.ledger.clone());
    if let Some(path) = &flags.ledger {
        let path = std::path::absolute(path).context("--ledger")?;
        ledger = Some((path, ledger.map(|ledger| ledger.1).unwrap_or_default()));
    }
    match &mut ledger {
        Some((_, options)) => options.bodies |= flags.ledger_bodies,
        None if flags.ledger_bodies => {
            bail!("--ledger-bodies needs a ledger; name its file with --ledger FILE")
        }
        None => {}
    }
    Ok(ledger)
}

/// Connects to the configured servers; `None` if Ctrl-C came first.
pub async fn connect(
    builder: GateBuilder,
    cancel: &CancellationToken,
) -> anyhow::Result<Option<Arc<Gate>>> {
    let builder = builder.on_waiting(progress::starting);
    let built = tokio::select! {
        gate = builder.build() => Some(Arc::new(gate?)),
        () = cancel.cancelled() => None,
    };
    progress::clear();
    Ok(built)
}

/// Prints that a command without a report was cancelled, and returns the exit code.
pub fn cancelled(what: &str) -> u8 {
    progress::clear();
    print::error(what);
    INTERRUPTED
}

/// Runs a command about tools that calls none: connects, prints problems, runs it, disconnects.
pub async fn with_tools(
    sources: &Sources,
    refresh: bool,
    command: impl AsyncFnOnce(&Gate) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let config = required_configuration(sources).await?;
    let cancel = cancel_on_signal()?;
    let flags = Flags {
        check: Some(CheckMode::Off),
        start: Start::for_lists(refresh),
        ..Flags::default()
    };
    let builder = builder(Some(&config), &flags)?;
    let Some(gate) = connect(builder, &cancel).await? else {
        return Ok(cancelled("the command was cancelled while servers started"));
    };
    tell_problems(&gate);
    let code = tokio::select! {
        code = command(&gate) => code,
        () = cancel.cancelled() => Ok(cancelled("the command was cancelled")),
    };
    let for_want_of_servers = lacks_all_servers(&gate);
    gate.shutdown().await;
    match code? {
        code @ (USAGE | INTERRUPTED) => Ok(code),
        _ if for_want_of_servers => Ok(Status::MissingServer.exit_code()),
        code => Ok(code),
    }
}

/// True if there is no tool because no server in use has started. Tools that a server listed at
/// an earlier time count.
pub fn lacks_all_servers(gate: &Gate) -> bool {
    let servers = gate.servers().into_iter();
    let in_use = servers.filter(|server| server.state != ServerState::Disabled);
    let unavailable = gate.unavailable().len();
    unavailable > 0 && unavailable == in_use.count() && gate.tools().is_empty()
}

/// The gate of `serve`. Problems are printed once its servers have started or failed.
pub fn serving(gate: Gate) -> Arc<Gate> {
    let gate = Arc::new(gate);
    let started = Arc::clone(&gate);
    tokio::spawn(async move {
        started.listed(Duration::MAX).await;
        tell_problems(&started);
    });
    gate
}

/// Prints which servers and definitions could not be used.
pub fn tell_problems(gate: &Gate) {
    for server in gate.unavailable_for(Audience::Operator) {
        print::warning(&server.reason);
    }
    for server in gate.servers().iter().filter(|server| server.is_awaited()) {
        print::warning(&format!(
            "server {:?} has not listed its tools yet; they are left out (--refresh waits for it)",
            server.name
        ));
    }
    for warning in gate.warnings() {
        print::warning(&indented(&warning));
    }
    tell_unmatched(gate, None);
}

/// Prints which permissions have no effect, and which tools in the flags of a dry run do not exist.
pub fn tell_unmatched(gate: &Gate, dry_run: Option<&DryRun>) {
    let of_dry_run = dry_run.into_iter().flat_map(|it| gate.unmatched_in(it));
    for unmatched in gate.unmatched_rules().into_iter().chain(of_dry_run) {
        print::warning(&unmatched);
    }
}

/// Adds the asker without a terminal: `--yes` or none.
pub fn unattended(builder: GateBuilder, flags: &PermissionArgs) -> GateBuilder {
    if flags.yes {
        builder.asker(ask_with(|_question| std::future::ready(Answer::Standing)))
    } else {
        builder
    }
}

/// The most bytes of a file of recorded results.
const MAX_RECORDED: u64 = 64 << 20;

/// The dry run of the flags.
pub fn dry_run(flags: &DryRunArgs) -> anyhow::Result<Option<DryRun>> {
    if !flags.dry_run {
        return Ok(None);
    }
    let mut dry_run = DryRun::default();
    dry_run.reads.clone_from(&flags.reads);
    if let Some(file) = &flags.recorded {
        let name = file.display();
        let text = callgate_files::read_text(file, MAX_RECORDED);
        let text = text.with_context(|| format!("could not read {name}"))?;
        dry_run.recorded = serde_json::from_str(&text).with_context(|| {
            format!(
                "{name} must hold one JSON object, from tool names to results, such as \
                 {{ \"ticketing_createIssue\": {{ \"id\": 7 }} }}"
            )
        })?;
    }
    Ok(Some(dry_run))
}

/// Refuses to serve a Callgate that another one within a third has started: mostly each starts the
/// next, without end.
pub fn check_nesting() -> anyhow::Result<()> {
    if callgate::nesting() >= 2 {
        bail!(
            "this Callgate was started as a server of another one, and that by a third; take the \
             entry that starts `callgate serve` out of one of their configurations"
        );
    }
    Ok(())
}

/// A script's text, and its name in messages.
pub fn script(file: &Path) -> anyhow::Result<(String, String)> {
    if file == Path::new("-") {
        let text = read_bounded(std::io::stdin().lock());
        let text = text.context("could not read standard input")?;
        return Ok((text, "stdin.ts".to_owned()));
    }
    let name = one_line(&file.display().to_string(), usize::MAX);
    let opened = std::fs::File::open(file).map_err(anyhow::Error::from);
    let text = opened.and_then(read_bounded);
    Ok((
        text.with_context(|| format!("could not read {name}"))?,
        name,
    ))
}

/// The text. More than a script may have is cut, and the run refuses it with a report.
fn read_bounded(reader: impl std::io::Read) -> anyhow::Result<String> {
    let max = callgate::sandbox::MAX_SCRIPT_BYTES;
    let mut bytes = Vec::new();
    reader.take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        // The cut may split a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).context("it is not UTF-8 text")
}

/// A token that Ctrl-C, a termination signal or the end of the terminal cancels. A second Ctrl-C
/// ends the process at once.
pub fn cancel_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A handler would undo `nohup`.
    let mut hangup = if callgate_process::ignores_hangup() {
        None
    } else {
        Some(signal(SignalKind::hangup())?)
    };
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
        cancelled.cancel();
        interrupt.recv().await;
        std::process::exit(INTERRUPTED.into());
    });
    Ok(token)
}
