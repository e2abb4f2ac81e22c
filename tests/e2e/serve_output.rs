//! The printed and emitted content of scripts in `callgate serve`, in the answer and beside it.

use callgate_tests::Workbench;
use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::serve_client::{ERAS, NEWEST, User, connect};

#[tokio::test]
async fn emitted_content_follows_the_text() {
    for version in ERAS {
        let bench = Workbench::new(json!({}));
        let session = connect(&bench, User::new(&version, &[]), &[]).await;
        let script = "mcp.emit({ type: 'image', data: 'YWJj', mimeType: 'image/png' });
            mcp.emit([{ type: 'audio', data: '', mimeType: 'audio/wav' }, 'x'].slice(0, 1));
            mcp.emit({ type: 'resource', resource: { uri: 'a:b', blob: 'YQ==' } });
            mcp.emit({ type: 'resource_link', uri: 'a:b', name: 'n' });
            mcp.emit('said');
            return 'done';";
        let result = session.call("run_script", json!({ "code": script })).await;
        let content = serde_json::to_value(&result.content).expect("JSON");
        assert_eq!(
            content,
            json!([
                { "type": "text", "text": "done\n" },
                { "type": "image", "data": "YWJj", "mimeType": "image/png" },
                { "type": "audio", "data": "", "mimeType": "audio/wav" },
                { "type": "resource", "resource": { "uri": "a:b", "blob": "YQ==" } },
                { "type": "resource_link", "uri": "a:b", "name": "n" },
                { "type": "text", "text": "said" },
            ]),
            "{version}"
        );
    }
}

#[tokio::test]
async fn output_marks_where_blocks_were_emitted() {
    let bench = Workbench::new(json!({}));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    for (script, expected) in [
        (
            "const shot = { type: 'image', data: 'YWJj', mimeType: 'image/png' };
             console.log('login page:'); mcp.emit(shot);
             console.log('after the click:');
             mcp.emit([shot, { type: 'audio', data: '', mimeType: 'audio/wav' }]);",
            "login page:\n[image 1]\nafter the click:\n[image 2]\n[audio 1]\n",
        ),
        (
            "mcp.emit({ type: 'resource', resource: { uri: 'a:b', text: 'x' } });
             mcp.emit('said'); console.log('the log');",
            "[resource 1]\nthe log\n",
        ),
    ] {
        let result = session.call("run_script", json!({ "code": script })).await;
        let content = serde_json::to_value(&result.content).expect("JSON");
        assert_eq!(content[0]["text"], expected, "{script}");
    }
}

#[test]
fn emitted_content_is_in_the_report() {
    let bench = Workbench::new(json!({}));
    let script = "mcp.emit({ type: 'image', data: 'YWJj', mimeType: 'image/png' }); return 1;";
    let emitted = json!([{ "type": "image", "data": "YWJj", "mimeType": "image/png" }]);
    assert_eq!(bench.report(script, &[])["emitted"], emitted);
    let said = bench.run(script, &[]).stderr;
    assert!(
        said.contains("emitted: image, image/png, 3 bytes"),
        "{said}"
    );
}

#[tokio::test]
async fn output_fits_a_client_with_a_known_limit() {
    for version in ERAS {
        let bench = Workbench::new(json!({}));
        let mut user = User::new(&version, &[]);
        user.name = "codex-mcp-client";
        let session = connect(&bench, user, &[]).await;
        let code = "console.log('a'.repeat(40000))";
        for (limits, expected) in [
            (json!({}), 10 << 10),
            (json!({ "outputBytes": 12_000 }), 12_000),
        ] {
            let call = json!({ "code": code, "limits": limits });
            let (_, said) = session.result("run_script", call).await;
            let printed = said.matches('a').count();
            assert!(printed.abs_diff(expected) < 500, "{version}: {printed}");
        }
    }
}

