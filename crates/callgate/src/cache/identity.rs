//! What a server is, as a name for its file: a hash over all that it is started
//! with, keyed so that the name says nothing to whoever does not have the key.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use callgate_broker::{Origin, ServerSpec, Source, Transport};
use sha2::{Digest as _, Sha256};

use super::folder::Folder;

/// The file of the key, in the cache's folder.
const KEY_FILE: &str = "key";
const KEY_BYTES: usize = 32;

/// The cache's own key: random, and in no other place than its folder.
pub(super) struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key of this folder, made where there is none.
    pub(super) fn of(folder: &Folder) -> io::Result<Self> {
        if let Some(key) = Self::read(folder) {
            return Ok(key);
        }
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        if folder.has(KEY_FILE) {
            // It is no key; what was named by it is lost.
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

    /// A name for whoever a part of the cache belongs to.
    pub(super) fn name_of_scope(&self, scope: &str) -> String {
        self.hash("scope", |it| it.text(scope))
    }

    /// A name for a server with all that it is started with.
    pub(super) fn identity(&self, spec: &ServerSpec) -> String {
        self.hash("server", |it| {
            it.text(&spec.name);
            it.text(&spec.era.to_string());
            // Some servers list tools only to those who can answer them.
            it.text(&format!("{:?}", spec.caller.offers()));
            match &spec.transport {
                Transport::Stdio(stdio) => {
                    it.text("stdio");
                    it.text(&stdio.command);
                    it.count(stdio.args.len());
                    stdio.args.iter().for_each(|argument| it.text(argument));
                    it.map(&stdio.env, |it, value| it.text(value));
                    it.map(&stdio.env_from, Hasher::source);
                    match &stdio.cwd {
                        Some(cwd) => it.path(cwd),
                        // The host's is where it runs then.
                        None => it.path(&std::env::current_dir().unwrap_or_default()),
                    }
                }
                Transport::Http(http) => {
                    it.text("http");
                    it.text(&http.url);
                    it.map(&http.headers, |it, value| it.text(value));
                    it.map(&http.headers_from, Hasher::source);
                    it.count(usize::from(http.oauth.is_some()));
                    if let Some(oauth) = &http.oauth {
                        it.optional(oauth.user.as_deref());
                        it.optional(oauth.client_id.as_deref());
                        it.optional(oauth.issuer.as_deref());
                        it.optional(oauth.client_metadata_url.as_deref());
                        it.count(oauth.scopes.len());
                        oauth.scopes.iter().for_each(|scope| it.text(scope));
                        it.text(&format!("{:?}", oauth.grant));
                        it.count(usize::from(oauth.client_secret.is_some()));
                        if let Some(secret) = &oauth.client_secret {
                            it.source(secret);
                        }
                        it.path(oauth.folder.as_deref().unwrap_or(Path::new("")));
                    }
                }
            }
        })
    }

    /// A seal over a text, which only the key's owner can make.
    pub(super) fn seal(&self, text: &str) -> String {
        self.hash("entry", |it| it.text(text))
    }

    /// The hash of what is fed to it: keyed from within and from without, so that
    /// nothing can be appended.
    fn hash(&self, purpose: &str, feed: impl Fn(&mut Hasher)) -> String {
        let mut inner = Hasher(Sha256::new_with_prefix(self.0));
        inner.text(purpose);
        feed(&mut inner);
        let outer = Sha256::new_with_prefix(self.0).chain_update(inner.0.finalize());
        let mut name = String::with_capacity(64);
        for byte in outer.finalize() {
            name.push_str(&format!("{byte:02x}"));
        }
        name
    }
}

/// A hash over fields, each with its length.
struct Hasher(Sha256);

impl Hasher {
    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_encoded_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        self.count(usize::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    fn map<T>(&mut self, map: &BTreeMap<String, T>, value: impl Fn(&mut Self, &T)) {
        self.count(map.len());
        for (name, it) in map {
            self.text(name);
            value(self, it);
        }
    }

    /// Where a value comes from; the value itself is not looked up for this.
    fn source(&mut self, source: &Source) {
        self.text(&source.prefix);
        match &source.origin {
            Origin::Text(text) => {
                self.text("text");
                self.text(text);
            }
            Origin::Command {
                command,
                cwd,
                timeout: _,
            } => {
                self.text("command");
                self.count(command.len());
                command.iter().for_each(|word| self.text(word));
                self.path(cwd.as_deref().unwrap_or(Path::new("")));
            }
            Origin::Keyring { service, account } => {
                self.text("keyring");
                self.text(service);
                self.text(account);
            }
            // One that is added later tells servers apart by its name at least.
            other => self.text(&format!("{:?}", std::mem::discriminant(other))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use callgate_broker::{Http, Stdio};

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
        let secret = || Source::text("hunter2");
        let entry = |value: &str| BTreeMap::from([("TOKEN".to_owned(), value.to_owned())]);
        let names = [
            stdio(&|_| ()),
            stdio(&|it| it.command = "other".to_owned()),
            stdio(&|it| it.args = vec!["ab".to_owned()]),
            stdio(&|it| it.args.truncate(1)),
            stdio(&|it| it.env = entry("hunter2")),
            stdio(&|it| it.env = entry("hunter3")),
            stdio(&|it| drop(it.env_from.insert("TOKEN".to_owned(), secret()))),
            stdio(&|it| it.cwd = Some("/".into())),
            http(&|_| ()),
            http(&|it| it.url.push('x')),
            http(&|it| it.headers = entry("hunter2")),
            http(&|it| drop(it.headers_from.insert("TOKEN".to_owned(), secret()))),
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
        assert_eq!(again.seal("x"), key.seal("x"));
        let elsewhere = tempfile::tempdir().expect("a folder");
        let elsewhere = Folder::open(elsewhere.path().to_owned()).expect("a folder");
        let other = Key::of(&elsewhere).expect("a key");
        assert_ne!(other.seal("x"), key.seal("x"));
    }

    #[test]
    fn a_key_that_is_none_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(folder.path().to_owned()).expect("a folder");
        for broken in [&b"short"[..], &[7; 33]] {
            folder.write(KEY_FILE, broken).expect("a file");
            let key = Key::of(&folder).expect("a key");
            assert_eq!(Key::of(&folder).expect("a key").seal("x"), key.seal("x"));
        }
    }
}
