//! The files that TypeScript sees. They are in memory; all other files do not exist for it.

use std::collections::HashMap;

use serde_json::{Value, json};

pub(crate) const FOLDER: &str = "/callgate";
pub(crate) const PROJECT: &str = "/callgate/tsconfig.json";
pub(crate) const SCRIPT: &str = "/callgate/script.ts";
pub(crate) const TOOLS: &str = "/callgate/tools.d.ts";

/// Declarations of the sandbox, without the language and `mcp`.
const SANDBOX: &str = include_str!("sandbox.d.ts");

/// The requests about files that [`Files::answer`] answers. TypeScript answers requests that are not
/// on this list itself, from the disk.
pub(crate) const QUESTIONS: &str =
    "--callbacks=readFile,fileExists,directoryExists,getAccessibleEntries,realpath";

/// Paths and contents, the contents as the answers to `readFile`.
#[derive(Debug)]
pub(crate) struct Files(HashMap<String, String>);

impl Files {
    pub(crate) fn new(library: &[String]) -> Self {
        let library = library.iter().enumerate();
        let mut fixed: Vec<(String, String)> = library
            .map(|(number, text)| (format!("{FOLDER}/lib{number}.d.ts"), content(text)))
            .collect();
        fixed.push((format!("{FOLDER}/globals.d.ts"), content(&globals())));
        let mut names: Vec<&str> = fixed.iter().map(|(path, _)| path.as_str()).collect();
        names.extend([TOOLS, SCRIPT]);
        let project = content(&project(&names));
        let mut files = Self(fixed.into_iter().collect());
        files.0.insert(PROJECT.to_owned(), project);
        files.set("", "");
        files
    }

    /// Sets the script and the declarations. Returns the paths of changed files.
    pub(crate) fn set(&mut self, script: &str, tools: &str) -> Vec<&'static str> {
        let mut changed = Vec::new();
        for (path, text) in [(SCRIPT, script), (TOOLS, tools)] {
            let text = content(text);
            if self.0.get(path) != Some(&text) {
                self.0.insert(path.to_owned(), text);
                changed.push(path);
            }
        }
        changed
    }

    /// The answer to a request about files, as JSON; `None` for an unknown request. The answer is
    /// never `null`, which would make TypeScript read the disk.
    pub(crate) fn answer(&self, question: &str, path: &str) -> Option<String> {
        Some(match question {
            "readFile" => {
                let none = || "{\"content\":null}".to_owned();
                self.0.get(path).cloned().unwrap_or_else(none)
            }
            "fileExists" => self.0.contains_key(path).to_string(),
            "directoryExists" => matches!(path, "/" | FOLDER).to_string(),
            "getAccessibleEntries" => json!({ "files": [], "directories": [] }).to_string(),
            "realpath" => Value::from(path).to_string(),
            _ => return None,
        })
    }
}

/// The declarations of the sandbox's globals and of `mcp`: what a script has besides the language
/// and its tools.
pub fn globals() -> String {
    let texts = [SANDBOX, callgate_typegen::ambient()];
    texts.map(without_classes).concat()
}

/// Declarations with an interface and a variable in place of each class: TypeScript has no class in
/// `globalThis`. Only for the texts of this project, where a constructor or a static member is one
/// line, and a class without a constructor has that of `Error` if it extends a class.
fn without_classes(text: &str) -> String {
    let mut parts = text.split("declare class ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (class, rest) = part.split_once("\n}").unwrap_or((part, ""));
        let (head, body) = class.split_once(" {").unwrap_or((class, ""));
        let (own, base) = head.split_once(" extends ").unwrap_or((head, ""));
        let (name, parameters) = own.split_at(own.find('<').unwrap_or(own.len()));
        // `CustomEvent<T>` of `CustomEvent<T = any>`.
        let instance = match own.split_once(" = ") {
            Some((own, _)) => format!("{own}>"),
            None => own.to_owned(),
        };
        let mut creation = "new";
        let mut arguments = if base.is_empty() {
            ""
        } else {
            "message?: string, options?: ErrorOptions"
        };
        let mut members = String::new();
        let mut statics = String::new();
        for line in body.lines() {
            if let Some(given) = line.strip_prefix("  constructor(") {
                arguments = given.trim_end_matches(");");
            } else if line == "  private constructor();" {
                (creation, arguments) = ("abstract new", "");
            } else if let Some(member) = line.strip_prefix("  static ") {
                statics.push_str(&format!("  {member}\n"));
            } else {
                members.push_str(&format!("{line}\n"));
            }
        }
        out.push_str(&format!(
            "interface {head} {{{members}}}\n\
             declare var {name}: ({creation} {parameters}({arguments}) => {instance}) & {{\n\
             \x20 readonly prototype: {name};\n{statics}}};{rest}"
        ));
    }
    out
}

