//! Finds TypeScript for the tests, and writes its errors as text.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callgate_check::{Checked, Confinement, Executable, Script, TypeScript, find};

/// The TypeScript that set-up installed.
pub fn executable() -> Executable {
    let named = std::env::var_os("CALLGATE_TYPESCRIPT").map(PathBuf::from);
    let target = std::env::current_exe().ok();
    // The test lies in target/PROFILE/deps; TypeScript in target/typescript.
    let program = target.as_deref().and_then(|exe| exe.ancestors().nth(2));
    let program = program.map(|folder| folder.join("x"));
    find(named.as_deref(), program.as_deref(), None)
        .expect("TypeScript is installed; run `cargo xtask setup --tests` first")
}

pub fn checker() -> TypeScript {
    TypeScript::new(&executable(), Confinement::default())
}

/// A script of statements, in the form of `callgate-script`.
pub fn script(text: &str, declarations: &str) -> Script {
    Script {
        text: format!("export {{}};\n{text}\n"),
        line_offset: 1,
        is_javascript: false,
        declarations: Arc::from(declarations),
        untyped: Arc::from(untyped(declarations)),
        time: Duration::from_secs(60),
    }
}

/// The functions of declarations as values of type `any`.
fn untyped(declarations: &str) -> String {
    let names = declarations.split("declare function ").skip(1);
    let names = names.filter_map(|rest| rest.split_once('('));
    names
        .map(|(name, _)| format!("declare const {name}: any;\n"))
        .collect()
}

/// One line for each error, and the number of further errors.
pub fn shown(checked: &Checked) -> String {
    let mut text = String::new();
    for error in &checked.diagnostics {
        text += &format!("{}:{} {}\n", error.line, error.column, error.message);
    }
    if checked.more > 0 {
        text += &format!("and {} more\n", checked.more);
    }
    text
}

/// The errors that a real TypeScript reports for a script.
pub fn check(declarations: &str, text: &str) -> String {
    runtime().block_on(async {
        let checked = checker().check(script(text, declarations)).await;
        shown(&checked.expect("an answer"))
    })
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}
