//! One function per command: it calls the library, prints, and returns the exit code.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use callgate::config::Config;
use callgate::faces::store::Recorder;
use callgate::faces::{Caller, code, run_id};
use callgate::settings::{CheckMode, Detail};
use callgate::{
    CallErrorKind, CallOutcome, CallRequest, ErrorKind, Event, Gate, GateBuilder, RunReport,
    RunRequest,
};
use callgate_serve::Records;
use callgate_text::indented;
use clap::CommandFactory as _;
use futures::FutureExt as _;

use crate::args::{CallArgs, Cli, Command, PermissionArgs, RunArgs, ServeArgs, TypesArgs};
use crate::call_arguments::CallArguments;
use crate::caller::TerminalCaller;
use crate::names::{chosen, missing_server, not_a_tool};
use crate::script_output::ScriptOutput;
use crate::setup::{Flags, Program, Sources, Start};
use crate::terminal::is_attended;
use crate::{grants, print, progress, setup, trust};

/// Runs the command, and returns its exit code. Errors are those of usage, configuration and
/// output; the end of a run is an exit code.
pub async fn execute(cli: Cli) -> anyhow::Result<u8> {
    let mut config = cli.sources;
    config.read_environment()?;
    let config = &config;
    let Some(command) = cli.command else {
        return without_command();
    };
    match command {
        Command::Run(args) => run(config, args).await,
        Command::Check(args) => crate::check::execute(config, args).await,
        Command::Types(args) => {
            let print = async |gate: &Gate| print_types(gate, &args);
            setup::with_tools(config, args.lists.refresh, print).await
        }
        Command::Tools(args) => {
            let print = async |gate: &Gate| crate::tools::print(gate, &args);
            setup::with_tools(config, args.lists.refresh, print).await
        }
        Command::Search(args) => crate::search::execute(config, args).await,
        Command::Call(args) => call(config, args).await,
        Command::Serve(args) => serve(config, args).await,
        Command::Export(args) => {
            let print = async |gate: &Gate| crate::export::print(gate, &args);
            setup::with_tools(config, args.lists.refresh, print).await
        }
        Command::Questions(args) => crate::questions::execute(config, args).await,
        Command::Ledger { command } => crate::ledger::execute(command),
        Command::Runs(args) => crate::runs::execute(config, args).await,
        Command::Init(args) => crate::init::execute(config, args).await,
        Command::Doctor { json } => crate::doctor::execute(config, json).await,
        Command::Trust { forget } => trust::execute(config, forget).await,
        Command::Auth(args) => crate::auth::execute(config, args).await,
        Command::Schema => {
            print::out(&crate::schema::text())?;
            Ok(0)
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "callgate", &mut text);
            print::out(&String::from_utf8_lossy(&text))?;
            Ok(0)
        }
        Command::Man { folder } => {
            clap_mangen::generate_to(Cli::command(), &folder)
                .with_context(|| format!("cannot write to {}", folder.display()))?;
            Ok(0)
        }
    }
}

/// Prints the help, and what to do next in a folder without a configuration.
fn without_command() -> anyhow::Result<u8> {
    let help = Cli::command().render_help().to_string();
    let next = match trust::path_here()? {
        Some(_) => "`callgate doctor` tries what a run needs",
        None => setup::NO_CONFIGURATION,
    };
    print::err(&format!("{help}\nnext: {next}\n"));
    Ok(crate::exit::USAGE)
}

