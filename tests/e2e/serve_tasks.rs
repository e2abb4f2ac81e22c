//! Runs and calls of `callgate serve` as tasks, for clients that have them.

use rmcp::ServiceError;
use rmcp::model::{
    CallToolResponse, CancelTaskParams, CancelTaskRequest, ClientRequest, GetTaskParams,
    GetTaskRequest, UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, Session, User, can, connect, hanging_and_asked};

fn with_tasks() -> User {
    let mut user = User::new(&NEWEST, &[]);
    user.can = can(json!({
        "elicitation": {},
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    }));
    user
}

impl Session {
    async fn get_task(&self, id: &str) -> Result<Value, ServiceError> {
        let request = GetTaskRequest::new(GetTaskParams::new(id));
        let request = ClientRequest::GetTaskRequest(request);
        let task = self.client.send_request(request).await?;
        Ok(serde_json::to_value(task).expect("JSON"))
    }

    /// The status of a task, and all of it.
    async fn task(&self, id: &str) -> (String, Value) {
        let task = self.get_task(id).await.expect("an answer");
        let status = task["status"].as_str().unwrap_or_default().to_owned();
        (status, task)
    }

    async fn end_task(&self, id: &str) {
        let cancel = CancelTaskRequest::new(CancelTaskParams::new(id));
        let cancel = ClientRequest::CancelTaskRequest(cancel);
        self.client.send_request(cancel).await.expect("an answer");
    }
}

#[tokio::test]
async fn a_client_with_tasks_gets_a_task() {
    let bench = hanging_and_asked();
    let session = connect(&bench, with_tasks(), &[]).await;
    let begin = |code: &str| json!({ "code": code, "limits": { "waitMs": 0 } });
    let script = "return await ticketing_createIssue({ title: 'A', body: 'B' }).then(() => 'made')";
    let CallToolResponse::Task(created) = session.tool("run_script", begin(script)).await else {
        panic!("no task");
    };
    let id = created.task.task_id;
    let key = loop {
        let (status, task) = session.task(&id).await;
        if status == "input_required" {
            let requests = task["inputRequests"].as_object().expect("requests");
            break requests.keys().next().expect("a request").clone();
        }
        assert_eq!(status, "working");
    };
    let yes = json!({ key: { "action": "accept", "content": { "answer": "once" } }, "other": 1 });
    let update = UpdateTaskParams::new(id.clone(), serde_json::from_value(yes).expect("JSON"));
    let update = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(update));
    session
        .client
        .send_request(update)
        .await
        .expect("an answer");
    let task = loop {
        let (status, task) = session.task(&id).await;
        if status == "completed" {
            break task;
        }
    };
    assert_eq!(task["result"]["content"][0]["text"], "made\n", "{task}");

    let CallToolResponse::Task(created) = session
        .tool("run_script", begin("await odd_hang({})"))
        .await
    else {
        panic!("no task");
    };
    let id = created.task.task_id;
    session.end_task(&id).await;
    while session.task(&id).await.0 != "cancelled" {}
    let unknown = session.get_task("r-0").await;
    assert!(matches!(&unknown, Err(ServiceError::McpError(error)) if error.code.0 == -32602));
}
