//! Calls go with the login that the tools were listed with which they were decided by.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_policy::Definition;
use futures::FutureExt as _;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::lists::Person;
use super::server::Server;
use super::{Client, in_time, result_of};
use crate::caller::NoCaller;
use crate::calls::Call;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fake::ready;
use crate::handshake::{Opening, shake};
use crate::listed::{Change, Covered, Decided, Listed};
use crate::patience::Patience;
use crate::session::Session;
use callgate_auth::Redact;

/// A server whose tool is called as a task, if it has those, and says no more than that it
/// was called.
async fn serve(has_tasks: bool) -> Server {
    Server::start(move |mut request| {
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            match request.method().as_str() {
                "initialize" => {
                    let mut abilities = json!({ "tools": {} });
                    if has_tasks {
                        abilities["tasks"] = json!({ "requests": { "tools": { "call": {} } } });
                    }
                    let result = json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": abilities,
                        "serverInfo": { "name": "s", "version": "1" },
                    });
                    result_of(&mut request, "", result).await;
                }
                "tools/list" => {
                    let tools = json!({ "tools": [tool()] });
                    result_of(&mut request, "", tools).await;
                }
                "tools/call" => {
                    let is_task = message["params"]["task"].is_object();
                    let login = request.header("authorization").to_owned();
                    request.log.note(format!("{login} calls, task: {is_task}"));
                    let error = json!({ "code": 1, "message": "taken" });
                    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                    request.json(&answer.to_string()).await;
                }
                "GET" => request.answer("405 Method Not Allowed", "", "").await,
                _ => request.answer("202 Accepted", "", "").await,
            }
        }
        .boxed()
    })
    .await
}

fn tool() -> Value {
    json!({
        "name": "t",
        "inputSchema": { "type": "object" },
        "execution": { "taskSupport": "required" },
    })
}

#[tokio::test]
async fn a_call_goes_with_the_login_of_the_list_that_it_was_decided_by() {
    for has_tasks in [false, true] {
        let server = serve(has_tasks).await;
        let person = Arc::new(Person(Mutex::new("anna")));
        let Client { inbox, link } = Client::with(&server.url(), Arc::clone(&person) as _);
        let (caller, secrets) = (Arc::new(NoCaller), Redact::default());
        let session = Session::new("s".into(), inbox, link, caller, secrets);
        let limit = Duration::from_secs(20);
        let opening = Opening::Initialize {
            version: ProtocolVersion::V_2025_11_25,
            exact: true,
        };
        let agreed = shake(&session, &opening, limit);
        in_time(agreed).await.expect("they agree");
        let connection = Connection::new(Arc::clone(&session), None);
        let listed = Arc::new(Listed::new(None));
        let list = async || {
            let listing = in_time(connection.list_tools(limit)).await.expect("a list");
            connection.take(listing, &ready(Vec::new()), |ready| {
                listed.take(ready, Covered::default());
            });
        };
        list().await;
        let call = Call {
            tool: "t",
            arguments: "{}",
            caller: Arc::new(NoCaller),
            patience: Patience::exactly(limit),
            decided: Some(Decided {
                definition: *Definition::of(&tool()).hash(),
                listed: Arc::clone(&listed),
            }),
        };
        *person.0.lock().expect("no panic") = "bob";
        let failure = in_time(connection.call(&call))
            .await
            .expect_err("no result");
        assert!(
            matches!(
                failure,
                Failure::Changed {
                    what: Change::Login,
                    sent: false,
                    ..
                }
            ),
            "{failure:?}"
        );
        // Whoever keeps the list hears of it.
        assert_eq!(session.watch_changes().borrow().logins, 1);
        list().await;
        let failure = in_time(connection.call(&call))
            .await
            .expect_err("no result");
        assert_eq!(failure.to_string(), "taken (code 1)");
        let log = server.log();
        let calls: Vec<_> = log.lines().filter(|line| line.contains("calls")).collect();
        assert_eq!(calls, [format!("bob calls, task: {has_tasks}")]);
        session.close().await;
    }
}
