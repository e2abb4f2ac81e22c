//! The paths of the binaries and servers that the end-to-end tests and benchmarks run, and
//! a folder with a configuration to run them in.

pub mod host;
pub mod listening;
pub mod model_tasks;
pub mod served;
pub mod stand_in;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use callgate::config::{Effects, TrustStore, is_found_name};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A binary of this workspace, built by `cargo xtask test` beside the tests.
pub fn binary(name: &str) -> PathBuf {
    let path = profile_dir().join(name);
    assert!(
        path.is_file(),
        "{} is not built; run `cargo xtask test`, or `cargo build --workspace --bins --examples` first",
        path.display()
    );
    path
}

/// The folder that `cargo xtask setup --tests` puts other people's servers in.
pub fn real_servers() -> PathBuf {
    installed("CALLGATE_REAL_SERVERS", "real-servers")
}

/// The folder that `cargo xtask setup --tests` puts the conformance suite in.
pub fn conformance_suite() -> PathBuf {
    installed("CALLGATE_CONFORMANCE", "conformance")
}

/// The folder that the variable names, else this folder below `target`.
fn installed(variable: &str, folder: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.unwrap_or_else(|| profile_dir().with_file_name(folder));
    assert!(
        path.is_dir(),
        "{} does not exist; run `cargo xtask setup --tests` first",
        path.display()
    );
    path
}

/// A configuration's entry for one of the servers in Node, by the name of its package.
pub fn node(package: &str, arguments: &[&str]) -> Value {
    let packages = real_servers().join("node/node_modules/@modelcontextprotocol");
    let entry = packages.join(package).join("dist/index.js");
    let mut all = vec![entry.display().to_string()];
    all.extend(arguments.iter().map(ToString::to_string));
    json!({ "command": "node", "args": all })
}

/// A configuration's entry for one of the servers in Python, by the name of its program.
pub fn python(program: &str, arguments: &[&str]) -> Value {
    json!({ "command": real_servers().join("venv/bin").join(program), "args": arguments })
}

/// The servers of a configuration with more than fifty tools, for a folder that has a
/// repository. Beside it is the memory.
pub fn five_servers(folder: &Path) -> Value {
    let mut memory = node("server-memory", &[]);
    memory["env"] = json!({ "MEMORY_FILE_PATH": folder.with_file_name("memory.jsonl") });
    let folder = folder.to_string_lossy();
    json!({
        "everything": node("server-everything", &["stdio"]),
        "fs": node("server-filesystem", &[&folder]),
        "memory": memory,
        "time": python("mcp-server-time", &["--local-timezone", "UTC"]),
        "git": python("mcp-server-git", &["--repository", &folder]),
    })
}

/// Names the executable of TypeScript, where that is not where set-up puts it.
const TYPESCRIPT: &str = "CALLGATE_TYPESCRIPT";

/// The `node_modules` in which set-up installed TypeScript.
pub fn typescript_modules() -> PathBuf {
    let program = std::env::var_os(TYPESCRIPT).map(PathBuf::from);
    // node_modules/@typescript/typescript-…/lib/tsc
    let path = program.as_deref().and_then(|path| path.ancestors().nth(4));
    let path = path.map_or_else(
        || profile_dir().with_file_name("typescript/node_modules"),
        Path::to_owned,
    );
    assert!(
        path.is_dir(),
        "{} does not exist; run `cargo xtask setup` first",
        path.display()
    );
    path
}

/// `target/debug` or its like: test executables lie in its `deps`.
pub fn profile_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("the test executable has a path");
    exe.ancestors()
        .nth(2)
        .expect("the test executable lies in target/PROFILE/deps")
        .to_owned()
}

/// A temporary folder with a `callgate.json`, to run `callgate` in.
pub struct Workbench {
    folder: TempDir,
    cache: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error, without the signs of life of a slow command.
    pub stderr: String,
}

impl Ran {
    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON ({error}): {self:#?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: without_signs_of_life(&String::from_utf8_lossy(&output.stderr)),
        }
    }
}

/// The text without the lines that a command adds on a busy machine.
fn without_signs_of_life(stderr: &str) -> String {
    let lines = stderr.split_inclusive('\n');
    let signs = ["still running", "still starting"];
    let is_sign = |line: &str| signs.iter().any(|sign| line.starts_with(sign));
    lines.filter(|line| !is_sign(line)).collect()
}

impl Workbench {
    /// A folder with a configuration of these servers that allows every call.
    pub fn new(servers: Value) -> Self {
        Self::with_config(json!({ "mcpServers": servers, "permissions": { "allow": ["*"] } }))
    }