#[tokio::test]
async fn cut_output_can_be_read_in_parts() {
    for version in ERAS {
        let bench = Workbench::new(json!({}));
        let session = connect(&bench, User::new(&version, &[]), &[]).await;
        let script = "console.log('é'.repeat(20000)); console.log('end'); return 7;";
        let (is_error, said) = session
            .result("run_script", json!({ "code": script }))
            .await;
        assert!(!is_error, "{said}");
        let whole = format!("{}\nend\n7", "é".repeat(20_000));
        let run = said.split('"').nth(3).expect("an id");
        let uri = format!("callgate://runs/{run}/output");
        let resources = session.client.list_all_resources().await.expect("a list");
        let listed: Vec<_> = resources.iter().map(|r| (r.uri.as_str(), r.size)).collect();
        assert_eq!(listed, [(uri.as_str(), Some(whole.len() as u64))]);
        let templates = session.client.list_all_resource_templates().await;
        assert_eq!(
            templates.expect("a list")[0].uri_template,
            "callgate://runs/{run}/output"
        );

        let read = |uri: String| {
            let request = ReadResourceRequestParams::new(uri);
            session.client.read_resource(request)
        };
        let contents = read(uri.clone()).await.expect("contents").contents;
        let all = serde_json::to_value(&contents).expect("JSON");
        assert_eq!(all[0]["text"], whole, "{version}");
        let part = json!({ "run": run, "offset": 1, "bytes": 4 });
        let (_, said) = session.result("wait", part).await;
        assert!(said.starts_with("éé[bytes 2 to 6 of "), "{said}");
        let last = json!({ "run": run, "offset": whole.len() - 5 });
        let (_, said) = session.result("wait", last).await;
        assert_eq!(
            said,
            format!(
                "end\n7[bytes {} to {1} of {1}: the end]",
                whole.len() - 5,
                whole.len()
            )
        );

        for missing in [
            "callgate://runs/r-0/output".to_owned(),
            uri.replace("output", "report"),
            "file:///etc/passwd".to_owned(),
        ] {
            let error = read(missing).await.expect_err("there is none");
            let rmcp::ServiceError::McpError(error) = error else {
                panic!("{error}");
            };
            let code = if version == NEWEST { -32602 } else { -32002 };
            assert_eq!(error.code.0, code, "{error:?}");
        }
    }
}

/// Of output that is far over the limit, a model gets a short start and end, and each id once.
#[tokio::test]
async fn output_far_over_the_limit_is_short() {
    let bench = Workbench::new(json!({}));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    for (code, [begin, end]) in [
        (
            "for (let n = 0; n < 30_000; n++) console.log(`row ${n}`)",
            ["row 0\n", "row 29999\n"],
        ),
        ("return 'ö'.repeat(200_000) + 'end'", ["ööö", "öend"]),
    ] {
        let (_, said) = session.result("run_script", json!({ "code": code })).await;
        assert!((4 << 10..5 << 10).contains(&said.len()), "{}", said.len());
        for part in [begin, end, "; print less, or read on from the cut: "] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(said.matches("r-").count(), 1, "{said}");
    }
}

/// Output that was already shown is not read again.
#[tokio::test]
async fn reading_of_cut_output_continues_at_the_cut() {
    let bench = Workbench::new(json!({}));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    for (code, begin) in [
        ("console.log('é'.repeat(20000)); return 7", ""),
        ("return 'x'.repeat(20000)", ""),
        ("console.log('first'); return 'x'.repeat(20000)", "first\n"),
        ("return Array.from({ length: 9000 }, (_, n) => n)", ""),
    ] {
        let (_, said) = session.result("run_script", json!({ "code": code })).await;
        let call = said.split("call wait with ").nth(1).expect("a call");
        let mut call: Value = serde_json::from_str(call).expect("arguments");
        let offset = call["offset"].as_u64().expect("an offset") as usize;
        assert!(offset > 1000, "{said}");
        // The bytes before the offset were shown, and the bytes after it were not.
        call["bytes"] = 20.into();
        let (_, next) = session.result("wait", call.clone()).await;
        let next = next.split("[bytes ").next().expect("a part").to_owned();
        call["bytes"] = offset.into();
        call["offset"] = 0.into();
        let (_, head) = session.result("wait", call).await;
        let head = &head[..offset];
        let shown = head.strip_prefix(begin).expect("the output comes first");
        assert!(said.contains(shown), "{code}: {said}");
        assert!(!said.contains(&format!("{shown}{next}")), "{code}: {said}");
        assert!(said.starts_with(begin), "{code}: {said}");
    }
}
