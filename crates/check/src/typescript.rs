//! The checker that keeps a TypeScript process warm, and starts another where
//! that one is busy.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore};

use crate::diagnostic::{Checked, checked};
use crate::library::Library;
use crate::session::Session;
use crate::{CheckError, Checker, Executable, Script};

/// How long one check may take. It takes some hundredths of a second.
pub const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// How long a check waits for the warm process before it starts one of its own.
const PATIENCE: Duration = Duration::from_millis(50);
/// Processes besides the warm one.
const MAX_OTHERS: usize = 3;
/// Checks after which a process is replaced: whatever it gathers, it does not
/// keep for ever.
const MAX_CHECKS: u32 = 1000;

/// Checks with a native TypeScript. Clones share their processes.
#[derive(Debug, Clone)]
pub struct TypeScript {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    time: Duration,
    library: OnceCell<Library>,
    /// Held while the warm process is made ready.
    starting: Mutex<()>,
    warm: Mutex<Warm>,
    others: Semaphore,
}

#[derive(Debug, Default)]
struct Warm {
    session: Option<Session>,
    checks: u32,
    ended: bool,
}

impl TypeScript {
    /// A checker that runs this executable, and gives up a check after `time`.
    /// Nothing is started yet.
    #[must_use]
    pub fn new(executable: &Executable, time: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                program: executable.path.clone(),
                time,
                library: OnceCell::new(),
                starting: Mutex::default(),
                warm: Mutex::default(),
                others: Semaphore::new(MAX_OTHERS),
            }),
        }
    }
}

impl Checker for TypeScript {
    fn check(&self, script: Script) -> BoxFuture<'_, Result<Checked, CheckError>> {
        let time = self.shared.time;
        async move {
            match tokio::time::timeout(time, self.shared.check(&script)).await {
                Ok(answer) => answer,
                // What hangs is dropped with the check, and so killed.
                Err(_) => Err(CheckError::TimedOut(time)),
            }
        }
        .boxed()
    }

    fn start(&self) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let time = shared.time;
            let _starting = shared.starting.lock().await;
            let mut warm = shared.warm.lock().await;
            // An error comes again with the first check, which tells it.
            drop(tokio::time::timeout(time, shared.warm_up(&mut warm)).await);
        });
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        async move {
            let mut warm = self.shared.warm.lock().await;
            warm.ended = true;
            if let Some(session) = warm.session.take() {
                session.end().await;
            }
        }
        .boxed()
    }
}

impl Shared {
    async fn check(&self, script: &Script) -> Result<Checked, CheckError> {
        // A process that is being made ready is worth waiting for; one that looks
        // at another script may do so for long.
        drop(self.starting.lock().await);
        let reported = match tokio::time::timeout(PATIENCE, self.warm.lock()).await {
            Ok(warm) => self.check_warm(warm, script).await?,
            Err(_) => {
                let _permit = self.others.acquire().await;
                let mut session = self.session().await?;
                let reported = session.check(&script.text, &script.declarations).await;
                session.end().await;
                reported?
            }
        };
        Ok(checked(script, reported))
    }

    async fn check_warm(
        &self,
        mut warm: MutexGuard<'_, Warm>,
        script: &Script,
    ) -> Result<Vec<crate::diagnostic::Reported>, CheckError> {
        let kept = match warm.session.take() {
            Some(session) if warm.checks < MAX_CHECKS => Some(session),
            _ => None,
        };
        if let Some(mut session) = kept {
            // It may have died, for whatever reason, since it was last asked.
            match session.check(&script.text, &script.declarations).await {
                Err(CheckError::Died) => {}
                answer => {
                    warm.checks += 1;
                    return self.keep(&mut warm, session, answer);
                }
            }
        }
        let mut session = self.session().await?;
        let answer = session.check(&script.text, &script.declarations).await;
        warm.checks = 1;
        self.keep(&mut warm, session, answer)
    }

    /// Keeps a session that has answered.
    fn keep<T>(
        &self,
        warm: &mut Warm,
        session: Session,
        answer: Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        if answer.is_ok() && !warm.ended {
            warm.session = Some(session);
        }
        answer
    }

    /// Has the process read the library and look at an empty script.
    async fn warm_up(&self, warm: &mut Warm) -> Result<(), CheckError> {
        if warm.session.as_ref().is_some_and(Session::is_warm) || warm.ended {
            return Ok(());
        }
        let mut session = self.session().await?;
        session.check("export {};\n", "").await?;
        warm.checks = 0;
        warm.session = Some(session);
        Ok(())
    }

    async fn session(&self) -> Result<Session, CheckError> {
        let library = self.library.get_or_try_init(|| self.load()).await?;
        Session::start(&self.program, library).await
    }

    async fn load(&self) -> Result<Library, CheckError> {
        let folder = self.program.parent().unwrap_or(Path::new("/")).to_owned();
        match tokio::task::spawn_blocking(move || Library::load(&folder)).await {
            Ok(library) => library.map_err(CheckError::Library),
            // Loading does not panic, so the runtime is shutting down, and this
            // task with it.
            Err(_) => std::future::pending().await,
        }
    }
}
