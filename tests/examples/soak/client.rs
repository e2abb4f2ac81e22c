//! A client: what it sends in turn, and what is right as an answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::tally::Tally;
use crate::{Fallible, PASSING};

/// After this, an answer is taken to be lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes a text that only one answer can have.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Which revision a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25, with a session.
    Sessions,
    /// 2026-07-28, without.
    Newest,
}

impl Era {
    /// Half of the clients have each.
    pub fn of(number: usize) -> Self {
        match number % 2 {
            0 => Self::Sessions,
            _ => Self::Newest,
        }
    }

    fn version(self) -> ProtocolVersion {
        match self {
            Self::Sessions => ProtocolVersion::V_2025_11_25,
            Self::Newest => ProtocolVersion::V_2026_07_28,
        }
    }
}

/// What a client announces: nothing but its revision.
struct Announced(Era);

impl ClientHandler for Announced {
    fn get_info(&self) -> ClientConfig {
        let who = Implementation::new("soak", "1");
        let mut config = ClientConfig::new(ClientCapabilities::default(), who);
        config.protocol_version = self.0.version();
        config
    }
}

/// A connected client.
pub struct Client {
    service: RunningService<RoleClient, Announced>,
}

impl Client {
    /// Connects, in this mode.
    ///
    /// # Errors
    ///
    /// That of the handshake.
    pub async fn connect(url: &str, era: Era, mode: &str) -> Fallible<Self> {
        let address = format!("{url}?tool_mode={mode}");
        let config = StreamableHttpClientTransportConfig::with_uri(address);
        let http = reqwest::Client::builder().no_proxy().build()?;
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let lifecycle = match era {
            Era::Sessions => ClientLifecycleMode::Initialize,
            Era::Newest => ClientLifecycleMode::Discover {
                preferred_versions: vec![era.version()],
            },
        };
        let connecting = Announced(era).serve_with_lifecycle(transport, lifecycle);
        let service = connecting.await?;
        Ok(Self { service })
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// If its task panicked.
    pub async fn end(self) -> Fallible<()> {
        self.service.cancel().await?;
        Ok(())
    }

    /// Sends a request a period, until it is told to stop.
    pub async fn work(
        &self,
        number: usize,
        period: Duration,
        tally: &Tally,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut every = tokio::time::interval(period);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for step in number.. {
            tokio::select! {
                _ = every.tick() => (),
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            let (kind, answered) = match step % 8 {
                1 => ("run with calls", self.files(tally).await),
                3 => (
                    "run with calls of passing servers",
                    self.passing(tally).await,
                ),
                5 => ("search", self.searches(tally).await),
                7 => ("list", self.lists(tally).await),
                _ => ("empty run", self.empty(tally).await),
            };
            if let Err(error) = answered {
                tally.wrong(kind, &error.to_string());
            }
        }
    }

    /// A script without a call, whose answer can be no other's.
    async fn empty(&self, tally: &Tally) -> Fallible<()> {
        let own = unique();
        let code = json!({ "code": format!("return '{own}'") });
        let text = self.timed("empty run", tally, "run_script", code).await?;
        expect(&text, text.trim_end() == own)
    }

    /// Five issues, each of which must be filed once, and come back as it was sent.
    async fn files(&self, tally: &Tally) -> Fallible<()> {
        let own = unique();
        let code = format!(
            "const titles = [0, 1, 2, 3, 4].map(n => `{own}.${{n}}`);
             const filed: any[] = await Promise.all(titles.map(title =>
                 mcp.callTool('steady_createIssue', {{ title }})));
             return titles.every((title, n) => filed[n].title === title) ? '{own}' : filed"
        );
        tally.sent(5);
        let text = self
            .timed(
                "run with calls",
                tally,
                "run_script",
                json!({ "code": code }),
            )
            .await?;
        expect(&text, text.trim_end() == own)
    }

    /// Calls that may fail, but only as a call of a server that is away does.
    async fn passing(&self, tally: &Tally) -> Fallible<()> {
        let code = format!(
            "const settled = await Promise.allSettled({}.map(server =>
                 mcp.callTool(`${{server}}_listIssues`, {{}})));
             return settled.map(one => one.status === 'rejected' ? one.reason.name :
                 Array.isArray((one.value as any).issues) ? 'well' : 'wrong').join(' ')",
            json!(PASSING)
        );
        let kind = "run with calls of passing servers";
        let text = self
            .timed(kind, tally, "run_script", json!({ "code": code }))
            .await?;
        // What follows the first line is the report on denied calls.
        let words: Vec<&str> = text.lines().next().unwrap_or_default().split(' ').collect();
        let known = |word: &&str| {
            *word == "well" || ["McpProtocolError", "McpDeniedError", "McpToolError"].contains(word)
        };
        expect(
            &text,
            words.len() == PASSING.len() && words.iter().all(known),
        )?;
        for word in words {
            tally.passed(word);
        }
        Ok(())
    }

    async fn searches(&self, tally: &Tally) -> Fallible<()> {
        let query = json!({ "query": "file an issue" });
        let text = self.timed("search", tally, "search_tools", query).await?;
        expect(&text, text.contains("steady_createIssue"))
    }

    async fn lists(&self, tally: &Tally) -> Fallible<()> {
        let began = Instant::now();
        let tools = tokio::time::timeout(PATIENCE, self.service.list_all_tools()).await??;
        tally.took("list", began.elapsed());
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        let is_right = ["run_script", "wait", "search_tools"]
            .iter()
            .all(|name| names.contains(name));
        expect(&names.join(" "), is_right)
    }

    async fn timed(
        &self,
        kind: &'static str,
        tally: &Tally,
        tool: &str,
        arguments: Value,
    ) -> Fallible<String> {
        let began = Instant::now();
        let text = self.call(tool, arguments).await?;
        tally.took(kind, began.elapsed());
        Ok(text)
    }

    /// A call's text.
    ///
    /// # Errors
    ///
    /// No answer in time, an error of the protocol, or a result that says it is one.
    pub async fn call(&self, tool: &str, arguments: Value) -> Fallible<String> {
        let Value::Object(arguments) = arguments else {
            return Err("arguments are an object".into());
        };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = tokio::time::timeout(PATIENCE, self.service.call_tool(request)).await;
        let result = answer.map_err(|_| "LOST: no answer in a minute")??;
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let text: String = texts.map(|text| text.text.as_str()).collect();
        match result.is_error {
            Some(true) => Err(text.into()),
            _ => Ok(text),
        }
    }

    /// Whether the steady server has each issue that was sent, once.
    ///
    /// # Errors
    ///
    /// What differs.
    pub async fn compare_filed(&self, tally: &Tally) -> Fallible<()> {
        let code = "const { issues } = await mcp.callTool('steady_listIssues', {}) as any;
                    return `${issues.length} ${new Set(issues.map((one: any) => one.title)).size}`";
        let text = self.call("run_script", json!({ "code": code })).await?;
        let sent = tally.all_sent();
        println!(
            "issues sent, there, and different ones there: {sent} {}",
            text.trim_end()
        );
        match text.trim_end() == format!("{sent} {sent}") {
            true => Ok(()),
            false => Err("issues were lost, or filed twice".into()),
        }
    }
}

fn unique() -> String {
    format!("own-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn expect(text: &str, is_right: bool) -> Fallible<()> {
    match is_right {
        true => Ok(()),
        false => Err(format!("a wrong answer: {text:?}").into()),
    }
}
