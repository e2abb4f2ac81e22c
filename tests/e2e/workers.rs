//! Which process reads a text, which runs it, and what is said where there is none.

use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::Command;

use callgate::config::{ModelsConfig, SmallModelConfig};
use callgate::{Api, CheckMode, Event, Gate, GateBuilder, RunRequest, Status};
use callgate_tests::{Ran, Workbench, binary};
use expect_test::expect;
use tempfile::TempDir;

use crate::endpoint::{Do, Endpoint};
use crate::serve_client::workers_of;

/// The worker by another name, which can be taken away: none starts from then on.
struct Program {
    _folder: TempDir,
    path: PathBuf,
}

impl Program {
    fn new() -> Self {
        let folder = TempDir::with_prefix("callgate-workers-").expect("a folder");
        let path = folder.path().join("worker");
        std::os::unix::fs::symlink(binary("callgate-worker"), &path).expect("a link");
        Self {
            _folder: folder,
            path,
        }
    }

    fn gate(&self) -> GateBuilder {
        Gate::builder()
            .worker_binary(&self.path)
            .spare_workers(0)
            .check(CheckMode::Off)
    }

    fn take_away(&self) {
        std::fs::remove_file(&self.path).expect("it was there");
    }
}

/// A grant that was given on what was read is for what then runs.
#[tokio::test]
async fn what_was_read_for_a_preview_is_what_runs() {
    let program = Program::new();
    let gate = program.gate().build().await.expect("a gate");
    let request = RunRequest::new("return 6 * 7");
    let preview = gate.preview(request.clone()).await;
    assert_eq!(preview.expect("a preview").tools.len(), 0);
    // What was read is looked at as often as anybody wants.
    let preview = gate.preview(request.clone()).await;
    assert_eq!(preview.expect("a preview").tools.len(), 0);
    program.take_away();
    let report = gate.run(request.clone()).await;
    assert_eq!(report.status, Status::Completed, "{report}");
    // It runs once.
    let report = gate.run(request).await;
    assert_eq!(report.status, Status::Failed, "{report}");
}

/// Nothing of the script has run by then, so it is read anew.
#[tokio::test]
async fn a_worker_that_ends_before_the_run_takes_no_run_with_it() {
    let program = Program::new();
    let gate = program.gate().build().await.expect("a gate");
    let request = RunRequest::new("return 6 * 7");
    gate.preview(request.clone()).await.expect("a preview");
    let workers = workers_of(std::process::id());
    let [worker] = &workers[..] else {
        panic!("one has read it: {workers:?}");
    };
    let fd = worker.get_ref().as_raw_fd();
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a system call with numbers, of a process that the descriptor stands for.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, nothing, 0) };
    assert_eq!(sent, 0);
    drop(worker.readable().await.expect("its end"));
    let report = gate.run(request).await;
    assert_eq!(report.status, Status::Completed, "{report}");
}

/// No other programs are looked for, and none by the `PATH`.
#[test]
fn the_worker_of_the_command_line_lies_beside_it() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = folder.path().join("callgate");
    std::fs::hard_link(binary("callgate"), &program).expect("a link");
    let bench = Workbench::empty();
    let script = bench.write("script.ts", "console.log('ran')");
    let run = || {
        let mut command = Command::new(&program);
        command.arg("run").arg(&script).current_dir(bench.path());
        Ran::from(command.output().expect("it starts"))
    };
    // Without one, the program is its own worker.
    let ran = run();
    assert_eq!(ran.code, 0, "{ran:#?}");
    std::os::unix::fs::symlink("/bin/false", folder.path().join("callgate-worker"))
        .expect("a link");
    let ran = run();
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("the worker"), "{ran:#?}");
}

/// What is not in a worker's memory is of no use to a script that breaks out of V8.
#[test]
fn the_worker_program_has_no_code_for_http_tls_and_mcp() {
    let has = |program: &str, crate_name: &str| {
        let code = std::fs::read(binary(program)).expect("a program");
        memchr::memmem::find(&code, crate_name.as_bytes()).is_some()
    };
    for crate_name in ["/rmcp-", "/reqwest-", "/hyper-", "/rustls-", "/aws-lc-"] {
        assert!(has("callgate", crate_name), "{crate_name}");
        assert!(!has("callgate-worker", crate_name), "{crate_name}");
    }
}

/// What is wrong with the host's processes is not for a script, and no fault of its type.
#[tokio::test]
async fn a_type_that_no_process_reads_is_none_that_is_refused() {
    let program = Program::new();
    let endpoint = Endpoint::doing([Do::Say("1")]);
    let mut models = ModelsConfig::default();
    models.small = Some(SmallModelConfig::new(Api::OpenAi, &endpoint.url, "small"));
    let gate = program.gate().models(models).build().await.expect("a gate");
    let script = "const extracted = (schema) => mcp.extract('one', schema)
          .catch((error) => `${error.reason}: ${error.message}`);
        const reserved = await extracted('{ \"$serde_json::private::RawValue\": string }');
        console.log('read');
        return [reserved, await extracted('number'), await extracted({ type: 'number' })];";
    let request = RunRequest::new(script).on_event(move |event| {
        if matches!(event, Event::Printed { .. }) {
            program.take_away();
        }
    });
    let report = gate.run(request).await;
    let report = serde_json::to_value(&report).expect("JSON");
    expect![[r#"
        [
          "schema: mcp.extract: the property \"$serde_json::private::RawValue\" has a name that is reserved; give it another",
          "unavailable: mcp.extract: no process could read the type; try again, or give a JSON Schema",
          1
        ]"#]].assert_eq(&format!("{:#}", report["value"]["json"]));
    // No model was asked but with the schema that needs no process.
    assert_eq!(endpoint.prompts().len(), 1);
}