    /// A folder with a configuration of the demo servers that allows every call.
    pub fn demo() -> Self {
        Self::new(json!({ "logging": demo_logging(), "ticketing": demo_ticketing() }))
    }

    /// A folder with the demo's ticketing server, where every call needs approval.
    pub fn asking() -> Self {
        Self::with_config(json!({ "mcpServers": { "ticketing": demo_ticketing() } }))
    }

    /// A folder with this configuration.
    pub fn with_config(config: Value) -> Self {
        let bench = Self::empty();
        bench.write("callgate.json", &config.to_string());
        bench
    }

    /// A folder without a configuration.
    pub fn empty() -> Self {
        let bench = Self {
            folder: TempDir::with_prefix("callgate-").expect("a temporary folder"),
            cache: TempDir::with_prefix("callgate-cache-").expect("a temporary folder"),
        };
        // `callgate` itself looks beside its binary, and in the project.
        let beside = profile_dir().with_file_name("typescript");
        if std::env::var_os(TYPESCRIPT).is_some() && !beside.exists() {
            bench.bring_typescript();
        }
        bench
    }

    /// Makes the folder a project that has the TypeScript of set-up.
    pub fn bring_typescript(&self) {
        let modules = self.path().join("node_modules");
        if !modules.exists() {
            std::os::unix::fs::symlink(typescript_modules(), modules).expect("a link");
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that commands have for `XDG_CACHE_HOME`.
    pub fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// Writes a file into the folder. A configuration that commands find there is accepted.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write_unaccepted(name, text);
        if is_found_name(&path) {
            let store = TrustStore::at(self.state().join("callgate/trusted"));
            let accepted = store.accept(&path, &Effects::of(text));
            accepted.expect("a record in the temporary folder");
        }
        path
    }

    /// Writes a file into the folder, as its author would.
    pub fn write_unaccepted(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("write into the temporary folder");
        path
    }

    /// The folder that commands have for `XDG_STATE_HOME`.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// `callgate`, to be run in the folder with an environment of its own and no keyring.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&host::program(), arguments)
    }

    fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env("XDG_CACHE_HOME", self.cache())
            .env("XDG_STATE_HOME", self.state())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null());
        command
    }

    /// The lines about calls in the ledger `calls.jsonl`.
    pub fn ledger(&self) -> Vec<Value> {
        let mut lines = self.ledger_lines();
        lines.retain(|line| line.get("call").is_some());
        lines
    }

    /// All lines of the ledger `calls.jsonl`.
    pub fn ledger_lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join("calls.jsonl")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty());
        let lines = lines.map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }

    /// Runs `callgate` in the folder.
    pub fn callgate(&self, arguments: &[&str]) -> Ran {
        self.command(arguments)
            .output()
            .expect("start callgate")
            .into()
    }

    /// Runs a script with `callgate run - FLAGS`.
    pub fn run(&self, script: &str, flags: &[&str]) -> Ran {
        let mut command = self.command(&[&["run", "-"], flags].concat());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("start callgate");
        let mut stdin = child.stdin.take().expect("a piped stdin");
        let sent = stdin.write_all(script.as_bytes());
        sent.expect("hand over the script");
        drop(stdin);
        child.wait_with_output().expect("wait for callgate").into()
    }

    /// Runs a script and gives the report as JSON.
    pub fn report(&self, script: &str, flags: &[&str]) -> Value {
        let flags: Vec<&str> = flags.iter().copied().chain(["--json"]).collect();
        self.run(script, &flags).json()
    }
}

/// A configuration's entry for the demo's server of issues.
pub fn demo_ticketing() -> Value {
    json!({ "command": binary("callgate-demo-ticketing") })
}

/// A configuration's entry for the demo's server of logs.
pub fn demo_logging() -> Value {
    json!({ "command": binary("callgate-demo-logging") })
}

/// A configuration's entry for a misbehaving server.
pub fn odd(mode: &str) -> Value {
    json!({ "command": binary("callgate-odd-server"), "args": [mode] })
}

/// The processes that a process has started and not waited for.
pub fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
    let lists: String = lists.map(Result::unwrap_or_default).collect();
    lists
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The workers among them.
pub fn workers(process: u32) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"callgate-worker\0")
    };
    children(process).into_iter().filter(is_worker).collect()
}

/// The JSON in each line, and the text behind its arrow.
pub fn cases(text: &str) -> impl Iterator<Item = (Value, &str)> {
    text.trim().lines().map(|case| {
        let (given, expected) = case.trim().split_once(" → ").expect(case);
        (serde_json::from_str(given).expect(case), expected)
    })
}

/// The root of the checkout.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in the checkout")
}
