//! `users` of `serve`: who may use what, by role.

use std::collections::BTreeMap;
use std::time::Duration;

use callgate_policy::{Rules, nearest};
use jsonc_parser::ast::{Object, ObjectProp, Value};

use super::error::ConfigErrorKind;
use super::keys::Keys;
use super::reader::{Reader, name_range};
use super::{Config, permissions, tools};
use crate::tool_settings::ToolSettings;

/// Keys of `users`.
const USERS: Keys = Keys {
    ours: &[
        "claim", "roles", "default", "named", "subjects", "most", "idle",
    ],
    others: &[],
};

/// Keys of a role.
const ROLE: Keys = Keys {
    ours: &["servers", "permissions", "tools"],
    others: &[],
};

/// Who may use what.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsersConfig {
    /// `claim`: the claim of an access token that has its owner's roles, a name
    /// or, with a slash before it, a JSON pointer. Default: `roles`.
    pub claim: String,
    /// `roles`: what each role gives. Default: none, and everybody who is let in
    /// has all that the file has.
    pub roles: Option<BTreeMap<String, Role>>,
    /// `default`: the roles of whoever has none.
    pub default: Vec<String>,
    /// `named`: roles by the name of a bearer token.
    pub named: BTreeMap<String, Vec<String>>,
    /// `subjects`: roles by the `sub` of access tokens, besides those in the
    /// claim.
    pub subjects: BTreeMap<String, Vec<String>>,
    /// `most`: how many users may have a gate at a time. Default: 64. The one
    /// that has been idle longest makes room; if none is idle, a further one is
    /// refused with status 503.
    pub most: usize,
    /// `idle`: after how long without a request, run or session a user's gate
    /// ends, with the connections to servers. Default: 15 minutes.
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

/// Under what whoever has the bearer token of this name is known: in logins, in
/// the ledger, and wherever one user's must not be another's.
#[must_use]
pub fn token_user(name: &str) -> String {
    format!("token {name}")
}

/// Under what whoever has an issuer's access tokens with this subject is known. A
/// URL has no space, so no two are the same.
#[must_use]
pub fn subject_user(issuer: &str, subject: &str) -> String {
    format!("subject {issuer} {subject}")
}

/// The flags of `callgate auth` for whoever is known under this.
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

/// What a role gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Role {
    /// `servers`: by their names in the file; `*` for all. Default: none.
    pub servers: Vec<String>,
    /// `permissions`: rules besides those of the file. One that denies wins over
    /// every role's that allows.
    pub permissions: Rules,
    /// `tools`: settings besides those of the file. What one of them hides is
    /// hidden, whatever another says.
    pub tools: ToolSettings,
}

impl Config {
    /// The configuration of one user: the servers and rules of these roles, and
    /// logins, kept definitions and ledger lines under the user's name, so that
    /// no other user's are used; without a name where there is but one user.
    /// `None` if the roles give no server. Roles that
    /// the file does not have give nothing; without any in the file, all users
    /// have all servers.
    #[must_use]
    pub fn for_user<'a>(
        &self,
        user: Option<&str>,
        roles: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let mut config = self.clone();
        if let Some(known) = &self.users.roles {
            let roles = roles.into_iter();
            let roles: Vec<&Role> = roles.filter_map(|role| known.get(role)).collect();
            let gives = |server: &str| {
                let mut given = roles.iter().flat_map(|role| &role.servers);
                given.any(|name| name == "*" || name == server)
            };
            config.servers.retain(|server| gives(&server.name));
            config.disabled.retain(|server| gives(server));
            if config.servers.is_empty() {
                return None;
            }
            for role in roles {
                for rule in role.permissions.iter() {
                    config.permissions.push(rule.clone());
                }
                config.tools.add(&role.tools);
            }
        }
        if let Some(user) = user {
            for oauth in config.logins_mut() {
                oauth.user = Some(user.to_owned());
                // Users read it, who are not told where the configuration is.
                oauth.login_flags = login_flags(user);
            }
        }
        config.ledger.user = user.map(str::to_owned);
        Some(config)
    }
}

