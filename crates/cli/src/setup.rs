//! Makes a gate from flags and configuration.

mod input;
mod sources;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use callgate::config::{Config, StoreConfig};
use callgate::faces::asking::Asking;
use callgate::faces::store::{Recorder, Store, StoreSink, open_store};
use callgate::faces::{Connect, LedgerOptions, WorkerProgram, Workers};
use callgate::settings::{Audience, CheckMode, Limits};
use callgate::{
    Answer, CancellationToken, Gate, GateBuilder, Question, Rules, ServerState, Status,
};
use callgate_serve::Records;
use callgate_serve::config::{ConfigFile, ServeConfig, ToolMode};
use callgate_text::indented;

use crate::args::{LedgerArgs, LimitArgs, PermissionArgs, ServeArgs};
use crate::exit::{INTERRUPTED, USAGE};
use crate::rules::RuleArgs;
use crate::{print, progress};

pub use crate::args::Sources;
pub use input::{Program, dry_run, program, read_up_to, script, standard_input};
pub use sources::{
    Loaded, NO_CONFIGURATION, configuration, load, named, print_warnings, read,
    required_configuration, with_flags,
};

/// Advice for using a disabled server.
pub const TO_USE_A_SERVER: &str =
    "add --enable NAME, name it in a skill (--skill), or set its \"connect\" to \"lazy\"";

/// Time that a command about tools waits for servers whose tool lists are not cached.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of memory for the scripts of a server if the machine's memory is not known.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// Prints why a failed script lacked tools: there is no configuration, or a server that the script
/// names is disabled.
pub fn note_missing_tools(config: Option<&Config>, gate: &Gate, source: &str, status: Status) {
    if status != Status::Failed {
        return;
    }
    if config.is_none() {
        print::note(NO_CONFIGURATION);
    }
    let mut words = source.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut servers = gate.servers().into_iter();
    if servers.any(|server| server.state == ServerState::Disabled)
        && let Some(server) = words.find_map(|word| gate.view().disabled_server_of(word))
    {
        note_disabled(&server);
    }
}

/// Prints how to use a disabled server.
pub fn note_disabled(server: &str) {
    print::note(&format!("to use server {server:?}, {TO_USE_A_SERVER}"));
}

/// The flags of a command that affect its gate.
#[derive(Default)]
pub struct Flags<'a> {
    /// `None` for commands that do not decide about calls.
    pub rules: Option<&'a RuleArgs>,
    /// True if a deny rule that matches no tool is only a warning.
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
    /// The servers that the configuration says.
    #[default]
    Configured,
    /// Servers without a cached tool list. Slow ones are skipped after [`LIST_PATIENCE`].
    Unlisted,
    /// Servers with a tool that is called, or named in the script.
    OnDemand,
    /// Only servers that are enabled by name.
    Manual,
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
            Self::Manual => Connect::Manual,
        };
        let servers = config.servers.iter_mut();
        for server in servers.filter(|server| server.connect != Connect::Manual) {
            server.connect = connect;
        }
    }
}

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
        builder = builder.patience(LIST_PATIENCE);
    }
    if let Some(mode) = flags.check {
        builder = builder.check(mode);
    }
    for rule in flags.rules.into_iter().flat_map(RuleArgs::iter) {
        rules.push_for_run(rule.clone());
    }
    // Commands without a ledger make no calls.
    let allow_unmatched = flags.allow_unmatched
        || flags.ledger.is_none()
        || config.is_some_and(|config| config.allow_unmatched);
    Ok(builder
        .allow_unmatched(allow_unmatched)
        .ledger_file(ledger(config, flags.ledger)?)
        .limits(limits(config, flags.limits))
        .rules(rules))
}

/// Starts the record of this process's runs; `None` if the configuration turns it off.
pub fn recorder(config: Option<&Config>) -> Option<Arc<Recorder>> {
    Some(Recorder::start(store_settings(config)?))
}

/// The settings of the store; `None` if the configuration turns it off.
fn store_settings(config: Option<&Config>) -> Option<StoreConfig> {
    match config {
        Some(config) => config.store.clone(),
        None => Some(StoreConfig::default()),
    }
}

