//! Where there is no better way: as the runtime does it. A host that is killed
//! leaves its children behind.

use std::io;
use std::process::{ExitStatus, Stdio};

use crate::{Child, Command, Stream};

/// Starts it. Must be called within a runtime.
pub(crate) fn start(command: &Command) -> io::Result<Child> {
    let mut described = tokio::process::Command::new(&command.program);
    described.args(&command.arguments).kill_on_drop(true);
    #[cfg(unix)]
    described.process_group(0);
    if let Some(environment) = &command.environment {
        described.env_clear();
        described.envs(environment);
    }
    if let Some(folder) = &command.folder {
        described.current_dir(folder);
    }
    let [input, output, error] = command.streams.map(|stream| match stream {
        Stream::Null => Stdio::null(),
        Stream::Piped => Stdio::piped(),
    });
    let mut child = described
        .stdin(input)
        .stdout(output)
        .stderr(error)
        .spawn()?;
    Ok(Child {
        stdin: child.stdin.take(),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        running: Running(child),
    })
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Running(tokio::process::Child);

impl Running {
    pub(crate) fn id(&self) -> Option<u32> {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        // It fails where it has ended, and then waiting says so.
        let _ended = self.0.start_kill();
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}
