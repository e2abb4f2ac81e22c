//! What a run is begun with.

use std::fmt;
use std::sync::Arc;

use callgate_policy::Rules;

use crate::ask::Asker;

/// What a run is begun with. Begins with [`RunSetup::new`]; the rest has
/// defaults.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunSetup {
    /// The rules over its calls.
    pub rules: Arc<Rules>,
    /// Who is asked where they say so.
    pub asker: Arc<dyn Asker>,
}

impl RunSetup {
    /// A run under these rules, with nothing else set.
    pub fn new(rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Self {
        Self { rules, asker }
    }
}

impl fmt::Debug for RunSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSetup")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
