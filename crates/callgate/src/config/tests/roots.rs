//! Folders for servers to work in.

use super::*;

#[track_caller]
fn check_roots(roots: &str, expected: Expect) {
    let mut out = String::new();
    match read("callgate.json", &format!("{{\"roots\": {roots}}}")) {
        Ok(config) => {
            for root in &config.roots {
                writeln!(out, "{} {:?}", root.uri, root.name).unwrap();
            }
        }
        Err(error) => writeln!(out, "{error}").unwrap(),
    }
    expected.assert_eq(&out);
}

#[test]
fn paths_start_at_the_file_and_become_urls() {
    check_roots(
        r#"[".", "a b/../ü", "/srv/${HOST}", "..", "${workspaceFolder}/x"]"#,
        expect![[r#"
            file:///project Some("project")
            file:///project/%C3%BC Some("ü")
            file:///srv/example.com Some("example.com")
            file:/// None
            file:///project/x Some("x")
        "#]],
    );
}

#[test]
fn what_is_no_list_of_folders() {
    check_roots(
        r#"["", 1, "${NOT_SET}"]"#,
        expect![[r#"
            callgate.json:1:12: "roots" must hold paths of folders, such as "."
            callgate.json:1:16: "roots" in the file must be an array of strings, and this is a number
            callgate.json:1:19: "roots": environment variable "NOT_SET" is not set; set it, or write "${NOT_SET:-default}"
        "#]],
    );
    check_roots(
        r#"".""#,
        expect![[r#"
            callgate.json:1:11: "roots" in the file must be an array of strings, and this is a string
        "#]],
    );
}
