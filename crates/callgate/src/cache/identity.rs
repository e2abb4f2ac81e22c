//! The file name of a server: a keyed hash over all its settings.

use std::hash::{Hash, Hasher};
use std::io;

use callgate_servers::{ServerSpec, Transport};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use super::file::Folder;

/// The file of the key, in the cache's folder.
const KEY_FILE: &str = "key";
const KEY_BYTES: usize = 64;
/// The version of the format of a list's file.
const FORMAT: u32 = 4;

/// The cache's random key, which is stored in its folder only.
pub(super) struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key of this folder, made if it does not exist or is damaged. If several processes make it
    /// at the same time, one key stays, and the files of the other processes are not found again.
    pub(super) fn of(folder: &Folder) -> io::Result<Self> {
        if let Ok(Some(bytes)) = folder.read(KEY_FILE, KEY_BYTES as u64)
            && let Ok(key) = bytes.try_into()
        {
            return Ok(Self(key));
        }
        let mut key = [0; KEY_BYTES];
        for part in key.chunks_mut(16) {
            part.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        folder.write(KEY_FILE, &key)?;
        Ok(Self(key))
    }

    pub(super) fn name_of_scope(&self, scope: &str) -> String {
        self.name(("scope", scope))
    }

    /// A name for a server with all its settings.
    pub(super) fn identity(&self, spec: &ServerSpec) -> String {
        // Some servers list tools only for clients that can answer them.
        let offers = spec.caller.offers();
        let server = (FORMAT, &spec.name, spec.era.to_string(), offers);
        match &spec.transport {
            Transport::Stdio(it) => {
                // Without a folder of its own, a server runs in the host's.
                let cwd = it.cwd.clone().or_else(|| std::env::current_dir().ok());
                self.name((server, &it.command, &it.args, &it.env, cwd))
            }
            Transport::Http(it) => {
                let login = it.oauth.as_ref().map(|it| {
                    let client = (&it.client_id, &it.client_secret, &it.client_metadata_url);
                    (
                        &it.user, &it.issuer, client, &it.scopes, it.grant, &it.folder,
                    )
                });
                self.name((server, &it.url, &it.headers, login))
            }
        }
    }

    /// A hash that only the owner of the key can make.
    fn name(&self, of: impl Hash) -> String {
        let mut hasher = KeyedHasher(Hmac::new(&self.0.into()));
        of.hash(&mut hasher);
        hex::encode(hasher.0.finalize().into_bytes())
    }
}

/// HMAC-SHA-256 of the bytes that `Hash` writes.
struct KeyedHasher(Hmac<Sha256>);

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: `name` finalizes the hash.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use callgate_auth::Source;
    use callgate_servers::{Http, Stdio};

    use super::*;

    #[test]
    fn cache_name_covers_and_hides_every_setting() {
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

        // A different folder has a different key.
        let again = Key::of(&folder).expect("a key");
        assert_eq!(again.name_of_scope("x"), key.name_of_scope("x"));
        let elsewhere = tempfile::tempdir().expect("a folder");
        let elsewhere = Folder::open(elsewhere.path().to_owned()).expect("a folder");
        let other = Key::of(&elsewhere).expect("a key");
        assert_ne!(other.name_of_scope("x"), key.name_of_scope("x"));
    }

    #[test]
    fn invalid_cache_key_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(folder.path().to_owned()).expect("a folder");
        folder.write(KEY_FILE, b"short").expect("a file");
        let name = || Key::of(&folder).expect("a key").name_of_scope("x");
        assert_eq!(name(), name());
    }
}
