//! `callgate search`: tools by what they do.

use std::num::NonZeroUsize;
use std::time::Duration;

use callgate::{Detail, Found, Gate, Hit, SearchBy, SearchRequest, ServerState};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::session::Sources;
use crate::{print, session};

/// Flags of `search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What the tool is to do, in words; a part of its name; or, with --by regex,
    /// a regular expression
    pub query: String,

    /// How to look for it [default: the best way that is configured]
    #[arg(long, value_name = "WAY")]
    pub by: Option<Way>,

    /// Only tools of this server
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,

    /// The most tools to print
    #[arg(long, value_name = "N", default_value = "10", value_parser = limit)]
    pub limit: NonZeroUsize,

    /// How much of each tool: name, summary (name and first line), signature
    /// (declarations without comments) or full
    #[arg(long, value_name = "LEVEL", default_value_t = Detail::Summary)]
    pub detail: Detail,

    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// How long the vectors of tools may take, which nobody makes once this process has ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to look for tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Way {
    /// By the words of names, descriptions, parameters and keywords
    Words,
    /// By a regular expression over names, titles and descriptions
    Regex,
    /// By what is meant: needs models.embeddings in the configuration
    Vectors,
    /// By words and by what is meant: needs the same
    Hybrid,
    /// By a model that picks: needs models.small in the configuration
    Model,
}

fn limit(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "write a whole number above zero")
}

/// Prints the tools, the best first; 1 if there are none.
pub async fn execute(config: &Sources, args: SearchArgs) -> anyhow::Result<u8> {
    let mut request = SearchRequest::new(args.query.as_str());
    request.by = match args.by {
        None => SearchBy::Auto,
        Some(Way::Words) => SearchBy::Words,
        Some(Way::Regex) => SearchBy::Regex,
        Some(Way::Vectors) => SearchBy::Vectors,
        Some(Way::Hybrid) => SearchBy::Hybrid,
        Some(Way::Model) => SearchBy::Model,
    };
    request.patience = PATIENCE;
    request.server.clone_from(&args.server);
    request.limit = args.limit.get();
    // Warnings do, which whoever reads the JSON need not see.
    request.tells_of_servers = args.json;
    let search = async |gate: &Gate| match gate.search(&request).await {
        Ok(found) => print_found(gate, &found, &args),
        Err(error) => {
            print::error(&error.to_string());
            Ok(crate::USAGE)
        }
    };
    session::with_tools(config, search).await
}

fn print_found(gate: &Gate, found: &Found, args: &SearchArgs) -> anyhow::Result<u8> {
    if args.json {
        let hits = found.hits.iter().map(|hit| as_json(gate, hit, args.detail));
        let printed = json!({
            "hits": hits.collect::<Vec<Value>>(),
            "searched": found.searched,
            "notes": found.notes,
        });
        print::out(&format!("{}\n", serde_json::to_string_pretty(&printed)?))?;
    } else {
        for note in &found.notes {
            // An endpoint of models may have words in it.
            print::err(&format!("note: {}\n", callgate::indented(note)));
        }
        let server = args.server.as_deref().map(|name| gate.server(name));
        if let Some(Ok(server)) = server
            && server.state == ServerState::Disabled
        {
            let name = &server.name;
            print::err(&format!(
                "note: to use server {name:?}, {}\n",
                session::TO_USE_A_SERVER
            ));
        }
        let texts = found.hits.iter().map(|hit| text(gate, hit, args.detail));
        print::out(&texts.collect::<String>())?;
    }
    if !found.hits.is_empty() {
        return Ok(0);
    }
    let searched = found.searched;
    print::err(&format!("none of {searched} tools fits\n"));
    Ok(1)
}

fn as_json(gate: &Gate, hit: &Hit, detail: Detail) -> Value {
    let mut printed = json!({
        "function": hit.function, "server": hit.server, "score": hit.score,
    });
    if detail != Detail::Name {
        printed["text"] = json!(text(gate, hit, detail));
    }
    printed
}

/// What there is to say of one tool, in whole lines.
fn text(gate: &Gate, hit: &Hit, detail: Detail) -> String {
    gate.declarations(detail, |function| function == hit.function)
}