async fn run(config: &Sources, args: RunArgs) -> anyhow::Result<u8> {
    let config = setup::configuration(config).await?;
    let Program {
        source,
        name,
        words,
    } = setup::program(&args)?;
    let limits = setup::run_limits(config.as_ref(), &args.limits);
    let id = run_id();
    let mut request = RunRequest::new(source.as_str())
        .id(id.as_str())
        .name(name)
        .args(words)
        .limits(limits);
    let dry_run = setup::dry_run(&args.dry_run)?;
    if let Some(dry_run) = &dry_run {
        request = request.dry_run(dry_run.clone());
    }
    if args.grant {
        grants::need_terminal("name the tools with --allow")?;
    }
    let cancel = setup::cancel_on_signal()?;
    request = request.cancel_on(cancel.clone());
    let workers = setup::workers(0, config.as_ref(), Some(&args.limits));
    if let Some(report) = request.rejected(&workers).await {
        return print_report(&report, args.json);
    }
    // Not read without need: it may be the input of a shell's loop.
    if request.names_stdin() && !args.is_script_on_stdin() {
        let Some(stdin) = setup::standard_input(&cancel).await? else {
            return print_report(&request.cancelled(), args.json);
        };
        request = request.stdin(stdin);
    }
    let flags = Flags {
        rules: Some(&args.permissions.rules),
        allow_unmatched: args.permissions.allow_unmatched_rules,
        limits: Some(&args.limits),
        ledger: Some(&args.ledger),
        check: args.check.check,
        start: Start::OnDemand,
    };
    let builder = setup::builder(config.as_ref(), &flags)?.workers(workers);
    let recorder = setup::recorder(config.as_ref());
    let builder = setup::recorded(builder, recorder.as_ref(), config.as_ref(), "run");
    let recorder = recorder.as_ref();
    let builder = at_terminal(builder, config.as_ref(), recorder, &args.permissions, &id).await;
    let Some(gate) = setup::connect(builder, &cancel).await? else {
        return print_report(&request.cancelled(), args.json);
    };
    setup::print_unmatched(&gate);
    let granted = if args.grant {
        grants::for_run(&gate, &cancel, request).await?
    } else {
        Ok(request)
    };
    let output = ScriptOutput::begin(args.json, is_attended())?;
    let printed = output.clone();
    let on_event = move |event: Event<'_>| match event {
        Event::Printed { text, is_error } => printed.push(text, is_error),
        event => progress::on_event(event),
    };
    let mut report = match granted {
        Ok(request) => progress::alive(gate.run(request.on_event(on_event))).await,
        Err(report) => *report,
    };
    progress::clear();
    let written = output.end(&mut report);
    if let Some(value) = &mut report.value
        && let Some(json) = value.json.as_ref().map(|json| json.get())
        && json.starts_with(['{', '['])
        && !args.json
        && let Cow::Owned(text) = print::laid_out(json)
    {
        value.text = text;
    }
    let code = print_report(&report, args.json).and_then(|code| written.map(|()| code));
    setup::note_missing_tools(config.as_ref(), &gate, &source, report.status);
    gate.shutdown().await;
    code
}

/// Adds the person at the terminal, if there is one, as caller, and the asker of a run.
async fn at_terminal(
    builder: GateBuilder,
    config: Option<&Config>,
    recorder: Option<&Arc<Recorder>>,
    flags: &PermissionArgs,
    run: &str,
) -> GateBuilder {
    let builder = builder.caller(Arc::new(TerminalCaller::new()));
    if flags.yes {
        return setup::unattended(builder, flags);
    }
    match crate::ask::recorded(config, recorder, run).await {
        Some(asker) => builder.asker(asker),
        None => builder,
    }
}

/// Prints a run's report, and returns the exit code.
pub fn print_report(report: &RunReport, json: bool) -> anyhow::Result<u8> {
    if json {
        print::json(report)?;
    } else {
        print::out(&report.printed().to_string())?;
        for block in &report.emitted {
            let summary = callgate_text::harmless(&block.summary());
            print::err(&format!("emitted: {summary}; --json prints it\n"));
        }
        print::err(&report.problems().to_string());
    }
    if report
        .error
        .as_ref()
        .is_some_and(|it| it.kind == ErrorKind::Configuration)
    {
        print::note(UNMATCHED);
        return Ok(crate::exit::USAGE);
    }
    Ok(report.status.exit_code())
}

/// The advice for a deny rule, or other restriction, that matches no tool.
const UNMATCHED: &str = "to continue without it, use --allow-unmatched-rules, or \
     \"allowUnmatched\": true in \"permissions\"";

