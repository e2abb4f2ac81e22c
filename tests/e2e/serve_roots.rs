//! The folders of a client of `callgate serve` reach servers that ask for them outside of
//! calls.

use std::path::{Path, PathBuf};

use callgate_tests::{Workbench, node};
use serde_json::{Value, json};

use crate::serve_client::{OLDER, Session, User, can, connect, value};

/// A folder with a file in it.
struct Folder {
    _kept: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    fn new(text: &str) -> Self {
        let kept = tempfile::TempDir::with_prefix("callgate-root-").expect("a folder");
        let path = kept.path().canonicalize().expect("a real path");
        std::fs::write(path.join("note.txt"), text).expect("a file");
        Self { _kept: kept, path }
    }

    fn uri(&self) -> String {
        format!("file://{}", self.path.display())
    }
}

/// A client of 2025-11-25 that names these folders.
async fn connect_with(bench: &Workbench, roots: &[String]) -> Session {
    let mut user = User::new(&OLDER[1], &[]);
    user.can = can(json!({ "roots": { "listChanged": true } }));
    *user.roots.lock().expect("no panic") = roots.to_vec();
    connect(bench, user, &[]).await
}

/// Reads the notes in these folders when the server allows the last one.
async fn read(session: &Session, folders: [&Path; 2]) -> Value {
    // It takes an answer in while it takes calls already.
    let script = format!(
        "const folders = {folders:?};
         for (;;) {{
           const allowed = String(JSON.stringify(await fs_list_allowed_directories({{}})));
           if (allowed.includes(folders[1])) break;
         }}
         const read = (folder: string) => fs_read_text_file({{ path: `${{folder}}/note.txt` }})
           .then(JSON.stringify, error => String(error));
         return await Promise.all(folders.map(read));"
    );
    let (is_error, said) = session.run(&script).await;
    assert!(!is_error, "{said}");
    serde_json::from_str(value(&said)).expect("JSON")
}

#[tokio::test]
async fn filesystem_server_works_in_the_client_folders() {
    let (first, second) = (Folder::new("the first"), Folder::new("the second"));
    // The server has no folder of its own, and allows nothing until it gets one.
    let bench = Workbench::new(json!({ "fs": node("server-filesystem", &[]) }));
    let session = connect_with(&bench, &[first.uri()]).await;
    let check = async |refused: &Folder, allowed: &Folder, text: &str| {
        let read = read(&session, [&refused.path, &allowed.path]).await;
        let outside = "Access denied - path outside allowed directories";
        assert!(read[0].to_string().contains(outside), "{read}");
        assert!(read[1].to_string().contains(text), "{read}");
    };
    check(&second, &first, "the first").await;
    session.change_roots(&[&second.uri()]).await;
    check(&first, &second, "the second").await;
}

#[tokio::test]
async fn client_folders_do_not_replace_configured_ones() {
    let (own, other) = (Folder::new("its own"), Folder::new("the client's"));
    // In the server's arguments alone, and for all servers.
    for roots in [json!([]), json!([own.path])] {
        let bench = Workbench::with_config(json!({
            "mcpServers": { "fs": node("server-filesystem", &[&own.path.to_string_lossy()]) },
            "permissions": { "allow": ["*"] },
            "roots": roots,
            "serve": { "roots": "configured" },
        }));
        let session = connect_with(&bench, &[other.uri()]).await;
        let read = read(&session, [&other.path, &own.path]).await;
        assert!(read[0].to_string().contains("Access denied"), "{read}");
        assert!(read[1].to_string().contains("its own"), "{read}");
    }
}
