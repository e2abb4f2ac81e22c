//! One TypeScript program for all cases: a statement on a line of its own for
//! each, and the lines that diagnostics name give the verdicts.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use callgate_typegen::{Detail, ToolSchema, generate};
use serde_json::{Value, json};

/// TypeScript's verdict on an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Taken,
    /// The instance fits, but as a literal it has keys that the type does not list.
    Unlisted,
    Rejected,
}

/// Declares a tool for each schema, with the schema for its result, and checks the instances
/// against the type of that result: for each schema, the verdicts of its instances.
///
/// An instance is checked as a literal, of which TypeScript wants every key
/// listed, and as a value of a type, of which it does not. But even then it
/// wants an object to share a key with a type whose properties are all optional;
/// so that second check is made with one more key, on both sides.
pub fn check(name: &str, schemas: &[(&Value, Vec<&Value>)]) -> Vec<Vec<Verdict>> {
    let functions: Vec<String> = (0..schemas.len())
        .map(|index| format!("s_{index}"))
        .collect();
    let declarations = format!("{CALL_OPTIONS}{}", declare(&functions, schemas));
    let relaxed = format!(
        "declare namespace Relaxed {{\n{}}}\n",
        with_shared_key(&declarations)
    );

    let mut program = PROGRAM.to_owned();
    let mut line = PROGRAM.lines().count() + 1;
    // The case on each line: the schema, the instance, and the form of the instance.
    let mut lines = HashMap::new();
    for (index, (_, instances)) in schemas.iter().enumerate() {
        let _ = writeln!(program, "type R{index} = Result<typeof s_{index}>;");
        let _ = writeln!(program, "type V{index} = Result<typeof Relaxed.s_{index}>;");
        line += 2;
        for (number, instance) in instances.iter().enumerate() {
            let (value, ty) = (Form::Literal.text(instance), Form::Type.text(instance));
            let _ = writeln!(program, "{{ const v: R{index} = {value}; }}");
            let _ = writeln!(program, "{{ const v: V{index} = null! as {ty}; }}");
            lines.insert(line, (index, number, Form::Literal));
            lines.insert(line + 1, (index, number, Form::Type));
            line += 2;
        }
    }
    let files = [
        ("catalog.d.ts", &declarations),
        ("relaxed.d.ts", &relaxed),
        ("cases.ts", &program),
    ];
    let mut refused = HashSet::new();
    for diagnostic in run(name, &files) {
        match diagnostic.file.as_str() {
            "cases.ts" if lines.contains_key(&diagnostic.line) => {
                refused.insert(lines[&diagnostic.line]);
            }
            // The key added does not fit every index signature.
            "relaxed.d.ts" => {}
            _ => panic!("the declarations themselves are wrong: {diagnostic:?}"),
        }
    }
    let verdict = |index, number| {
        let refused = |form| refused.contains(&(index, number, form));
        match (refused(Form::Literal), refused(Form::Type)) {
            (false, _) => Verdict::Taken,
            (true, false) => Verdict::Unlisted,
            (true, true) => Verdict::Rejected,
        }
    };
    let of_schema = |(index, (_, instances)): (usize, &(_, Vec<&Value>))| {
        (0..instances.len())
            .map(|number| verdict(index, number))
            .collect()
    };
    schemas.iter().enumerate().map(of_schema).collect()
}

/// The ambient types that the declarations need.
const CALL_OPTIONS: &str = "type CallOptions = { timeoutMs?: number };\n";

const PROGRAM: &str = "\
export {};
type Result<F> = F extends (...input: never) => Promise<infer T> ? T : never;
";

