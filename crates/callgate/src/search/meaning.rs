//! Searching by what is meant: by vectors of tools and of the query, alone or
//! together with words.

use std::sync::Arc;

use callgate_catalog::Catalog;
use callgate_catalog::search::{Ranked, SearchIndex, fuse};

use super::{Found, SearchBy, SearchRequest, Searcher, hits};

/// How many places of each ranking count when two are made one.
const DEPTH: usize = 100;
/// How much the ranking by vectors counts against that by words: of 1, 1.5, 2
/// and 3, what did best on the queries that are tuned on.
const MEANING: f64 = 3.0;

impl Searcher {
    /// What a request means here that leaves the way open.
    pub(super) fn way(&self, asked: SearchBy) -> SearchBy {
        match (asked, self.by) {
            (SearchBy::Auto, SearchBy::Auto) if self.vectors.can_be_made() => SearchBy::Hybrid,
            (SearchBy::Auto, SearchBy::Auto) => SearchBy::Words,
            (SearchBy::Auto, configured) => configured,
            (asked, _) => asked,
        }
    }

    /// Looks by vectors, and by words too if that is the way. Where there are no
    /// vectors, words are what is left, and a note says so.
    pub(super) async fn by_meaning(
        &self,
        way: SearchBy,
        catalog: &Arc<Catalog>,
        index: &SearchIndex,
        request: &SearchRequest,
        query: &str,
        limit: usize,
    ) -> Found {
        let mut found = Found::default();
        let accepts = |server: &str| request.is_of(server);
        let depth = DEPTH.max(limit);
        let near = self
            .vectors
            .near(catalog, query, accepts, depth, request.patience);
        let near = match near.await {
            Ok(near) => near,
            Err(reason) => {
                found
                    .notes
                    .push(format!("only words were compared: {reason}"));
                found.hits = hits(&index.by_words(query, accepts, limit));
                return found;
            }
        };
        if near.missing > 0 {
            found.notes.push(format!(
                "{} of the tools have no vectors yet, so of those only words were compared",
                near.missing
            ));
        }
        let by_vectors = near.ranked.iter().filter_map(|(place, cosine)| {
            let tool = catalog.tools().get(*place)?;
            Some(Ranked {
                function: &tool.function,
                server: &tool.definition.server,
                score: f64::from(*cosine),
            })
        });
        let mut by_vectors: Vec<Ranked<'_>> = by_vectors.collect();
        found.hits = if way == SearchBy::Vectors && near.missing == 0 {
            by_vectors.truncate(limit);
            hits(&by_vectors)
        } else {
            let by_words = index.by_words(query, accepts, DEPTH);
            hits(&fuse(&[(1.0, by_words), (MEANING, by_vectors)], limit))
        };
        found
    }
}
