//! `users` of `serve`: servers and rules by role, and the configuration of one user.

use std::collections::BTreeMap;
use std::time::Duration;

use callgate_policy::{Rules, nearest};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use serde::Deserialize;

use super::tools::{self, ToolSettings};
use super::tree::Tree;
use super::{fields, permissions};

/// `users` of `serve`: servers and rules by role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct UsersConfig {
    /// `claim`: the claim of an access token that holds its user's roles: a name or, if it
    /// begins with a slash, a JSON pointer. Default: `roles`.
    pub claim: String,
    /// `roles`: the roles by name. Default: none, and every user has all that the file has.
    pub roles: Option<BTreeMap<String, Role>>,
    /// `default`: the roles of users who have none.
    pub default: Vec<String>,
    /// `named`: roles by the name of a bearer token.
    pub named: BTreeMap<String, Vec<String>>,
    /// `subjects`: roles by the `sub` of access tokens, besides those in the claim.
    pub subjects: BTreeMap<String, Vec<String>>,
    /// `most`: the most users who have a gate at a time. Default: 64. The gate that has been
    /// idle longest ends for a new one; if none is idle, the new user is refused with status
    /// 503.
    pub most: usize,
    /// `idle`: the time without a request, run or session after which a user's gate ends, with
    /// its connections to servers. Default: 15 minutes.
    pub idle: Duration,
}

impl Default for UsersConfig {
    fn default() -> Self {
        Self {
            claim: "roles".to_owned(),
            roles: None,
            default: Vec::new(),
            named: BTreeMap::new(),
            subjects: BTreeMap::new(),
            most: 64,
            idle: Duration::from_secs(15 * 60),
        }
    }
}

/// The name of the user of this bearer token in logins, in the ledger, and wherever users are
/// kept apart.
pub fn token_user(name: &str) -> String {
    format!("token {name}")
}

/// The name of the user with this subject in an issuer's access tokens. A URL has no space,
/// so no two users have the same name.
pub fn subject_user(issuer: &str, subject: &str) -> String {
    format!("subject {issuer} {subject}")
}

/// The flags of `callgate auth` for the user of this name.
pub(super) fn login_flags(user: &str) -> Vec<String> {
    let (flag, name) = match user.split_once(' ') {
        Some(("token", name)) => ("--user", name),
        Some(("subject", of)) => (
            "--subject",
            of.split_once(' ').map_or(of, |(_, subject)| subject),
        ),
        _ => return Vec::new(),
    };
    vec![flag.to_owned(), name.to_owned()]
}

/// A role of users.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Role {
    /// `servers`: by their names in the file; `*` for all. Default: none.
    #[serde(deserialize_with = "fields::plain_texts")]
    pub servers: Vec<String>,
    /// `permissions`: rules besides those of the file. One that denies wins over
    /// every role's that allows.
    #[serde(deserialize_with = "fields::later")]
    pub permissions: Rules,
    /// `tools`: settings besides those of the file. A tool that one of them hides is hidden,
    /// whatever the others say.
    #[serde(deserialize_with = "fields::later")]
    pub tools: ToolSettings,
}

/// Reads the rules and tools of roles, and checks that the names of servers, roles and tokens
/// are known.
pub(super) fn read<'a>(
    tree: &'a Tree<'_>,
    users: &mut UsersConfig,
    servers: &[&str],
    token_names: impl Iterator<Item = &'a str>,
) {
    let find = |key: &str| tree.find(&["serve", "users", key]);
    for (name, role) in users.roles.iter_mut().flatten() {
        let find = |key: &str| tree.find(&["serve", "users", "roles", name, key]);
        if let Some(section) = find("permissions")
            && permissions::read(tree, section, &mut role.permissions)
        {
            let clause = "has \"allowUnmatched\", which stands in the file's \"permissions\"";
            tree.wrong(section, clause);
        }
        if let Some(section) = find("tools") {
            tools::read(tree, section, &mut role.tools);
        }
        for (text, at) in find("servers").into_iter().flat_map(texts) {
            if text != "*" && !servers.contains(&text) {
                let message = format!(
                    "role \"{name}\" has the server \"{text}\", which the file does not have; add \
                     it, or write \"*\" for all"
                );
                tree.error(at, &message);
            }
        }
    }
    let check_roles = |value| {
        for (role, _) in texts(value) {
            let mut roles = users.roles.iter();
            if !roles.any(|roles| roles.contains_key(role)) {
                let clause =
                    format!("has the role \"{role}\", which \"roles\" does not have; add it there");
                tree.wrong(value, &clause);
            }
        }
    };
    find("default").into_iter().for_each(check_roles);
    for section in [find("named"), find("subjects")].into_iter().flatten() {
        let members = tree.members(section);
        members.iter().for_each(|member| check_roles(&member.value));
    }
    // A token with a mistake has a name, too.
    let bearer = tree.find(&["serve", "http", "bearer"]);
    let bearer = bearer.and_then(Value::as_object);
    let written = bearer.into_iter().flat_map(|bearer| &bearer.properties);
    let written = written.map(|member| member.name.as_str());
    let tokens: Vec<&str> = token_names.chain(written).collect();
    for name in users.named.keys() {
        if !tokens.contains(&name.as_str())
            && let Some(value) = tree.find(&["serve", "users", "named", name])
        {
            let near = nearest(name, tokens.iter().copied());
            let near = near.map(|near| format!("; did you mean \"{near}\"?"));
            let message = format!(
                "\"named\" has \"{name}\", and no token of \"bearer\" has this name{}",
                near.unwrap_or_default()
            );
            tree.error(value.range().start, &message);
        }
    }
}

/// The texts of an array, with their places.
fn texts<'v>(array: &'v Value<'v>) -> Vec<(&'v str, usize)> {
    let elements = array.as_array().map_or(&[][..], |array| &array.elements);
    let texts = elements.iter().filter_map(Value::as_string_lit);
    texts.map(|text| (&*text.value, text.range.start)).collect()
}
