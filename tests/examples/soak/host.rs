//! The process under test, and what the system says of it.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use callgate_tests::Workbench;

use crate::{Fallible, MARK};

/// `callgate serve --http`, ended with this.
pub struct Host {
    process: Child,
    /// Where MCP is.
    pub url: String,
    said: Option<JoinHandle<String>>,
}

impl Host {
    /// Starts it on a free port of loopback.
    ///
    /// # Errors
    ///
    /// If it does not serve.
    pub fn start(bench: &Workbench) -> Fallible<Self> {
        let mut process = bench
            .command(&["serve", "--http", "127.0.0.1:0"])
            .env("XDG_STATE_HOME", bench.path().join("state"))
            .env("XDG_CACHE_HOME", bench.path().join("cache"))
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = process.stderr.take().ok_or("it has no stderr")?;
        let mut reader = BufReader::new(stderr);
        let mut before = String::new();
        let url = loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                process.wait()?;
                return Err(format!("it does not serve: {before}").into());
            }
            if let Some(url) = line.trim_end().strip_prefix("serving MCP at ") {
                break url.to_owned();
            }
            before += &line;
        };
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            // What is no text any more is of no use.
            let _ended = reader.read_to_string(&mut said);
            said
        });
        Ok(Self {
            process,
            url,
            said: Some(said),
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it has now.
    pub fn sample(&self) -> Sample {
        let pid = self.pid();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or_default()
        };
        let files = fs::read_dir(format!("/proc/{pid}/fd"));
        Sample {
            memory: number("VmRSS:"),
            threads: number("Threads:"),
            files: files.map_or(0, |files| files.count() as u64),
            processes: children(pid).len() as u64,
        }
    }

    /// Asks it to end, as a service manager does; what it said.
    ///
    /// # Errors
    ///
    /// An end other than a clean one.
    pub fn end(&mut self) -> Fallible<String> {
        let pid = i32::try_from(self.pid())?;
        // SAFETY: a system call with numbers; the process is ours and not waited for.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        let status = self.process.wait()?;
        let said = self.said.take().and_then(|said| said.join().ok());
        match status.success() {
            true => Ok(said.unwrap_or_default()),
            false => Err(format!("it ended with {status}: {said:?}").into()),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What a process has at one time.
pub struct Sample {
    /// Resident, in KiB.
    pub memory: u64,
    threads: u64,
    files: u64,
    /// Its children.
    processes: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} MiB, {} threads, {} descriptors, {} processes",
            self.memory as f64 / 1024.0,
            self.threads,
            self.files,
            self.processes
        )
    }
}

/// What could grow, how it is read, and by how much it may go up and down.
type Kind = (&'static str, fn(&Sample) -> u64, u64);

/// Resources that have grown when nothing is asked for any more. While something is,
/// there are as many connections and workers as the machine is slow.
pub fn left(first: &Sample, rest: &Sample) -> Vec<String> {
    let kinds: [Kind; 2] = [
        ("descriptors", |sample| sample.files, 64),
        // The servers, TypeScript and spare workers.
        ("processes", |sample| sample.processes, 16),
    ];
    let more = |(name, of, slack): Kind| {
        let (before, after) = (of(first), of(rest));
        (after > before + slack).then(|| format!("{after} {name} are left, of {before} at first"))
    };
    kinds.into_iter().filter_map(more).collect()
}

/// What has grown between the second and the last tenth of the time.
pub fn growth(samples: &[Sample]) -> Vec<String> {
    let tenth = samples.len() / 10;
    let (early, late) = (
        &samples[tenth..2 * tenth],
        &samples[samples.len() - tenth..],
    );
    let middle = |part: &[Sample], of: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = part.iter().map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let kinds: [Kind; 2] = [
        ("memory (KiB)", |sample| sample.memory, 8 * 1024),
        ("threads", |sample| sample.threads, 8),
    ];
    let mut grown = Vec::new();
    for (name, of, slack) in kinds {
        let (before, after) = (middle(early, of), middle(late, of));
        println!("{name}, median of the second and of the last tenth: {before}, {after}");
        if after > before + before / 10 + slack {
            grown.push(format!("{name} grew from {before} to {after}"));
        }
    }
    grown
}

/// Ends the process of a server of the host at once; whether there was one.
pub fn kill(host: u32, server: &str) -> bool {
    let mark = format!("{MARK}={server}");
    let found = children(host).into_iter().find(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|one| one == mark.as_bytes())
    });
    let Some(pid) = found else { return false };
    // SAFETY: a system call with numbers; the process is a child of the host that we started.
    unsafe { libc::kill(pid, libc::SIGKILL) == 0 }
}

fn children(pid: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let lists: Vec<String> = lists.map(Result::unwrap_or_default).collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}