/// Records the runs of a gate, if there is a recorder. `face` is the command.
pub fn recorded(
    builder: GateBuilder,
    recorder: Option<&Arc<Recorder>>,
    config: Option<&Config>,
    face: &str,
) -> GateBuilder {
    match recorder {
        Some(recorder) => builder.store(StoreSink::new(recorder, face, None, config)),
        None => builder,
    }
}

/// The line about the sandbox that `serve` prints at its start.
pub async fn jail_line(workers: &Workers) -> String {
    match workers.jail().await {
        Ok(jail) => format!("sandbox: {jail}\n"),
        Err(reason) => format!("warning: no script can run: {reason}\n"),
    }
}

/// Workers for scripts, with `spares` of them started in advance.
pub fn workers(spares: usize, config: Option<&Config>, flags: Option<&LimitArgs>) -> Workers {
    let jail = config.map(|config| config.jail.clone()).unwrap_or_default();
    let limits = limits(config, flags);
    Workers::new(WorkerProgram::Installed, spares, &limits, &jail)
}

/// Workers for `serve`, within its limit of memory.
pub fn serve_workers(spares: usize, loaded: &Loaded, flags: &LimitArgs) -> Workers {
    let half = || callgate::faces::machine_memory().map_or(UNKNOWN_MEMORY, |bytes| bytes / 2);
    let memory = loaded.serve.memory.unwrap_or_else(half);
    workers(spares, Some(&loaded.config), Some(flags)).within_memory(memory)
}

/// The limits of a run. Flags override the configuration.
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

/// Bytes of output, and of the returned value, that `run` prints.
const OUTPUT: u64 = 64 << 20;

/// The limits of `run`. The configuration's `output` is for models, so it does not apply here.
pub fn run_limits(config: Option<&Config>, flags: &LimitArgs) -> Limits {
    let mut limits = limits(config, Some(flags));
    limits.pass_output_on(flags.output.unwrap_or(OUTPUT));
    limits
}

/// The options of `serve`. Flags override the configuration.
pub fn serve_options(loaded: &Loaded, flags: &ServeArgs) -> ServeConfig {
    let mut options = loaded.serve.clone();
    options.asks = !flags.permissions.yes;
    options.file = ConfigFile::at(&loaded.config.path);
    options.answer_time = flags.answer_time.unwrap_or(options.answer_time);
    options.wait = flags.wait.unwrap_or(options.wait);
    options.mode = flags.mode.unwrap_or(options.mode);
    if !loaded.config.flows.is_empty() {
        options.modes.get_or_insert_default();
    }
    let context = &mut options.context;
    context.window = flags.context_window.unwrap_or(context.window);
    context.share = flags.context_share.unwrap_or(context.share);
    options
}

/// Sets the questions of `serve`, in the store of the recorder. False if there is no store.
pub async fn set_records(
    records: &Records,
    config: &Config,
    recorder: Option<&Arc<Recorder>>,
    public_url: Option<&str>,
) -> bool {
    let opened = match recorder {
        Some(recorder) => recorder.opened().await,
        None => None,
    };
    let has_store = opened.is_some();
    let asking = Asking::new(opened, config.asking.clone()).public_url(public_url);
    records.set(Arc::new(asking));
    has_store
}

/// Warns if data-flow rules have no effect in this mode.
pub fn warn_of_unused_flows(config: &Config, mode: ToolMode) {
    if mode != ToolMode::Code && !config.flows.is_empty() {
        print::warning(&format!(
            "`flows` and labels have no effect in mode \"{mode}\": they find data that goes from \
             server to server within one script; use mode \"code\", or rules in `permissions`"
        ));
    }
}

/// The ledger's file. Flags override the configuration.
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

/// Builds the gate and connects to its servers; `None` after Ctrl-C.
pub async fn connect(
    builder: GateBuilder,
    cancel: &CancellationToken,
) -> anyhow::Result<Option<Arc<Gate>>> {
    let builder = builder.on_waiting(progress::starting);
    let built = tokio::select! {
        gate = progress::alive(builder.build()) => Some(Arc::new(gate?)),
        () = cancel.cancelled() => None,
    };
    progress::clear();
    Ok(built)
}