fn print_types(gate: &Gate, args: &TypesArgs) -> anyhow::Result<u8> {
    if let Some(folder) = &args.out {
        return crate::types_out::write(gate, folder);
    }
    let tools = match chosen(gate, &args.tools) {
        Ok(tools) => tools,
        Err(code) => return Ok(code),
    };
    if tools.is_empty() && !args.tools.is_empty() {
        print::note("`callgate tools` says why these servers have no tools here");
    }
    let chosen: HashSet<&str> = tools.iter().map(|tool| tool.function.as_str()).collect();
    let chosen = |function: &str| chosen.contains(function);
    if args.rust {
        let types = gate.view().rust_types(chosen);
        for problem in &types.problems {
            print::warning(problem);
        }
        print::out(&types.text)?;
        return Ok(0);
    }
    let text = gate.declarations(args.detail, chosen);
    if args.detail == Detail::Full && args.tools.is_empty() {
        print::out(&format!("{}\n", callgate::faces::ambient_declarations()))?;
    }
    print::out(&text)?;
    Ok(0)
}

async fn call(config: &Sources, args: CallArgs) -> anyhow::Result<u8> {
    let config = setup::required_configuration(config).await?.config;
    let arguments = CallArguments::read(&args.arguments)?;
    let dry_run = setup::dry_run(&args.dry_run)?;
    let cancel = setup::cancel_on_signal()?;
    let flags = Flags {
        rules: Some(&args.permissions.rules),
        allow_unmatched: args.permissions.allow_unmatched_rules,
        ledger: Some(&args.ledger),
        check: Some(CheckMode::Off),
        start: Start::OnDemand,
        ..Flags::default()
    };
    let id = run_id();
    let builder = setup::builder(Some(&config), &flags)?;
    let recorder = setup::recorder(Some(&config));
    let builder = setup::recorded(builder, recorder.as_ref(), Some(&config), "call");
    let recorder = recorder.as_ref();
    let builder = at_terminal(builder, Some(&config), recorder, &args.permissions, &id).await;
    let unsent = format!("{} was cancelled before it was sent", args.tool);
    let Some(gate) = setup::connect(builder, &cancel).await? else {
        return Ok(setup::cancelled(&unsent));
    };
    let view = gate.view();
    tokio::select! {
        () = view.look_for(&args.tool) => {}
        () = cancel.cancelled() => {
            gate.shutdown().await;
            return Ok(setup::cancelled(&unsent));
        }
    }
    // A tool that is only in the cached list cannot be called either.
    let missing = missing_server(&gate, &args.tool).map(|missing| missing.tell());
    if let Some(code) = missing.or_else(|| not_a_tool(&gate, &args.tool)) {
        gate.shutdown().await;
        return Ok(code);
    }
    setup::print_unmatched(&gate);
    let arguments = match arguments.for_tool(&gate, &args.tool).await {
        Ok(arguments) => arguments,
        Err(error) => {
            gate.shutdown().await;
            // It may have words of the server's schema.
            print::error(&indented(&format!("{error:#}")));
            return Ok(crate::exit::USAGE);
        }
    };
    let mut request = CallRequest::new(&args.tool, arguments).cancel_on(cancel);
    request = request.id(id);
    if let Some(dry_run) = dry_run {
        request = request.dry_run(dry_run);
    }
    let called = progress::alive(gate.call_with(request)).await;
    progress::clear();
    gate.shutdown().await;
    print_call(&gate, &args.tool, called)
}

/// Prints a call's result or error, and returns the exit code.
fn print_call(gate: &Gate, tool: &str, called: CallOutcome) -> anyhow::Result<u8> {
    let code = match called.result.as_ref().err().map(|error| &error.kind) {
        Some(CallErrorKind::Protocol { code, .. }) => Some(*code),
        _ => None,
    };
    // A lazy server is first started by the call.
    if code == Some(code::CONNECTION_CLOSED)
        && let Some(missing) = missing_server(gate, tool)
    {
        return Ok(missing.tell());
    }
    print::err(&called.problems());
    let status = called.status();
    let error = match called.result {
        Ok(result) => {
            print::out(&format!("{}\n", print::laid_out(result.get())))?;
            return Ok(0);
        }
        Err(error) => error,
    };
    // The call was made, and a script could read what it gave.
    if let Some(result) = error.mismatched_result() {
        print::out(&format!("{}\n", result.get()))?;
    }
    if !matches!(error.kind, CallErrorKind::DryRun { .. }) {
        print::error(&indented(&error.to_string()));
    }
    if code == Some(code::REFUSED) {
        print::note(UNMATCHED);
        return Ok(crate::exit::USAGE);
    }
    Ok(status.exit_code())
}

