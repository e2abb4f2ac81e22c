//! The looks of one run for other servers' data: at once where that is done in no
//! time, and where it takes long on a thread apart, while the call is made ready.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_policy::Definition;
use callgate_policy::flow::{Finding, Flows, Side};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use crate::target::Target;

/// The bytes of arguments, or of results to be learnt before, from which a look is
/// worth another thread: it takes some tenths of a millisecond.
const LARGE: usize = 128 << 10;

/// What one run has learnt, and who looks at what.
pub(crate) struct Looks {
    flows: Arc<Mutex<Flows>>,
    /// How many results it has learnt.
    results: AtomicUsize,
    /// Had by the one look that goes on apart, from before it has a thread: the others
    /// of the run take none while they wait.
    turn: Arc<Mutex<()>>,
}

/// The look at the arguments of one call.
pub(crate) struct Look {
    looked: Looked,
    begun: Option<Begun>,
}

/// A look that goes on. Nobody need wait for it.
struct Begun {
    findings: JoinHandle<Vec<Finding>>,
    /// What is to be said until it is done.
    meanwhile: Vec<Finding>,
}

/// What is looked at, and where it would go.
#[derive(Clone)]
struct Looked {
    to: Side,
    definition: Option<Arc<Definition>>,
    arguments: Arc<String>,
    /// How many results there were when the script wrote them.
    results: usize,
}

impl Looks {
    /// Nothing learnt yet; `script` is the run's own text.
    pub(crate) fn new(script: &str) -> Self {
        Self {
            flows: Arc::new(Mutex::new(Flows::new(script))),
            results: AtomicUsize::new(0),
            turn: Arc::default(),
        }
    }

    /// The look at the arguments of a call. It begins now if it is worth another
    /// thread and no other one goes on.
    pub(crate) fn begin(&self, target: &Target, arguments: &Arc<String>) -> Look {
        let looked = Looked {
            to: side(target),
            definition: target.definition.clone(),
            arguments: Arc::clone(arguments),
            results: self.results.load(Ordering::Acquire),
        };
        let meanwhile = match self.flows.try_lock() {
            Ok(flows) if looked.is_long(&flows) => Some(flows.unseen(&looked.to)),
            _ => None,
        };
        let turn = || Arc::clone(&self.turn).try_lock_owned().ok();
        let begun = meanwhile.zip(turn()).map(|(meanwhile, turn)| Begun {
            findings: self.apart(&looked, turn),
            meanwhile,
        });
        Look { looked, begun }
    }

    /// What the arguments carry. What was begun counts if it was at these.
    pub(crate) async fn find(&self, look: Look, arguments: &Arc<String>) -> Vec<Finding> {
        let Look { mut looked, begun } = look;
        if let Some(begun) = begun
            && Arc::ptr_eq(&looked.arguments, arguments)
            && let Ok(findings) = begun.findings.await
        {
            return findings;
        }
        looked.arguments = Arc::clone(arguments);
        {
            let mut flows = self.flows.lock().await;
            if !looked.is_long(&flows) {
                return looked.inspect(&mut flows);
            }
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        match self.apart(&looked, turn).await {
            Ok(findings) => findings,
            // Whoever ended before it was done has found nothing out.
            Err(_) => looked.inspect(&mut *self.flows.lock().await),
        }
    }

    fn apart(&self, looked: &Looked, turn: OwnedMutexGuard<()>) -> JoinHandle<Vec<Finding>> {
        let (flows, looked) = (Arc::clone(&self.flows), looked.clone());
        tokio::task::spawn_blocking(move || {
            let findings = looked.inspect(&mut flows.blocking_lock());
            drop(turn);
            findings
        })
    }

    /// Learns what the script gets from a call.
    pub(crate) async fn learn(&self, target: &Target, ordinal: usize, result: &str) {
        let mut flows = self.flows.lock().await;
        flows.learn(side(target), ordinal, result);
        self.results.store(flows.results(), Ordering::Release);
    }
}

impl Look {
    /// Whether it goes on already, at these arguments.
    pub(crate) fn goes_on_at(&self, arguments: &Arc<String>) -> bool {
        self.begun.is_some() && Arc::ptr_eq(&self.looked.arguments, arguments)
    }

    /// What is to be said until it is done.
    pub(crate) fn meanwhile(&self) -> Vec<Finding> {
        let begun = self.begun.as_ref();
        begun.map_or_else(Vec::new, |begun| begun.meanwhile.clone())
    }
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Look")
            .field("to", &self.looked.to)
            .field("begun", &self.begun.is_some())
            .finish_non_exhaustive()
    }
}

impl Looked {
    fn is_long(&self, flows: &Flows) -> bool {
        flows.work(&self.to, &self.arguments) >= LARGE
    }

    fn inspect(&self, flows: &mut Flows) -> Vec<Finding> {
        let definition = self.definition.as_deref().map_or("", Definition::text);
        flows.inspect_among(self.results, &self.to, &self.arguments, definition)
    }
}

pub(crate) fn side(target: &Target) -> Side {
    Side::new(&target.function, &target.server, &target.tool)
}
