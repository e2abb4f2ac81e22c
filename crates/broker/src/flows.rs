//! Data of other servers within one run: learnt from results, found in arguments.

use std::sync::Arc;

use callgate_policy::Definition;
use callgate_policy::flow::{Detector, Finding, Side};

use crate::target::Target;

/// The bytes from which a search goes to a thread that may block. It takes a few milliseconds.
const LARGE: usize = 64 << 10;

/// What one run has learnt.
#[derive(Debug)]
pub(crate) struct Flows(Arc<Detector>);

impl Flows {
    /// Nothing is learnt yet; `script` is the run's own text.
    pub(crate) fn new(script: &str) -> Self {
        Self(Arc::new(Detector::new(script)))
    }

    /// Finds other servers' data in arguments.
    pub(crate) async fn find(&self, target: &Target, arguments: &Arc<String>) -> Vec<Finding> {
        let to = side(target);
        if self.0.work(&to, arguments) < LARGE {
            return find(&self.0, &to, arguments, target.definition.as_deref());
        }
        let (detector, definition) = (Arc::clone(&self.0), target.definition.clone());
        let (side, text) = (to.clone(), Arc::clone(arguments));
        let search = tokio::task::spawn_blocking(move || {
            find(&detector, &side, &text, definition.as_deref())
        });
        match search.await {
            Ok(findings) => findings,
            // A search that ended early found nothing out.
            Err(_) => find(&self.0, &to, arguments, target.definition.as_deref()),
        }
    }

    /// Learns what the script gets from a call.
    pub(crate) fn learn(&self, target: &Target, ordinal: usize, result: &str) {
        self.0.learn(&side(target), ordinal, result);
    }
}

fn find(
    detector: &Detector,
    to: &Side,
    arguments: &str,
    definition: Option<&Definition>,
) -> Vec<Finding> {
    detector.find(to, arguments, definition.map_or("", Definition::text))
}

fn side(target: &Target) -> Side {
    let side = Side::new(&target.function, &target.server, &target.tool);
    side.or_named(target.other_names.as_ref())
}
