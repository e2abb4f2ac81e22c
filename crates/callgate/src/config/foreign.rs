//! Keys of other clients and programs, and what to write instead. In a file that other clients
//! share, such a key is a warning.

/// Keys of other clients: a key of ours in the same object, and for each key of theirs there
/// the advice.
pub(super) const OTHER_CLIENTS: &[(&str, &[(&str, &str)])] = &[
    (
        "mcpServers",
        &[(
            "inputs",
            "put the values into environment variables and write \"${NAME}\"",
        )],
    ),
    (
        "callTimeout",
        &[
            ("alwaysAllow", ALLOW),
            ("authProviderType", "write an \"Authorization\" header"),
            ("autoApprove", ALLOW),
            (
                "dev",
                "Callgate restarts servers that end, not those whose files change",
            ),
            ("envFile", "write the variables under \"env\""),
            (
                "excludeTools",
                "write the tools under \"permissions\", \"deny\"",
            ),
            ("gallery", "it is a note of VS Code"),
            ("icon", "it is a picture for other clients"),
            ("includeTools", ALLOW),
            ("name", "the server's key is its name"),
            ("sandboxEnabled", "servers run with the rights of this user"),
            ("timeout", "write \"callTimeout\", such as \"60s\""),
            ("tools", "write the tools under \"permissions\""),
            ("trust", "write \"trusted\""),
            ("version", "it is a note of VS Code"),
        ],
    ),
    (
        "redirectPort",
        &[
            ("authServerMetadataUrl", "it is found out from the server"),
            ("callbackPort", "write \"redirectPort\""),
        ],
    ),
    (
        "allowedHosts",
        &[
            ("port", "write \"address\", such as \"127.0.0.1:8080\""),
            ("tls", "put a proxy with TLS before it; see docs/http.md"),
        ],
    ),
    (
        "audience",
        &[(
            "clientId",
            "clients bring tokens; Callgate does not log in here",
        )],
    ),
];
const ALLOW: &str = "write the tools under \"permissions\", \"allow\"";

/// Keys of other programs for something that has a key here, too different to be found by likeness.
pub(super) const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("environment", "env"),
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("transport", "type"),
    ("transportType", "type"),
    ("user", "account"),
    ("username", "account"),
    ("workingDirectory", "cwd"),
];
