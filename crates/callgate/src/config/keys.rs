//! The keys of each object: ours, those of other clients, and what to say
//! about the rest.

use callgate_policy::nearest;

/// The keys an object may have.
pub(super) struct Keys {
    /// Keys that mean something here.
    pub(super) ours: &'static [&'static str],
    /// Keys that other clients write, each with what to do instead.
    pub(super) others: &'static [(&'static str, &'static str)],
}

/// Keys of the file.
pub(super) const TOP: Keys = Keys {
    ours: &[
        "$schema",
        "mcpServers",
        "servers",
        "permissions",
        "limits",
        "sandbox",
        "check",
        "ledger",
        "cache",
        "models",
        "search",
        "extract",
        "roots",
        "serve",
        "flows",
        "toolLabels",
        "tools",
    ],
    others: &[(
        "inputs",
        "put the values into environment variables and write \"${NAME}\"",
    )],
};

/// Keys of a server.
pub(super) const SERVER: Keys = Keys {
    ours: &[
        "type",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "oauth",
        "description",
        "connect",
        "idle",
        "disabled",
        "trusted",
        "labels",
        "protocol",
        "startTimeout",
        "callTimeout",
        "maxCallTime",
    ],
    others: &[
        (
            "alwaysAllow",
            "write the tools under \"permissions\", \"allow\"",
        ),
        ("authProviderType", "write an \"Authorization\" header"),
        (
            "autoApprove",
            "write the tools under \"permissions\", \"allow\"",
        ),
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
        (
            "includeTools",
            "write the tools under \"permissions\", \"allow\"",
        ),
        ("name", "the server's key is its name"),
        ("sandboxEnabled", "servers run with the rights of this user"),
        ("timeout", "write \"callTimeout\", such as \"60s\""),
        ("tools", "write the tools under \"permissions\""),
        ("trust", "write \"trusted\""),
        ("version", "it is a note of VS Code"),
    ],
};

/// Keys of a value that is looked up.
pub(super) const SOURCE: Keys = Keys {
    ours: &["command", "timeout", "keyring", "prefix"],
    others: &[],
};

/// Keys of `models`.
pub(super) const MODELS: Keys = Keys {
    ours: &["embeddings", "small"],
    others: &[],
};

/// Keys of `embeddings` in `models`.
pub(super) const EMBEDDINGS: Keys = Keys {
    ours: &["url", "model", "key", "dimensions", "timeout"],
    others: &[],
};

/// Keys of `small` in `models`.
pub(super) const SMALL: Keys = Keys {
    ours: &["api", "url", "model", "key", "timeout", "maxTokens"],
    others: &[],
};

/// Keys of `search`.
pub(super) const SEARCH: Keys = Keys {
    ours: &["by"],
    others: &[],
};

/// Keys of `extract`.
pub(super) const EXTRACT: Keys = Keys {
    ours: &["calls", "sameSchema", "input", "output"],
    others: &[],
};

/// Keys of an entry in the keyring.
pub(super) const KEYRING: Keys = Keys {
    ours: &["service", "account"],
    others: &[],
};

/// Keys of `oauth`.
pub(super) const OAUTH: Keys = Keys {
    ours: &[
        "clientId",
        "issuer",
        "clientSecret",
        "clientMetadataUrl",
        "scopes",
        "grant",
        "redirectPort",
        "tokens",
    ],
    others: &[
        ("authServerMetadataUrl", "it is found out from the server"),
        ("callbackPort", "write \"redirectPort\""),
    ],
};

/// Keys of `permissions`.
pub(super) const PERMISSIONS: Keys = Keys {
    ours: &["allow", "ask", "deny"],
    others: &[],
};

/// Keys of a rule in `flows`.
pub(super) const FLOW: Keys = Keys {
    ours: &["from", "to", "minBytes", "action"],
    others: &[],
};

/// Keys of `serve`.
pub(super) const SERVE: Keys = Keys {
    ours: &[
        "mode",
        "context",
        "toolsTtl",
        "wait",
        "answerTime",
        "http",
        "users",
    ],
    others: &[],
};

/// Keys of `context` in `serve`.
pub(super) const CONTEXT: Keys = Keys {
    ours: &["window", "share"],
    others: &[],
};

/// Keys of a pattern in `tools`.
pub(super) const TOOL: Keys = Keys {
    ours: &["visibility", "keywords", "alwaysOn"],
    others: &[],
};

/// Keys of `limits`.
pub(super) const LIMITS: Keys = Keys {
    ours: &[
        "timeout",
        "runTimeout",
        "memory",
        "output",
        "outputLines",
        "result",
        "callsInFlight",
    ],
    others: &[],
};

/// Keys of `check`.
pub(super) const CHECK: Keys = Keys {
    ours: &["mode", "typescript"],
    others: &[],
};

/// Keys of `ledger`.
pub(super) const LEDGER: Keys = Keys {
    ours: &["path", "bodies", "maxSize", "keep"],
    others: &[],
};

/// Keys with which other clients write something that has a key here, too far
/// apart in spelling to be found by likeness.
const SYNONYMS: &[(&str, &str)] = &[
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

impl Keys {
    /// What to do about a key of another client.
    pub(super) fn other(&self, key: &str) -> Option<&'static str> {
        self.others
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, instead)| *instead)
    }

    /// The key that was probably meant.
    pub(super) fn suggest(&self, key: &str) -> Option<&'static str> {
        let synonym = SYNONYMS
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, ours)| *ours);
        synonym
            .filter(|ours| self.ours.contains(ours))
            .or_else(|| nearest(key, self.ours.iter().copied()))
    }
}
