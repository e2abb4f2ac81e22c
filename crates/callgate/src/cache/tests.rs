//! Files that are read again, and files that are not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use callgate_auth::Source;
use callgate_gate::Definitions as _;
use callgate_policy::Definition;
use callgate_servers::Transport;
use serde_json::{Value, json};

use super::*;

fn ready(tools: &[Value]) -> ToolList {
    ToolList {
        tools: Arc::new(tools.to_vec()),
        protocol_version: "2025-11-25".to_owned(),
        title: Some("S".to_owned()),
        instructions: Some("Be kind.".to_owned()),
        warnings: vec!["it is odd".to_owned()],
        gaps: vec!["its list breaks off".to_owned()],
        ttl: Some(Duration::from_secs(60)),
        login: None,
    }
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn state(ready: &Arc<ToolList>) -> ServerState {
    ServerState {
        name: "s".to_owned(),
        description: None,
        trusted: false,
        status: Status::Ready(Arc::clone(ready)),
        failed: None,
        phase: Phase::Up,
        received: true,
        age: Some(Duration::ZERO),
        stale: false,
    }
}

fn spec() -> ServerSpec {
    let mut spec = ServerSpec::stdio("s", "run", ["a"]);
    if let Transport::Stdio(stdio) = &mut spec.transport {
        let token = Source::text("hunter2");
        stdio.env.insert("TOKEN".to_owned(), token);
    }
    spec
}

fn open(folder: &Path) -> Cache {
    let opened = Cache::open(&CacheConfig::at(folder), None);
    opened.expect("it can be used").expect("there is one")
}

/// The tools that the next process knows of a server.
fn recalled(folder: &Path, spec: ServerSpec) -> (Option<Remembered>, Vec<String>) {
    let cache = open(folder);
    let mut spec = spec;
    cache.recall(&mut spec);
    (spec.remembered, cache.warnings())
}

/// A folder in which a server is kept, and its file.
fn kept() -> (tempfile::TempDir, PathBuf, Arc<ToolList>) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = open(folder.path());
    let ready = Arc::new(ready(&[tool("one"), tool("two")]));
    cache.recall(&mut spec());
    cache.follow(&[state(&ready)]);
    let files = fs::read_dir(folder.path().join("servers")).expect("a folder");
    let files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    let [file] = files.as_slice() else {
        panic!("one file: {files:?}");
    };
    let file = file.clone();
    (folder, file, ready)
}

#[test]
fn cached_list_is_recalled_unchanged() {
    let (folder, file, ready) = kept();
    let (remembered, warnings) = recalled(folder.path(), spec());
    let remembered = remembered.expect("it is known");
    assert_eq!(*remembered.list, *ready);
    assert!(remembered.age < Duration::from_secs(60));
    assert_eq!(warnings, Vec::<String>::new());
    // Other users cannot read it, and no secret is in it.
    for (path, rights) in [
        (folder.path(), 0o700),
        (&folder.path().join("servers"), 0o700),
        (&file, 0o600),
        (&folder.path().join("key"), 0o600),
    ] {
        let mode = fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, rights, "{}", path.display());
    }
    let text = fs::read_to_string(&file).expect("text");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn newer_list_replaces_the_cached_list() {
    let (folder, _, _) = kept();
    let cache = open(folder.path());
    cache.recall(&mut spec());
    let next = Arc::new(super::tests::ready(&[tool("three")]));
    cache.follow(&[state(&next)]);
    let (remembered, _) = recalled(folder.path(), spec());
    assert_eq!(*remembered.expect("it is known").list, *next);
}

/// Another user may see other tools.
#[test]
fn list_of_other_login_is_removed() {
    let (folder, file, ready) = kept();
    let cache = open(folder.path());
    cache.recall(&mut spec());
    let listed = ToolList {
        login: Some("one".into()),
        ..(*ready).clone()
    };
    cache.follow(&[state(&Arc::new(listed))]);
    assert!(file.exists());
    let (remembered, warnings) = recalled(folder.path(), spec());
    assert!(remembered.is_none());
    assert_eq!(warnings, Vec::<String>::new());
    assert!(!file.exists());
}

#[test]
fn unheard_list_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = open(folder.path());
    cache.recall(&mut spec());
    let mut unheard = state(&Arc::new(ready(&[tool("one")])));
    unheard.received = false;
    cache.follow(&[unheard]);
    assert!(recalled(folder.path(), spec()).0.is_none());
}

