//! `mcp.extract`: by an endpoint that answers well, badly, late and never, and
//! by the model of a client.

use std::time::Duration;

use callgate::config::{ModelsConfig, SmallModelConfig};
use callgate::faces::{Api, FlowRules};
use callgate::{Gate, GateBuilder, Rules, RunReport, Status};
use expect_test::expect;
use serde_json::{Value, json};

use crate::endpoint::{Do, Endpoint};
use crate::meaning;

fn builder() -> GateBuilder {
    meaning::builder().rules(
        Rules::builder()
            .allow("ticketing_*")
            .build()
            .expect("rules"),
    )
}

fn models(model: &Endpoint, timeout: Duration) -> ModelsConfig {
    let mut small = SmallModelConfig::new(Api::OpenAi, &model.url, "small");
    small.timeout = timeout;
    let mut models = ModelsConfig::default();
    models.small = Some(small);
    models
}

async fn gate(model: &Endpoint) -> Gate {
    let models = models(model, Duration::from_secs(60));
    builder().models(models).build().await.expect("a gate")
}

/// The report of a completed script. A script that throws an `McpError` returns the error's fields.
async fn run(gate: &Gate, script: &str) -> RunReport {
    let script = format!(
        "try {{ {script} }} catch (error) {{
           if (!(error instanceof McpError)) throw error;
           return [error.name, error.tool, error.reason, error.message, error.problems];
         }}"
    );
    let report = gate.run(script).await;
    assert_eq!(report.status, Status::Completed, "{report}");
    report
}

fn value(report: &RunReport) -> Value {
    let text = serde_json::to_value(report).expect("JSON");
    text["value"]["json"].clone()
}

const SCRIPT: &str = "return await mcp.extract('Order 7, for Ada', '{ id: number; to: string }')";

