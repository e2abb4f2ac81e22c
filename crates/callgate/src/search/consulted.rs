//! A script's search that goes to a model or to an endpoint of embeddings: under the
//! same rules, flows, reviewers and ledger as a call.

use std::sync::Arc;

use callgate_broker::{Place, Run, Unanswered};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::Found;
use crate::model_tools::SEARCH;

/// The run whose script searches, and where in it.
#[derive(Clone, Copy)]
pub(crate) struct Searching<'a> {
    pub(crate) run: &'a Run,
    pub(crate) place: Option<Place>,
}

/// What rules, reviewers and the ledger saw of a search.
#[derive(Deserialize)]
struct Seen {
    query: String,
}

impl Searching<'_> {
    /// What `rank` finds, which gets the `query` as it was looked at and may give that
    /// away; or why it may not be given away.
    pub(super) async fn consult<'a>(
        self,
        query: &str,
        rank: impl FnOnce(String) -> BoxFuture<'a, Found> + Send,
    ) -> Result<Found, String> {
        let unwritten = |error: serde_json::Error| error.to_string();
        let input = to_raw_value(&json!({ "query": query })).map_err(unwritten)?;
        let mut found = None;
        let kept = &mut found;
        let unanswered = |error: serde_json::Error| Unanswered {
            said: error.to_string(),
            read: json!(null),
            error: unwritten(error),
        };
        let work = move |text: Arc<String>| async move {
            let Seen { query } = serde_json::from_str(&text).map_err(unanswered)?;
            let ranked = rank(query).await;
            let functions: Vec<&str> = ranked.hits.iter().map(|hit| &*hit.function).collect();
            let answer = to_raw_value(&json!({ "tools": functions, "notes": ranked.notes }));
            *kept = Some(ranked);
            answer.map_err(unanswered)
        };
        let consulted = self.run.consult(&SEARCH, &input, self.place, work);
        consulted
            .boxed()
            .await
            .map_err(|error| error.to_string())??;
        found.ok_or_else(|| "nobody was asked".to_owned())
    }
}
