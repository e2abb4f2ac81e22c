//! The looks of one run for other servers' data: at once where that is done in no
//! time, and where it takes long with another thread's help, from before the call is made
//! ready; or by that alone where it takes very long. Where
//! nothing depends on it for the call, it is done while the server has that: by whoever made the
//! call, and would do nothing else meanwhile.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Guarded, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use callgate_policy::Definition;
use callgate_policy::flow::{Finding, Flows, Inspection, Side};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use crate::elsewhere::Elsewhere;
use crate::target::Target;

/// The bytes of arguments, or of results to be learnt before, from which a look is
/// worth another thread: it takes some tenths of a millisecond.
const LARGE: usize = 128 << 10;

/// Up to how many bytes a look is done, or finished, by the task that made the call. What else that
/// does waits for some milliseconds.
const HERE: usize = 2 << 20;

/// Up to how many bytes of results may have to be gone through besides, once: for a few more.
const ONCE: usize = 4 << 20;

/// How long a look mostly takes at the most for each MiB. A server that answers within that would
/// have its answer wait for a look that begins when it has the call: longer than the call waits
/// for one that another thread helps with.
const FOR_A_MIB: Duration = Duration::from_millis(2);

/// How many looks may wait for help. Those that are finished without it are passed over.
const MOST_HELPED: usize = 64;

