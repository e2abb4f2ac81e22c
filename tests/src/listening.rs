//! Servers of other people's over HTTP.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A server that listens on loopback, killed at the end.
#[derive(Debug)]
pub struct Listening {
    process: Child,
    /// The port on which the server listens.
    pub port: u16,
}

impl Listening {
    /// Starts a server that prints its port to standard error.
    pub fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the server");
        let mut said = BufReader::new(process.stderr.take().expect("a piped stderr")).lines();
        let port = loop {
            let line = said.next().expect("it says its port").expect("UTF-8");
            if let Some(port) = line.strip_prefix("loopback port ") {
                break port.parse().expect("a port number");
            }
        };
        // The pipe must be read on, or the server blocks once it is full.
        thread::spawn(move || said.for_each(drop));
        Self { process, port }
    }

    /// Ends it before its time.
    pub fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}
