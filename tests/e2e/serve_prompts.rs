//! Skills as prompts of `callgate serve`, to clients of both eras.

use callgate_tests::{Workbench, odd};
use rmcp::ServiceError;
use rmcp::model::{CacheScope, GetPromptRequestParams};
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, OLDER, Session, User, connect};

const MAIL: &str = "---\nname: sort-mail\ndescription: Sort mail.\nservers: [odd]\n---\n\n# Mail\n\nCall `odd_echo`.\n";
const NOTES: &str = "---\nname: notes\ndescription: Take notes.\n---\nWrite it down.\n";

fn bench() -> Workbench {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    for (folder, text) in [("mail", MAIL), ("notes", NOTES)] {
        std::fs::create_dir(bench.path().join(folder)).expect("a folder");
        bench.write(&format!("{folder}/SKILL.md"), text);
    }
    bench
}

async fn get(session: &Session, request: GetPromptRequestParams) -> Result<Value, String> {
    match session.client.get_prompt(request).await {
        Ok(result) => {
            let mut result = serde_json::to_value(result).expect("JSON");
            result.as_object_mut().map(|it| it.remove("resultType"));
            Ok(result)
        }
        Err(ServiceError::McpError(error)) => Err(format!("{} {}", error.code.0, error.message)),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn skills_are_prompts() {
    let bench = bench();
    for version in [&OLDER[0], &OLDER[1], &NEWEST] {
        let flags = ["--skill", "mail", "--skill", "notes"];
        let session = connect(&bench, User::new(version, &[]), &flags).await;
        let server = session.client.peer_info().expect("a handshake");
        assert!(server.capabilities.prompts.is_some(), "{version}");
        let listed = session.client.list_prompts(None).await.expect("a list");
        let prompts = serde_json::to_value(&listed.prompts).expect("JSON");
        let expected = json!([
            { "name": "sort-mail", "description": "Sort mail." },
            { "name": "notes", "description": "Take notes." },
        ]);
        assert_eq!(prompts, expected, "{version}");
        let is_newest = *version == NEWEST;
        assert_eq!(listed.ttl_ms, is_newest.then_some(300_000), "{version}");
        let scope = is_newest.then_some(CacheScope::Private);
        assert_eq!(listed.cache_scope, scope, "{version}");

        // A prompt keeps the text that its skill had when the gate was made.
        bench.write("mail/SKILL.md", NOTES);
        let mail = get(&session, GetPromptRequestParams::new("sort-mail")).await;
        bench.write("mail/SKILL.md", MAIL);
        let text = "# Mail\n\nCall `odd_echo`.";
        let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
        let expected = json!({ "description": "Sort mail.", "messages": [message] });
        assert_eq!(mail, Ok(expected), "{version}");
    }
}