/// Prints that a command was cancelled, and returns the exit code.
pub fn cancelled(what: &str) -> u8 {
    progress::clear();
    print::error(what);
    INTERRUPTED
}

/// Connects to the servers, prints problems, runs a command that makes no calls, and disconnects.
pub async fn with_tools(
    sources: &Sources,
    refresh: bool,
    command: impl AsyncFnOnce(&Gate) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let config = required_configuration(sources).await?.config;
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
    print_problems(&gate);
    let code = tokio::select! {
        code = command(&gate) => code,
        () = cancel.cancelled() => Ok(cancelled("the command was cancelled")),
    };
    let lacks_servers = lacks_all_servers(&gate);
    gate.shutdown().await;
    match code? {
        code @ (USAGE | INTERRUPTED) => Ok(code),
        _ if lacks_servers => Ok(Status::MissingServer.exit_code()),
        code => Ok(code),
    }
}

/// True if there are no tools, not even cached ones, because no server in use has started.
pub fn lacks_all_servers(gate: &Gate) -> bool {
    let servers = gate.servers().into_iter();
    let in_use = servers.filter(|server| server.state != ServerState::Disabled);
    let unavailable = gate.unavailable().len();
    unavailable > 0 && unavailable == in_use.count() && gate.tools().is_empty()
}

/// Shares the gate of `serve`, and prints problems once its servers have started or failed.
pub fn serving(gate: Gate) -> Arc<Gate> {
    let gate = Arc::new(gate);
    let started = Arc::clone(&gate);
    tokio::spawn(async move {
        started.view().listed(Duration::MAX).await;
        print_problems(&started);
    });
    gate
}

/// Prints the problems of servers, definitions and rules.
pub fn print_problems(gate: &Gate) {
    for server in gate.view().unavailable_for(Audience::Operator) {
        print::warning(&server.reason);
    }
    for server in gate.servers().iter().filter(|server| server.is_awaited()) {
        print::warning(&format!(
            "server {:?} has not listed its tools yet; they are missing here (--refresh waits for it)",
            server.name
        ));
    }
    for warning in gate.warnings() {
        print::warning(&indented(&warning));
    }
    print_unmatched(gate);
}

/// Prints the rules that match no tool.
pub fn print_unmatched(gate: &Gate) {
    for unmatched in gate.unmatched_rules() {
        print::warning(&unmatched);
    }
}

/// The store of runs and questions; `None` if there is none, after a warning if it cannot be used.
pub fn store(config: Option<&Config>) -> Option<Arc<dyn Store>> {
    match open_store(&store_settings(config)?) {
        Ok(store) => Some(Arc::new(store)),
        Err(error) => {
            print::warning(&format!("questions are not kept: {error}"));
            None
        }
    }
}

/// Adds the asker of a command without a terminal: one that approves all calls for `--yes`.
pub fn unattended(builder: GateBuilder, flags: &PermissionArgs) -> GateBuilder {
    if flags.yes {
        builder.asker(Arc::new(|_: Question| std::future::ready(Answer::Standing)))
    } else {
        builder
    }
}

/// Refuses to serve at the third level of nesting: usually each Callgate starts the next, without
/// end.
pub fn check_nesting() -> anyhow::Result<()> {
    if callgate::faces::nesting() >= 2 {
        bail!(
            "this Callgate was started as a server of a Callgate that is itself a server of a \
             Callgate; remove the entry that starts `callgate serve` from a configuration"
        );
    }
    Ok(())
}

/// Makes a token that is cancelled by Ctrl-C, SIGTERM or SIGHUP. A second Ctrl-C ends the process
/// at once.
pub fn cancel_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A handler would undo `nohup`.
    let hangup = (!callgate_process::ignores_hangup()).then(|| signal(SignalKind::hangup()));
    let mut hangup = hangup.transpose()?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            Some(()) = async { hangup.as_mut()?.recv().await } => {}
        }
        cancelled.cancel();
        interrupt.recv().await;
        std::process::exit(INTERRUPTED.into());
    });
    Ok(token)
}
