//! The files that TypeScript sees. They lie in memory, and whatever it asks for
//! besides them does not exist.

use serde_json::{Value, json};

pub(crate) const FOLDER: &str = "/callgate";
pub(crate) const PROJECT: &str = "/callgate/tsconfig.json";
pub(crate) const SCRIPT: &str = "/callgate/script.ts";
pub(crate) const TOOLS: &str = "/callgate/tools.d.ts";

/// Declarations of the sandbox besides the language and `mcp`.
const SANDBOX: &str = include_str!("sandbox.d.ts");

/// The questions about files that are answered here. TypeScript answers
/// questions that are not on the list itself, from the disk.
pub(crate) const QUESTIONS: &str =
    "--callbacks=readFile,fileExists,directoryExists,getAccessibleEntries,realpath";

#[derive(Debug)]
pub(crate) struct Files {
    /// Path and content, the content as the answer to `readFile`.
    fixed: Vec<(String, String)>,
    script: String,
    tools: String,
}

impl Files {
    pub(crate) fn new(library: &[String]) -> Self {
        let mut fixed: Vec<(String, String)> = library
            .iter()
            .enumerate()
            .map(|(number, text)| (format!("{FOLDER}/lib{number}.d.ts"), content(text)))
            .collect();
        fixed.push((format!("{FOLDER}/sandbox.d.ts"), content(SANDBOX)));
        fixed.push((
            format!("{FOLDER}/mcp.d.ts"),
            content(callgate_typegen::ambient()),
        ));
        let mut names: Vec<&str> = fixed.iter().map(|(path, _)| path.as_str()).collect();
        names.extend([TOOLS, SCRIPT]);
        let project = content(&project(&names));
        fixed.push((PROJECT.to_owned(), project));
        Self {
            fixed,
            script: content(""),
            tools: content(""),
        }
    }

    /// Changes the script and the declarations; the paths of those files that
    /// are not what they were.
    pub(crate) fn set(&mut self, script: &str, tools: &str) -> Vec<&'static str> {
        let mut changed = Vec::new();
        for (path, file, text) in [
            (SCRIPT, &mut self.script, script),
            (TOOLS, &mut self.tools, tools),
        ] {
            let text = content(text);
            if *file != text {
                *file = text;
                changed.push(path);
            }
        }
        changed
    }

    /// The answer to a question about files, as JSON; `None` for a question that is not allowed. It
    /// is never `null`, which would mean that the disk is to be asked.
    pub(crate) fn answer(&self, question: &str, path: &str) -> Option<String> {
        Some(match question {
            "readFile" => self.file(path).unwrap_or("{\"content\":null}").to_owned(),
            "fileExists" => self.file(path).is_some().to_string(),
            "directoryExists" => matches!(path, "/" | FOLDER).to_string(),
            "getAccessibleEntries" => json!({ "files": [], "directories": [] }).to_string(),
            "realpath" => Value::from(path).to_string(),
            _ => return None,
        })
    }

    fn file(&self, path: &str) -> Option<&str> {
        match path {
            SCRIPT => Some(&self.script),
            TOOLS => Some(&self.tools),
            path => {
                let found = self.fixed.iter().find(|(fixed, _)| fixed == path);
                found.map(|(_, content)| content.as_str())
            }
        }
    }
}

fn content(text: &str) -> String {
    json!({ "content": text }).to_string()
}

fn project(files: &[&str]) -> String {
    json!({
        "compilerOptions": {
            "strict": true,
            // What is caught here is an error with a message, and a script that logs
            // it is not wrong.
            "useUnknownInCatchVariables": false,
            "target": "esnext",
            "module": "esnext",
            "moduleDetection": "force",
            "noEmit": true,
            // The library is among the files, and nothing else is looked for.
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
    fn only_these_files_are_there() {
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
    fn only_what_is_new_has_changed() {
        let mut files = files();
        assert_eq!(files.set("script", "tools"), [""; 0]);
        assert_eq!(files.set("other", "tools"), [SCRIPT]);
        assert_eq!(files.set("more", "others"), [SCRIPT, TOOLS]);
    }
}
