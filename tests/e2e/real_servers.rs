//! Scripts that chain other people's servers, checked by their effects.

use std::process::Command;

use callgate_tests::{Ran, Workbench, node, python};
use serde_json::json;

#[track_caller]
fn completed(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:#?}");
}

fn git(folder: &std::path::Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("run git");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("git prints UTF-8")
}

#[test]
fn filesystem_server_file_is_committed_by_git_server() {
    let repository = tempfile::TempDir::with_prefix("callgate-repo-").expect("a folder");
    let path = repository.path().canonicalize().expect("a real path");
    git(&path, &["init", "-q", "-b", "main"]);
    git(&path, &["commit", "-q", "--allow-empty", "-m", "start"]);
    git(&path, &["config", "user.name", "t"]);
    git(&path, &["config", "user.email", "t@example.com"]);
    let folder = path.to_str().expect("a UTF-8 path");
    let bench = Workbench::new(json!({
        "fs": node("server-filesystem", &[folder]),
        "git": python("mcp-server-git", &["--repository", folder]),
    }));
    let script = format!(
        "const folder = {folder:?};
         await fs_write_file({{ path: `${{folder}}/note.txt`, content: 'written by a script\\n' }});
         await git_add({{ repo_path: folder, files: ['note.txt'] }});
         await git_commit({{ repo_path: folder, message: 'Add a note' }});
         const log = await git_log({{ repo_path: folder, max_count: 1 }});
         return String(log).includes('Add a note');"
    );
    let ran = bench.run(&script, &[]);
    completed(&ran);
    assert_eq!(ran.stdout, "true\n");
    let note = std::fs::read_to_string(path.join("note.txt")).expect("the note was written");
    assert_eq!(note, "written by a script\n");
    assert_eq!(git(&path, &["log", "-1", "--format=%s"]), "Add a note\n");
    assert_eq!(
        git(&path, &["show", "HEAD:note.txt"]),
        "written by a script\n"
    );
}

#[test]
fn time_server_result_is_stored_by_memory_server() {
    let store = tempfile::TempDir::with_prefix("callgate-memory-").expect("a folder");
    let file = store.path().join("memory.jsonl");
    let mut memory = node("server-memory", &[]);
    memory["env"] = json!({ "MEMORY_FILE_PATH": file });
    let bench = Workbench::new(json!({
        "memory": memory,
        "time": python("mcp-server-time", &["--local-timezone", "UTC"]),
    }));
    let ran = bench.run(
        "const answer = await time_convert_time({
           source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Kolkata' });
         const { target } = typeof answer === 'string' ? JSON.parse(answer) : answer;
         await memory_create_entities({ entities: [
           { name: 'noon', entityType: 'time', observations: [target.timezone] } ] });
         const found = await memory_search_nodes({ query: 'noon' });
         return found.entities.map((entity) => [entity.name, ...entity.observations]);",
        &[],
    );
    completed(&ran);
    assert_eq!(ran.stdout, "[[\"noon\",\"Asia/Kolkata\"]]\n");
    let stored = std::fs::read_to_string(&file).expect("the memory was written");
    assert!(stored.contains("Asia/Kolkata"), "{stored}");
}
