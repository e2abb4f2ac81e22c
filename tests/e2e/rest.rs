//! `/v1` of `callgate serve --http`: tools and runs for clients that speak no MCP.

use callgate_tests::{Workbench, demo_logging, demo_ticketing};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::serve_http_users::{ALICE, BOB, two_users};
use callgate_tests::served::{Served, http};

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.expect("a text");
        let body = match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
        };
        Self {
            status,
            headers,
            body,
        }
    }

    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    /// The status and the detail of problem details, which agree with each other.
    fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["status"], self.status, "{}", self.body);
        assert_eq!(self.body["type"], "about:blank");
        assert!(self.body["title"].is_string(), "{}", self.body);
        let detail = self.body["detail"].as_str().expect("a detail");
        format!("{} {detail}", self.status)
    }

    fn functions(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().expect("tools").iter();
        tools
            .map(|tool| tool["function"].as_str().expect("a name"))
            .collect()
    }
}

fn at(served: &Served, method: Method, path: &str) -> RequestBuilder {
    http().request(method, format!("http://{}{path}", served.authority()))
}

async fn get(served: &Served, path: &str) -> Answer {
    Answer::to(at(served, Method::GET, path)).await
}

async fn run(served: &Served, body: Value) -> Answer {
    Answer::to(at(served, Method::POST, "/v1/run").json(&body)).await
}

fn demo() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": {
            "ticketing": demo_ticketing(),
            "logging": demo_logging(),
        },
        "permissions": { "allow": ["ticketing_listIssues"], "deny": ["ticketing_createIssue"] },
        "tools": { "logging_getLogs": { "visibility": "hidden" } },
        "serve": { "http": { "maxBody": "2KiB" } },
    }))
}

#[tokio::test]
async fn tools_are_listed_and_found() {
    let bench = demo();
    let served = Served::start(&bench, &[]);
    let all = get(&served, "/v1/tools").await;
    // Hidden tools are absent, and denied tools are marked.
    let functions = ["ticketing_createIssue", "ticketing_listIssues"];
    assert_eq!(all.functions(), functions);
    let rule = "permissions.deny: \"ticketing_createIssue\"";
    let [denied, listed] = [&all.body["tools"][0], &all.body["tools"][1]];
    assert_eq!(denied["denied"], rule);
    assert_eq!(listed.get("denied"), None);
    assert_eq!(listed["server"], "ticketing", "{listed}");
    assert!(listed["tool"].is_string() && listed["summary"].is_string());
    let names = get(&served, "/v1/tools?level=names&server=ticketing").await;
    assert_eq!(names.functions(), functions);
    let members = names.body["tools"][1].as_object().expect("a tool").keys();
    assert!(members.eq(["function", "server"]));
    let none = get(&served, "/v1/tools?server=logging").await;
    assert_eq!(none.body, json!({ "tools": [], "unavailable": [] }));
    let found = get(&served, "/v1/tools?query=list%20issues&limit=1").await;
    assert_eq!(found.functions(), ["ticketing_listIssues"]);
    assert!(found.body["tools"][0]["score"].as_f64() > Some(0.0));
    let found = get(&served, "/v1/tools?query=create%20issue").await;
    // Denied tools come last.
    assert_eq!(found.body["tools"][1]["denied"], rule);
}

#[tokio::test]
async fn tool_request_returns_details_or_an_error() {
    let bench = demo();
    let served = Served::start(&bench, &[]);
    let tool = get(&served, "/v1/tools/ticketing_listIssues").await;
    assert_eq!(tool.status, 200);
    assert_eq!(tool.body["function"], "ticketing_listIssues");
    assert_eq!(tool.body["server"], "ticketing");
    assert_eq!(tool.body["tool"], "listIssues");
    assert_eq!(tool.body["inputSchema"]["type"], "object");
    assert!(tool.body["description"].is_string(), "{}", tool.body);
    let denied = get(&served, "/v1/tools/ticketing_createIssue").await;
    assert!(denied.body["denied"].is_string(), "{}", denied.body);
    let typescript = tool.body["typescript"].as_str().expect("a text");
    assert!(typescript.contains("function ticketing_listIssues("));
    for case in r#"
        ticketing_listIssue → 404 no tool is named "ticketing_listIssue"; did you mean "ticketing_listIssues"?
        logging_getLogs → 404 no tool is named "logging_getLogs"
        ..%2F..%2Fetc → 404 no tool is named "../../etc"
        %ff → 400 the name in the path is not UTF-8"#
        .trim()
        .lines()
    {
        let (name, expected) = case.trim().split_once(" → ").expect(case);
        let answer = get(&served, &format!("/v1/tools/{name}")).await;
        assert_eq!(answer.problem(), expected);
    }
}

