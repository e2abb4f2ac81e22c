//! A thread that helps with looks at large arguments, while the call's own task makes the call
//! ready: on another processor than that one's.
//!
//! Nobody waits for it. Where there is no other processor, or no such thread, looks take
//! longer, and that is all.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, JoinHandle};

use callgate_policy::flow::Inspection;

/// How many looks may wait for help. Those that are finished without it are passed over.
const MOST: usize = 64;

/// Has the thread help with this. The first time, it is started for those that come.
pub(crate) fn help(inspection: &Arc<Inspection>) {
    static HELPER: OnceLock<Option<Helper>> = OnceLock::new();
    if let Some(helper) = HELPER.get_or_init(Helper::start)
        && helper.goes_on_elsewhere()
    {
        // What a look goes by is kept for nobody's sake but that of who finishes it.
        let _too_many = helper.inspections.try_send(Arc::downgrade(inspection));
    }
}

struct Helper {
    inspections: SyncSender<Weak<Inspection>>,
    thread: JoinHandle<()>,
    /// Set by the thread.
    place: Arc<OnceLock<Option<Place>>>,
}

impl Helper {
    fn start() -> Option<Self> {
        let (inspections, given) = sync_channel(MOST);
        let place = Arc::new(OnceLock::new());
        let placed = Arc::clone(&place);
        let work = move || {
            placed.get_or_init(Place::here);
            take_part(&given);
        };
        let thread = thread::Builder::new().name("flow-helper".to_owned());
        Some(Self {
            inspections,
            thread: thread.spawn(work).ok()?,
            place,
        })
    }

    /// Has the thread run on any other processor than that of whoever asks. False if there is none,
    /// or no thread.
    fn goes_on_elsewhere(&self) -> bool {
        let place = self.place.get().and_then(Option::as_ref);
        // What was its number may be another thread's by now.
        !self.thread.is_finished() && place.is_some_and(Place::is_elsewhere)
    }
}

fn take_part(inspections: &Receiver<Weak<Inspection>>) {
    for inspection in inspections {
        if let Some(inspection) = inspection.upgrade() {
            inspection.help();
        }
    }
}

/// The thread, as far as it can be told where to run: by itself, the kernel often wakes it on the
/// very processor of whoever wakes it, and in front of that.
#[cfg(target_os = "linux")]
struct Place {
    thread: rustix::thread::Pid,
    /// The processors that it may have.
    allowed: rustix::thread::CpuSet,
}

#[cfg(target_os = "linux")]
impl Place {
    /// That of the thread which asks.
    fn here() -> Option<Self> {
        let thread = rustix::thread::gettid();
        let allowed = rustix::thread::sched_getaffinity(None).ok()?;
        (allowed.count() > 1).then_some(Self { thread, allowed })
    }

    /// Has the thread run on any other processor than that of whoever asks. False if there is none.
    fn is_elsewhere(&self) -> bool {
        let mut others = self.allowed;
        others.unset(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(Some(self.thread), &others).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
struct Place;

#[cfg(not(target_os = "linux"))]
impl Place {
    fn here() -> Option<Self> {
        thread::available_parallelism()
            .is_ok_and(|processors| processors.get() > 1)
            .then_some(Self)
    }

    fn is_elsewhere(&self) -> bool {
        true
    }
}
