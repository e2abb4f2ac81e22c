//! `operators` of `serve`: those who answer questions and read runs over HTTP.

use std::collections::BTreeMap;

use callgate::config::Section;
use callgate::faces::Source;
use schemars::JsonSchema;
use serde::Deserialize;

use super::bearer::{self, TOKEN_OF_ONE, is_name};
use super::http::HttpConfig;
use super::users::{subject_user, token_user};

/// An operator of `serve --http`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    /// A token of at least 16 characters that no user has, as a text or looked up.
    #[serde(deserialize_with = "bearer::read_one")]
    #[schemars(with = "Source")]
    pub token: Source,
    /// The only users whose questions and runs the operator reaches: names of bearer tokens, or
    /// subjects of access tokens. Default: all.
    #[serde(default)]
    pub approve: Option<Vec<String>>,
}

impl Operator {
    /// The users that the operator is limited to, as records name them.
    pub(crate) fn users(&self, http: &HttpConfig) -> Option<Vec<String>> {
        let names = self.approve.as_ref()?.iter();
        let users = names.filter_map(|name| match &http.oauth {
            _ if http.token_names().any(|token| token == name) => Some(token_user(name)),
            Some(oauth) => Some(subject_user(&oauth.issuer, name)),
            None => None,
        });
        Some(users.collect())
    }
}

/// The users with the name of an operator, as records name them: they are one person.
pub(crate) fn users_named(name: &str, http: &HttpConfig) -> Vec<String> {
    let subject = http.oauth.as_ref();
    let subject = subject.map(|oauth| subject_user(&oauth.issuer, name));
    subject.into_iter().chain([token_user(name)]).collect()
}

/// Checks the names of operators, and of the users that they are limited to.
pub(super) fn check(
    operators: &BTreeMap<String, Operator>,
    http: &HttpConfig,
    section: &Section<'_>,
) {
    let tokens = section.keys(&["http", "bearer"]);
    for (name, operator) in operators {
        if !is_name(name) {
            let clause = "is not a name for an operator; use up to 64 letters, digits and . _ - @";
            section.mistake(&["operators", name], clause);
        }
        for user in operator.approve.iter().flatten() {
            let is_known = user == TOKEN_OF_ONE || tokens.contains(&user.as_str());
            if !is_known && http.oauth.is_none() {
                let clause = format!(
                    "has the user \"{user}\", which is the name of no token of \"bearer\"; add it \
                     there"
                );
                section.mistake(&["operators", name, "approve"], &clause);
            }
        }
    }
}
