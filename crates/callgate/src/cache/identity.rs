//! The file name of a server: a keyed hash over everything that it is started with.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use callgate_auth::{Origin, Source};
use callgate_servers::{ServerSpec, Transport};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::file::Folder;

/// The file of the key, in the cache's folder.
const KEY_FILE: &str = "key";
const KEY_BYTES: usize = 32;

/// The cache's own random key, which is in its folder only.
pub(super) struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key of this folder, made if it does not exist.
    pub(super) fn of(folder: &Folder) -> io::Result<Self> {
        if let Some(key) = Self::read(folder) {
            return Ok(key);
        }
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        if folder.has(KEY_FILE) {
            // A damaged key; the names made with it are lost.
            folder.write(KEY_FILE, &key)?;
        } else {
            // Of several processes, one makes it.
            folder.write_first(KEY_FILE, &key)?;
        }
        Self::read(folder).ok_or_else(|| io::Error::other("its key cannot be read"))
    }

    fn read(folder: &Folder) -> Option<Self> {
        let bytes = folder.read(KEY_FILE, KEY_BYTES as u64).ok()??;
        bytes.try_into().ok().map(Self)
    }

    /// A name for a scope.
    pub(super) fn name_of_scope(&self, scope: &str) -> String {
        self.hash(&json!(["scope", scope]))
    }

    /// A name for a server with everything that it is started with.
    pub(super) fn identity(&self, spec: &ServerSpec) -> String {
        let transport = match &spec.transport {
            Transport::Stdio(stdio) => {
                // Without a folder of its own, a server runs in the host's.
                let cwd = stdio.cwd.clone().or_else(|| std::env::current_dir().ok());
                json!([
                    stdio.command,
                    stdio.args,
                    sources(&stdio.env),
                    bytes(cwd.as_deref()),
                ])
            }
            Transport::Http(http) => json!([
                http.url,
                sources(&http.headers),
                http.oauth.as_ref().map(|oauth| json!([
                    oauth.user,
                    oauth.client_id,
                    oauth.issuer,
                    oauth.client_metadata_url,
                    oauth.scopes,
                    format!("{:?}", oauth.grant),
                    oauth.client_secret.as_ref().map(source),
                    bytes(oauth.folder.as_deref()),
                ])),
            ]),
        };
        // Some servers list tools only for clients that can answer them.
        let offers = format!("{:?}", spec.caller.offers());
        self.hash(&json!([
            "server",
            spec.name,
            spec.era.to_string(),
            offers,
            transport
        ]))
    }

    /// A hash that only the owner of the key can make: keyed twice, so that nothing can be
    /// appended.
    fn hash(&self, parts: &Value) -> String {
        let inner = Sha256::new_with_prefix(self.0).chain_update(parts.to_string());
        let outer = Sha256::new_with_prefix(self.0).chain_update(inner.finalize());
        outer
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The bytes of a path, which need not be UTF-8.
fn bytes(path: Option<&Path>) -> Option<&[u8]> {
    path.map(|path| path.as_os_str().as_encoded_bytes())
}

fn sources(sources: &BTreeMap<String, Source>) -> Value {
    sources
        .iter()
        .map(|(name, from)| json!([name, source(from)]))
        .collect()
}

/// The place that a value comes from; the value itself is not looked up.
fn source(source: &Source) -> Value {
    match &source.origin {
        Origin::Text(text) => json!([source.prefix, "text", text]),
        Origin::Command { command, cwd, .. } => {
            json!([source.prefix, "command", command, bytes(cwd.as_deref())])
        }
        Origin::Keyring { service, account } => {
            json!([source.prefix, "keyring", service, account])
        }
        other => json!([source.prefix, format!("{other:?}")]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use callgate_servers::{Http, Stdio};

    use super::*;

    #[test]
    fn every_part_of_a_server_counts_and_none_shows() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(folder.path().to_owned()).expect("a folder");
        let key = Key::of(&folder).expect("a key");
        let stdio = |change: &dyn Fn(&mut Stdio)| {
            let mut stdio = Stdio {
                command: "run".to_owned(),
                args: vec!["a".to_owned(), "b".to_owned()],
                ..Stdio::default()
            };
            change(&mut stdio);
            key.identity(&ServerSpec::new("s", Transport::Stdio(stdio)))
        };
        let http = |change: &dyn Fn(&mut Http)| {
            let mut http = Http {
                url: "http://localhost".to_owned(),
                ..Http::default()
            };
            change(&mut http);
            key.identity(&ServerSpec::new("s", Transport::Http(http)))
        };
        let entry = |value| BTreeMap::from([("TOKEN".to_owned(), Source::text(value))]);
        let echo = BTreeMap::from([("TOKEN".to_owned(), Source::command(["hunter2"]))]);
        let names = [
            stdio(&|_| ()),
            stdio(&|it| it.command = "other".to_owned()),
            stdio(&|it| it.args = vec!["ab".to_owned()]),
            stdio(&|it| it.args.truncate(1)),
            stdio(&|it| it.env = entry("hunter2")),
            stdio(&|it| it.env = entry("hunter3")),
            stdio(&|it| it.env.clone_from(&echo)),
            stdio(&|it| it.cwd = Some("/".into())),
            http(&|_| ()),
            http(&|it| it.url.push('x')),
            http(&|it| it.headers = entry("hunter2")),
            http(&|it| it.headers.clone_from(&echo)),
            http(&|it| it.oauth = None),
            key.identity(&ServerSpec::stdio("t", "run", ["a", "b"])),
        ];
        let different: HashSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:#?}");
        assert_eq!(
            names[0],
            stdio(&|_| ()),
            "the same server has the same name"
        );

        // The same folder has the same key, another one another.
        let again = Key::of(&folder).expect("a key");
        assert_eq!(again.name_of_scope("x"), key.name_of_scope("x"));
        let elsewhere = tempfile::tempdir().expect("a folder");
        let elsewhere = Folder::open(elsewhere.path().to_owned()).expect("a folder");
        let other = Key::of(&elsewhere).expect("a key");
        assert_ne!(other.name_of_scope("x"), key.name_of_scope("x"));
    }

    #[test]
    fn a_key_that_is_none_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(folder.path().to_owned()).expect("a folder");
        folder.write(KEY_FILE, b"short").expect("a file");
        let name = || Key::of(&folder).expect("a key").name_of_scope("x");
        assert_eq!(name(), name());
    }
}
