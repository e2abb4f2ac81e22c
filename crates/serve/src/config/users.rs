//! `users` of `serve`: servers and rules by role, and the configuration of one user.

use std::collections::BTreeMap;
use std::time::Duration;

use callgate::config::{Config, Permissions, Section, ToolSettings};
use callgate_text::nearest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::bearer::TOKEN_OF_ONE;

/// `users` of `serve`: servers and rules by role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Users")]
pub struct UsersConfig {
    /// The claim of an access token that holds its user's roles: a name or, with a slash first, a
    /// JSON pointer. Default: `roles`.
    pub claim: String,
    /// The roles by name. Default: none, and every user has all servers.
    pub roles: Option<BTreeMap<String, Role>>,
    /// The roles of users who have none. Default: none.
    pub default: Vec<String>,
    /// Roles by the name of a bearer token. Default: none.
    pub named: BTreeMap<String, Vec<String>>,
    /// Roles by the subject (`sub`) of an access token, besides those in the claim. Default: none.
    pub subjects: BTreeMap<String, Vec<String>>,
    /// Users with a gate at a time. The longest idle gate ends for a new one; without an idle one,
    /// the status is 503. Default: `64`.
    #[serde(rename = "most")]
    pub max: usize,
    /// The life of a user's gate without a request, run or session. Default: `15m`.
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
fn login_flags(user: &str) -> Vec<String> {
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Role {
    /// Servers by their names in this file; `*` for all. Default: none.
    pub servers: Vec<String>,
    /// Rules besides those of the file. One that denies wins over all that allow, also over those
    /// of other roles.
    pub permissions: Permissions,
    /// Settings of tools besides those of the file. A tool that one of them hides is hidden.
    pub tools: ToolSettings,
}

impl UsersConfig {
    /// Checks that the names of servers, roles and tokens are known.
    pub(super) fn check(&self, section: &Section<'_>) {
        let config = section.config();
        let servers = config.servers.iter().map(|server| &server.name);
        let servers: Vec<&String> = servers.chain(&config.disabled).collect();
        for (name, role) in self.roles.iter().flatten() {
            let path = |key: &'static str| ["users", "roles", name.as_str(), key];
            if role.permissions.allow_unmatched {
                let clause = "has \"allowUnmatched\", which stands in the file's \"permissions\"";
                section.mistake(&path("permissions"), clause);
            }
            let named = role.servers.iter().filter(|server| *server != "*");
            for server in named.filter(|server| !servers.contains(server)) {
                let clause = format!(
                    "has the server \"{server}\", which the file does not have; add it, or write \
                     \"*\" for all"
                );
                section.mistake(&path("servers"), &clause);
            }
        }
        self.check_roles(section, &["users", "default"], &self.default);
        for (key, users) in [("named", &self.named), ("subjects", &self.subjects)] {
            for (name, roles) in users {
                self.check_roles(section, &["users", key, name], roles);
            }
        }
        // A token with a mistake has a name, too.
        let mut tokens = section.keys(&["http", "bearer"]);
        tokens.push(TOKEN_OF_ONE);
        for name in self.named.keys() {
            if !tokens.contains(&name.as_str()) {
                let near = nearest(name, tokens.iter().copied());
                let advice = near.map(|near| format!("did you mean \"{near}\"?"));
                let advice = advice.unwrap_or_else(|| "add it there".to_owned());
                let clause = format!("is the name of no token of \"bearer\"; {advice}");
                section.mistake(&["users", "named", name], &clause);
            }
        }
    }

    fn check_roles(&self, section: &Section<'_>, path: &[&str], given: &[String]) {
        for role in given {
            let mut roles = self.roles.iter();
            if !roles.any(|roles| roles.contains_key(role)) {
                let clause =
                    format!("has the role \"{role}\", which \"roles\" does not have; add it there");
                section.mistake(path, &clause);
            }
        }
    }

    /// The configuration of one user: the servers and rules of these roles, and logins, kept
    /// definitions and ledger lines under the user's name, so that no other user's are used;
    /// without a name where there is only one user. `None` if the roles give no server. Roles that
    /// the file does not have give nothing; without roles in the file, every user has all servers.
    pub fn config_of<'a>(
        &self,
        user: Option<&str>,
        roles: impl IntoIterator<Item = &'a str>,
        whole: &Config,
    ) -> Option<Config> {
        let mut config = whole.clone();
        if let Some(known) = &self.roles {
            let roles = roles.into_iter();
            let roles: Vec<&Role> = roles.filter_map(|role| known.get(role)).collect();
            let gives = |server: &str| {
                let mut given = roles.iter().flat_map(|role| &role.servers);
                given.any(|name| name == "*" || name == server)
            };
            let names = whole.servers.iter().map(|server| &server.name);
            let names = names.chain(&whole.disabled).filter(|name| !gives(name));
            config.withheld = names.cloned().collect();
            config.servers.retain(|server| gives(&server.name));
            config.disabled.retain(|server| gives(server));
            if config.servers.is_empty() {
                return None;
            }
            for role in roles {
                for rule in role.permissions.rules.iter() {
                    config.permissions.push(rule.clone());
                }
                config.tools.add(&role.tools);
            }
        }
        if let Some(user) = user {
            for oauth in config.logins_mut() {
                oauth.user = Some(user.to_owned());
                // Users see the flags, and not where the configuration is.
                oauth.login_flags = login_flags(user);
            }
        }
        if let Some((_, options)) = &mut config.ledger {
            options.user = user.map(str::to_owned);
        }
        Some(config)
    }
}
