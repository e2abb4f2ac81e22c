//! Files of other clients: a mistake costs its server alone, and what turns a server off counts.

use super::*;

/// The servers that are on and those that are off, and the warnings.
fn loaded(file: &str, text: &str) -> (String, Vec<String>) {
    let config = read(file, text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let on: Vec<&str> = config.servers.iter().map(|it| it.name.as_str()).collect();
    let left_out = config.left_out.iter().map(|it| &it.problem);
    let warnings = config.warnings.iter().chain(left_out);
    let warnings = warnings.map(Problem::to_string).collect();
    (format!("{on:?} {:?}", config.disabled), warnings)
}

/// Members of the entry of a server, and the one warning about them; `on` if the server is in use.
#[rustfmt::skip]
#[test]
fn bad_entry_disables_only_its_server() {
    let on = r#"["bad", "good"] []"#;
    let off = r#"["good"] ["bad"]"#;
    for (members, servers, said) in [
        // Keys of others.
        (r#""command": "x", "alwaysLoad": true"#, on, "3:unknown key \"alwaysLoad\" in server \"bad\" is passed over"),
        (r#""command": "x", "x-metadata": {}"#, on, "3:\"x-metadata\" in server \"bad\" is passed over"),
        (r#""command": "x", "autoApprove": ["a"]"#, on, "3:\"autoApprove\" in server \"bad\" means nothing here; write the tools under"),
        (r#""command": "x", "timeout": 60000"#, on, "3:\"timeout\" in server \"bad\" means nothing here; write \"callTimeout\""),
        (r#""command": "x", "oauth_scopes": []"#, on, "3:\"oauth_scopes\" in server \"bad\" is passed over"),
        (r#""command": "x", "commands": []"#, on, "3:\"commands\" in server \"bad\" is passed over; did you mean \"command\"?"),
        (r#""url": "https://a.b", "env": { "A": "${UNSET}" }"#, on, "3:\"env\" in server \"bad\" does not go with \"url\"; remove it"),
        (r#""url": "https://a.b", "oauth": { "scope": "x" }"#, on, "3:\"scope\" in \"oauth\" in server \"bad\" is passed over; did you mean \"scopes\"?"),
        // Entries that cannot be used.
        (r#""type": "sse", "url": "https://a.b/sse""#, off, "3:\"type\" in server \"bad\" is \"sse\"; write \"http\"; the server is left out"),
        (r#""transport": "SSE", "url": "https://a.b/sse""#, off, "3:\"type\" in server \"bad\" is \"sse\"; the server is left out"),
        (r#""type": "websocket", "url": "wss://a.b""#, off, "3:is the unknown \"websocket\"; write \"stdio\" or \"http\"; the server is left out"),
        (r#""url": "wss://a.b""#, off, "3:\"url\" in server \"bad\" must begin with https"),
        (r#""command": []"#, off, "3:\"command\" in server \"bad\" must be a string, and this is an array; the server is left out"),
        (r#""command": "x", "args": "-y""#, off, "3:\"args\" in server \"bad\" must be an array, and this is a string"),
        (r#""command": "x", "env": { "PORT": 8080 }"#, off, "3:\"PORT\" in \"env\" in server \"bad\" must be a string; the server is left out"),
        (r#""command": "x", "disabled": "yes""#, off, "3:\"disabled\" in server \"bad\" must be true or false; the server is left out"),
        (r#""command": "x", "disabeld": true"#, off, "3:did you mean \"disabled\"?; the server is left out"),
        (r#""command": "x", "lables": ["private"]"#, off, "3:did you mean \"labels\"?; the server is left out"),
        (r#""command": "x", "command": "y""#, off, "3:\"command\" stands twice in server \"bad\"; the server is left out"),
        (r#""note": 1"#, off, "3:has neither \"command\" nor \"url\"; the server is left out"),
        // References.
        (r#""command": "x", "args": ["${UNSET}"]"#, off, "3:environment variable \"UNSET\" is not set; set it; the server is left out"),
        (r#""url": "https://a.b", "headers": { "A": "Bearer ${env:UNSET}" }"#, off, "3:\"A\" in \"headers\" in server \"bad\": environment variable \"UNSET\" is not set"),
        (r#""command": "x", "env": { "A": "${input:key}" }"#, off, "3:asks a person in VS Code; the server is left out"),
        (r#""command": "x", "args": ["${command:pick}"]"#, off, "3:is not a reference; the server is left out"),
    ] {
        let text = format!("{{ \"mcpServers\": {{\n\n\"bad\": {{ {members} }}, \"good\": {{ \"command\": \"y\" }} }} }}");
        for file in [".mcp.json", "mcp.json", "claude_desktop_config.json", "settings.json"] {
            let (loaded, warnings) = loaded(file, &text);
            assert_eq!(loaded, servers, "{members}");
            let all = warnings.join("\n");
            let fits = |warning: &String| {
                let (line, parts) = said.split_once(':').expect("a line");
                warning.starts_with(&format!("{file}:{line}:")) && parts.split("; ").all(|part| warning.contains(part))
            };
            assert!(warnings.iter().any(fits), "{members}\n{all}");
            assert!(servers == off || warnings.len() == 1, "{members}\n{all}");
        }
        let is_unset = servers == off && members.contains("UNSET}");
        assert_eq!(read("callgate.json", &text).is_ok(), is_unset, "{members}");
    }
}

#[test]
fn server_disabled_in_other_client_stays_disabled() {
    let entry = |members: &str| {
        format!(
            r#"{{ "mcpServers": {{ "a": {{ "command": "${{UNSET}}", {members} }}, "b": {{ "command": "y" }} }} }}"#
        )
    };
    let off = [
        r#""disabled": true"#,
        r#""disabled": "true""#,
        r#""disable": true"#,
        r#""enabled": false"#,
        r#""enabled": "false", "disabled": false"#,
        r#""isActive": false, "baseUrl": "x""#,
    ];
    let lists = [
        r#""disabledMcpjsonServers": ["a"]"#,
        r#""disabledMcpServers": ["a", "c"]"#,
        r#""excludeMCPServers": ["a"]"#,
        r#""allowMCPServers": ["b"]"#,
        r#""mcp": { "excluded": ["a"] }"#,
        r#""mcp": { "allowed": ["b"] }"#,
        r#""mcp": { "excluded": [], "excluded": ["a"] }"#,
        r#""allowMCPServers": ["b"], "mcp": { "allowed": ["a", "b"] }"#,
    ];
    let on = [
        r#""enabled": true"#,
        r#""isActive": true"#,
        r#""enabled": null"#,
    ];
    let listed = |list: &str| {
        let text = entry("\"type\": \"stdio\"");
        text.replacen('{', &format!("{{ {list}, "), 1)
    };
    let texts = off.map(entry).into_iter().chain(lists.map(listed));
    let texts = texts.map(|text| (text, r#"["b"] ["a"]"#));
    let on = on.map(|members| (entry(members).replace("${UNSET}", "x"), r#"["a", "b"] []"#));
    for (text, expected) in texts.chain(on) {
        let (loaded, warnings) = loaded("settings.json", &text);
        assert_eq!((loaded.as_str(), warnings.len()), (expected, 0), "{text}");
    }
}

#[test]
fn transport_spellings_of_other_clients_are_read() {
    let kinds = [
        "http",
        "HTTP",
        "streamable-http",
        "streamableHttp",
        "Streamable_HTTP",
    ];
    let kinds = kinds.map(|kind| ("callgate.json", "type", kind, "url"));
    let keys = ["url", "serverUrl", "httpUrl"].into_iter().flat_map(|url| {
        let kinds = ["type", "transport", "transportType"];
        kinds.map(|kind| ("mcp.json", kind, "http", url))
    });
    for (file, key, kind, url) in kinds.into_iter().chain(keys) {
        let text = format!(
            r#"{{ "servers": {{ "a": {{ "{key}": "{kind}", "{url}": "https://a.b" }} }} }}"#
        );
        let config = read(file, &text).expect(kind);
        assert_eq!(http(&config).url, "https://a.b");
        assert_eq!(config.warnings, [], "{text}");
    }
    let text = r#"{ "servers": { "a": { "type": "Stdio", "cmd": "x", "environment": { "A": "1" }, "workingDirectory": "w" } } }"#;
    let config = read("mcp.json", text).expect("a configuration");
    let Stdio {
        command, env, cwd, ..
    } = stdio(&config);
    assert_eq!(
        format!("{command} {} {cwd:?}", source(&env["A"])),
        r#"x 1 Some("/project/w")"#
    );
    let text = r#"{ "mcpServers": { "a": { "url": "https://sse", "serverUrl": "https://a", "httpUrl": "https://b" } } }"#;
    let config = read("settings.json", text).expect("a configuration");
    assert_eq!(http(&config).url, "https://b");
    let text = r#"{ "mcpServers": { "a": { "command": { "path": "x", "args": ["y"] } } } }"#;
    let config = read("settings.json", text).expect("a configuration");
    let Stdio { command, args, .. } = stdio(&config);
    assert_eq!(format!("{command} {args:?}"), r#"x ["y"]"#);
    // Other clients allow more than one line.
    let long = format!("Finds\\n  {}", "x".repeat(300));
    let text =
        format!(r#"{{ "servers": {{ "a": {{ "command": "x", "description": "{long}" }} }} }}"#);
    let config = read("mcp.json", &text).expect("a configuration");
    let description = server(&config).description.as_deref().unwrap_or_default();
    assert!(
        description.starts_with("Finds xxx") && description.len() == 200,
        "{description}"
    );
}

/// Other parts of the file belong to the other client and are passed over; a mistake in a rule that
/// forbids something is an error.
#[test]
fn sections_of_other_clients_are_passed_over() {
    let text = r#"{
        "mcpServers": { "a": { "command": "x" } },
        "servers": { "a": { "command": "y" }, "b": { "command": "y" } },
        "model": { "name": "m" }, "theme": "dark", "globalShortcut": "",
        "tools": { "core": ["ls"] }, "sandbox": true
    }"#;
    let (loaded, warnings) = loaded("settings.json", text);
    // Which of the two entries counts is not known.
    assert_eq!(loaded, r#"["b"] ["a"]"#);
    for (place, part) in [
        (
            "3:",
            "is also in \"mcpServers\"; remove one; the server is left out",
        ),
        ("4:", "\"model\" in the file is passed over"),
        ("4:", "\"theme\" in the file is passed over"),
        ("4:", "\"globalShortcut\" in the file is passed over"),
        ("5:", "\"tools\" in the file is another client's"),
        ("5:", "\"sandbox\" in the file is another client's"),
    ] {
        let fits =
            |it: &&String| it.starts_with(&format!("settings.json:{place}")) && it.contains(part);
        assert_eq!(
            warnings.iter().filter(fits).count(),
            1,
            "{part}\n{warnings:#?}"
        );
    }
    for text in [
        r#"{ "mcpServers": {}, "permision": { "deny": ["a_*"] } }"#,
        r#"{ "mcpServers": {}, "permissions": { "denyy": ["a_*"] } }"#,
        r#"{ "mcpServers": {}, "permissions": { "deny": "a_*" } }"#,
        r#"{ "mcpServers": {}, "flow": [] }"#,
    ] {
        assert!(read("settings.json", text).is_err(), "{text}");
    }
}

/// A file of an editor is for the folder above the editor's.
#[test]
fn the_workspace_is_the_folder_of_the_project() {
    let root = tempfile::tempdir().expect("folder");
    let project = root
        .path()
        .canonicalize()
        .expect("a path")
        .join("my project");
    let text = r#"{ "servers": { "a": {
        "command": "./bin/x", "cwd": "sub",
        "args": ["${workspaceFolder}/d ${workspaceFolderBasename} a${pathSeparator}b${/}c ${userHome}/x"]
    } } }"#;
    let environment = |name: &str| (name == "HOME").then(|| "/home/ann".to_owned());
    for (file, folder) in [
        (".vscode/mcp.json", ""),
        (".cursor/mcp.json", ""),
        (".gemini/settings.json", ""),
        (".kiro/settings/mcp.json", ""),
        (".mcp.json", ""),
        ("mcp.json", ""),
        ("callgate.json", ""),
        ("packages/app/.vscode/mcp.json", "packages/app"),
        // Our own file is for its own folder.
        (".vscode/callgate.json", ".vscode"),
        (".dotfiles/mcp.json", ".dotfiles"),
    ] {
        let path = project.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(&path, text).expect("file");
        for named in [path.clone(), project.join("x/..").join(file)] {
            std::fs::create_dir_all(project.join("x")).expect("folder");
            let config = Config::load_with(&named, environment).expect(file);
            let folder = project.join(folder).components().collect::<PathBuf>();
            let shown = folder.display();
            let Stdio {
                command, args, cwd, ..
            } = stdio(&config);
            assert_eq!((&config.folder, &config.path), (&folder, &path), "{file}");
            let name = folder.file_name().unwrap_or_default().display();
            let expected = format!("{shown}/d {name} a/b/c /home/ann/x");
            assert_eq!(*args, [expected], "{file}");
            assert_eq!(*command, format!("{shown}/./bin/x"), "{file}");
            assert_eq!(*cwd, Some(folder.join("sub")), "{file}");
        }
    }
}