fn content(text: &str) -> String {
    json!({ "content": text }).to_string()
}

fn project(files: &[&str]) -> String {
    json!({
        "compilerOptions": {
            "strict": true,
            // A caught value in the sandbox is an error with a message, so a script may
            // log the message without a type check.
            "useUnknownInCatchVariables": false,
            "target": "esnext",
            "module": "esnext",
            "moduleDetection": "force",
            "noEmit": true,
            // The library is among the files; TypeScript searches for no other files.
            "noLib": true,
            "noResolve": true,
            "types": [],
            "skipLibCheck": true,
        },
        "files": files,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let mut files = Files::new(&["interface Array<T> {}".to_owned()]);
        files.set("script", "tools");
        files
    }

    #[test]
    fn checker_sees_only_the_given_files() {
        let files = files();
        let check = |question, path, expected: &str| {
            assert_eq!(
                files.answer(question, path).as_deref(),
                Some(expected),
                "{question} {path}"
            );
        };
        check("readFile", SCRIPT, r#"{"content":"script"}"#);
        check(
            "readFile",
            "/callgate/lib0.d.ts",
            r#"{"content":"interface Array<T> {}"}"#,
        );
        check("readFile", "/etc/passwd", r#"{"content":null}"#);
        check("readFile", "/callgate/../etc/passwd", r#"{"content":null}"#);
        check("fileExists", TOOLS, "true");
        check("fileExists", "/etc/passwd", "false");
        check("directoryExists", "/callgate", "true");
        check("directoryExists", "/etc", "false");
        check(
            "getAccessibleEntries",
            "/",
            r#"{"files":[],"directories":[]}"#,
        );
        check("realpath", "/a\"b", r#""/a\"b""#);
        assert_eq!(files.answer("writeFile", "/callgate/x"), None);
    }

    #[test]
    fn classes_become_interfaces_and_variables() {
        let check = |text: &str, expected: &str| assert_eq!(without_classes(text), expected);
        check("type A = 1;\n", "type A = 1;\n");
        check(
            "/** One. */
declare class A {
  static make(a: {}): A;
  constructor(a?: { b: 1 });
  c(
    d: 1,
  ): void;
}
type B = 1;
",
            "/** One. */
interface A {
  c(
    d: 1,
  ): void;
}
declare var A: (new (a?: { b: 1 }) => A) & {
  readonly prototype: A;
  make(a: {}): A;
};
type B = 1;
",
        );
        check(
            "declare class A<T = any> extends B {
  private constructor();
  readonly c: T;
}
declare class D extends Error {
  d: 1;
}",
            "interface A<T = any> extends B {
  readonly c: T;
}
declare var A: (abstract new <T = any>() => A<T>) & {
  readonly prototype: A;
};
interface D extends Error {
  d: 1;
}
declare var D: (new (message?: string, options?: ErrorOptions) => D) & {
  readonly prototype: D;
};",
        );
    }

    #[test]
    fn only_new_contents_count_as_changed() {
        let mut files = files();
        assert_eq!(files.set("script", "tools"), [""; 0]);
        assert_eq!(files.set("other", "tools"), [SCRIPT]);
        assert_eq!(files.set("more", "others"), [SCRIPT, TOOLS]);
    }
}
