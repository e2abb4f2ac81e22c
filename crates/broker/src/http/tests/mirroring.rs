//! Arguments in headers, from the list to the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate_policy::Definition;
use expect_test::expect;
use futures::FutureExt;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::server::Server;
use super::{Client, called_by_headers, discovered, in_time, result_of};
use crate::caller::NoCaller;
use crate::calls::Call;
use crate::connection::Connection;
use crate::fake::ready;
use crate::handshake::{Opening, shake};
use crate::listed::{Covered, Decided, Listed};
use crate::listing::Listing;
use crate::patience::Patience;
use crate::session::Session;
use callgate_auth::Redact;

const LIMIT: Duration = Duration::from_secs(20);

/// A server that has these lists, one after the other, and whose tools want `wanted`
/// in their header `Mcp-Param-Region`.
async fn serve(lists: Vec<Value>, wanted: &'static str) -> Server {
    let asked = Arc::new(AtomicUsize::new(0));
    let lists = Arc::new(lists);
    Server::start(move |mut request| {
        let (asked, lists) = (Arc::clone(&asked), Arc::clone(&lists));
        async move {
            let method = request.method();
            match method.as_str() {
                "server/discover" => discovered(&mut request, json!({})).await,
                "tools/list" => {
                    let number = asked.fetch_add(1, Ordering::Relaxed).min(lists.len() - 1);
                    let tools = &lists[number];
                    if tools.is_null() {
                        // It is never answered.
                        return std::future::pending().await;
                    }
                    let result = json!({ "resultType": "complete", "tools": tools });
                    result_of(&mut request, "", result).await;
                }
                _ => {
                    let region = request.header("mcp-param-region").to_owned();
                    request.log.note(format!("{method} {region}"));
                    called_by_headers(&mut request, region == wanted).await;
                }
            }
        }
        .boxed()
    })
    .await
}

/// A connection to such a server.
async fn connect(lists: Vec<Value>, wanted: &'static str) -> (Server, Connection) {
    let server = serve(lists, wanted).await;
    let connection = agreed(Client::new(&server)).await;
    (server, connection)
}

/// The connection of a client that has come to an agreement.
pub(super) async fn agreed(client: Client) -> Connection {
    let Client { inbox, link } = client;
    let session = Session::new(
        "s".into(),
        inbox,
        link,
        Arc::new(NoCaller),
        Redact::default(),
    );
    in_time(shake(&session, &Opening::Both, LIMIT))
        .await
        .expect("they agree");
    Connection::new(session, None)
}

/// Has calls made by the list that the server has now.
pub(super) async fn take_list(connection: &Connection) -> Listing {
    let mut listing = in_time(connection.list_tools(LIMIT)).await.expect("a list");
    let specials = std::mem::take(&mut listing.specials);
    connection.session().tools.take(specials, || {});
    listing
}

pub(super) async fn call(connection: &Connection) -> String {
    call_as(connection, None, LIMIT).await
}

/// A call that was decided on by this definition and may take so long.
pub(super) async fn call_as(
    connection: &Connection,
    definition: Option<&Value>,
    limit: Duration,
) -> String {
    let listed = Arc::new(Listed::new(None));
    if let Some(tool) = definition {
        listed.take(ready(vec![tool.clone()]), Covered::default());
    }
    let definition = definition.map(Definition::of);
    let call = Call {
        tool: "t",
        arguments: r#"{"region":"us-west1"}"#,
        caller: Arc::new(NoCaller),
        patience: Patience::exactly(limit),
        decided: definition.as_ref().map(|definition| Decided {
            definition: *definition.hash(),
            listed: Arc::clone(&listed),
        }),
    };
    match in_time(connection.call(&call)).await {
        Ok(result) => result.to_string(),
        Err(failure) => failure.to_string(),
    }
}

/// Tool `t` for a run that knows it by this definition.
fn raw(arguments: &Value) -> Box<RawValue> {
    to_raw_value(arguments).expect("it is JSON")
}

pub(super) fn tool(name: &str, header: Option<&str>) -> Value {
    let mut region = json!({ "type": "string" });
    if let Some(header) = header {
        region["x-mcp-header"] = header.into();
    }
    json!({ "name": name, "inputSchema": { "type": "object", "properties": { "region": region } } })
}

#[tokio::test]
async fn tools_that_cannot_be_called_as_they_say_are_left_out() {
    let list = json!([tool("bad", Some("a b")), tool("t", Some("Region")), { "name": 1 }]);
    let (server, connection) = connect(vec![list], "us-west1").await;
    let listing = take_list(&connection).await;
    let names: Vec<_> = listing.tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, [&json!("t"), &json!(1)]);
    expect![[
        r#"its tool "bad" is dropped: of its x-mcp-header, "a b" cannot be in a header's name"#
    ]]
    .assert_eq(&listing.warnings.join("\n"));
    assert_eq!(
        call(&connection).await,
        r#"{"resultType":"complete","content":[]}"#
    );
    assert_eq!(server.log(), "tools/call us-west1\n");
}

