//! Servers whose starts are counted.

use std::path::PathBuf;
use std::time::Duration;

use callgate_gate::{Connect, Remembered, ServerSpec, ServerState, Servers, Status, Transport};

use crate::support::{in_time, odd};

/// A server that writes the time to a file with each start, and what else a shell
/// does before it.
pub struct Counted {
    pub folder: tempfile::TempDir,
    pub spec: ServerSpec,
}

impl Counted {
    pub fn new(mode: &str, before: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spec = odd(mode);
        if let Transport::Stdio(stdio) = &mut spec.transport {
            let program = std::mem::replace(&mut stdio.command, "sh".to_owned());
            let script = format!("date +%s%N >> starts; {before} exec \"$0\" \"$@\"");
            let arguments = std::mem::take(&mut stdio.args);
            stdio.args = vec!["-c".to_owned(), script, program];
            stdio.args.extend(arguments);
            stdio.cwd = Some(folder.path().to_owned());
        }
        Self { folder, spec }
    }

    pub fn lazy(mode: &str, idle: Option<Duration>) -> Self {
        let mut counted = Self::new(mode, "");
        counted.spec.connect = Connect::Lazy;
        counted.spec.idle = idle;
        counted
    }

    pub fn starts(&self) -> usize {
        self.started().len()
    }

    /// When it was started each time, since some time.
    pub fn started(&self) -> Vec<Duration> {
        self.times("starts")
    }

    /// The times that are in a file.
    pub fn times(&self, file: &str) -> Vec<Duration> {
        let times = std::fs::read_to_string(self.file(file)).unwrap_or_default();
        let nanos = times.lines().map(|line| line.parse().expect("a number"));
        nanos.map(Duration::from_nanos).collect()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// As one that is known from an earlier time.
    pub async fn remembered(mut self) -> Self {
        let broker = Servers::connect(vec![self.spec.clone()], |_| {}).await;
        let Status::Ready(ready) = state(&broker).status else {
            panic!("it starts");
        };
        broker.shut_down().await;
        std::fs::remove_file(self.file("starts")).expect("it was started");
        self.spec.remembered = Some(Remembered {
            list: ready,
            age: Duration::ZERO,
        });
        self
    }
}

pub fn state(broker: &Servers) -> ServerState {
    broker.list().next().expect("a server")
}

/// Waits until the only server is so.
pub async fn until(broker: &Servers, is: impl Fn(&ServerState) -> bool) -> ServerState {
    in_time(async {
        let mut changes = broker.watch();
        loop {
            changes.mark_unchanged();
            let state = state(broker);
            if is(&state) {
                return state;
            }
            changes.changed().await.expect("the broker is there");
        }
    })
    .await
}