#[tokio::test]
async fn scripts_are_run() {
    let bench = demo();
    let served = Served::start(&bench, &[]);
    let code = "console.log('printed'); return typeof await ticketing_listIssues({})";
    let ran = run(&served, json!({ "code": code })).await;
    assert_eq!(ran.status, 200, "{}", ran.body);
    assert_eq!(ran.header("content-type"), "application/json");
    assert_eq!(ran.header("cache-control"), "no-store");
    assert_eq!(ran.body["status"], "completed", "{}", ran.body);
    assert_eq!(ran.body["output"]["text"], "printed\n");
    assert_eq!(ran.body["value"]["json"], "object");
    assert_eq!(ran.body["calls"][0]["function"], "ticketing_listIssues");
    // A run that fails has status 200 as well, for the request succeeded.
    let status = async |body: Value| {
        let ran = run(&served, body).await;
        assert_eq!(ran.status, 200, "{}", ran.body);
        ran.body["status"].as_str().expect("a status").to_owned()
    };
    let throws = json!({ "code": "throw new Error('no')" });
    assert_eq!(status(throws).await, "failed");
    assert_eq!(status(json!({ "code": "let 1" })).await, "failed");
    let long = json!({ "code": "while (true) {}", "limits": { "timeoutMs": 50 } });
    assert_eq!(status(long).await, "limit");
    // The type check does not know tools of other servers.
    let elsewhere = json!({ "code": code, "servers": ["logging"] });
    let ran = run(&served, elsewhere).await;
    assert_eq!(ran.body["status"], "failed", "{}", ran.body);
    assert_eq!(ran.body["error"]["kind"], "types", "{}", ran.body);
}

#[tokio::test]
async fn invalid_requests_get_specific_errors() {
    let bench = demo();
    let served = Served::start(&bench, &[]);
    let post = |body: String, kind: &'static str| {
        let request = at(&served, Method::POST, "/v1/run").body(body);
        Answer::to(request.header("Content-Type", kind))
    };
    let json = "application/json; charset=utf-8";
    for case in r#"
        {"code": → 400 the body is not JSON (line 1, column 8)
        [1] → 400 the body must be a JSON object
        { "servers": ["loging"], "more": 1 } → 400 no script was run: - the value: "code" is a required property - there is no argument "more"; there are code, limits, servers
        { "code": "", "servers": ["loging"] } → 400 no script was run: - no server is named "loging"; did you mean "logging"?; the servers: ticketing, logging
        { "code": "", "limits": { "waitMs": 1 } } → 400 no script was run: - /limits: there is no member "waitMs"; there are timeoutMs, runTimeoutMs, memoryBytes, outputBytes, resultBytes, calls, callsInFlight"#
        .trim()
        .lines()
    {
        let (body, expected) = case.trim().split_once(" → ").expect(case);
        let problem = post(body.to_owned(), json).await.problem();
        assert_eq!(problem.replace('\n', " "), expected);
    }
    let deep = format!("{{\"code\":{}", "[".repeat(1_000));
    let expected = "400 the message is nested deeper than 100 levels";
    assert_eq!(post(deep, json).await.problem(), expected);
    let expected = "415 the body must have the Content-Type application/json";
    let good = json!({ "code": "return 1" }).to_string();
    assert_eq!(post(good, "text/plain").await.problem(), expected);
    let large = json!({ "code": " ".repeat(2 << 10) }).to_string();
    let expected = "413 the body has more than 2 KiB; \"maxBody\" is the limit";
    assert_eq!(post(large, json).await.problem(), expected);
    for (query, expected) in [
        (
            "level=full",
            "level: unknown variant `full`, expected `names` or `summaries`",
        ),
        (
            "server=loging",
            "no server is named \"loging\"; did you mean \"logging\"?",
        ),
        (
            "limit=3",
            "limit needs query; without a query, all tools are listed",
        ),
    ] {
        let problem = get(&served, &format!("/v1/tools?{query}")).await.problem();
        assert!(
            problem.starts_with("400 ") && problem.contains(expected),
            "{problem}"
        );
    }
    let answer = get(&served, "/v1/run").await;
    assert_eq!(answer.header("allow"), "POST");
    assert_eq!(
        answer.problem(),
        "405 this path does not support the method; the Allow header lists the supported ones"
    );
    let answer = get(&served, "/v1/nothing").await;
    assert!(answer.problem().starts_with("404 nothing is at this path"));
    let request = at(&served, Method::GET, "/v1/tools").header("Host", "evil.example");
    let answer = Answer::to(request).await;
    assert!(answer.problem().starts_with("403 the Host header names"));
    let request = at(&served, Method::POST, "/v1/run").header("Origin", "https://evil.example");
    let answer = Answer::to(request.json(&json!({ "code": "" }))).await;
    assert!(answer.problem().starts_with("403 pages of this Origin"));
}

