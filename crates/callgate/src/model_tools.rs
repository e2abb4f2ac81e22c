//! What is the host's own and gets data of scripts: how rules, grants, flows and the
//! ledger know it, as if a server `model` had tools.

use std::sync::{Arc, LazyLock};

use callgate_broker::Consultant;
use callgate_policy::Definition;
use serde_json::json;

/// The functions, which no server's tool is called.
pub(crate) const FUNCTIONS: [&str; 2] = ["model_extract", "model_search"];
/// What stands for the models where a server's name stands, in rules over flows too.
const SERVER: &str = "model";

/// A model that puts values into a form: `mcp.extract`.
pub(crate) static EXTRACTION: LazyLock<Consultant> = LazyLock::new(|| {
    let [function, _] = FUNCTIONS;
    let does = "gives a value and a schema to a small model, which puts the one into the form \
        of the other";
    consultant(function, "extract", "mcp.extract", does)
});

/// A model that picks tools, and the endpoint of embeddings: `mcp.searchTools`.
pub(crate) static SEARCH: LazyLock<Consultant> = LazyLock::new(|| {
    let [_, function] = FUNCTIONS;
    let does = "gives what tools are looked for by to an endpoint of embeddings, or to a small \
        model, which picks among tools";
    consultant(function, "search", "mcp.searchTools", does)
});

/// Leave is bound to what it does: who changes that here, changes what was allowed.
fn consultant(function: &str, tool: &str, name: &str, does: &str) -> Consultant {
    let definition = Definition::of(&json!({
        "name": name,
        "annotations": { "title": does, "version": 1 },
    }));
    Consultant {
        function: function.to_owned(),
        server: SERVER.to_owned(),
        tool: tool.to_owned(),
        definition: Arc::new(definition),
    }
}