/// A thread that helps with looks while the call's own task makes the call ready. Nobody waits
/// for it, and what a look goes by is kept for nobody's sake but that of who finishes it.
static HELPER: Elsewhere<Weak<Inspection>> =
    Elsewhere::new("flow-helper", MOST_HELPED, |inspection| {
        if let Some(inspection) = inspection.upgrade() {
            inspection.help();
        }
    });

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
    /// Another thread does it.
    Apart(JoinHandle<Vec<Finding>>),
    /// Another thread helps with it.
    Helped(Arc<Inspection>),
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

    /// The look at the arguments of a call. One that takes long begins now; but where the call
    /// need not wait for it, and the server takes its time, when [that has the call](Self::go_on).
    /// Only of such a look it matters whether it `may_be_late`.
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
        let mut look = Look {
            looked,
            begun: Begun::No,
            meanwhile: None,
        };
        let Ok(mut flows) = self.flows.try_lock() else {
            return look;
        };
        let work = look.looked.work(&flows);
        if work < LARGE {
            return look;
        }
        let meanwhile = may_be_late().then(|| flows.unseen(&look.looked.to));
        if meanwhile.is_some() && self.takes_its_time(&target.server) {
            look.meanwhile = meanwhile;
        } else if look.looked.is_done_here(&flows) {
            let inspection = look.looked.begin(&mut flows);
            let _not_helped = HELPER.give(Arc::downgrade(&inspection));
            look.begun = Begun::Helped(inspection);
        } else {
            look.meanwhile = meanwhile;
            if let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() {
                look.begun = Begun::Apart(self.apart(&look.looked, turn));
            }
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
        if !look.looked.is_done_here(&flows) {
            look.begun = Begun::Apart(self.apart(&look.looked, turn));
            return;
        }
        let inspection = look.looked.begin(&mut flows);
        // Other calls' looks begin meanwhile.
        drop(flows);
        look.begun = match inspection.finish_soon() {
            Some(findings) => Begun::Done(findings),
            None => Begun::Apart(finish_apart(inspection, turn)),
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
                Begun::Helped(inspection) => return self.finish(inspection).await,
                Begun::Done(findings) => return findings,
            }
        }
        looked.arguments = Arc::clone(arguments);
        let here = {
            let mut flows = self.flows.lock().await;
            if looked.work(&flows) < LARGE {
                return looked.inspect(&mut flows);
            }
            let is_done_here = looked.is_done_here(&flows);
            is_done_here.then(|| looked.begin(&mut flows))
        };
        if let Some(inspection) = here {
            let _not_helped = HELPER.give(Arc::downgrade(&inspection));
            return self.finish(inspection).await;
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        match self.apart(&looked, turn).await {
            Ok(findings) => findings,
            // Whoever ended before it was done has found nothing out.
            Err(_) => looked.inspect(&mut *self.flows.lock().await),
        }
    }

    /// Finishes a look here, or apart if that turns out to take long.
    async fn finish(&self, inspection: Arc<Inspection>) -> Vec<Finding> {
        if let Some(findings) = inspection.finish_soon() {
            return findings;
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        match finish_apart(Arc::clone(&inspection), turn).await {
            Ok(findings) => findings,
            Err(_) => inspection.finish(),
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
    fn work(&self, flows: &Flows) -> usize {
        flows.work(&self.to, &self.arguments)
    }

    fn is_done_here(&self, flows: &Flows) -> bool {
        self.work(flows) <= HERE && flows.to_be_made(&self.to) <= ONCE
    }

    fn begin(&self, flows: &mut Flows) -> Arc<Inspection> {
        let definition = self.definition.as_deref().map_or("", Definition::text);
        Arc::new(flows.begin(self.results, &self.to, &self.arguments, definition))
    }

    fn inspect(&self, flows: &mut Flows) -> Vec<Finding> {
        let definition = self.definition.as_deref().map_or("", Definition::text);
        flows.inspect_among(self.results, &self.to, &self.arguments, definition)
    }
}

fn finish_apart(
    inspection: Arc<Inspection>,
    turn: OwnedMutexGuard<()>,
) -> JoinHandle<Vec<Finding>> {
    tokio::task::spawn_blocking(move || {
        let findings = inspection.finish();
        drop(turn);
        findings
    })
}

pub(crate) fn side(target: &Target) -> Side {
    let side = Side::new(&target.function, &target.server, &target.tool);
    side.or_named(target.other_names.as_ref())
}

#[cfg(test)]
mod tests {
    use callgate_policy::flow::Seen;

    use super::*;

    /// Those of a run in which another server has answered.
    async fn after_another() -> Looks {
        let looks = Looks::new("");
        let other = Target {
            server: "other".to_owned(),
            ..Target::default()
        };
        looks
            .learn(&other, 1, "\"one of the results of another server\"")
            .await;
        looks
    }

    /// It takes all rules over flows and labels to tell, and most calls are short.
    #[tokio::test]
    async fn only_of_a_long_look_it_is_asked_whether_it_may_be_late() {
        let looks = after_another().await;
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

    /// How a look is begun after [`after_another`], which may be late or not, and what it finds.
    async fn carried(
        arguments: String,
        may_be_late: bool,
        is_hasty: bool,
    ) -> (&'static str, Vec<Finding>) {
        let looks = after_another().await;
        if is_hasty {
            looks.answered("", &"x".repeat(LARGE), Duration::ZERO);
        }
        let arguments = Arc::new(arguments);
        let mut look = looks.begin(&Target::default(), &arguments, || may_be_late);
        let begun = match &look.begun {
            Begun::No => "no",
            Begun::Apart(_) => "apart",
            Begun::Helped(_) => "helped",
            Begun::Done(_) => "done",
        };
        if look.meanwhile.is_some() {
            // The server has it.
            looks.go_on(&mut look);
            assert!(matches!(look.begun, Begun::Done(_) | Begun::Apart(_)));
        }
        (begun, looks.find(look, &arguments).await)
    }

    #[tokio::test]
    async fn how_a_look_is_begun_goes_by_how_long_it_takes_and_who_waits_for_it() {
        let said = "one of the results of another server";
        // As many bytes as that with what is learnt before.
        let arguments = |work: usize| {
            let mut text = said.to_owned();
            for nth in 0_u32.. {
                text.push_str(&format!(" {:x}", nth.wrapping_mul(0x9E37_79B9)));
                if text.len() >= work {
                    break;
                }
            }
            text.truncate(work - (said.len() + 2));
            text
        };
        for (work, may_be_late, is_hasty, expected) in [
            (LARGE - 1, false, false, "no"),
            (LARGE, false, false, "helped"),
            (LARGE, true, false, "no"),
            (LARGE, true, true, "helped"),
            (HERE, false, false, "helped"),
            (HERE + 1, false, false, "apart"),
            (HERE + 1, true, false, "no"),
            (HERE + 1, true, true, "apart"),
        ] {
            let (begun, found) = carried(arguments(work), may_be_late, is_hasty).await;
            assert_eq!(begun, expected, "{work} {may_be_late} {is_hasty}");
            let [Finding { seen, .. }] = found.as_slice() else {
                panic!("{work} {may_be_late} {is_hasty}: {found:?}");
            };
            let Seen::Copied(copied) = seen else {
                panic!("{work} {may_be_late} {is_hasty}: {seen:?}");
            };
            assert_eq!((copied.bytes, copied.ordinal), (said.len(), 1));
        }
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
