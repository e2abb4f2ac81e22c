//! The search for TypeScript, and the errors for programs that cannot be used.

use callgate_check::find;

/// Files of TypeScript's packages below a folder.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        self
    }

    /// The package with the program.
    fn native(&self, package: &str, version: &str) -> &Self {
        self.write(&format!("{package}/lib/tsc"), "")
            .write(&format!("{package}/lib/lib.esnext.d.ts"), "")
            .manifest(package, version)
    }

    fn manifest(&self, package: &str, version: &str) -> &Self {
        let manifest = format!("{{ \"version\": \"{version}\" }}");
        self.write(&format!("{package}/package.json"), &manifest)
    }

    #[track_caller]
    fn check(&self, named: Option<&str>, program: &str, project: &str, expected: &str) {
        let named = named.map(|named| self.path(named));
        let (program, project) = (self.path(program), self.path(project));
        let found = find(named.as_deref(), Some(&program), Some(&project));
        let said = match found {
            Ok(found) => format!("{} {}", found.version, found.path.display()),
            Err(error) => error.to_string(),
        };
        let root = std::fs::canonicalize(self.0.path()).expect("it is there");
        let said = said.replace(&root.display().to_string(), "");
        assert_eq!(said.replace(PLATFORM, "PLATFORM"), expected);
    }
}

const NOT_FOUND: &str = "TypeScript 7 was not found; install it with `npm install typescript@7`, \
                         or name it under \"check\", \"typescript\" in the configuration";

const PLATFORM: &str = match (cfg!(target_os = "macos"), cfg!(target_arch = "aarch64")) {
    (false, false) => "typescript-linux-x64",
    (false, true) => "typescript-linux-arm64",
    (true, false) => "typescript-darwin-x64",
    (true, true) => "typescript-darwin-arm64",
};

fn modules(folder: &str) -> String {
    format!("{folder}/node_modules/@typescript/{PLATFORM}")
}

#[test]
fn configured_program_is_the_only_candidate() {
    let tree = Tree::new();
    tree.native("opt/ts", "7.1.0")
        .native(&modules("opt/project"), "7.0.2");
    tree.native("bin/typescript", "7.0.0")
        .native("opt/old", "6.9.0");
    tree.write("opt/tool/lib/tsc", "").write("bin/tsc", "");
    let is_none = |path: &str, why: &str| {
        format!(r#"{path} is not native TypeScript: {why}; change "check", "typescript""#)
    };
    let place = "it is not in the lib folder of its package, as lib/tsc is";
    let lacks = "it has neither lib/tsc nor node_modules with TypeScript 7";
    let old = "TypeScript 6.9.0 in /opt/old/lib/tsc is too old; install version 7 or later with \
               `npm install typescript@7`";
    for (named, expected) in [
        ("opt/ts", "7.1.0 /opt/ts/lib/tsc".to_owned()),
        ("opt/ts/lib/tsc", "7.1.0 /opt/ts/lib/tsc".to_owned()),
        (
            "opt/project",
            "7.0.2 /opt/project/node_modules/@typescript/PLATFORM/lib/tsc".to_owned(),
        ),
        ("opt/old", old.to_owned()),
        ("opt/none", is_none("/opt/none", "there is no such file")),
        ("opt", is_none("/opt", lacks)),
        ("opt/tool/lib/tsc", is_none("/opt/tool/lib/tsc", place)),
        ("bin/tsc", is_none("/bin/tsc", place)),
    ] {
        tree.check(Some(named), "bin/callgate", "project", &expected);
    }
}

#[test]
fn program_beside_callgate_precedes_the_project() {
    let tree = Tree::new();
    tree.native(&modules("target/typescript"), "7.0.2")
        .native(&modules("project"), "7.1.0")
        .write("target/debug/callgate", "");
    tree.check(
        None,
        "target/debug/callgate",
        "project",
        "7.0.2 /target/typescript/node_modules/@typescript/PLATFORM/lib/tsc",
    );
    tree.check(
        None,
        "target/debug/examples/embed",
        "project",
        "7.1.0 /project/node_modules/@typescript/PLATFORM/lib/tsc",
    );
    tree.native("target/debug/typescript", "7.2.0");
    tree.check(
        None,
        "target/debug/callgate",
        "project",
        "7.2.0 /target/debug/typescript/lib/tsc",
    );
}

#[test]
fn project_and_parent_folders_are_searched() {
    let tree = Tree::new();
    tree.native(&modules("project"), "7.0.2");
    tree.check(
        None,
        "bin/callgate",
        "project/a/b",
        "7.0.2 /project/node_modules/@typescript/PLATFORM/lib/tsc",
    );
    tree.check(None, "bin/callgate", "elsewhere", NOT_FOUND);
    // The nearest usable program.
    tree.manifest("project/a/node_modules/typescript", "5.9.3");
    tree.check(
        None,
        "bin/callgate",
        "project/a/b",
        "7.0.2 /project/node_modules/@typescript/PLATFORM/lib/tsc",
    );
}

#[test]
fn unusable_programs_are_named() {
    let tree = Tree::new();
    tree.manifest("old/node_modules/typescript", "5.9.3");
    tree.check(None, "bin/callgate", "old/src", "TypeScript 5.9.3 in /old/node_modules/typescript is too old; install version 7 or later with `npm install typescript@7`");
    tree.manifest("half/node_modules/typescript", "7.0.2");
    tree.check(None, "bin/callgate", "half", "TypeScript 7.0.2 in /half/node_modules/typescript lacks its native program for this machine (@typescript/PLATFORM); install it again with its optional dependencies");
    tree.manifest("odd/node_modules/typescript", "\\u001b[31m7");
    tree.check(None, "bin/callgate", "odd", NOT_FOUND);
}

#[test]
fn a_link_of_a_package_manager_is_followed() {
    let tree = Tree::new();
    let store = "project/node_modules/.pnpm/typescript@7.0.2/node_modules";
    tree.manifest(&format!("{store}/typescript"), "7.0.2")
        .native(&format!("{store}/@typescript/{PLATFORM}"), "7.0.2");
    let (from, to) = (
        tree.path(&format!("{store}/typescript")),
        tree.path("project/node_modules/typescript"),
    );
    std::os::unix::fs::symlink(from, to).expect("a link");
    tree.check(None, "bin/callgate", "project", "7.0.2 /project/node_modules/.pnpm/typescript@7.0.2/node_modules/@typescript/PLATFORM/lib/tsc");
}

#[test]
fn program_of_another_user_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let tree = Tree::new();
    tree.native(&modules("shared/app"), "7.0.2");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(tree.path("shared/app/node_modules"), open).expect("a mode");
    tree.check(
        None,
        "bin/callgate",
        "shared/app/src",
        "TypeScript 7.0.2 in /shared/app/node_modules/@typescript/PLATFORM/lib/tsc is in a folder \
         that other users may write to (/shared/app/node_modules), who can replace it; name it \
         under \"check\", \"typescript\" in the configuration to use it",
    );
    tree.native("bin/typescript", "7.1.0");
    // Only root can give files away.
    if chown(tree.path("bin/typescript"), Some(4242), None).is_ok() {
        tree.check(
            None,
            "bin/callgate",
            "elsewhere",
            "TypeScript 7.1.0 in /bin/typescript/lib/tsc may come from another user; name it under \
             \"check\", \"typescript\" in the configuration to use it",
        );
        chown(tree.path("bin"), Some(4242), None).expect("an owner");
        tree.check(
            None,
            "bin/callgate",
            "elsewhere",
            "7.1.0 /bin/typescript/lib/tsc",
        );
    }
}
