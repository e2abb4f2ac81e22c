//! The query parameters of a tool list.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;

use crate::http::refusal::HttpRefusal;

/// The limit of tools in a search.
const MAX_HITS: usize = 50;
const DEFAULT_HITS: usize = 10;

/// The query of `GET /v1/tools`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    #[serde(default)]
    pub(super) level: ListLevel,
    /// Only tools of this server.
    pub(super) server: Option<String>,
    /// Only tools that match these words.
    pub(super) query: Option<String>,
    limit: Option<usize>,
}

/// The detail of a list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ListLevel {
    Names,
    #[default]
    Summaries,
}

impl ListQuery {
    /// Reads the query of a request.
    pub(super) fn read(uri: &Uri) -> Result<Self, HttpRefusal> {
        let Query(read) = Query::<Self>::try_from_uri(uri)
            .map_err(|wrong| HttpRefusal::bad(wrong.body_text()))?;
        if read.limit.is_some() && read.query.is_none() {
            let message = "limit needs query; without a query, all tools are listed";
            return Err(HttpRefusal::bad(message));
        }
        if !(1..=MAX_HITS).contains(&read.limit()) {
            let message = format!("limit must be a whole number from 1 to {MAX_HITS}");
            return Err(HttpRefusal::bad(message));
        }
        Ok(read)
    }

    /// The limit of tools in a search.
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_HITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<ListQuery, HttpRefusal> {
        let uri = format!("/v1/tools?{query}").parse();
        ListQuery::read(&uri.expect("a target"))
    }

    #[test]
    fn query_string_is_parsed_and_validated() {
        let names = read("level=names&server=a%20b").expect("a query");
        assert_eq!(
            (names.level, names.server.as_deref()),
            (ListLevel::Names, Some("a b"))
        );
        let search = read("query=logs").expect("a query");
        assert_eq!(
            (search.level, search.limit()),
            (ListLevel::Summaries, DEFAULT_HITS)
        );
        assert_eq!(read("limit=50&query=").expect("a query").limit(), MAX_HITS);
        assert_eq!(read("").expect("a query"), ListQuery::default());
        let wrong = "level=|level=full|level=names&level=names|limit=3|query=a&limit=0|\
                     query=a&limit=51|query=a&limit=-1|tools=all|%ff=%ff";
        for wrong in wrong.split('|') {
            assert_eq!(read(wrong).expect_err(wrong).status(), 400, "{wrong}");
        }
    }
}
