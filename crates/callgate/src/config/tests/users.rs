//! The configuration of one user.

use super::*;

const TEXT: &str = r#"{
    "mcpServers": {
        "crm": { "command": "x" }, "wiki": { "url": "https://wiki.example/mcp" },
        "old": { "command": "x", "disabled": true },
        "payroll": { "command": "x", "disabled": true }
    },
    "permissions": { "deny": ["*_delete"] },
    "ledger": { "path": "calls.jsonl" },
    "serve": { "users": { "roles": {
        "analyst": { "servers": ["crm", "old"], "permissions": { "allow": ["crm_*"] } },
        "writer": { "servers": ["wiki"], "permissions": { "ask": ["wiki_*"] },
            "tools": { "wiki_purge": { "visibility": "hidden" } } },
        "nothing": {}
    } } }
}"#;

#[test]
fn user_config_has_only_role_servers_and_rules() {
    let whole = read("callgate.json", TEXT).expect("a configuration");
    let of_roles = |roles: &[&str]| {
        let config = whole.for_user(Some("token alice"), roles.iter().copied())?;
        assert_eq!(ledger(&config).1.user.as_deref(), Some("token alice"));
        let servers: Vec<_> = config.servers.iter().map(|it| it.name.as_str()).collect();
        let rules: Vec<_> = config
            .permissions
            .iter()
            .map(|rule| rule.to_json())
            .collect();
        let purge = config.tools.visibility("wiki_purge", None);
        let (disabled, withheld) = (config.disabled, config.withheld);
        Some(format!(
            "{servers:?} {disabled:?} {withheld:?} {rules:?} {purge:?}"
        ))
    };
    for (roles, expected) in [
        (
            &["analyst"][..],
            Some(
                r#"["crm"] ["old"] ["wiki", "payroll"] [String("*_delete"), String("crm_*")] Native"#,
            ),
        ),
        (
            &["analyst", "writer"],
            Some(
                r#"["crm", "wiki"] ["old"] ["payroll"] [String("*_delete"), String("crm_*"), String("wiki_*")] Hidden"#,
            ),
        ),
        (&["unknown", "nothing"], None),
        (&[], None),
    ] {
        assert_eq!(of_roles(roles).as_deref(), expected, "{roles:?}");
    }
}

#[test]
fn user_config_logs_in_as_the_user() {
    let text = r#"{ "mcpServers": { "wiki": { "url": "https://wiki.example/mcp" } } }"#;
    let config = read("callgate.json", text).expect("a configuration");
    for (user, flags) in [
        (token_user("a@b"), ["--user", "a@b"]),
        (
            subject_user("https://login.example/", "auth0|7 8"),
            ["--subject", "auth0|7 8"],
        ),
    ] {
        let own = config.for_user(Some(&user), []).expect("the server");
        assert_eq!(login(&own).login_flags, flags);
        assert_eq!(login(&own).user, Some(user));
    }
}