#[test]
fn cache_scopes_are_separate() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = CacheConfig::at(folder.path());
    let of = |scope| Cache::open(&config, scope).expect("usable").expect("there");
    let ann = of(Some("ann"));
    ann.recall(&mut spec());
    ann.follow(&[state(&Arc::new(ready(&[tool("one")])))]);
    for (scope, knows) in [(Some("ann"), true), (Some("bob"), false), (None, false)] {
        let mut spec = spec();
        of(scope).recall(&mut spec);
        assert_eq!(spec.remembered.is_some(), knows, "{scope:?}");
    }
    let names = walk(folder.path());
    assert!(!names.contains("ann"), "{names}");
}

/// Every path under a folder.
fn walk(folder: &Path) -> String {
    let mut names = String::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        names.push_str(&format!("{}\n", entry.file_name().to_string_lossy()));
        if entry.path().is_dir() {
            names.push_str(&walk(&entry.path()));
        }
    }
    names
}

#[test]
fn unreadable_cache_entry_is_ignored_and_rewritten() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("it is damaged", |file| {
            let text = fs::read(file).expect("a file");
            fs::write(file, &text[..text.len() / 2]).expect("a file");
        }),
        ("it is damaged", |file| {
            let deep = format!("{{\"list\":{}", "[".repeat(1 << 20));
            fs::write(file, deep).expect("a file");
        }),
        ("it is over 67108864 bytes", |file| {
            let file = fs::File::options().write(true).open(file).expect("a file");
            file.set_len(MAX_FILE + 1).expect("a long file");
        }),
        (
            "it is a pipe, a socket or a device, and not a file",
            |file| {
                fs::remove_file(file).expect("a file");
                std::os::unix::fs::symlink("/dev/zero", file).expect("a link");
            },
        ),
    ];
    for (why, damage) in damages {
        let (folder, file, ready) = kept();
        damage(&file);
        let (remembered, warnings) = recalled(folder.path(), spec());
        assert!(remembered.is_none(), "{why}");
        assert_eq!(
            warnings,
            [format!(
                "the kept list of server \"s\" is ignored, and written again: {why}"
            )]
        );
        let cache = open(folder.path());
        cache.recall(&mut spec());
        cache.follow(&[state(&ready)]);
        assert!(recalled(folder.path(), spec()).0.is_some(), "{why}");
    }
}

/// A list from a time to come, or from long ago, is only good for a server that is down.
#[test]
fn cached_age_comes_from_the_file() {
    let age = Duration::from_secs(90_000);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = open(folder.path());
    cache.recall(&mut spec());
    let mut old = state(&Arc::new(super::tests::ready(&[tool("one")])));
    old.age = Some(age);
    cache.follow(&[old]);
    let remembered = recalled(folder.path(), spec()).0.expect("it is known");
    assert!(remembered.age >= age, "{:?}", remembered.age);

    let (folder, file, ready) = kept();
    let came = SystemTime::now() + Duration::from_secs(90_000);
    let text = serde_json::to_vec(&CachedList { list: ready, came }).expect("text");
    fs::write(file, text).expect("a file");
    let remembered = recalled(folder.path(), spec()).0.expect("it is known");
    assert_eq!(remembered.age, Duration::MAX);
}

#[test]
fn cache_folder_permissions_are_tightened() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("rights");
    open(folder.path());
    let mode = fs::metadata(folder.path())
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let error = Cache::open(&CacheConfig::at("/proc/none"), None).err();
    assert!(error.is_some_and(|error| error.starts_with("/proc/none cannot be used")));
}

#[test]
fn definition_with_wrong_hash_is_not_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = open(folder.path());
    let definition = Definition::of(&tool("one"));
    assert!(cache.find(definition.hash()).is_none());
    cache.keep(&definition);
    let found = cache.find(definition.hash()).expect("it is kept");
    assert_eq!(*found, definition);
    let files = fs::read_dir(folder.path().join("definitions")).expect("a folder");
    let file = files.flatten().next().expect("a file").path();
    let text = fs::read_to_string(&file).expect("text");
    fs::write(&file, text.replace("one", "two")).expect("a file");
    assert!(cache.find(definition.hash()).is_none(), "it is another's");
}

#[test]
fn tidy_removes_only_old_files() {
    let (folder, file, _) = kept();
    let left = folder.path().join("servers/.new-1-1");
    fs::write(&left, "half").expect("a file");
    let old = SystemTime::now() - Duration::from_secs(7_200);
    open(folder.path()).tidy();
    assert!(left.exists() && file.exists(), "both are new");
    for path in [&left, &file] {
        let opened = fs::File::options().write(true).open(path).expect("a file");
        opened.set_modified(old).expect("a time");
    }
    open(folder.path()).tidy();
    assert!(!left.exists() && file.exists());
    let opened = fs::File::options().write(true).open(&file).expect("a file");
    opened
        .set_modified(SystemTime::now() - UNUSED * 2)
        .expect("a time");
    open(folder.path()).tidy();
    assert!(!file.exists());
}
