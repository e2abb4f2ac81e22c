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
fn server_notes_for_scripts_omit_last_words() {
    let raw = json!({ "name": "t", "inputSchema": { "type": "object" } });
    let tool = ToolDefinition::parse("a", &raw).expect("a tool");
    let catalog = Catalog::build(vec![tool]);
    let servers = ["a", "b"].map(down);
    let request = SearchRequest::new("t");
    let told = |audience| server_notes(&request, &servers, &catalog, audience).join("\n");
    expect![[r#"
        server "a" is not available, so its tools are those of its last list
        server "b" is not available, so its tools are missing"#]]
    .assert_eq(&told(None));
    expect![[r#"
        server "a" is not available, so its tools are those of its last list: it ended; its last words on stderr: a word of its own
        server "b" is not available, so its tools are missing: it ended; its last words on stderr: a word of its own"#]]
    .assert_eq(&told(Some(Audience::Caller)));
    let mut request = request.clone();
    request.tells_of_servers = false;
    assert!(server_notes(&request, &servers, &catalog, None).is_empty());
}
