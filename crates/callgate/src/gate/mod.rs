//! The gate: servers, tools, rules and workers, and the questions a host can ask of them.

pub(crate) mod builder;
pub(crate) mod call;
pub(crate) mod export;
pub(crate) mod permissions;
pub(crate) mod preview;
pub(crate) mod run;
pub(crate) mod servers;
pub(crate) mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use callgate_gate::{DryRun, Setup};
use callgate_sandbox::{Launcher, Limits};
use callgate_servers::{Caller, Root};

use crate::config::ExtractLimits;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;
use crate::search::Searcher;
use crate::skill::Skill;
use crate::type_check::TypeChecker;

/// Connections to MCP servers and the rules over their tools; runs scripts.
///
/// A gate is made once and used for many runs, also at the same time. Each run has a worker
/// process, grants and a ledger of its own.
pub struct Gate {
    live: Arc<LiveCatalog>,
    searcher: Arc<Searcher>,
    launcher: Launcher,
    /// The setup of runs and calls that set nothing else.
    setup: Setup,
    limits: Limits,
    models: Arc<Models>,
    extract: ExtractLimits,
    /// The caller of runs that bring none of their own.
    caller: Option<Arc<dyn Caller>>,
    roots: Vec<Root>,
    checker: TypeChecker,
    skills: Vec<Skill>,
    /// Why there is no cache, if there should be one.
    uncached: Option<String>,
}

impl Gate {
    /// Problems of servers, tools, schemas and the cache that stop nothing.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.live.warnings();
        warnings.extend(self.uncached.clone());
        if let Some(cache) = &self.live.cache {
            warnings.extend(cache.warnings());
        }
        warnings
    }

    /// Rules, labels and settings that match no tool, or never decide anything, with reasons.
    ///
    /// Rules about servers without a known list of tools are left out. When lists of tools
    /// change, new warnings are logged, each once.
    pub fn unmatched_rules(&self) -> Vec<String> {
        self.live
            .lint
            .find(&self.live.catalog(), &self.live.servers())
    }

    /// Those of them that should forbid something. Without
    /// [`GateBuilder::allow_unmatched`](crate::GateBuilder::allow_unmatched), they keep a gate from
    /// being built.
    pub fn void_rules(&self) -> Vec<String> {
        let servers = self.live.servers();
        self.live.lint.void_messages(&self.live.catalog(), &servers)
    }

    /// The native TypeScript that checks scripts, with its version.
    ///
    /// # Errors
    ///
    /// Why there is none, and what to do.
    pub fn typescript(&self) -> Result<String, String> {
        self.checker.program()
    }

    /// The cache's folder; `None` if it is switched off.
    ///
    /// # Errors
    ///
    /// Why there is no cache, though there should be one.
    pub fn cache_folder(&self) -> Result<Option<PathBuf>, String> {
        match &self.uncached {
            Some(reason) => Err(reason.clone()),
            None => Ok(self.live.cache.as_ref().map(|cache| cache.folder())),
        }
    }

    /// Patterns and names of a dry run that match no tool, with the same exception.
    pub fn unmatched_in(&self, dry_run: &DryRun) -> Vec<String> {
        let servers = self.live.servers();
        let catalog = self.live.catalog();
        self.live.lint.of_dry_run(dry_run, &catalog, &servers)
    }

    /// The limits of a run that brings none of its own.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The skills that the gate was made for, in the order they were named.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Ends the servers and the type checker.
    pub async fn shutdown(&self) {
        self.live.save().await;
        self.live.connections.shut_down().await;
        self.checker.shut_down().await;
    }
}
