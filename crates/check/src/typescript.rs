//! The checker: it keeps a TypeScript process warm, and starts a second one if that is busy.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OnceCell, Semaphore};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::confine::Confinement;
use crate::diagnostic::{Checked, checked};
use crate::error::{CheckError, Failure, Unavailable};
use crate::find::Executable;
use crate::library;
use crate::message::Reported;
use crate::script::Script;
use crate::session::Session;
use crate::strictness::{Consequence, is_implicit_any};

/// Time that a check waits for the warm process before it starts its own.
const WARM_WAIT: Duration = Duration::from_millis(500);
/// Time that the warm process is kept without a check.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// Concurrent checks of one checker, each with a process.
const MAX_AT_ONCE: usize = 4;
/// Concurrent checks of all checkers of the host: more than one checker can use, so that no user of
/// a host blocks the others.
const MAX_IN_HOST: usize = 16;
/// Maximum errors of a script whose consequence is examined; further ones stop it.
const MAX_JUDGED: usize = 200;
/// Checks after which a process is replaced, because its memory may grow.
const MAX_CHECKS: u32 = 1000;

static HOST_PERMITS: Semaphore = Semaphore::const_new(MAX_IN_HOST);

/// Checks with a native TypeScript. Clones share their processes.
#[derive(Debug, Clone)]
pub struct TypeScript {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    confinement: Confinement,
    library: OnceCell<Vec<String>>,
    /// Held while the warm process is started in the background.
    starting: Mutex<()>,
    warm: Mutex<Warm>,
    idle_time: Duration,
    permits: Semaphore,
}

#[derive(Debug, Default)]
struct Warm {
    session: Option<Session>,
    checks: u32,
    ended: bool,
    /// Ends the session when it has been idle.
    ending: Option<AbortOnDropHandle<()>>,
}

impl TypeScript {
    /// Starts no process yet.
    pub fn new(executable: &Executable, confinement: Confinement) -> Self {
        Self::with_idle_time(executable, confinement, IDLE_TIME)
    }

    /// [`TypeScript::new`] with the time after which an idle process ends. The next check starts a
    /// new one.
    pub fn with_idle_time(
        executable: &Executable,
        confinement: Confinement,
        idle_time: Duration,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                idle_time,
                program: executable.path.clone(),
                confinement,
                library: OnceCell::new(),
                starting: Mutex::default(),
                warm: Mutex::default(),
                permits: Semaphore::new(MAX_AT_ONCE),
            }),
        }
    }

    /// The type errors of one script.
    pub async fn check(&self, script: Script) -> Result<Checked, CheckError> {
        self.shared.check(&script).await
    }

    /// Starts the warm process in the background. Must be called within a tokio runtime.
    pub fn start(&self) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let _starting = shared.starting.lock().await;
            let mut warm = shared.warm.lock().await;
            // The first check reports the same error.
            if let Ok(session) = shared.ready(&mut warm).await {
                shared.keep(&mut warm, session);
            }
        });
    }

    /// Ends the warm process.
    pub async fn shut_down(&self) {
        let mut warm = self.shared.warm.lock().await;
        warm.ended = true;
        warm.ending = None;
        if let Some(session) = warm.session.take() {
            session.end().await;
        }
    }
}

impl Shared {
    async fn check(self: &Arc<Self>, script: &Script) -> Result<Checked, CheckError> {
        // Checks of one checker wait for each other first, so that they do not take all permits of
        // the host.
        let permits = async { (self.permits.acquire().await, HOST_PERMITS.acquire().await) };
        let permits = timeout(script.time, permits).await;
        let _permits = permits.map_err(|_| Failure::Busy(script.time))?;
        // Without a limit: a second process would start no faster.
        drop(self.starting.lock().await);
        let (warm, mut session) = match timeout(WARM_WAIT, self.warm.lock()).await {
            Ok(mut warm) => {
                let session = self.ready(&mut warm).await?;
                (Some(warm), session)
            }
            Err(_) => (None, self.session().await?),
        };
        let found = stopping_errors(&mut session, script).await;
        match warm {
            Some(mut warm) if found.is_ok() => self.keep(&mut warm, session),
            // A process that failed may still be busy with the script.
            _ => session.end().await,
        }
        Ok(checked(script, found?))
    }

    /// The kept session if it is usable, or a new one.
    async fn ready(&self, warm: &mut Warm) -> Result<Session, Unavailable> {
        if let Some(mut session) = warm.session.take()
            && warm.checks < MAX_CHECKS
            && session.is_alive()
        {
            return Ok(session);
        }
        warm.checks = 0;
        self.session().await
    }

    /// Keeps a session for the next check.
    fn keep(self: &Arc<Self>, warm: &mut Warm, session: Session) {
        warm.checks += 1;
        if !warm.ended {
            warm.session = Some(session);
            let ending = end_when_idle(Arc::downgrade(self), self.idle_time);
            warm.ending = Some(AbortOnDropHandle::new(tokio::spawn(ending)));
        }
    }

    async fn session(&self) -> Result<Session, Unavailable> {
        let folder = self.program.parent().unwrap_or(Path::new("/"));
        let load = async || library::load(folder).map_err(Unavailable::Library);
        let library = self.library.get_or_try_init(load).await?;
        Session::start(&self.program, library, self.confinement).await
    }
}

/// Ends the warm session after this time, unless a check aborts the task.
async fn end_when_idle(shared: Weak<Shared>, time: Duration) {
    tokio::time::sleep(time).await;
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let session = shared.warm.lock().await.session.take();
    if let Some(session) = session {
        session.end().await;
    }
}

/// The errors that stop a script.
async fn stopping_errors(session: &mut Session, script: &Script) -> Result<Vec<Reported>, Failure> {
    let started = Instant::now();
    let text = &script.text;
    let found = session
        .check(text, &script.declarations, script.time)
        .await?;
    // Limited, because each decision may read the whole script and its declarations.
    let mut judged = 0;
    let found = found.into_iter().map(|error| {
        judged += usize::from(!is_implicit_any(error.code));
        let is_judged = judged <= MAX_JUDGED;
        let consequence = is_judged.then(|| Consequence::of(&error, script));
        (error, consequence.unwrap_or(Consequence::Stops))
    });
    let mut found: Vec<(Reported, Consequence)> = found
        .filter(|(_, consequence)| *consequence != Consequence::Passes)
        .collect();
    let depends_on_tools = |it: &(Reported, Consequence)| it.1 == Consequence::StopsIfOfTool;
    if found.iter().any(depends_on_tools) {
        // An error that remains when all tools have the type `any` is not about a tool.
        let time = script.time.saturating_sub(started.elapsed());
        let others = session.check(text, &script.untyped, time).await?;
        let others: HashSet<(u64, u32)> = others.iter().map(|it| (it.pos, it.code)).collect();
        found.retain(|it| !depends_on_tools(it) || !others.contains(&(it.0.pos, it.0.code)));
    }
    Ok(found.into_iter().map(|(error, _)| error).collect())
}
