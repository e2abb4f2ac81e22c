//! Search by meaning: by vectors of tools and of the query, with or without words.

use callgate_catalog::search::{DEPRECATED, Ranked, fuse};

use super::request::{SearchHit, SearchResults};
use super::{Search, Searcher};
use crate::choices::SearchBy;

/// The places of each ranking that are merged.
const DEPTH: usize = 100;
/// The weight of vectors against words: the best of 1, 1.5, 2 and 3 on the tuning queries.
const VECTOR_WEIGHT: f64 = 3.0;

impl Searcher {
    /// Ranks by vectors, and for [`SearchBy::Hybrid`] also by words. If vectors are missing, words
    /// are compared, and a note says so.
    pub(super) async fn by_meaning(
        &self,
        way: SearchBy,
        search: &Search<'_>,
        query: &str,
        limit: usize,
    ) -> SearchResults {
        let Search {
            catalog,
            index,
            request,
            ..
        } = search;
        let accepts = |server: &str| request.is_of(server);
        let depth = DEPTH.max(limit);
        let near = self
            .vectors
            .near(catalog, query, accepts, depth, request.patience)
            .await;
        let near = match near {
            Ok(near) => near,
            Err(reason) => return search.only_by_words(query, limit, &reason),
        };
        let mut found = SearchResults::default();
        if near.missing > 0 {
            found.notes.push(format!(
                "{} of the tools have no vectors yet, so only their words were compared",
                near.missing
            ));
        }
        let by_vectors = near.ranked.iter().filter_map(|(place, cosine)| {
            let tool = catalog.tools().get(*place)?;
            let is_old = tool.definition.is_deprecated();
            let weight = if is_old { DEPRECATED } else { 1.0 };
            Some(Ranked {
                function: &tool.function,
                server: &tool.definition.server,
                score: f64::from(*cosine * weight),
            })
        });
        let mut by_vectors: Vec<Ranked<'_>> = by_vectors.collect();
        by_vectors.sort_by(|a, b| b.score.total_cmp(&a.score));
        let ranked = if way == SearchBy::Vectors && near.missing == 0 {
            by_vectors
        } else {
            let by_words = index.by_words(query, accepts, DEPTH).ranked;
            fuse(&[(1.0, by_words), (VECTOR_WEIGHT, by_vectors)], limit)
        };
        found.hits = ranked.iter().take(limit).map(SearchHit::from).collect();
        // Every tool has a place.
        found.more = index.count(accepts).saturating_sub(found.hits.len());
        found
    }
}