#[tokio::test]
async fn valid_model_answer_becomes_the_value() {
    let model = Endpoint::doing([Do::Say(r#"{"id": 7, "to": "Ada"}"#)]);
    let gate = gate(&model).await;
    let report = run(&gate, SCRIPT).await;
    assert_eq!(value(&report), json!({ "id": 7, "to": "Ada" }));
    // The extraction is in the ledger, under a name of its own.
    let line = &report.calls[0];
    let names = [&line.function, &line.server, &line.tool];
    assert_eq!(names, ["model_extract", "model", "extract"]);
    assert_eq!(line.line, Some(1));
    assert_eq!(line.outcome, callgate::ledger::Outcome::Ok);
    assert_eq!(line.result_bytes, Some(19));
    // The data stand between two marker lines that cannot occur in the data.
    let prompts = model.prompts();
    let (schema, data) = prompts[0].split_once("\n\nDATA ").expect("data");
    expect![[r#"
        JSON Schema:
        {"type":"object","properties":{"id":{"type":"number"},"to":{"type":"string"}},"required":["id","to"],"additionalProperties":false}"#]]
    .assert_eq(schema);
    let (mark, data) = data.split_once('\n').expect("a mark");
    assert_eq!(data, format!("Order 7, for Ada\nDATA {mark}"));
    assert_eq!(mark.len(), 32);
}

#[tokio::test]
async fn invalid_model_answer_is_repaired_once() {
    let model = Endpoint::doing([
        Do::Say(r#"{"id": "7"}"#),
        Do::Say("```json\n{\"id\": 7, \"to\": \"Ada\"}\n```"),
    ]);
    let gate = gate(&model).await;
    let report = run(&gate, SCRIPT).await;
    assert_eq!(value(&report), json!({ "id": 7, "to": "Ada" }));
    let prompts = model.prompts();
    let repair = prompts[1].strip_prefix(&prompts[0]);
    let repair = repair.expect("the same and more");
    expect![[r#"


        Your last answer does not match the schema:
        - the value: "to" is a required property
        - /id: "7" is not of type "number"

        It was:
        {"id": "7"}

        Answer again with only the JSON value."#]]
    .assert_eq(repair);
}

#[tokio::test]
async fn repeatedly_invalid_answers_fail_the_extraction() {
    let model = Endpoint::doing([Do::Say("I think not"), Do::Say(r#"{"id": 7, "more": 1}"#)]);
    let gate = gate(&model).await;
    let report = run(&gate, SCRIPT).await;
    expect![[r#"
        [
          "McpExtractError",
          "mcp.extract",
          "invalid",
          "mcp.extract: the model's answer does not match the schema: the value: \"to\" is a required property",
          [
            "the value: \"to\" is a required property",
            "the value: Additional properties are not allowed ('more' was unexpected)"
          ]
        ]"#]].assert_eq(&format!("{:#}", value(&report)));
    assert_eq!(model.prompts().len(), 2);
    let callgate::ledger::Outcome::ToolError { message } = &report.calls[0].outcome else {
        panic!("{report}");
    };
    let said = "the model's answer does not match the schema";
    assert!(message.starts_with(said), "{message}");
}

#[tokio::test]
async fn extractions_over_the_limits_are_refused() {
    let model = Endpoint::doing((0..40).map(|_| Do::Say("1")));
    let gate = gate(&model).await;
    let looping = "
        let made = 0;
        try { for (;;) { await mcp.extract([made], 'number'); made++; } }
        catch (error) { return [made, error.reason, error.message]; }";
    expect![[r#"
        [
          5,
          "loop",
          "mcp.extract: 5 extractions with this schema were made, which looks like a loop; extract many at once by giving an array of values and the schema of an array"
        ]"#]].assert_eq(&format!("{:#}", value(&run(&gate, looping).await)));
    let script = "return await mcp.extract('x'.repeat(2 ** 20), 'number')";
    expect![[r#"["McpExtractError","mcp.extract","limit","mcp.extract: over the limit of 1048576 bytes of values of one run; leave out unneeded parts of the value",[]]"#]].assert_eq(&value(&run(&gate, script).await).to_string());
    // No model was asked beyond the limits.
    assert_eq!(model.prompts().len(), 5);
    let many = "
        let made = 0;
        try { for (;;) { await mcp.extract(made, { type: 'number', title: `t${made}` }); made++; } }
        catch (error) { return [made, error.reason, error.message]; }";
    let report = run(&gate, many).await;
    expect![[r#"
        [
          20,
          "limit",
          "mcp.extract: over the limit of 20 extractions of one run; extract many at once by giving an array"
        ]"#]].assert_eq(&format!("{:#}", value(&report)));
    assert_eq!(report.calls.len(), 20);
}

#[tokio::test]
async fn tool_and_flow_rules_apply_to_extractions() {
    let model = Endpoint::doing([Do::Say("1")]);
    let ask = "return await mcp.extract(await ticketing_createIssue({
        title: 'a title that nobody else would ever think of',
    }), 'number')";
    let denied = Rules::builder()
        .allow("ticketing_*")
        .deny("model_extract")
        .build()
        .expect("rules");
    let gate = builder().models(models(&model, Duration::from_secs(60)));
    let gate = gate.rules(denied).build().await.expect("a gate");
    let report = run(&gate, ask).await;
    expect![[r#"["McpDeniedError","mcp.extract",null,"model_extract was not called: denied by rule \"model_extract\" in permissions.deny; to allow it, change that rule",null]"#]].assert_eq(&value(&report).to_string());
    let mut flows = FlowRules::default();
    flows.label_server("ticketing", "private");
    let gate = builder().models(models(&model, Duration::from_secs(60)));
    let gate = gate.flow_rules(flows).build().await.expect("a gate");
    let report = run(&gate, ask).await;
    expect![[r#"["McpDeniedError","mcp.extract",null,"model_extract was not called: needs approval: ticketing_createIssue is labelled \"private\" and model_extract is not: 31 bytes of ticketing.createIssue (call 1) go to model.extract, and there is no one to ask; allow it under flows",null]"#]].assert_eq(&value(&report).to_string());
    assert_eq!(model.prompts().len(), 0);
    let line = serde_json::to_value(&report.calls[1]).expect("JSON");
    let [from, to] = ["from", "to"].map(|end| &line["flows"][0][end]);
    assert_eq!(
        [from, to],
        ["ticketing_createIssue", "model_extract"],
        "{line:#}"
    );
}
