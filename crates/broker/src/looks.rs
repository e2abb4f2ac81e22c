//! The looks of one run for other servers' data: at once where that is done in no
//! time, and where it takes long on a thread apart, while the call is made ready. Where
//! nothing depends on it for the call, it is done while the server has that: by whoever made the
//! call, and would do nothing else meanwhile.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Guarded, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_policy::Definition;
use callgate_policy::flow::{Finding, Flows, Side};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use crate::target::Target;

/// The bytes of arguments, or of results to be learnt before, from which a look is
/// worth another thread: it takes some tenths of a millisecond.
const LARGE: usize = 128 << 10;

/// Up to how many bytes a look is not worth another thread where the call is made already. That
/// thread would want a processor of its own, and mostly get the one that the server wants. What
/// else is done by the task that made the call waits for some milliseconds.
const HERE: usize = 2 << 20;

/// How long a look mostly takes at the most for each MiB. A server that answers within that would
/// have its answer wait for a look that begins when it has the call.
const FOR_A_MIB: Duration = Duration::from_millis(2);

/// What one run has learnt, and who looks at what.
pub(crate) struct Looks {
    flows: Arc<Mutex<Flows>>,
    /// How many results it has learnt.
    results: AtomicUsize,
    /// Had by the one look that goes on apart, from before it has a thread: the others
    /// of the run take none while they wait.
    turn: Arc<Mutex<()>>,
    /// Servers that answered the last call with large arguments faster than those are looked at.
    hasty: Guarded<HashSet<String>>,
}

/// The look at the arguments of one call.
pub(crate) struct Look {
    looked: Looked,
    begun: Begun,
    /// What is to be said until it is done, if the call need not wait for it.
    meanwhile: Option<Vec<Finding>>,
}

/// How far a look has come.
enum Begun {
    No,
    /// It goes on.
    Apart(JoinHandle<Vec<Finding>>),
    Done(Vec<Finding>),
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
            hasty: Guarded::default(),
        }
    }

    /// The look at the arguments of a call. One that is worth another thread begins now if no
    /// other one goes on; but where the call need not wait for it, and the server takes its time,
    /// when [that has the call](Self::go_on). Only of such a look it matters whether it
    /// `may_be_late`.
    pub(crate) fn begin(
        &self,
        target: &Target,
        arguments: &Arc<String>,
        may_be_late: impl FnOnce() -> bool,
    ) -> Look {
        let looked = Looked {
            to: side(target),
            definition: target.definition.clone(),
            arguments: Arc::clone(arguments),
            results: self.results.load(Ordering::Acquire),
        };
        let unseen = match self.flows.try_lock() {
            Ok(flows) if looked.is_long(&flows) => Some(flows.unseen(&looked.to)),
            _ => None,
        };
        let is_long = unseen.is_some();
        let mut look = Look {
            looked,
            begun: Begun::No,
            meanwhile: unseen.filter(|_| may_be_late()),
        };
        let is_put_off = look.meanwhile.is_some() && self.takes_its_time(&target.server);
        if is_long
            && !is_put_off
            && let Ok(turn) = Arc::clone(&self.turn).try_lock_owned()
        {
            look.begun = Begun::Apart(self.apart(&look.looked, turn));
        }
        look
    }

    /// Looks, if that was put off and no other look goes on; a look that takes very long begins.
    pub(crate) fn go_on(&self, look: &mut Look) {
        let Begun::No = look.begun else { return };
        let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() else {
            return;
        };
        let Ok(mut flows) = self.flows.try_lock() else {
            return;
        };
        look.begun = match look.looked.work(&flows) {
            ..=HERE => Begun::Done(look.looked.inspect(&mut flows)),
            _ => Begun::Apart(self.apart(&look.looked, turn)),
        };
    }

    /// Notes how long a server took for a call with such arguments.
    pub(crate) fn answered(&self, server: &str, arguments: &str, took: Duration) {
        if arguments.len() < LARGE {
            return;
        }
        let mut hasty = self.hasty();
        if took < FOR_A_MIB.mul_f64(arguments.len() as f64 / f64::from(1 << 20)) {
            hasty.insert(server.to_owned());
        } else {
            hasty.remove(server);
        }
    }

    fn takes_its_time(&self, server: &str) -> bool {
        !self.hasty().contains(server)
    }

    fn hasty(&self) -> MutexGuard<'_, HashSet<String>> {
        self.hasty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the arguments carry. What was begun counts if it was at these.
    pub(crate) async fn find(&self, look: Look, arguments: &Arc<String>) -> Vec<Finding> {
        let Look {
            mut looked, begun, ..
        } = look;
        if Arc::ptr_eq(&looked.arguments, arguments) {
            match begun {
                Begun::No => {}
                Begun::Apart(looking) => {
                    if let Ok(findings) = looking.await {
                        return findings;
                    }
                }
                Begun::Done(findings) => return findings,
            }
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
    /// What is to be said of these arguments until it is done; `None` if the call has to wait for
    /// it.
    pub(crate) fn meanwhile(&self, arguments: &Arc<String>) -> Option<&[Finding]> {
        let at_these = Arc::ptr_eq(&self.looked.arguments, arguments);
        self.meanwhile.as_deref().filter(|_| at_these)
    }
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Look")
            .field("to", &self.looked.to)
            .field("begun", &!matches!(self.begun, Begun::No))
            .finish_non_exhaustive()
    }
}

impl Looked {
    fn is_long(&self, flows: &Flows) -> bool {
        self.work(flows) >= LARGE
    }

    fn work(&self, flows: &Flows) -> usize {
        flows.work(&self.to, &self.arguments)
    }

    fn inspect(&self, flows: &mut Flows) -> Vec<Finding> {
        let definition = self.definition.as_deref().map_or("", Definition::text);
        flows.inspect_among(self.results, &self.to, &self.arguments, definition)
    }
}

pub(crate) fn side(target: &Target) -> Side {
    let side = Side::new(&target.function, &target.server, &target.tool);
    side.or_named(target.other_names.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It takes all rules over flows and labels to tell, and most calls are short.
    #[tokio::test]
    async fn only_of_a_long_look_it_is_asked_whether_it_may_be_late() {
        let looks = Looks::new("");
        let other = Target {
            server: "other".to_owned(),
            ..Target::default()
        };
        looks
            .learn(&other, 1, "\"a result of another server\"")
            .await;
        let mut asked = Vec::new();
        for length in [0, LARGE / 2, LARGE] {
            let arguments = Arc::new("x".repeat(length));
            let look = looks.begin(&Target::default(), &arguments, || {
                asked.push(length);
                true
            });
            assert_eq!(look.meanwhile(&arguments).is_some(), length == LARGE);
        }
        assert_eq!(asked, [LARGE]);
    }

    #[test]
    fn a_look_is_put_off_unless_the_server_answered_faster_than_it_is_done() {
        let looks = Looks::new("");
        let large = "x".repeat(2 << 20);
        let late = FOR_A_MIB * 2;
        let soon = late - Duration::from_nanos(1);
        assert!(looks.takes_its_time("a"));
        looks.answered("a", &large, soon);
        assert!(!looks.takes_its_time("a"));
        assert!(looks.takes_its_time("b"));
        // What a short call takes says nothing.
        looks.answered("a", "{}", Duration::from_secs(1));
        assert!(!looks.takes_its_time("a"));
        looks.answered("a", &large, late);
        assert!(looks.takes_its_time("a"));
    }
}
