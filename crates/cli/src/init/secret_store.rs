//! Where `init` puts values that may be secrets: the keyring, a file outside of the project, or the
//! configuration itself if the person says that a value is no secret.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use callgate::config::EnvFile;
use callgate::faces::{has_keyring, store_in_keyring};
use callgate_text::one_line;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::entry::{Entry, reference};
use super::secrets::Secrets;
use crate::clients::Folders;
use crate::dialogue::Dialogue;
use crate::print;

/// The service of the entries in the keyring.
const SERVICE: &str = "callgate";

/// The minimum length of a value of which a part is shown.
const MIN_SHOWN: usize = 12;

/// The maximum length of the project in the name of its file.
const MAX_NAME: usize = 40;

/// The place of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Keyring,
    File,
    /// Nowhere: the person sets the variable.
    Skip,
    /// The configuration.
    Plain,
}

/// Each place with the letter and the word of its answer, and its text in the prompt.
const PLACES: [(Place, &str, &str, &str); 4] = [
    (Place::Keyring, "k", "keyring", "[k] keyring"),
    (Place::File, "f", "file", "[f] file"),
    (
        Place::Skip,
        "s",
        "skip",
        "[s] skip (set the variable yourself)",
    ),
    (Place::Plain, "p", "plain", "[p] plain: it is no secret"),
];

/// The places of the values that are kept out of the configuration, by their variables.
pub struct SecretStore {
    places: BTreeMap<String, Place>,
    /// The configuration's own name in the file's name and in the keyring.
    name: String,
    /// `None` if there is no folder for it outside of the project.
    file: Option<PathBuf>,
}

impl SecretStore {
    /// Asks for the place of each value. Without a dialogue, no value is stored.
    pub async fn ask(
        secrets: &Secrets,
        entries: &[(String, Entry)],
        (config, shown): (&Path, &str),
        folders: &Folders,
        dialogue: &mut Option<Dialogue>,
    ) -> anyhow::Result<Self> {
        let name = name_of(config);
        let file = folders.path(&format!("CONFIG/callgate/{name}.env"));
        let mut store = Self {
            places: BTreeMap::new(),
            name,
            file: file.filter(|file| !folders.is_of_project(file)),
        };
        let values = secrets.iter();
        let values = values.filter(|(name, it)| !it.value.is_empty() && occurs(entries, name));
        let values: Vec<_> = values.collect();
        let Some(dialogue) = dialogue.as_mut().filter(|_| !values.is_empty()) else {
            return Ok(store);
        };
        let heading = store.heading(shown, folders, values.len() > 1);
        dialogue.show(&heading).await?;
        let fits = |name: &String| fits_keyring(entries, name);
        let has_keyring = values.iter().any(|(name, _)| fits(name)) && has_keyring().await;
        let mut for_rest: Option<Place> = None;
        for (name, secret) in values {
            let is_offered = |place: &Place| match place {
                Place::Keyring => has_keyring && fits(name),
                Place::File => store.file.is_some(),
                Place::Skip => true,
                // The configuration would replace a part of it.
                Place::Plain => !secret.value.contains("${"),
            };
            let mut offered = PLACES.map(|(place, ..)| place).to_vec();
            offered.retain(is_offered);
            let place = match for_rest.filter(|place| offered.contains(place)) {
                Some(place) => place,
                None => {
                    let value = masked(&secret.value);
                    let place = one_line(&secret.place, usize::MAX);
                    dialogue
                        .show(&format!("├ {name}  {value}\n│   in {place}\n"))
                        .await?;
                    let (place, is_for_rest) = ask_for_place(dialogue, &offered).await?;
                    for_rest = if is_for_rest { Some(place) } else { for_rest };
                    place
                }
            };
            store.places.insert(name.clone(), place);
        }
        Ok(store)
    }

    fn heading(&self, shown: &str, folders: &Folders, are_several: bool) -> String {
        let mut text = format!("┌ values that may be secrets are not copied to {shown}\n");
        if let Some(file) = &self.file {
            let file = folders.shown(file);
            text += &format!("│ the file for them is {file}, which only you can read\n");
        }
        if are_several {
            text += "│ add \"all\" to give all the rest the same answer, as in \"s all\"\n";
        }
        text
    }