/// Reads `users`. The names of servers and tokens are looked at when the whole file was read:
/// see [`check`].
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, of: &str) -> UsersConfig {
    let mut users = UsersConfig::default();
    let Some(object) = reader.object(property, of) else {
        return users;
    };
    let what = format!("\"users\" in {of}");
    let what = what.as_str();
    let properties = reader.properties(object, what, &USERS);
    for property in &properties {
        match property.name.as_str() {
            "claim" => {
                if let Some(claim) = reader.string(property, what) {
                    users.claim = claim.to_owned();
                }
            }
            "roles" => users.roles = Some(roles(reader, property, what)),
            "most" => {
                if let Some(most) = reader.count(property, what) {
                    users.most = usize::try_from(most).unwrap_or(usize::MAX);
                }
            }
            "idle" => {
                if let Some(idle) = reader.duration(property, what) {
                    users.idle = idle;
                }
            }
            _ => {}
        }
    }
    // Once the roles are known.
    let known = users.roles.clone().unwrap_or_default();
    for property in &properties {
        match property.name.as_str() {
            "default" => users.default = named_roles(reader, property, what, &known),
            "named" => users.named = assigned(reader, property, what, &known),
            "subjects" => users.subjects = assigned(reader, property, what, &known),
            _ => {}
        }
    }
    users
}

/// Looks whether the roles' servers and the owners of tokens are there. `users` is the
/// section. Of tokens with mistakes, not even the names are known.
pub(super) fn check(
    reader: &mut Reader<'_>,
    users: &Object<'_>,
    config: &Config,
    tokens_known: bool,
) {
    let members = |of: &str| {
        users
            .get_object(of)
            .map_or(&[][..], |it| it.properties.as_slice())
    };
    for role in members("roles") {
        let name = role.name.as_str();
        let object = role.value.as_object();
        let servers = object.and_then(|role| role.get_array("servers"));
        let servers = servers.map_or(&[][..], |array| array.elements.as_slice());
        for server in servers.iter().filter_map(Value::as_string_lit) {
            let wanted = server.value.as_ref();
            let enabled = config.servers.iter().any(|known| known.name == wanted);
            if wanted != "*" && !enabled && !config.disabled.iter().any(|it| it == wanted) {
                let message = format!(
                    "role \"{name}\" has the server \"{wanted}\", which the file does not have; \
                     add it, or write \"*\" for all"
                );
                reader.error(server.range, ConfigErrorKind::Value, message);
            }
        }
    }
    if !tokens_known {
        return;
    }
    for member in members("named") {
        let name = member.name.as_str();
        if config.http.token_names().all(|known| known != name) {
            let near = nearest(name, config.http.token_names());
            let near = near.map(|near| format!("; did you mean \"{near}\"?"));
            let message = format!(
                "\"named\" has \"{name}\", and no token of \"bearer\" has this name{}",
                near.unwrap_or_default()
            );
            reader.error(name_range(member), ConfigErrorKind::Value, message);
        }
    }
}

fn roles(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    let Some(object) = reader.object(property, what) else {
        return roles;
    };
    let all = format!("\"roles\" in {what}");
    reader.no_duplicates(object, &all);
    for property in &object.properties {
        let name = property.name.as_str();
        let what = format!("role \"{name}\"");
        let Value::Object(object) = &property.value else {
            reader.wrong_type(
                property,
                &all,
                "an object, such as { \"servers\": [\"*\"] }",
            );
            continue;
        };
        let mut role = Role::default();
        for property in reader.properties(object, &what, &ROLE) {
            match property.name.as_str() {
                "servers" => {
                    let servers = reader.strings(property, &what).into_iter();
                    role.servers = servers.map(|(text, _)| text.to_owned()).collect();
                }
                "permissions" => permissions::read(reader, property, &mut role.permissions),
                _ => tools::read(reader, property, &mut role.tools),
            }
        }
        roles.insert(name.to_owned(), role);
    }
    roles
}

/// Roles by whoever has them.
fn assigned(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
    known: &BTreeMap<String, Role>,
) -> BTreeMap<String, Vec<String>> {
    let mut assigned = BTreeMap::new();
    let Some(object) = reader.object(property, what) else {
        return assigned;
    };
    let what = format!("\"{}\" in {what}", property.name.as_str());
    reader.no_duplicates(object, &what);
    for property in &object.properties {
        let roles = named_roles(reader, property, &what, known);
        assigned.insert(property.name.as_str().to_owned(), roles);
    }
    assigned
}

fn named_roles(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
    known: &BTreeMap<String, Role>,
) -> Vec<String> {
    let mut roles = Vec::new();
    for (text, range) in reader.strings(property, what) {
        if known.contains_key(text) {
            roles.push(text.to_owned());
            continue;
        }
        let message = format!(
            "\"{}\" in {what} has the role \"{text}\", which \"roles\" does not have; add it there",
            property.name.as_str()
        );
        reader.error(range, ConfigErrorKind::Value, message);
    }
    roles
}
