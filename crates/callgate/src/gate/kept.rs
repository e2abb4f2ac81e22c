//! What a gate knows of its servers from an earlier time, and which of them its
//! skills leave in use.

use std::collections::HashSet;
use std::sync::Arc;

use callgate_broker::{Connect, Definitions};
use callgate_catalog::Catalog;

use super::builder::{BuildError, GateBuilder};
use crate::cache::Cache;
use crate::config::CacheConfig;
use crate::gate::servers::closest;
use crate::{Gate, Skill};

impl GateBuilder {
    /// Where what servers list and vectors of tools are kept; `None` for nowhere.
    /// Default: as the configuration says, and nowhere without one. A folder that cannot be used
    /// is a warning of [`Gate::warnings`], and nothing is kept.
    pub fn cache(mut self, cache: Option<CacheConfig>) -> Self {
        self.cache = cache;
        self
    }

    /// Whose the cache is: gates of different scopes have nothing of each other's
    /// in one folder. Default: one that gates without a scope share.
    pub fn cache_scope(mut self, scope: impl Into<String>) -> Self {
        self.cache_scope = Some(scope.into());
        self
    }

    /// Makes the gate for a skill, besides those before: of the servers, those are
    /// in use that its skills name, whatever the configuration says of connecting;
    /// all others are off until they are enabled. A skill that says nothing of
    /// servers changes nothing.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Sets what the skills say of servers.
    pub(super) fn follow_skills(&mut self) -> Result<(), BuildError> {
        let mut known = HashSet::new();
        if let Some(twice) = self.skills.iter().find(|skill| !known.insert(&skill.name)) {
            return Err(BuildError::DuplicateSkill(twice.name.clone()));
        }
        let named: Vec<(&Skill, &String)> = self
            .skills
            .iter()
            .flat_map(|skill| {
                skill
                    .servers
                    .iter()
                    .flatten()
                    .map(move |name| (skill, name))
            })
            .collect();
        let names = || self.servers.iter().map(|server| server.name.as_str());
        for (skill, server) in &named {
            if !names().any(|name| name == server.as_str()) {
                return Err(BuildError::SkillServer {
                    skill: skill.name.clone(),
                    server: (*server).clone(),
                    near: closest(server, names()),
                });
            }
        }
        if self.skills.iter().all(|skill| skill.servers.is_none()) {
            return Ok(());
        }
        for server in &mut self.servers {
            let is_named = named.iter().any(|(_, name)| **name == server.name);
            server.connect = match (is_named, server.connect) {
                (false, _) => Connect::Manual,
                (true, Connect::Manual) => Connect::Lazy,
                (true, connect) => connect,
            };
        }
        Ok(())
    }

    /// Opens the cache and has it tell the servers what it knows; and why there
    /// is none, where there should be one.
    pub(super) async fn recall(&mut self) -> (Option<Arc<Cache>>, Option<String>) {
        let Some(config) = self.cache.take() else {
            return (None, None);
        };
        let scope = self.cache_scope.take();
        let mut servers = std::mem::take(&mut self.servers);
        let recalled = tokio::task::spawn_blocking(move || {
            let opened = Cache::open(&config, scope.as_deref());
            if let Ok(Some(cache)) = &opened {
                servers.iter_mut().for_each(|server| cache.recall(server));
            }
            (opened, servers)
        });
        match recalled.await {
            Ok((opened, servers)) => {
                self.servers = servers;
                match opened {
                    Ok(cache) => (cache.map(Arc::new), None),
                    Err(reason) => (None, Some(format!("nothing is cached: {reason}"))),
                }
            }
            // It does not panic, so the runtime is shutting down, and this task
            // with it.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Gate {
    /// The skills that the gate was made for, in the order they were named.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// The definitions that are kept, for whoever is asked about a changed one.
    pub(crate) fn definitions(&self) -> Option<Arc<dyn Definitions>> {
        let cache = self.cache.clone()?;
        Some(cache)
    }

    /// Keeps what is worth keeping of a gate that has just been made.
    pub(super) fn keep_at_start(&self, catalog: Arc<Catalog>) {
        let Some(cache) = self.cache.clone() else {
            return;
        };
        let rules = Arc::clone(&self.rules);
        let _keeping = tokio::task::spawn_blocking(move || {
            cache.keep_granted(&rules, &catalog);
            cache.tidy();
        });
    }
}
