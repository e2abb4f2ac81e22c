//! The gate: servers, tools, rules and workers, and the questions a host can ask of them.

pub(crate) mod builder;
pub(crate) mod call;
pub(crate) mod export;
pub(crate) mod permissions;
pub(crate) mod preview;
pub(crate) mod run;
pub(crate) mod servers;
pub(crate) mod tools;
pub(crate) mod view;

use std::sync::Arc;

use callgate_gate::Setup;
use callgate_sandbox::{Launcher, Limits};
use callgate_servers::{Caller, Root};

use crate::config::ExtractLimits;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;
use crate::record::StoreSink;
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
    /// The record of the runs.
    store: Option<Arc<StoreSink>>,
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

    /// Warnings about rules, labels and settings without effect, with reasons.
    ///
    /// Rules about servers without a known list of tools are left out. When lists of tools
    /// change, new warnings are logged, each once.
    pub fn unmatched_rules(&self) -> Vec<String> {
        self.live
            .lint
            .warnings(&self.live.catalog(), &self.live.servers())
    }

    /// The limits of a run that brings none of its own.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Ends the servers and the type checker, and waits shortly for the record of the runs.
    pub async fn shutdown(&self) {
        self.live.save().await;
        self.live.connections.shut_down().await;
        self.checker.shut_down().await;
        if let Some(store) = &self.store {
            store.flush().await;
        }
    }
}