/// The gate of `serve` over stdio, once there is a configuration; `None` after a printed error.
async fn stdio_gate(
    loaded: impl Future<Output = setup::Loaded>,
    args: ServeArgs,
    caller: Arc<dyn Caller>,
    records: Records,
) -> Option<Arc<Gate>> {
    let loaded = loaded.await;
    let workers = setup::serve_workers(1, &loaded, &args.limits);
    let recorder = setup::recorder(Some(&loaded.config));
    let built = async {
        let builder = crate::serve_http::builder(&loaded.config, &args, caller)?;
        let builder = setup::recorded(builder, recorder.as_ref(), Some(&loaded.config), "serve");
        anyhow::Ok(builder.workers(workers.clone()).build().await?)
    };
    let recorded = setup::set_records(&records, &loaded.config, recorder.as_ref(), None);
    let (built, jail, _) = tokio::join!(built, setup::jail_line(&workers), recorded);
    print::err(&jail);
    match built {
        Ok(gate) => Some(setup::serving(gate)),
        Err(error) => {
            print::error(&format!("{error:#}"));
            None
        }
    }
}

/// Time to finish building a gate after the client has left, so that its error is printed.
const BUILD_GRACE: Duration = Duration::from_secs(2);

async fn serve(sources: &Sources, args: ServeArgs) -> anyhow::Result<u8> {
    setup::check_nesting()?;
    if args.http.http.is_some() {
        let loaded = setup::required_configuration(sources).await?;
        return crate::serve_http::serve(loaded, args).await;
    }
    serve_stdio(sources, args).await
}

async fn serve_stdio(sources: &Sources, args: ServeArgs) -> anyhow::Result<u8> {
    let loaded = trust::load_unattended(sources)?;
    let cancel = setup::cancel_on_signal()?;
    let client = callgate_serve::AnyClient::default();
    let (options, loaded, waits) = match loaded {
        Some(loaded) => {
            let options = setup::serve_options(&loaded, &args);
            setup::warn_of_unused_flows(&loaded.config, options.mode);
            (options, std::future::ready(loaded).boxed(), None)
        }
        // The file is not used before it is accepted.
        None => {
            let options = setup::serve_options(&setup::Loaded::default(), &args);
            let (loaded, waits) = trust::when_accepted(sources);
            (options, loaded, Some(waits))
        }
    };
    let records = Records::default();
    let gate = stdio_gate(loaded, args, Arc::new(client.clone()), records.clone());
    let gate = gate.boxed().shared();
    let ready = gate.clone();
    if std::io::stdin().is_terminal() {
        print::err(
            "callgate serve expects an MCP client on standard input; to serve HTTP, use --http\n",
        );
    }
    let ready = async move {
        match ready.await {
            Some(gate) => gate,
            // The command ends.
            None => std::future::pending().await,
        }
    };
    let is_waiting = waits.clone();
    let served = callgate_serve::serve_stdio(ready, waits, client, options, records);
    let code = tokio::select! {
        served = served => {
            served?;
            if is_waiting.is_some_and(|waits| waits().is_some()) {
                return Ok(0);
            }
            // If the client leaves at once, a configuration error is still reported.
            match tokio::time::timeout(BUILD_GRACE, gate.clone()).await {
                Ok(None) => crate::exit::USAGE,
                _ => 0,
            }
        }
        () = cancel.cancelled() => 0,
        None = gate.clone() => crate::exit::USAGE,
    };
    if let Some(Some(gate)) = gate.peek() {
        gate.shutdown().await;
    }
    Ok(code)
}