#[tokio::test]
async fn users_cannot_use_tools_of_others() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let nobody = get(&served, "/v1/tools").await;
    assert_eq!(nobody.header("www-authenticate"), "Bearer");
    assert!(nobody.problem().starts_with("401 a token is required"));
    let with = |token: &str, path: &str| {
        let request = at(&served, Method::GET, path).bearer_auth(token);
        Answer::to(request)
    };
    let hers = with(ALICE, "/v1/tools").await;
    let his = with(BOB, "/v1/tools").await;
    assert!(hers.functions().contains(&"ticketing_createIssue"));
    assert!(!his.functions().is_empty());
    let is_his = |function: &&str| function.starts_with("logging_");
    assert!(his.functions().iter().all(is_his), "{:?}", his.functions());
    // Her ETag does not match his list.
    let request = at(&served, Method::GET, "/v1/tools").bearer_auth(BOB);
    let request = request.header("If-None-Match", hers.header("etag"));
    assert_eq!(Answer::to(request).await.status, 200);
    let path = "/v1/tools/ticketing_createIssue";
    assert_eq!(with(ALICE, path).await.status, 200);
    assert_eq!(
        with(BOB, path).await.problem(),
        "404 no tool is named \"ticketing_createIssue\""
    );
    assert_eq!(
        with(BOB, "/v1/tools?server=ticketing").await.problem(),
        "400 no server is named \"ticketing\"; the servers: logging"
    );
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    for (token, expected) in [(ALICE, "completed"), (BOB, "failed")] {
        let request = at(&served, Method::POST, "/v1/run").bearer_auth(token);
        let ran = Answer::to(request.json(&json!({ "code": code }))).await;
        assert_eq!(ran.body["status"], expected, "{}", ran.body);
    }
}

/// Every path and method of the document answers as it says, and no other method.
#[tokio::test]
async fn openapi_document_matches_the_answers() {
    let bench = demo();
    let served = Served::start(&bench, &[]);
    let document = get(&served, "/v1/openapi.json").await.body;
    assert_eq!(document["openapi"], "3.1.1");
    assert_eq!(document["security"], Value::Null, "no token is needed");
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.len(), 4);
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    for (path, item) in paths {
        let filled = path.replace("{name}", "ticketing_listIssues");
        for method in &methods {
            let request = at(&served, method.clone(), &filled);
            let answer = Answer::to(request.json(&json!({ "code": "return 1" }))).await;
            let described = &item[method.as_str().to_lowercase()];
            if described.is_null() {
                assert_eq!(answer.status, 405, "{method} {path}");
                let allowed = answer.header("allow").to_lowercase();
                let mut allowed = allowed.split(',').filter(|method| *method != "head");
                assert!(allowed.all(|method| item[method].is_object()), "{path}");
                continue;
            }
            assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
            let content = &described["responses"]["200"]["content"]["application/json"];
            let named = content["schema"]["$ref"].as_str().expect("a schema");
            let schema = document.pointer(named.trim_start_matches('#'));
            let schema = schema.unwrap_or_else(|| panic!("{named} is not there"));
            for member in schema["required"].as_array().expect("members") {
                let member = member.as_str().expect("a name");
                assert!(answer.body.get(member).is_some(), "{path}: {member}");
            }
        }
    }
    let script = &document["components"]["schemas"]["Script"]["properties"];
    assert!(script["limits"]["properties"]["timeoutMs"].is_object());
    assert!(script["limits"]["properties"]["waitMs"].is_null());
}
