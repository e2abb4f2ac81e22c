//! Keeps grants for good in the configuration file.

use std::path::PathBuf;

use callgate_gate::{GrantStore, GrantStoreError};
use callgate_policy::{Grant, RuleError};
use futures::future::BoxFuture;

use crate::config;

/// Writes allow rules into a configuration file.
#[derive(Debug, Clone)]
pub(crate) struct KeepInFile(pub(crate) PathBuf);

impl GrantStore for KeepInFile {
    fn place(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn keep<'a>(&'a self, grants: &'a [Grant]) -> BoxFuture<'a, Result<(), GrantStoreError>> {
        let path = self.0.clone();
        let rules: Result<Vec<String>, _> = grants.iter().map(rule).collect();
        Box::pin(async move {
            let rules = rules.map_err(|error| GrantStoreError::new(error.to_string()))?;
            let written = tokio::task::spawn_blocking(move || config::allow(&path, &rules)).await;
            let written = written.map_err(|error| GrantStoreError::new(error.to_string()))?;
            written.map_err(|error| GrantStoreError::new(error.to_string()))
        })
    }
}

/// A grant as an item of `permissions`, `allow`.
fn rule(grant: &Grant) -> Result<String, RuleError> {
    // With spaces, as a person would write it.
    let rule = grant.to_rule()?.to_json();
    let serde_json::Value::Object(members) = &rule else {
        return Ok(rule.to_string());
    };
    let members = members
        .iter()
        .map(|(key, value)| format!("{}: {value}", serde_json::Value::from(key.as_str())));
    let members: Vec<String> = members.collect();
    Ok(format!("{{ {} }}", members.join(", ")))
}
