//! Configuration files: each key, each mistake, and edits.

use std::path::Path;

use callgate_auth::{OAuth, Origin, Source};
use callgate_gate::LedgerOptions;
use callgate_policy::ToolName;
use callgate_servers::{Http, ServerSpec, Stdio, Transport};

use super::*;

mod edits;
mod env_file;
mod files;
mod keys;
mod mistakes;
mod patch;
mod shared;
mod trust;

const SECRET: &str = "hunter2";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(SECRET.to_owned()),
        "PROGRAM" => Some("node".to_owned()),
        "EMPTY" => Some(String::new()),
        "REFERENCE" => Some("${TOKEN}".to_owned()),
        "BROKEN" => Some(format!("{SECRET}\r\nX: y")),
        "HOST" => Some("example.com".to_owned()),
        "ROOT" => Some("/".to_owned()),
        _ => None,
    }
}

/// The names of a tool by its function alone.
fn tool(function: &str) -> ToolName<'_> {
    ToolName {
        function,
        aliases: &[],
        server: "",
        tool: "",
    }
}

fn read(name: &str, text: &str) -> Result<Config, ConfigError> {
    read_in("/project", name, text)
}

/// Reads a text as a file of a folder that need not exist.
fn read_in(folder: &str, name: &str, text: &str) -> Result<Config, ConfigError> {
    let folder = Path::new(folder);
    let empty = Config {
        path: folder.join(name),
        folder: folder.to_owned(),
        ..Config::default()
    };
    let config = super::read::<IgnoredAny>(text, &empty, Path::new(name), &environment);
    config.map(|it| it.0)
}

fn server(config: &Config) -> &ServerSpec {
    config.servers.first().expect("a server")
}

fn stdio(config: &Config) -> &Stdio {
    match &server(config).transport {
        Transport::Stdio(stdio) => stdio,
        Transport::Http(_) => panic!("the server is a program"),
    }
}

fn http(config: &Config) -> &Http {
    match &server(config).transport {
        Transport::Http(http) => http,
        Transport::Stdio(_) => panic!("the server is at a URL"),
    }
}

fn login(config: &Config) -> &OAuth {
    http(config).oauth.as_ref().expect("a login")
}

fn ledger(config: &Config) -> &(PathBuf, LedgerOptions) {
    config.ledger.as_ref().expect("a ledger")
}

/// All of a source, its secrets too.
fn source(source: &Source) -> String {
    let Source { prefix, origin } = source;
    match origin {
        Origin::Text(text) => format!("{prefix}{text}"),
        Origin::Command {
            command,
            cwd,
            timeout,
        } => format!("{prefix}{command:?} in {cwd:?} for {timeout:?}"),
        Origin::Keyring { service, account } => format!("{prefix}{service}/{account}"),
        _ => panic!("a new origin"),
    }
}
