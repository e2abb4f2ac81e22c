//! The MCP Inspector's command line, a client of other people, lists and calls
//! every tool of `callgate serve` in both eras of the protocol.

use std::process::{Command, Stdio};

use callgate_tests::{Workbench, conformance_suite, demo_logging, demo_ticketing};
use serde_json::{Value, json};

use callgate_tests::served::Served;

const ERAS: [&str; 2] = ["legacy", "modern"];

/// All of Callgate's own tools are shown where no declaration fits the budget.
#[test]
fn inspector_lists_and_calls_code_mode_tools() {
    for era in ERAS {
        let inspector = Inspector::start(era, &["--context-share", "0.0001"]);
        // The rest of a cut output is read by the run's id.
        let code = "console.log('line '.repeat(20000))";
        let cut = inspector.call("run_script", json!({ "code": code }));
        let run = cut.split('"').nth(3);
        let run = run.unwrap_or_else(|| panic!("no run is named: {cut}"));
        let ticketing = json!({ "server": "ticketing" });
        let calls = [
            (
                "wait",
                json!({ "run": run, "offset": 0, "bytes": 9 }),
                "line line",
            ),
            ("cancel_run", json!({ "run": run }), "line line"),
            (
                "search_tools",
                json!({ "query": "file an issue" }),
                "ticketing_createIssue",
            ),
            (
                "get_tool_details",
                json!({ "names": ["ticketing_createIssue"] }),
                "title: string",
            ),
            ("list_servers", json!({}), "ticketing"),
            ("disable_server", ticketing.clone(), "ticketing"),
            ("enable_server", ticketing, "ticketing"),
        ];
        let mut called: Vec<&str> = calls.iter().map(|(tool, ..)| *tool).collect();
        called.push("run_script");
        called.sort_unstable();
        assert_eq!(inspector.tools(), called, "{era}");
        for (tool, arguments, expected) in calls {
            let text = inspector.call(tool, arguments);
            assert!(text.contains(expected), "{era} {tool}: {text}");
        }
    }
}

#[test]
fn inspector_lists_and_calls_native_mode_tools() {
    for era in ERAS {
        let inspector = Inspector::start(era, &["--mode", "native"]);
        let listed = inspector.tools();
        assert!(
            listed.contains(&"ticketing_createIssue".to_owned()),
            "{listed:?}"
        );
        let made = inspector.call("ticketing_createIssue", json!({ "title": "A" }));
        assert!(made.contains("issueId"), "{made}");
    }
}

struct Inspector {
    era: &'static str,
    served: Served,
    bench: Workbench,
}

impl Inspector {
    /// Starts `callgate serve` with two servers, of which `logging` is off at the start.
    fn start(era: &'static str, flags: &[&str]) -> Self {
        let mut logging = demo_logging();
        logging["connect"] = "manual".into();
        let ticketing = demo_ticketing();
        let bench = Workbench::new(json!({ "ticketing": ticketing, "logging": logging }));
        let served = Served::start(&bench, flags);
        Self { era, served, bench }
    }

    /// The names of the tools, in order.
    fn tools(&self) -> Vec<String> {
        let listed = self.run(&["--method", "tools/list"]);
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// The text of an answer that is no error.
    fn call(&self, tool: &str, arguments: Value) -> String {
        let arguments = arguments.to_string();
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            tool,
            "--tool-args-json",
            &arguments,
        ];
        let answer = self.run(&call);
        let failed = answer["result"]["isError"].as_bool() == Some(true);
        assert!(!failed, "{answer}");
        let content = answer["result"]["content"].as_array().expect("content");
        let texts = content.iter().filter_map(|block| block["text"].as_str());
        texts.collect()
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let suite = conformance_suite();
        let bin = suite.join("node_modules/.bin");
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").expect("a PATH")
        );
        let output = Command::new("node")
            .arg(suite.join(
                "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            ))
            .args(["--cli", &self.served.url, "--transport", "http"])
            .args(["--format", "json", "--quiet", "--protocol-era", self.era])
            .args(arguments)
            // The Node.js that was installed with the Inspector, if any.
            .env("PATH", path)
            // The Inspector's own files stay out of the user's home.
            .env("HOME", self.bench.path())
            .stdin(Stdio::null())
            .output()
            .expect("start the Inspector");
        let said = String::from_utf8_lossy(&output.stdout);
        let problems = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} {arguments:?}: {said}{problems}",
            self.era
        );
        serde_json::from_str(&said).expect("JSON")
    }
}
