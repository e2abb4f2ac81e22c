//! `users` of `serve`: servers and rules by role, and the configuration of one user.

use std::collections::BTreeMap;
use std::time::Duration;

use callgate_policy::{Rules, nearest};
use jsonc_parser::ast::Value;
use serde::Deserialize;

use super::serve::TOKEN_OF_ONE;
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
    #[serde(rename = "most")]
    pub max: usize,
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
            max: 64,
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
pub(super) fn read(tree: &Tree<'_>, users: &mut UsersConfig, servers: &[&str]) {
    let wrong = |keys: &[&str], clause: &str| {
        tree.wrong_at(tree.root, &[&["serve", "users"], keys].concat(), clause);
    };
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
        let named = role.servers.iter().filter(|server| *server != "*");
        for server in named.filter(|server| !servers.contains(&server.as_str())) {
            let clause = format!(
                "has the server \"{server}\", which the file does not have; add it, or write \
                 \"*\" for all"
            );
            wrong(&["roles", name, "servers"], &clause);
        }
    }
    let check_roles = |keys: &[&str], given: &[String]| {
        for role in given {
            let mut roles = users.roles.iter();
            if !roles.any(|roles| roles.contains_key(role)) {
                let clause =
                    format!("has the role \"{role}\", which \"roles\" does not have; add it there");
                wrong(keys, &clause);
            }
        }
    };
    check_roles(&["default"], &users.default);
    for (key, users) in [("named", &users.named), ("subjects", &users.subjects)] {
        for (name, roles) in users {
            check_roles(&[key, name], roles);
        }
    }
    // A token with a mistake has a name, too.
    let bearer = tree.find(&["serve", "http", "bearer"]);
    let bearer = bearer.and_then(Value::as_object);
    let tokens = bearer.into_iter().flat_map(|bearer| &bearer.properties);
    let tokens = tokens.map(|member| member.name.as_str());
    let tokens: Vec<&str> = tokens.chain([TOKEN_OF_ONE]).collect();
    for name in users.named.keys() {
        if !tokens.contains(&name.as_str()) {
            let near = nearest(name, tokens.iter().copied());
            let advice = near.map(|near| format!("did you mean \"{near}\"?"));
            let advice = advice.unwrap_or_else(|| "add it there".to_owned());
            let clause = format!("is the name of no token of \"bearer\"; {advice}");
            wrong(&["named", name], &clause);
        }
    }
}
