//! `callgate serve --http`: one gate per user.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use callgate::config::Config;
use callgate::faces::store::{Recorder, StoreSink};
use callgate::faces::{Caller, Source, Workers};
use callgate::settings::Audience;
use callgate::{Gate, GateBuilder};
use callgate_serve::config::{HttpConfig, ServeConfig, TOKEN_OF_ONE, UsersConfig};
use callgate_serve::{AnyClient, Identity, MakeGate, Records};
use callgate_text::indented;
use futures::{FutureExt as _, TryFutureExt as _};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::oneshot;

use crate::args::{HttpArgs, ServeArgs};
use crate::print;
use crate::setup::{self, Flags, Loaded, Start};

/// Spare workers for all users.
const SPARES: usize = 2;
/// File descriptors that are reserved for workers, servers and files.
const RESERVE: u64 = 256;
/// Minimum that the limit of file descriptors is raised to. A higher one would slow down servers,
/// which inherit it, and some of which loop over all possible descriptors.
const DESCRIPTORS: u64 = 1 << 16;

/// Serves over HTTP until a signal. Without authentication, it also ends if a deny rule, or another
/// restriction, matches no tool.
pub async fn serve(loaded: Loaded, args: ServeArgs) -> anyhow::Result<u8> {
    let stop = setup::cancel_on_signal()?;
    let address = args.http.http.flatten().or(loaded.serve.http.address);
    let Some(address) = address else {
        bail!(
            "--http needs an address, such as 127.0.0.1:8080, here or as \"address\" in \"serve\", \
             \"http\" of the configuration"
        );
    };
    let mut options = setup::serve_options(&loaded, &args);
    let http = &mut options.http;
    add_flags(http, &args.http)?;
    let wanted = http.connections;
    http.connections = room_for(wanted);
    if http.connections < wanted {
        print::err(&format!(
            "warning: the limit of file descriptors allows {} connections at a time, not {wanted}; \
             raise the hard limit (ulimit -Hn) or lower \"connections\" in \"serve\", \"http\"\n",
            http.connections
        ));
    }
    setup::warn_of_unused_flows(&loaded.config, options.mode);
    // Errors in flags are reported at the start, not at a user's first request.
    drop(builder(
        &loaded.config,
        &args,
        Arc::new(AnyClient::default()),
    )?);
    let recorder = setup::recorder(Some(&loaded.config));
    let records = records(&options, &loaded.config, recorder.as_ref()).await;
    let workers = setup::serve_workers(SPARES, &loaded, &args.limits);
    let jail = setup::jail_line(&workers).await;
    let has_users = options.http.bearer.len() > 1 || options.http.oauth.is_some();
    let (unmatched, found) = oneshot::channel();
    let first = Mutex::new(Some(unmatched));
    let make = make_gates(
        loaded.config,
        loaded.serve.users,
        args,
        workers,
        has_users,
        recorder,
        first,
    );
    let listening = |bound: SocketAddr| {
        if !bound.ip().is_loopback() {
            print::err(
                "warning: tokens and results are sent unencrypted; put a TLS proxy in front\n",
            );
        }
        print::err(&jail);
        print::err(&format!("serving MCP at http://{bound}/mcp\n"));
    };
    let end = stop.clone();
    let mut served = pin!(callgate_serve::serve_http(
        make, records, address, options, stop, listening
    ));
    tokio::select! {
        served = &mut served => match served {
            Ok(()) => Ok(0),
            Err(error) => bail!("{error}"),
        },
        Ok(unmatched) = found => {
            end.cancel();
            let _ = served.await;
            bail!(
                "{unmatched}; correct that, or make it a warning with --allow-unmatched-rules or \
                 \"allowUnmatched\": true in \"permissions\""
            );
        }
    }
}

/// The records of questions, if operators or the configuration's ways need them.
async fn records(
    options: &ServeConfig,
    config: &Config,
    recorder: Option<&Arc<Recorder>>,
) -> Records {
    let public_url = options.http.public_url.as_deref();
    let (records, has_operators) = (Records::default(), !options.operators.is_empty());
    if has_operators || config.asking.ways.is_some() {
        let has_store = setup::set_records(&records, config, recorder, public_url).await;
        if has_operators && !has_store {
            print::warning(
                "no question can wait for an operator, because the record of runs is off or cannot \
                 be used: calls that need approval are denied where their client has no forms",
            );
        }
    }
    records
}

