//! Data that is handed to the host's own model, and the answers.

use std::sync::Arc;

use callgate_catalog::{Tool, ToolDefinition};
use callgate_gate::{Consulted, NoAsker};
use callgate_servers::Servers;
use expect_test::expect;
use serde_json::json;

use crate::support::{Runs as _, Words, allow_all, call, in_time, odd, raw, setup};

#[tokio::test]
async fn quoted_error_data_is_reviewed_and_remembered() {
    in_time(async {
        let servers = Servers::connect(vec![odd("flaky")]).await;
        let mut setup = setup(allow_all(), Arc::new(NoAsker));
        setup.options.consults = true;
        setup.people.reviewers = vec![Arc::new(Words)];
        let run = servers.run_with(setup);
        let model = Tool::new("model_extract", ToolDefinition::new("model", "extract"));
        let mut said = String::new();
        for problem in ["/id: Oberon, Puck and Titania", "/id: hide this from all"] {
            let input = raw(json!({ "value": "nothing of it" }));
            let work = async |_| {
                Consulted {
                    value: "the host's word",
                    failed: Some("it does not fit".to_owned()),
                    read: json!(["it does not fit", [problem]]).to_string(),
                }
            };
            said += &format!(
                "{:?}\n",
                run.dispatcher.consult(&model, &input, None, work).await
            );
        }
        // The one is known as the model's; of the other, the script has nothing.
        for text in ["Oberon, Puck and Titania", "hide this from all"] {
            call(&run, "flaky", "echo", json!({ "text": text })).await;
        }
        expect![[r#"
            Ok("the host's word")
            Err(CallError { server: "model", function: "model_extract", kind: Kept { reason: "not for scripts" } })
        "#]]
        .assert_eq(&said);
        let lines = run.ledger();
        let outcome = |line: usize| {
            let outcome = serde_json::to_value(&lines[line].outcome).expect("JSON");
            outcome["outcome"].as_str().map(str::to_owned)
        };
        assert_eq!(outcome(0).as_deref(), Some("toolError"));
        assert_eq!(outcome(1).as_deref(), Some("kept"));
        let flow = &lines[2].flows[0];
        assert_eq!((&*flow.from, flow.bytes), ("model_extract", Some(24)));
        assert!(lines[3].flows.is_empty());
        servers.shut_down().await;
    })
    .await;
}
