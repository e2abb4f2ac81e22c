//! A thread that works on another processor than whoever gives it something to do.
//!
//! By itself, the kernel often wakes a thread on the very processor of whoever wakes it, and in
//! front of that: then work that is given away takes longer than work that is not.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long it waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// A thread that is started with the first work, and ends when there has been none for a while.
#[derive(Debug)]
pub(crate) struct Elsewhere<T> {
    name: &'static str,
    /// How much may wait for it.
    most: usize,
    work: fn(T),
    worker: Mutex<Option<Worker<T>>>,
}

#[derive(Debug)]
struct Worker<T> {
    given: SyncSender<T>,
    thread: JoinHandle<()>,
    /// Set by the thread.
    place: Arc<OnceLock<Place>>,
}

impl<T: Send + 'static> Elsewhere<T> {
    pub(crate) const fn new(name: &'static str, most: usize, work: fn(T)) -> Self {
        Self {
            name,
            most,
            work,
            worker: Mutex::new(None),
        }
    }

    /// Gives it something to do, and does not wait. What it does not take comes back: where too
    /// much waits, and where there is no other processor or no thread.
    pub(crate) fn give(&self, work: T) -> Result<(), T> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        // What was its number may be another thread's by now.
        if let Some(worker) = worker
            .as_ref()
            .filter(|worker| !worker.thread.is_finished())
        {
            return worker.give(work);
        }
        *worker = Worker::start(self.name, self.most, self.work);
        match worker.as_ref() {
            Some(worker) => worker.give(work),
            None => Err(work),
        }
    }
}

impl<T: Send + 'static> Worker<T> {
    fn start(name: &str, most: usize, work: fn(T)) -> Option<Self> {
        let processors = Processors::of_this_thread()?;
        let (giver, given) = sync_channel(most);
        let place = Arc::new(OnceLock::new());
        let placed = Arc::clone(&place);
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            placed.get_or_init(|| Place::of_this_thread(processors));
            work_off(&given, work);
        });
        Some(Self {
            given: giver,
            thread: thread.ok()?,
            place,
        })
    }

    fn give(&self, work: T) -> Result<(), T> {
        // Where a new one runs, the kernel chooses, and mostly well.
        if !self.place.get().is_none_or(Place::is_elsewhere) {
            return Err(work);
        }
        self.given.try_send(work).map_err(|error| match error {
            TrySendError::Full(work) | TrySendError::Disconnected(work) => work,
        })
    }
}

fn work_off<T>(given: &Receiver<T>, work: fn(T)) {
    while let Ok(given) = given.recv_timeout(IDLE) {
        work(given);
    }
}

/// The processors that a thread may have, which are several.
#[derive(Debug)]
struct Processors(#[cfg(target_os = "linux")] rustix::thread::CpuSet);

/// A thread, as far as it can be told where to run.
#[derive(Debug)]
struct Place {
    #[cfg(target_os = "linux")]
    thread: rustix::thread::Pid,
    #[cfg(target_os = "linux")]
    processors: rustix::thread::CpuSet,
}

#[cfg(target_os = "linux")]
impl Processors {
    /// `None` if there is one.
    fn of_this_thread() -> Option<Self> {
        let allowed = rustix::thread::sched_getaffinity(None).ok()?;
        (allowed.count() > 1).then_some(Self(allowed))
    }
}

#[cfg(target_os = "linux")]
impl Place {
    fn of_this_thread(Processors(processors): Processors) -> Self {
        let thread = rustix::thread::gettid();
        Self { thread, processors }
    }

    /// Has the thread run on any other processor than that of whoever asks. False if there is none.
    fn is_elsewhere(&self) -> bool {
        let mut others = self.processors;
        others.unset(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(Some(self.thread), &others).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
impl Processors {
    fn of_this_thread() -> Option<Self> {
        let processors = thread::available_parallelism();
        processors
            .is_ok_and(|processors| processors.get() > 1)
            .then_some(Self())
    }
}

#[cfg(not(target_os = "linux"))]
impl Place {
    fn of_this_thread(Processors(): Processors) -> Self {
        Self {}
    }

    fn is_elsewhere(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;

    use super::*;

    /// Whoever wants to know says where to.
    type Asked = Sender<Option<String>>;

    #[test]
    fn what_is_given_away_is_done_by_the_thread() {
        let elsewhere = Elsewhere::new("elsewhere", 1, |asked: Asked| {
            let name = thread::current().name().map(str::to_owned);
            asked.send(name).expect("somebody asks");
        });
        if Processors::of_this_thread().is_none() {
            let (asked, _) = std::sync::mpsc::channel();
            elsewhere
                .give(asked)
                .expect_err("there is no other processor");
            return;
        }
        // As it is started, and when it is there.
        for _ in 0..2 {
            let (asked, answers) = std::sync::mpsc::channel();
            elsewhere.give(asked).expect("nothing else waits");
            assert_eq!(answers.recv(), Ok(Some("elsewhere".to_owned())));
        }
    }
}