    /// Stores the values that the entries refer to, and puts plain values and references to the
    /// keyring into the entries. Returns the `envFile` of the configuration.
    pub async fn keep(
        &mut self,
        secrets: &Secrets,
        entries: &mut [(String, Entry)],
        folders: &Folders,
    ) -> anyhow::Result<Option<String>> {
        // The servers of some values may have been left out.
        self.places.retain(|name, _| occurs(entries, name));
        let mut values = EnvFile::default();
        for (name, place) in &self.places {
            let Some(secret) = secrets.get(name) else {
                continue;
            };
            let entries = entries.iter_mut().map(|(_, it)| &mut it.entry);
            match place {
                Place::Keyring => {
                    let account = format!("{}/{name}", self.name);
                    let stored = store_in_keyring(SERVICE, &account, &secret.value).await;
                    stored.with_context(|| format!("{name} cannot be stored in the keyring"))?;
                    print::out(&format!(
                        "stored {name} in the keyring, service {SERVICE}, account {account}\n"
                    ))?;
                    entries.for_each(|entry| put_keyring(entry, name, &account));
                }
                Place::File => values.set(name, &secret.value),
                Place::Skip => {}
                Place::Plain => entries.for_each(|entry| put_plain(entry, name, &secret.value)),
            }
        }
        match &self.file {
            Some(file) if values != EnvFile::default() => {
                write(file, values, folders)?;
                Ok(Some(folders.shown(file)))
            }
            _ => Ok(None),
        }
    }

    /// True if the value of a variable is in the file.
    pub fn has_in_file(&self, name: &str) -> bool {
        self.places.get(name) == Some(&Place::File)
    }
}

/// Asks for one of these places. Also returns whether it is for all the rest.
async fn ask_for_place(
    dialogue: &mut Dialogue,
    offered: &[Place],
) -> anyhow::Result<(Place, bool)> {
    let places = PLACES.iter().filter(|(place, ..)| offered.contains(place));
    let prompts: Vec<&str> = places.clone().map(|(.., prompt)| *prompt).collect();
    let letters: Vec<&str> = places.map(|(_, letter, ..)| *letter).collect();
    let read = |answer: &str| place_of(answer, offered);
    dialogue.ask(&prompts.join("  "), &letters, read).await
}

/// The place that an answer names, and whether it is for all the rest.
fn place_of(answer: &str, offered: &[Place]) -> Option<(Place, bool)> {
    let mut words = answer.split_whitespace();
    let word = words.next()?;
    let is_for_rest = match words.next() {
        None => false,
        Some("all") => true,
        Some(_) => return None,
    };
    let mut places = PLACES.iter();
    let (place, ..) = *places.find(|(_, letter, name, _)| word == *letter || word == *name)?;
    // A person looks at each value before it becomes readable.
    let is_fit = offered.contains(&place) && !(is_for_rest && place == Place::Plain);
    is_fit.then_some((place, is_for_rest))
}

/// A value for people: its length and its start, or nothing of a short one.
fn masked(value: &str) -> String {
    let length = value.chars().count();
    if length < MIN_SHOWN {
        return format!("(under {MIN_SHOWN} characters)");
    }
    let start: String = value.chars().take(4).collect();
    format!("{}… ({length} characters)", one_line(&start, usize::MAX))
}

/// A name for the data of this configuration: that of its folder, and a part of a hash of its path.
fn name_of(config: &Path) -> String {
    let folder = config.parent().and_then(Path::file_name);
    let folder = folder.unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let letters = folder.chars().map(|c| if is_plain(c) { c } else { '_' });
    let name: String = letters.take(MAX_NAME).collect();
    let hash = Sha256::digest(config.as_os_str().as_encoded_bytes());
    let hash = hash.iter().take(4).map(|byte| format!("{byte:02x}"));
    format!("{name}-{}", hash.collect::<String>())
}

/// True if an entry refers to a variable.
fn occurs(entries: &[(String, Entry)], name: &str) -> bool {
    let reference = reference(name);
    let mut entries = entries.iter();
    entries.any(|(_, it)| it.entry.to_string().contains(&reference))
}

/// True if the keyring can stand for a variable wherever the entries refer to it.
fn fits_keyring(entries: &[(String, Entry)], name: &str) -> bool {
    let reference = reference(name);
    entries.iter().all(|(_, it)| {
        let mut entry = it.entry.clone();
        put_keyring(&mut entry, name, "");
        !entry.to_string().contains(&reference)
    })
}

/// Puts the keyring in place of a variable that is a value of `env` or `headers`, or the end of one.
fn put_keyring(entry: &mut Value, name: &str, account: &str) {
    let members = entry.as_object_mut().into_iter().flatten();
    let lists = members.filter(|(key, _)| matches!(key.as_str(), "env" | "headers"));
    let lists = lists.filter_map(|(_, list)| list.as_object_mut());
    for value in lists.flat_map(|list| list.values_mut()) {
        let text = value.as_str().unwrap_or_default();
        let prefix = text.strip_suffix(&reference(name));
        let Some(prefix) = prefix.filter(|prefix| !prefix.contains("${")) else {
            continue;
        };
        let mut source = json!({ "keyring": { "service": SERVICE, "account": account } });
        if !prefix.is_empty() {
            source["prefix"] = prefix.into();
        }
        *value = source;
    }
}

