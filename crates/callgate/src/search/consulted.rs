//! A script's search that goes to a model or to an endpoint of embeddings: under the
//! same rules, flows, reviewers and ledger as a call.

use callgate_broker::{Place, Run, Unanswered};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::Found;
use crate::consultants::SEARCH;

/// The run whose script searches, and where in it.
#[derive(Clone, Copy)]
pub(crate) struct Searching<'a> {
    pub(crate) run: &'a Run,
    pub(crate) place: Option<Place>,
}

impl Searching<'_> {
    /// What `rank` finds, for which `query` is given away; or why it may not be.
    pub(super) async fn consult(
        self,
        query: &str,
        rank: BoxFuture<'_, Found>,
    ) -> Result<Found, String> {
        let unwritten = |error: serde_json::Error| error.to_string();
        let input = to_raw_value(&json!({ "query": query })).map_err(unwritten)?;
        let mut found = None;
        let kept = &mut found;
        // The input is written as it would be printed again, so the query is what was looked at.
        let work = move |_text| async move {
            let ranked = rank.await;
            let functions: Vec<&str> = ranked.hits.iter().map(|hit| &*hit.function).collect();
            let answer = to_raw_value(&json!({ "tools": functions, "notes": ranked.notes }));
            *kept = Some(ranked);
            answer.map_err(|error| Unanswered {
                said: error.to_string(),
                read: json!(null),
                error: unwritten(error),
            })
        };
        let consulted = self.run.consult(&SEARCH, &input, self.place, work);
        consulted
            .boxed()
            .await
            .map_err(|error| error.to_string())??;
        found.ok_or_else(|| "nobody was asked".to_owned())
    }
}
