//! What a request for a list of tools asks for.

use axum::http::Uri;

use crate::http::refusal::Refusal;

/// The most tools that a search finds.
pub(super) const MOST: usize = 50;
/// How many it finds where nobody says.
pub(super) const USUAL: usize = 10;
/// Characters of a text of the client's that is shown again.
const SHOWN: usize = 80;

/// A list that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) level: Level,
    /// Of one server alone.
    pub(super) server: Option<String>,
    /// Of what is found alone.
    pub(super) search: Option<Search>,
}

/// How much is said of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Names,
    Summaries,
}

/// What is looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) query: String,
    pub(super) limit: usize,
}

impl Asked {
    /// Reads the query of a request.
    pub(super) fn of(uri: &Uri) -> Result<Self, Refusal> {
        let (mut level, mut server, mut query, mut limit) = (None, None, None, None);
        let given = uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(given.as_bytes()) {
            let slot = match &*name {
                "level" => &mut level,
                "server" => &mut server,
                "query" => &mut query,
                "limit" => &mut limit,
                _ => {
                    let name = shown(&name);
                    return Err(Refusal::bad(format!(
                        "there is no parameter {name:?}; there are level, server, query and limit"
                    )));
                }
            };
            if slot.replace(value.into_owned()).is_some() {
                return Err(Refusal::bad(format!("the request has {name} twice")));
            }
        }
        let level = match level.as_deref() {
            None | Some("summaries") => Level::Summaries,
            Some("names") => Level::Names,
            Some(other) => {
                let other = shown(other);
                return Err(Refusal::bad(format!(
                    "{other:?} is no level; the levels are \"names\" and \"summaries\""
                )));
            }
        };
        let search = match (query, limit) {
            (None, None) => None,
            (None, Some(_)) => {
                let message = "limit goes with query; without a query, all tools are listed";
                return Err(Refusal::bad(message));
            }
            (Some(query), limit) => Some(Search {
                query,
                limit: count(limit.as_deref())?,
            }),
        };
        Ok(Self {
            level,
            server,
            search,
        })
    }
}

fn count(limit: Option<&str>) -> Result<usize, Refusal> {
    let Some(text) = limit else {
        return Ok(USUAL);
    };
    let number = text.parse().ok();
    number
        .filter(|number| (1..=MOST).contains(number))
        .ok_or_else(|| Refusal::bad(format!("limit must be a whole number from 1 to {MOST}")))
}

/// The beginning of a client's own text.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Asked, Refusal> {
        let uri = format!("/v1/tools?{query}").parse();
        Asked::of(&uri.expect("a target"))
    }

    #[test]
    fn lists_that_can_be_asked_for() {
        for (query, level, server, search) in [
            ("", Level::Summaries, None, None),
            ("level=names&server=a%20b", Level::Names, Some("a b"), None),
            ("query=logs", Level::Summaries, None, Some(("logs", USUAL))),
            ("limit=50&query=", Level::Summaries, None, Some(("", MOST))),
        ] {
            let expected = Asked {
                level,
                server: server.map(str::to_owned),
                search: search.map(|(query, limit)| Search {
                    query: query.to_owned(),
                    limit,
                }),
            };
            assert_eq!(asked(query).expect(query), expected, "{query}");
        }
    }

    #[test]
    fn lists_that_cannot() {
        for query in [
            "level=",
            "level=full",
            "level=names&level=names",
            "limit=3",
            "query=a&limit=0",
            "query=a&limit=51",
            "query=a&limit=-1",
            "query=a&limit=99999999999999999999999",
            "tools=all",
            "=",
            "%ff=%ff",
        ] {
            let refused = asked(query).expect_err(query);
            assert_eq!(refused.status(), 400, "{query}");
        }
    }
}
