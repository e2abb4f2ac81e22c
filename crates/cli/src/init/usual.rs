//! The keys and references that one client alone has, in the form that clients usually have.

use serde_json::{Map, Value, json};

use crate::clients::Client;

/// The entry of a server with the usual keys.
pub fn entry(client: Client, mut entry: Map<String, Value>) -> Map<String, Value> {
    let mut rename = |from: &str, to: &str| {
        if let Some(value) = entry.remove(from) {
            entry.insert(to.to_owned(), value);
        }
    };
    match client {
        Client::Copilot => rename("tools", "includeTools"),
        // The time for the list of tools.
        Client::OpenCode => rename("timeout", "startup_timeout_ms"),
        Client::Cline => rename("timeout", "tool_timeout_sec"),
        Client::Continue => rename("connectionTimeout", "startup_timeout_ms"),
        _ => {}
    }
    let lists_all = |tools: &Value| *tools == json!("*") || *tools == json!(["*"]);
    if client == Client::Copilot && entry.get("includeTools").is_some_and(lists_all) {
        entry.remove("includeTools");
    }
    if client == Client::Continue {
        take_headers(&mut entry);
    }
    if client == Client::Vibe {
        take_key(&mut entry);
    }
    entry
}

/// Moves the headers of Continue's `requestOptions` into the entry.
fn take_headers(entry: &mut Map<String, Value>) {
    let Some(Value::Object(options)) = entry.get_mut("requestOptions") else {
        return;
    };
    let headers = options.remove("headers");
    if options.is_empty() {
        entry.remove("requestOptions");
    }
    entry.extend(headers.map(|headers| ("headers".to_owned(), headers)));
}

/// Makes a header of the variable with Vibe's key for a server, and moves `auth` into the entry.
fn take_key(entry: &mut Map<String, Value>) {
    if let Some(Value::Object(mut auth)) = entry.remove("auth") {
        if auth.get("type") == Some(&json!("oauth")) {
            return;
        }
        auth.remove("type");
        entry.extend(auth);
    }
    let mut text = |key: &str, default: &str| {
        let value = entry.remove(key);
        let value = value.as_ref().and_then(Value::as_str);
        value.unwrap_or(default).to_owned()
    };
    let variable = text("api_key_env", "");
    let header = text("api_key_header", "Authorization");
    let format = text("api_key_format", "Bearer {token}");
    if variable.is_empty() {
        return;
    }
    let headers = entry.entry("headers").or_insert_with(|| json!({}));
    if let Value::Object(headers) = headers {
        let value = format.replace("{token}", &format!("${{{variable}}}"));
        headers.entry(header).or_insert_with(|| value.into());
    }
}

/// The text with references as `${NAME}`.
pub fn references(client: Client, text: &str) -> String {
    let (begin, end) = match client {
        Client::OpenCode => ("{env:", "}"),
        Client::Continue => ("${{", "}}"),
        _ => return text.to_owned(),
    };
    let (mut changed, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(begin) {
        let Some((reference, behind)) = after.split_once(end) else {
            break;
        };
        // `${{ secrets.NAME }}`
        let name = reference.trim().rsplit(['.', '/']).next();
        changed += &format!("{before}${{{}}}", name.unwrap_or_default());
        rest = behind;
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(client: Client, theirs: Value, usual: &Value) {
        let Value::Object(theirs) = theirs else {
            panic!("{theirs}");
        };
        assert_eq!(&Value::Object(entry(client, theirs)), usual);
    }

    #[test]
    fn keys_of_one_client_become_usual_ones() {
        let every = json!({ "command": "x", "tools": ["*"] });
        check(Client::Copilot, every, &json!({ "command": "x" }));
        let some = json!({ "command": "x", "tools": ["a"] });
        let usual = json!({ "command": "x", "includeTools": ["a"] });
        check(Client::Copilot, some, &usual);
        let key = json!({ "url": "u", "api_key_env": "CG_K", "api_key_header": "X-K",
                          "api_key_format": "k {token}" });
        let usual = json!({ "url": "u", "headers": { "X-K": "k ${CG_K}" } });
        check(Client::Vibe, key, &usual);
        let auth = json!({ "url": "u", "auth": { "type": "static", "api_key_env": "CG_K" } });
        let usual = json!({ "url": "u", "headers": { "Authorization": "Bearer ${CG_K}" } });
        check(Client::Vibe, auth, &usual);
        let options = json!({ "url": "u", "requestOptions": { "headers": { "A": "b" } } });
        check(
            Client::Continue,
            options,
            &json!({ "url": "u", "headers": { "A": "b" } }),
        );
    }

    #[test]
    fn references_become_usual_ones() {
        for (client, text, usual) in [
            (Client::OpenCode, "Bearer {env:CG_A}!", "Bearer ${CG_A}!"),
            (Client::OpenCode, "{env:CG_A", "{env:CG_A"),
            (Client::Continue, "${{ secrets.CG_A }}", "${CG_A}"),
            (Client::Continue, "a ${{secrets.org/CG_B}} b", "a ${CG_B} b"),
            (Client::Cursor, "{env:CG_A}", "{env:CG_A}"),
        ] {
            assert_eq!(references(client, text), usual, "{text}");
        }
    }
}