#[tokio::test]
async fn of_tools_of_one_name_the_one_that_was_decided_on_says_its_headers() {
    let (plain, mirrored) = (tool("t", None), tool("t", Some("Region")));
    for list in [[&plain, &mirrored], [&mirrored, &plain]] {
        for (decided, header) in [(&plain, "-"), (&mirrored, "us-west1")] {
            let (server, connection) = connect(vec![json!(list)], header).await;
            take_list(&connection).await;
            assert_eq!(
                call_as(&connection, Some(decided), LIMIT).await,
                r#"{"resultType":"complete","content":[]}"#
            );
            assert_eq!(server.log(), format!("tools/call {header}\n"));
        }
    }
}

#[tokio::test]
async fn a_call_refused_for_its_headers_is_made_again_by_the_new_list() {
    let lists = vec![json!([tool("t", None)]), json!([tool("t", Some("Region"))])];
    let (server, connection) = connect(lists, "us-west1").await;
    take_list(&connection).await;
    let changes = connection.session().watch_changes();
    assert_eq!(
        call(&connection).await,
        r#"{"resultType":"complete","content":[]}"#
    );
    assert_eq!(server.log(), "tools/call -\ntools/call us-west1\n");
    assert_eq!(changes.borrow().tools, 1);
}

/// As when a server passes on what another one has said, to which it did half of the call.
#[tokio::test]
async fn a_call_refused_otherwise_than_by_400_may_have_been_carried_out() {
    for (status, kind) in [
        ("200 OK", "application/json"),
        ("200 OK", "text/event-stream"),
        ("422 Unprocessable Content", "application/json"),
    ] {
        let server = Server::start(move |mut request| {
            async move {
                let method = request.method();
                request.log.note(&method);
                match method.as_str() {
                    "server/discover" => discovered(&mut request, json!({})).await,
                    "tools/list" => {
                        let tools = json!([tool("t", None)]);
                        let result = json!({ "resultType": "complete", "tools": tools });
                        result_of(&mut request, "", result).await;
                    }
                    _ => {
                        let message: Value = serde_json::from_str(&request.body).expect("JSON");
                        let error = json!({ "code": -32020, "message": "HeaderMismatch" });
                        let id = &message["id"];
                        let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                        let body = match kind {
                            "application/json" => body.to_string(),
                            _ => format!("data: {body}\n\n"),
                        };
                        let headers = format!("Content-Type: {kind}\r\n");
                        request.answer(status, &headers, &body).await;
                    }
                }
            }
            .boxed()
        })
        .await;
        let connection = agreed(Client::new(&server)).await;
        take_list(&connection).await;
        let said = call(&connection).await;
        assert_eq!(said, "HeaderMismatch (code -32020)", "{status} {kind}");
        assert_eq!(server.log(), "server/discover\ntools/list\ntools/call\n");
    }
}

#[tokio::test]
async fn a_server_that_is_never_content_is_asked_twice() {
    let lists = vec![json!([tool("t", Some("Region"))])];
    let (server, connection) = connect(lists, "elsewhere").await;
    take_list(&connection).await;
    expect!["HeaderMismatch (code -32020)"].assert_eq(&call(&connection).await);
    assert_eq!(server.log(), "tools/call us-west1\ntools/call us-west1\n");
}

#[tokio::test]
async fn a_tool_that_is_no_longer_there_is_not_called_again() {
    let lists = vec![json!([tool("t", None)]), json!([tool("t", Some(""))])];
    let (server, connection) = connect(lists, "us-west1").await;
    take_list(&connection).await;
    expect!["HeaderMismatch (code -32020)"].assert_eq(&call(&connection).await);
    assert_eq!(server.log(), "tools/call -\n");
}

#[tokio::test]
async fn a_call_is_made_again_only_of_the_tool_that_was_decided_about() {
    let (before, now) = (tool("t", None), tool("t", Some("Region")));
    for (definition, expected, sent) in [
        (
            &before,
            "the server has changed the tool, which is another than the one that was decided \
             about; nothing was done; call it again to have it decided anew",
            "tools/call -\n",
        ),
        (
            &now,
            r#"{"resultType":"complete","content":[]}"#,
            "tools/call -\ntools/call us-west1\n",
        ),
    ] {
        let lists = vec![json!([before]), json!([now])];
        let (server, connection) = connect(lists, "us-west1").await;
        take_list(&connection).await;
        let changes = connection.session().watch_changes();
        assert_eq!(
            call_as(&connection, Some(definition), LIMIT).await,
            expected
        );
        assert_eq!(server.log(), sent);
        assert_eq!(changes.borrow().tools, 1);
    }
}

#[tokio::test]
async fn a_list_that_does_not_come_takes_no_longer_than_the_call_may() {
    let lists = vec![json!([tool("t", None)]), Value::Null];
    let (server, connection) = connect(lists, "us-west1").await;
    take_list(&connection).await;
    let said = call_as(&connection, None, Duration::from_millis(300)).await;
    assert_eq!(said, "no answer within 300 ms");
    assert_eq!(server.log(), "tools/call -\n");
}
