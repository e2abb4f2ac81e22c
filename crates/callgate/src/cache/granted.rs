//! Definitions of tools that were allowed for good, by the hash in the grant: a later question
//! shows the change.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate_catalog::Catalog;
use callgate_gate::Definitions;
use callgate_policy::{Definition, DefinitionHash, Rules};

use super::Cache;

/// Definitions that were not written for this time are removed.
pub(super) const UNUSED: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// The limit of a definition, in bytes. Longer ones are not kept.
const MAX_DEFINITION: u64 = 1 << 20;

impl Definitions for Cache {
    fn find(&self, hash: &DefinitionHash) -> Option<Arc<Definition>> {
        let text = self.definitions.read(&file(hash), MAX_DEFINITION).ok()??;
        let tool = serde_json::from_slice(&text).ok()?;
        let definition = Definition::of(&tool);
        // The hash of a changed file differs.
        (definition.hash() == hash).then(|| Arc::new(definition))
    }

    fn keep(&self, definition: &Definition) {
        let file = file(definition.hash());
        let text = definition.text();
        if text.len() as u64 > MAX_DEFINITION || self.definitions.has(&file) {
            return;
        }
        if let Err(error) = self.definitions.write(&file, text.as_bytes()) {
            tracing::warn!(%error, "the definition of an allowed tool is not kept");
        }
    }
}

impl Cache {
    /// Keeps the definitions of tools in the catalog that rules are bound to.
    pub(crate) fn keep_granted(&self, rules: &Rules, catalog: &Catalog) {
        let bound: HashSet<&DefinitionHash> = rules
            .iter()
            .filter_map(|rule| rule.definition.as_ref())
            .collect();
        for tool in catalog.tools() {
            let definition = &tool.definition.identity;
            if bound.contains(definition.hash()) {
                self.keep(definition);
            }
        }
    }
}

fn file(hash: &DefinitionHash) -> String {
    let hash = hash.to_string();
    format!("{}.json", hash.trim_start_matches("sha256:"))
}
