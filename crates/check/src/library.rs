//! The declarations of the language, from the library of TypeScript: one file without comments in
//! place of eighty, and without APIs that the sandbox lacks.

use std::collections::HashSet;
use std::path::Path;

use crate::scan::without_comments;

/// Maximum bytes of the library.
const MAX_BYTES: u64 = 16 << 20;

/// Parts that declare APIs that the sandbox lacks.
const EXCLUDED: &[&str] = &[
    // No shared memory and no `Atomics`.
    "es2017.sharedmemory",
    "es2020.sharedmemory",
    "es2024.sharedmemory",
    "esnext.sharedmemory",
    // No `Temporal`; the second part only refers to it.
    "esnext.temporal",
    "esnext.date",
    // No decorators, and no `Symbol.metadata`.
    "decorators",
    "decorators.legacy",
    "esnext.decorators",
];

/// Lines that are replaced, and their replacements.
pub(crate) const CHANGED_LINES: &[(&str, &str)] = &[
    // Code made from text throws in the sandbox.
    ("declare function eval(x: string): any;", ""),
    ("new (...args: string[]): Function;", ""),
    ("(...args: string[]): Function;", ""),
    ("new (...args: string[]): GeneratorFunction;", ""),
    ("(...args: string[]): GeneratorFunction;", ""),
    ("new (...args: string[]): AsyncGeneratorFunction;", ""),
    ("(...args: string[]): AsyncGeneratorFunction;", ""),
    // The types in an object or a set that JavaScript fills later are unknown.
    (
        "values<T>(o: { [s: string]: T; } | ArrayLike<T>): T[];",
        "values<T = any>(o: { [s: string]: T; } | ArrayLike<T>): T[];",
    ),
    (
        "entries<T>(o: { [s: string]: T; } | ArrayLike<T>): [string, T][];",
        "entries<T = any>(o: { [s: string]: T; } | ArrayLike<T>): [string, T][];",
    ),
    (
        "new <T>(iterable?: Iterable<T> | null): Set<T>;",
        "new <T = any>(iterable?: Iterable<T> | null): Set<T>;",
    ),
    // V8 passes the source text of a primitive value, too.
    (
        "parse(text: string, reviver?: (this: any, key: string, value: any) => any): any;",
        "parse(text: string, reviver?: (this: any, key: string, value: any, context: { source?: \
         string }) => any): any;",
    ),
    // Undeclared names would make the type `any`.
    (
        "type FormattableTemporalObject = Temporal.PlainDate | Temporal.PlainYearMonth | \
         Temporal.PlainMonthDay | Temporal.PlainTime | Temporal.PlainDateTime | Temporal.Instant;",
        "type FormattableTemporalObject = never;",
    ),
];

/// Reads the library from the folder of the executable: one file with all parts that are not modules,
/// then each module.
pub(crate) fn load(folder: &Path) -> Result<Vec<String>, String> {
    let mut loader = Loader {
        folder,
        seen: HashSet::new(),
        bytes_left: MAX_BYTES,
        files: vec![String::new()],
    };
    loader.add("esnext")?;
    Ok(loader.files)
}

struct Loader<'a> {
    folder: &'a Path,
    seen: HashSet<String>,
    bytes_left: u64,
    files: Vec<String>,
}

impl Loader<'_> {
    /// Adds a part after those it refers to: TypeScript tries the overloads of the last part first.
    fn add(&mut self, name: &str) -> Result<(), String> {
        if EXCLUDED.contains(&name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        // The names come from files, and must not lead out of the folder.
        let in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
        if !name.bytes().all(in_name) || self.seen.len() > 1000 {
            return Err(format!("it has a part named {name:?}"));
        }
        let file = self.folder.join(format!("lib.{name}.d.ts"));
        let unreadable = |error: std::io::Error| format!("{}: {error}", file.display());
        let text = callgate_files::read_text(&file, self.bytes_left).map_err(unreadable)?;
        self.bytes_left -= text.len() as u64;
        for line in text.lines() {
            if let Some(other) = referred(line) {
                self.add(other)?;
            }
        }
        let text = without_comments(&text);
        if text.lines().any(|line| line.starts_with("export ")) {
            self.files.push(text);
        } else if let Some(script) = self.files.first_mut() {
            for line in text.lines() {
                let changed = CHANGED_LINES.iter().find(|(from, _)| *from == line);
                script.push_str(changed.map_or(line, |(_, to)| to));
                script.push('\n');
            }
        }
        Ok(())
    }
}

/// `es2015` in `/// <reference lib="es2015" />`.
fn referred(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("/// <reference lib=\"")?;
    rest.split_once('"').map(|(name, _)| name)
}