/// Sends the restrictions that match no tool, once the servers have listed their tools.
async fn send_unmatched(gate: Arc<Gate>, unmatched: oneshot::Sender<String>) {
    gate.view().listed(Duration::MAX).await;
    let rules = gate.view().unmatched_forbidding_rules();
    if !rules.is_empty() {
        let _ = unmatched.send(rules.join("\n"));
    }
}

/// Raises the limit of file descriptors as far as needed and allowed, and returns the number of
/// connections that fit, at most `wanted`.
fn room_for(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(current) = current else {
        return wanted;
    };
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX);
    let needed = needed.saturating_add(RESERVE).max(DESCRIPTORS);
    let raised = needed.min(maximum.unwrap_or(u64::MAX));
    let limit = Rlimit {
        current: Some(raised),
        maximum,
    };
    let is_raised = raised > current && setrlimit(Resource::Nofile, limit).is_ok();
    let descriptors = if is_raised { raised } else { current };
    let room = descriptors.saturating_sub(RESERVE).max(1);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

fn add_flags(http: &mut HttpConfig, flags: &HttpArgs) -> anyhow::Result<()> {
    http.allowed_hosts.extend(flags.hosts.iter().cloned());
    http.allowed_origins.extend(flags.origins.iter().cloned());
    if let Some(name) = &flags.bearer_env {
        let token = std::env::var(name);
        let token = token.with_context(|| format!("--bearer-env {name}"))?;
        if http.bearer.iter().any(|(known, _)| known == TOKEN_OF_ONE) {
            bail!(
                "--bearer-env and \"bearer\" in the configuration both have the token \"default\""
            );
        }
        http.bearer
            .push((TOKEN_OF_ONE.to_owned(), Source::text(token)));
    }
    Ok(())
}

/// Makes the function that builds a user's gate. `has_users` is true if there may be several users.
/// `first` gets the restrictions that match no tool in the gate of a server without authentication,
/// which is made at the start.
fn make_gates(
    config: Config,
    users: UsersConfig,
    args: ServeArgs,
    workers: Workers,
    has_users: bool,
    recorder: Option<Arc<Recorder>>,
    first: Mutex<Option<oneshot::Sender<String>>>,
) -> MakeGate {
    let allow_unmatched = args.permissions.allow_unmatched_rules || config.allow_unmatched;
    Box::new(move |identity: &Identity| {
        let roles = identity.roles.iter().map(String::as_str);
        let own = users.config_of(identity.user.as_deref(), roles, &config)?;
        let workers = if has_users {
            workers.for_user()
        } else {
            workers.clone()
        };
        let builder = builder(&own, &args, Arc::new(AnyClient::default())).map(|builder| {
            let mut builder = builder.workers(workers);
            let user = identity.user.as_deref();
            if let Some(recorder) = &recorder {
                builder = builder.store(StoreSink::new(recorder, "http", user, Some(&own)));
            }
            match user {
                // Users must not write to the configuration file.
                Some(user) => builder.keep_nothing().cache_scope(user),
                None => builder,
            }
        });
        let is_first = identity.user.is_none() && !allow_unmatched;
        let unmatched = if is_first { first.lock().take() } else { None };
        let built = async move {
            let built = builder.map_err(|error| format!("{error:#}"))?.build().await;
            let gate: Gate = built.map_err(|error| error.to_string())?;
            let gate = setup::serving(gate);
            if let Some(unmatched) = unmatched {
                tokio::spawn(send_unmatched(Arc::clone(&gate), unmatched));
            }
            Ok(gate)
        };
        let printed = built.inspect_err(|error: &String| print::error(&indented(error)));
        Some(printed.err_into().boxed())
    })
}

/// The builder of `serve`, without a terminal: standard input and output may carry MCP.
pub fn builder(
    config: &Config,
    args: &ServeArgs,
    caller: Arc<dyn Caller>,
) -> anyhow::Result<GateBuilder> {
    let flags = Flags {
        rules: Some(&args.permissions.rules),
        allow_unmatched: args.permissions.allow_unmatched_rules,
        limits: Some(&args.limits),
        ledger: Some(&args.ledger),
        check: args.check.check,
        start: Start::Configured,
    };
    let builder = setup::builder(Some(config), &flags)?.caller(caller);
    // Clients must not wait for a slow server.
    let builder = builder.audience(Audience::Caller).patience(Duration::ZERO);
    Ok(setup::unattended(builder, &args.permissions))
}
