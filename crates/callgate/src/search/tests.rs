//! Notes about servers that are down.

use callgate_catalog::ToolDefinition;
use callgate_servers::{Audience, Status};
use expect_test::expect;
use serde_json::json;

use super::*;

fn down(name: &str) -> ServerState {
    ServerState {
        name: name.to_owned(),
        description: None,
        trusted: false,
        status: Status::Unknown,
        failed: None,
        phase: Phase::Down("it ended; its last words on stderr: a word of its own".into()),
        received: false,
        age: None,
        stale: true,
    }
}

#[test]
fn down_servers_share_a_note() {
    let raw = json!({ "name": "t", "inputSchema": { "type": "object" } });
    let tool = ToolDefinition::parse("a", &raw).expect("a tool");
    let catalog = Catalog::build(vec![tool]);
    let servers = ["a", "b", "c"].map(down);
    let mut request = SearchRequest::new("t");
    let told = |request: &SearchRequest, audience| {
        server_notes(request, &servers, &catalog, audience).join("\n")
    };
    expect![[r#"
        not available, so their tools are missing: "b", "c"
        not available, so their tools are those of their last lists: "a""#]]
    .assert_eq(&told(&request, None));
    expect![[r#"
        not available, so their tools are missing: "b", "c"; only the person who runs Callgate can mend that
        not available, so their tools are those of their last lists: "a"; only the person who runs Callgate can mend that"#]]
    .assert_eq(&told(&request, Some(Audience::Caller)));
    expect![[r#"
        server "a" is not available, so its tools are those of its last list: it ended; its last words on stderr: a word of its own
        server "b" is not available, so its tools are missing: it ended; its last words on stderr: a word of its own
        server "c" is not available, so its tools are missing: it ended; its last words on stderr: a word of its own"#]]
    .assert_eq(&told(&request, Some(Audience::Operator)));
    request.server = Some("b".to_owned());
    expect![[r#"server "b" is not available, so its tools are missing: it ended; its last words on stderr: a word of its own"#]]
        .assert_eq(&told(&request, Some(Audience::Caller)));
    request.tells_of_servers = false;
    assert!(server_notes(&request, &servers, &catalog, None).is_empty());
}
