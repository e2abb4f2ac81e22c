//! The client under test of the official conformance suite: a host program
//! that connects to the suite's server and calls the tools it finds.
//!
//! The suite hands over the server's URL as the last argument, the scenario's name in
//! `MCP_CONFORMANCE_SCENARIO`, and the other input of the scenario as JSON in
//! `MCP_CONFORMANCE_CONTEXT`. The revision is negotiated, as with any server.

use std::error::Error;
use std::sync::Arc;

use callgate::faces::auth::{Browser, Grant, LoginPage, OAuth, OpenUrl, TokenPlace};
use callgate::faces::{Http, Source, Transport};
use callgate::{CallErrorKind, Gate, Rules, ServerSpec};
use callgate_servers::{Caller, Offers, Refusal, Wanted};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A scenario with a server that lists tools but does not run them.
const LIST_ONLY: &str = "json-schema-ref-no-deref";
/// The client that the suite takes for one with a metadata document.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(host())
}

async fn host() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().ok_or("no URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    let mut oauth = oauth(&scenario, &context);
    if oauth.client_secret.is_some() && oauth.issuer.is_none() {
        oauth.issuer = issuer(&url).await?;
    }
    let transport = Transport::Http(Http {
        url,
        oauth: Some(oauth),
        ..Http::default()
    });
    let mut server = ServerSpec::new("suite", transport);
    server.caller = Arc::new(Agreeing);
    let gate = Gate::builder()
        .server(server)
        .rules(Rules::builder().allow("suite_*").build()?)
        .build()
        .await?;
    let outcome = call_all(&gate, &scenario, &context).await;
    gate.shutdown().await;
    outcome
}

/// The OAuth settings, with the client that the scenario has registered, if any.
fn oauth(scenario: &str, context: &Value) -> OAuth {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    OAuth {
        client_id: text("client_id"),
        issuer: text("issuer"),
        client_secret: text("client_secret").map(Source::text),
        client_metadata_url: Some(CLIENT_METADATA.to_owned()),
        grant: if scenario.starts_with("auth/client-credentials") {
            Grant::ClientCredentials
        } else {
            Grant::AuthorizationCode
        },
        place: TokenPlace::File,
        browser: Some(Browser::new(Arc::new(Follows))),
        ..OAuth::default()
    }
}

/// The issuer with which the suite has registered the client, from the resource metadata.
async fn issuer(url: &str) -> Result<Option<String>, Box<dyn Error>> {
    let place = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let text = reqwest::get(place).await?.text().await?;
    let metadata: Value = serde_json::from_str(&text)?;
    let issuer = metadata["authorization_servers"][0].as_str();
    Ok(issuer.map(str::to_owned))
}

/// Calls each listed tool; tools that must not be called are not listed.
async fn call_all(gate: &Gate, scenario: &str, context: &Value) -> Result<(), Box<dyn Error>> {
    if let Some(server) = gate.unavailable().first() {
        return Err(server.reason.clone().into());
    }
    if scenario == LIST_ONLY {
        return Ok(());
    }
    for tool in gate.tools() {
        let arguments = arguments(&tool.tool, context).to_string();
        let called = gate.call(&tool.function, RawValue::from_string(arguments)?);
        match called.await {
            Ok(_) => {}
            // Some scenarios are about tools that fail.
            Err(error) if matches!(error.kind, CallErrorKind::Tool { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The arguments for a call: from the scenario, else defaults for the tool.
fn arguments(tool: &str, context: &Value) -> Value {
    let named = context["toolCalls"].as_array().into_iter().flatten();
    let mut named = named.filter(|call| call["name"] == tool);
    match (named.next(), tool) {
        (Some(call), _) => call["arguments"].clone(),
        (None, "add_numbers") => json!({ "a": 5, "b": 3 }),
        (None, "valid_tool") => json!({ "region": "us-west1" }),
        (None, _) => json!({}),
    }
}

/// A person who submits every form with its default values.
struct Agreeing;

impl Caller for Agreeing {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = true;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let fields = wanted.params["requestedSchema"]["properties"].as_object();
        let begun = |(name, field): (&String, &Value)| {
            let default = field.get("default")?;
            Some((name.clone(), default.clone()))
        };
        let content: Map<String, Value> = fields.into_iter().flatten().filter_map(begun).collect();
        std::future::ready(Ok(json!({ "action": "accept", "content": content }))).boxed()
    }
}

/// A person who is already logged in at the suite's authorization server, so that the browser is
/// redirected back at once.
struct Follows;

impl OpenUrl for Follows {
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, std::io::Result<()>> {
        let url = page.url.clone();
        async move {
            tokio::spawn(async move { reqwest::Client::new().get(url).send().await.map(drop) });
            Ok(())
        }
        .boxed()
    }
}
