//! The settings that a configuration file holds.

use std::path::PathBuf;

use callgate_auth::OAuth;
use callgate_gate::LedgerOptions;
use callgate_policy::Rules;
use callgate_policy::flow::FlowRules;
use callgate_sandbox::{JailOptions, Limits};
use callgate_servers::{Root, ServerSpec, Transport};

use super::error::{LeftOut, Problem};
use super::file::{CacheConfig, CheckConfig, ExtractLimits};
use super::models::ModelsConfig;
use super::store::StoreConfig;
use super::tools::ToolSettings;
use crate::asking::AskingOptions;
use crate::choices::SearchBy;
use crate::skill::Skill;

/// The settings of one configuration file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {
    /// The file, in its folder.
    #[doc(hidden)]
    pub path: PathBuf,
    /// SHA-256 of the file in hexadecimal; empty without one.
    #[doc(hidden)]
    pub sha256: String,
    /// The folder of the project, by its real path, without links, however the file was named:
    /// the file's own, or the one above that of an editor, such as `.vscode`. Relative paths in
    /// the file start here.
    #[doc(hidden)]
    pub folder: PathBuf,
    /// `mcpServers`: the servers to start, in the order of the file.
    pub servers: Vec<ServerSpec>,
    /// Names of the servers that the file disables, and of those in `left_out`.
    #[doc(hidden)]
    pub disabled: Vec<String>,
    /// The servers whose entries name unset variables, or have mistakes in a file of another client.
    #[doc(hidden)]
    pub left_out: Vec<LeftOut>,
    /// Names of the servers that the roles of a user leave out.
    #[doc(hidden)]
    pub withheld: Vec<String>,
    /// The rules of `permissions`.
    pub permissions: Rules,
    /// `allowUnmatched` of `permissions`: rules that deny may match no tool.
    #[doc(hidden)]
    pub allow_unmatched: bool,
    /// `limits`: the limits of a run.
    pub limits: Limits,
    /// `sandbox`: the kernel layers around the workers that run scripts.
    #[doc(hidden)]
    pub jail: JailOptions,
    /// `check`: the type check of scripts.
    #[doc(hidden)]
    pub check: CheckConfig,
    /// `ledger`: the file that every call is written to, as an absolute path. Without one, calls
    /// are in the report of a run alone.
    #[doc(hidden)]
    pub ledger: Option<(PathBuf, LedgerOptions)>,
    /// `store`: the record of runs. The caller opens it; a gate has none by itself.
    #[doc(hidden)]
    pub store: Option<StoreConfig>,
    /// `asking`: ways and limits of questions about calls.
    #[doc(hidden)]
    pub asking: AskingOptions,
    /// `cache`: where the lists of servers are kept.
    #[doc(hidden)]
    pub cache: CacheConfig,
    /// `models`: endpoints of models, and their keys.
    #[doc(hidden)]
    pub models: ModelsConfig,
    /// `search`: how tools are searched where a request does not name a way.
    #[doc(hidden)]
    pub search: SearchBy,
    /// `extract`: the limits of `mcp.extract`.
    #[doc(hidden)]
    pub extract: ExtractLimits,
    /// `roots`: the folders to work in, for servers that ask.
    #[doc(hidden)]
    pub roots: Vec<Root>,
    /// The rules of `flows`, and the labels of servers and tools.
    #[doc(hidden)]
    pub flows: FlowRules,
    /// `tools`: visibility and keywords of tools.
    #[doc(hidden)]
    pub tools: ToolSettings,
    /// The skills to work with. They are not in the file: the caller adds them.
    #[doc(hidden)]
    pub skills: Vec<Skill>,
    /// Warnings, such as keys that only other clients know.
    #[doc(hidden)]
    pub warnings: Vec<Problem>,
}

impl Config {
    /// The logins of the servers over HTTP, for settings that are not in the file.
    #[doc(hidden)]
    pub fn logins_mut(&mut self) -> impl Iterator<Item = &mut OAuth> {
        let servers = self.servers.iter_mut();
        servers.filter_map(|server| match &mut server.transport {
            Transport::Http(http) => http.oauth.as_mut(),
            Transport::Stdio(_) => None,
        })
    }

    /// The names of the servers, also of disabled ones.
    pub(super) fn server_names(&self) -> impl Iterator<Item = &str> {
        let enabled = self.servers.iter().map(|server| &server.name);
        enabled.chain(&self.disabled).map(String::as_str)
    }
}
