//! `callgate search`: finds tools by their purpose.

use std::time::Duration;

use callgate::settings::{Detail, SearchBy};
use callgate::{Gate, SearchHit, SearchRequest, SearchResults, ServerState};
use serde_json::{Value, json};

use crate::args::SearchArgs;
use crate::setup::Sources;
use crate::{print, setup, tools};

/// Time to embed the tools. The vectors are lost at the end of the process.
const VECTOR_TIME: Duration = Duration::from_secs(60);

/// Prints the tools, the best matches first. Returns 1 if no tool matches.
pub async fn execute(config: &Sources, args: SearchArgs) -> anyhow::Result<u8> {
    let mut request = SearchRequest::new(args.query.join(" "));
    request.by = args.by.unwrap_or(SearchBy::Auto);
    request.patience = VECTOR_TIME;
    request.server.clone_from(&args.server);
    request.limit = args.limit.get();
    // Without --json, warnings are printed for them.
    request.tells_of_servers = args.json;
    let search = async |gate: &Gate| match gate.search(&request).await {
        Ok(found) => print_found(gate, &found, &args),
        Err(error) => {
            print::error(&error.to_string());
            Ok(crate::exit::USAGE)
        }
    };
    setup::with_tools(config, args.lists.refresh, search).await
}

fn print_found(gate: &Gate, found: &SearchResults, args: &SearchArgs) -> anyhow::Result<u8> {
    if args.json {
        let hits = found.hits.iter().map(|hit| as_json(gate, hit, args.detail));
        let printed = json!({
            "hits": hits.collect::<Vec<Value>>(),
            "searched": found.searched,
            "notes": found.notes,
        });
        print::json(&printed)?;
    } else {
        for note in &found.notes {
            // A note may contain text of a model endpoint.
            print::note(&callgate_text::indented(note));
        }
        let server = args.server.as_deref().map(|name| gate.server(name));
        if let Some(Ok(server)) = server
            && server.state == ServerState::Disabled
        {
            setup::note_disabled(&server.name);
        }
        print::out(&if args.detail == Detail::Summary {
            let functions = found.hits.iter().map(|hit| hit.function.as_str());
            tools::rows(gate, &functions.collect::<Vec<_>>()).concat()
        } else {
            let texts = found.hits.iter().map(|hit| text(gate, hit, args.detail));
            texts.collect()
        })?;
    }
    if !found.hits.is_empty() {
        return Ok(0);
    }
    let searched = found.searched;
    print::err(&format!("none of {searched} tools matches\n"));
    Ok(1)
}

fn as_json(gate: &Gate, hit: &SearchHit, detail: Detail) -> Value {
    let mut printed = json!({
        "function": hit.function, "server": hit.server, "score": hit.score, "denied": hit.denied,
    });
    if detail != Detail::Name {
        printed["text"] = json!(text(gate, hit, detail));
    }
    printed
}

fn text(gate: &Gate, hit: &SearchHit, detail: Detail) -> String {
    gate.declarations(detail, |function| function == hit.function)
}