/// The declarations with one more optional key in every object type that begins with a property.
fn with_shared_key(declarations: &str) -> String {
    let mut text = String::with_capacity(declarations.len() * 2);
    let mut rest = declarations;
    while let Some(start) = rest.find(['{', '"', '/']) {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let end = if from.starts_with("/*") {
            from.find("*/").unwrap() + 2
        } else if let Some(string) = from.strip_prefix('"') {
            let mut escaped = false;
            let end = string.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.unwrap() + 2
        } else {
            1
        };
        let (token, after) = from.split_at(end);
        text.push_str(token);
        if token == "{" && !after.trim_start().starts_with('[') {
            text.push_str(" \"~\"?: never;");
        }
        rest = after;
    }
    text.push_str(rest);
    text.replace("declare function", "function")
}

fn declare(functions: &[String], schemas: &[(&Value, Vec<&Value>)]) -> String {
    let input = json!({ "type": "object" });
    let tools: Vec<ToolSchema<'_>> = functions
        .iter()
        .zip(schemas)
        .map(|(function, (schema, _))| ToolSchema {
            server: "s",
            tool: function,
            function,
            title: None,
            description: None,
            input: &input,
            output: Some(schema),
        })
        .collect();
    generate(&tools).text(Detail::Full, |_| true)
}

#[derive(Debug)]
struct Diagnostic {
    file: String,
    line: usize,
    text: String,
}

/// Compiles files in a folder of the test's own.
fn run(name: &str, files: &[(&str, &String)]) -> Vec<Diagnostic> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("oracle")
        .join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let output = Command::new(executable())
        .args("--noEmit --strict --pretty false --ignoreConfig".split(' '))
        .args(["--target", "esnext", "--lib", "esnext", "--types", ""])
        .args(files.iter().map(|(file, _)| file))
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for line in text.lines() {
        match (position(line), diagnostics.last_mut()) {
            (Some((file, number)), _) => diagnostics.push(Diagnostic {
                file: file.to_owned(),
                line: number,
                text: line.to_owned(),
            }),
            (None, Some(last)) => {
                last.text.push('\n');
                last.text.push_str(line);
            }
            (None, None) => panic!("TypeScript says: {text}"),
        }
    }
    assert_eq!(
        output.status.success(),
        diagnostics.is_empty(),
        "{output:?}"
    );
    diagnostics
}

/// The file and line of `cases.ts(12,3): error …`.
fn position(line: &str) -> Option<(&str, usize)> {
    let (file, rest) = line.split_once('(')?;
    if file.starts_with(' ') || !file.ends_with(".ts") {
        return None;
    }
    Some((file, rest.split_once(',')?.0.parse().ok()?))
}

/// The compiler: the one the environment names, else the one that set-up put
/// below the target directory.
fn executable() -> PathBuf {
    if let Some(named) = std::env::var_os("CALLGATE_TYPESCRIPT").filter(|named| !named.is_empty()) {
        return named.into();
    }
    let program = format!("lib/tsc{}", std::env::consts::EXE_SUFFIX);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let packages = target.join("typescript/node_modules/@typescript");
    let installed = packages.read_dir().into_iter().flatten().flatten();
    installed
        .map(|package| package.path().join(&program))
        .find(|file| file.is_file())
        .expect("TypeScript is not installed: run `cargo xtask setup`, or name its executable in CALLGATE_TYPESCRIPT")
}

/// The form in which an instance is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    Literal,
    /// A type, in which each object has the key that [`with_shared_key`] adds.
    Type,
}

impl Form {
    /// JSON is TypeScript already, but for one key, which in a literal would set the prototype.
    fn text(self, value: &Value) -> String {
        match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.text(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| {
                    let is_special = self == Self::Literal && key == "__proto__";
                    let key = if is_special {
                        r#"["__proto__"]"#.to_owned()
                    } else {
                        json!(key).to_string()
                    };
                    format!("{key}: {}", self.text(value))
                });
                let mut entries: Vec<String> = entries.collect();
                if self == Self::Type {
                    entries.push("\"~\": never".to_owned());
                }
                format!("{{ {} }}", entries.join(", "))
            }
            other => other.to_string(),
        }
    }
}