/// Puts a value in place of a variable.
fn put_plain(entry: &mut Value, name: &str, value: &str) {
    match entry {
        Value::String(text) => *text = text.replace(&reference(name), value),
        Value::Array(array) => array.iter_mut().for_each(|it| put_plain(it, name, value)),
        Value::Object(object) => object
            .values_mut()
            .for_each(|it| put_plain(it, name, value)),
        _ => {}
    }
}

/// Adds values to the file.
fn write(file: &Path, values: EnvFile, folders: &Folders) -> anyhow::Result<()> {
    let shown = folders.shown(file);
    let mut all = EnvFile::default();
    if file.symlink_metadata().is_ok() {
        all = EnvFile::read(file)?;
    }
    all.add(values);
    let folder = file.parent().unwrap_or(file);
    let mut new = std::fs::DirBuilder::new();
    let made = new.recursive(true).mode(0o700).create(folder);
    let real = made.and_then(|()| folder.canonicalize());
    let real = real.with_context(|| format!("{} cannot be made", folders.shown(folder)))?;
    if folders.is_of_project(&real) {
        bail!("{shown} leads into this project; nothing was written; remove the link");
    }
    // Other users have no access to temporary files.
    let written = NamedTempFile::new_in(folder).and_then(|mut new| {
        new.write_all(all.text().as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(file)?;
        Ok(())
    });
    written.with_context(|| format!("{shown} cannot be written"))?;
    print::out(&format!("wrote {shown}, which only you can read\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Place; 4] = [Place::Keyring, Place::File, Place::Skip, Place::Plain];

    #[test]
    fn masked_value_shows_start_of_long_ones() {
        for (value, shown) in [
            ("", "(under 12 characters)"),
            ("correcthors", "(under 12 characters)"),
            ("correcthorse", "corr… (12 characters)"),
            ("üüüüüüüüüüüüü", "üüüü… (13 characters)"),
            ("\u{1b}[2J-battery-staple", "\\u001b[2J… (19 characters)"),
        ] {
            assert_eq!(masked(value), shown, "{value:?}");
        }
    }

    #[test]
    fn answers_name_offered_places() {
        let without_keyring = &ALL[1..];
        for (answer, offered, expected) in [
            ("k", &ALL[..], Some((Place::Keyring, false))),
            ("keyring  all", &ALL[..], Some((Place::Keyring, true))),
            ("k", without_keyring, None),
            ("f all", without_keyring, Some((Place::File, true))),
            ("s", without_keyring, Some((Place::Skip, false))),
            ("p", without_keyring, Some((Place::Plain, false))),
            ("p all", without_keyring, None),
            ("f please", without_keyring, None),
            ("all", without_keyring, None),
            ("", without_keyring, None),
        ] {
            let place = place_of(answer, offered);
            assert!(place == expected, "{answer:?}");
        }
    }

    #[test]
    fn keyring_replaces_ends_of_environment_and_headers() {
        for (before, after) in [
            (
                json!({ "command": "x", "env": { "A": "${V}", "B": "b" } }),
                Some(
                    json!({ "command": "x", "env": { "A": { "keyring": { "service": "callgate",
                            "account": "p/V" } }, "B": "b" } }),
                ),
            ),
            (
                json!({ "url": "https://a.b", "headers": { "X": "Basic ${V}" } }),
                Some(
                    json!({ "url": "https://a.b", "headers": { "X": { "keyring": {
                            "service": "callgate", "account": "p/V" }, "prefix": "Basic " } } }),
                ),
            ),
            (json!({ "command": "x", "args": ["--pin", "${V}"] }), None),
            (json!({ "command": "x", "env": { "A": "${V}@db" } }), None),
            (json!({ "command": "x", "env": { "A": "${U}:${V}" } }), None),
        ] {
            let mut entry = before.clone();
            put_keyring(&mut entry, "V", "p/V");
            assert_eq!(entry, after.unwrap_or(before));
        }
    }

    #[test]
    fn name_has_folder_and_hash_of_path() {
        let first = name_of(Path::new("/home/me/my app/callgate.json"));
        let second = name_of(Path::new("/srv/my app/callgate.json"));
        assert!(first.starts_with("my_app-"), "{first}");
        assert_eq!(first.len(), "my_app-".len() + 8);
        assert_ne!(first, second);
    }
}
