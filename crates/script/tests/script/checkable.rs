//! What TypeScript says of scripts in every form, and that it says it of the
//! author's own line and column.
//!
//! The compiler is that of `CALLGATE_TYPESCRIPT` (its executable), else the one
//! that `cargo xtask setup` installs below the target directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use callgate_script::prepare;
use expect_test::{Expect, expect};

/// What the sandbox has, as far as these scripts use it.
const AMBIENT: &str = "\
interface LogEntry { level: string; at: number }
declare function a_b(input: { x: number }): Promise<{ logs: LogEntry[] }>;
declare const console: { log(...values: unknown[]): void };
";

/// Checks each script as a file of its own, with one run of the compiler for
/// all of them, and renders what it says in the author's positions.
#[track_caller]
fn check(test: &str, cases: &[(&str, &str)], expected: Expect) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkable-{test}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ambient.d.ts"), AMBIENT).unwrap();
    let mut command = Command::new(compiler());
    let options = "--noEmit --strict --target esnext --module esnext --lib esnext --pretty false";
    command.current_dir(&folder).args(options.split(' '));
    command.args(["--types", "", "ambient.d.ts"]);
    let mut offsets = Vec::new();
    for (index, (name, source)) in cases.iter().enumerate() {
        let prepared = prepare(source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let checkable = prepared.checkable;
        let file = format!("{index}.ts");
        std::fs::write(folder.join(&file), &checkable.text).unwrap();
        offsets.push(checkable.line_offset);
        command.arg(file);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<Vec<String>> = vec![Vec::new(); cases.len()];
    // `3.ts(2,5): error TS2322: …`; deeper reasons are indented below it.
    for line in said.lines().filter(|line| !line.starts_with(' ')) {
        let (file, rest) = line.split_once(".ts(").expect(line);
        let (place, message) = rest.split_once("): error ").expect(line);
        let (line, column) = place.split_once(',').unwrap();
        let index: usize = file.parse().unwrap();
        let line = line.parse::<u32>().unwrap() - offsets[index];
        found[index].push(format!("{line}:{column} {message}"));
    }
    let mut out = String::new();
    for ((name, _), found) in cases.iter().zip(found) {
        writeln!(out, "{name}").unwrap();
        for diagnostic in found {
            writeln!(out, "  {diagnostic}").unwrap();
        }
    }
    expected.assert_eq(&out);
}

/// The compiler that the environment names, else the one that set-up put below the target folder.
fn compiler() -> PathBuf {
    if let Some(path) = std::env::var_os("CALLGATE_TYPESCRIPT") {
        return path.into();
    }
    let program = format!("lib/tsc{}", std::env::consts::EXE_SUFFIX);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let packages = target
        .join("typescript/node_modules/@typescript")
        .read_dir();
    let mut packages = packages.into_iter().flatten().flatten();
    packages
        .find_map(|package| Some(package.path().join(&program)).filter(|file| file.is_file()))
        .expect("TypeScript is not installed: run `cargo xtask setup`, or set CALLGATE_TYPESCRIPT")
}

#[test]
fn every_form_has_the_authors_positions() {
    check(
        "forms",
        &[
            ("statements", "const x: number = 1;\nconst y: string = x;\n"),
            (
                "await at the top",
                "const { logs } = await a_b({ x: 1 });\nlogs.forEach(l => console.log(l.lvl));",
            ),
            (
                "return at the top",
                "const { logs } = await a_b({ x: 1 });\nif (logs.length === 0) return;\n  return logs.map(l => l.lvl);",
            ),
            (
                "returns without a value",
                "let x: number | undefined = Math.random() > 1 ? 1 : undefined;\nif (!x) { return } else if (x > 2) return; else x.foo; x.toFixed(); x.bar\nreturn\n(x.baz)",
            ),
            (
                "value of a return on its own lines",
                "return (\n  a_b({ x: 'one' })\n)",
            ),
            (
                "default function",
                "export default async () => {\n  return a_b({ y: 1 });\n}",
            ),
            (
                "default named function",
                "export default async function main(): Promise<string> { return 1 }",
            ),
            ("default value", "const a = 1\nexport default a + b"),
            (
                "default and return",
                "if (Math.random() > 2) return 1;\nexport default (await a_b({ x: 1 })).log",
            ),
            ("arrow", "async () => {\n  await a_b({ x: '1' });\n};"),
            (
                "function without a name",
                "async function () {\n  await a_b({ x: '1' });\n};",
            ),
            (
                "function with a name",
                "async function main() {\n  await a_b({ x: '1' });\n}",
            ),
            ("expression", "a_b({ x: '1' })"),
            (
                "call of a function",
                "(async () => {\n  await a_b({ x: '1' })\n})()",
            ),
            ("fence", "\n  ```ts\nconst x: 1 = 2;\nreturn x + y\n```\n\n"),
            (
                "fence around an arrow",
                "```\nasync () => a_b({ x: '1' })\n```",
            ),
            ("CRLF", "const x = 1;\r\nconst y: string = x;\r\nreturn\r\n"),
            ("CR", "const x = 1;\rconst y: string = x;\r"),
            (
                "line separators",
                "const x = 'a\u{2028}b';\nconst y: number = x;",
            ),
            ("byte order mark", "\u{feff}let x: string = 1;"),
            (
                "first line for a shell",
                "#!/usr/bin/env callgate\nlet x: string = 1;",
            ),
            (
                "wide characters and tabs",
                "/* 日本 */\tconst 値 = '😀'; const y: number = 値; return 値.foo",
            ),
        ],
        expect![[r#"
            statements
              2:7 TS2322: Type 'number' is not assignable to type 'string'.
            await at the top
              2:33 TS2339: Property 'lvl' does not exist on type 'LogEntry'.
            return at the top
              3:26 TS2339: Property 'lvl' does not exist on type 'LogEntry'.
            returns without a value
              2:51 TS2339: Property 'foo' does not exist on type 'number'.
              2:71 TS2339: Property 'bar' does not exist on type 'number'.
              4:2 TS18048: 'x' is possibly 'undefined'.
              4:4 TS2339: Property 'baz' does not exist on type 'number'.
            value of a return on its own lines
              2:9 TS2322: Type 'string' is not assignable to type 'number'.
            default function
              2:16 TS2353: Object literal may only specify known properties, and 'y' does not exist in type '{ x: number; }'.
            default named function
              1:57 TS2322: Type 'number' is not assignable to type 'string'.
            default value
              2:20 TS2304: Cannot find name 'b'.
            default and return
              2:38 TS2551: Property 'log' does not exist on type '{ logs: LogEntry[]; }'. Did you mean 'logs'?
            arrow
              2:15 TS2322: Type 'string' is not assignable to type 'number'.
            function without a name
              2:15 TS2322: Type 'string' is not assignable to type 'number'.
            function with a name
              2:15 TS2322: Type 'string' is not assignable to type 'number'.
            expression
              1:7 TS2322: Type 'string' is not assignable to type 'number'.
            call of a function
              2:15 TS2322: Type 'string' is not assignable to type 'number'.
            fence
              3:7 TS2322: Type '2' is not assignable to type '1'.
              4:12 TS2304: Cannot find name 'y'.
            fence around an arrow
              2:19 TS2322: Type 'string' is not assignable to type 'number'.
            CRLF
              2:7 TS2322: Type 'number' is not assignable to type 'string'.
            CR
              2:7 TS2322: Type 'number' is not assignable to type 'string'.
            line separators
              3:7 TS2322: Type 'string' is not assignable to type 'number'.
            byte order mark
              1:5 TS2322: Type 'number' is not assignable to type 'string'.
            first line for a shell
              2:5 TS2322: Type 'number' is not assignable to type 'string'.
            wide characters and tabs
              1:32 TS2322: Type 'string' is not assignable to type 'number'.
              1:56 TS2339: Property 'foo' does not exist on type '"😀"'.
        "#]],
    );
}

#[test]
fn what_stands_at_the_top_of_a_module() {
    check(
        "modules",
        &[
            (
                "names of globals",
                "interface LogEntry { mine: 1 }\nconst console = 1;\nconst a_b = (x: LogEntry) => x.mine;\nreturn a_b({ mine: 2 }) + console",
            ),
            (
                "global declarations",
                "declare global { var y: number }\ndeclare const z: string;\nreturn y + z.foo",
            ),
            (
                "namespaces and enums",
                "namespace N { export const a = 1 }\nenum E { A }\nif (E.A === 0) return;\nreturn N.b",
            ),
            (
                "exported types",
                "export {}\nexport type A = number;\nexport interface B { a: A }\nconst b: B = { a: 'a' };\nreturn b",
            ),
            (
                "narrowing by a return",
                "const x = Math.random() > 1 ? 'a' : 1;\nif (typeof x === 'string') return x;\nconst y: string = x;",
            ),
            (
                "assignment before use",
                "let x: number;\ntry { if (Math.random() > 1) return; x = 1 } finally { console.log('') }\nlet y: number;\nif (x) { y = 1 } else { return }\ny.foo",
            ),
            (
                "disposal",
                "await using x = { async [Symbol.asyncDispose]() {} };\nfor await (const y of x) { return y }",
            ),
            (
                "returns of functions",
                "function f(): string { return 1 }\nclass A { m(): string { return 1 } get g(): string { return 1 } }\nconst g = (): string => { return 1 };\nreturn f() + g() + new A().m()",
            ),
            (
                "the whole check cannot be turned off",
                "// @ts-nocheck\n/// <reference path=\"missing.d.ts\" />\n/// <reference types=\"missing\" />\nconst x: string = 1",
            ),
            (
                "a misspelt tool",
                "await a_c({ x: 1 })\nconsole.log(process.env)",
            ),
            (
                "short names that are taken",
                "const $a = 1, $b = 2;\nif ($a) return;\n$b.c",
            ),
        ],
        expect![[r#"
            names of globals
              4:14 TS2322: Type '2' is not assignable to type '1'.
            global declarations
              3:14 TS2339: Property 'foo' does not exist on type 'string'.
            namespaces and enums
              4:10 TS2339: Property 'b' does not exist on type 'typeof N'.
            exported types
              4:16 TS2322: Type 'string' is not assignable to type 'number'.
            narrowing by a return
              3:7 TS2322: Type 'number' is not assignable to type 'string'.
            assignment before use
              5:3 TS2339: Property 'foo' does not exist on type 'number'.
            disposal
              2:23 TS2504: Type '{ [Symbol.asyncDispose](): Promise<void>; }' must have a '[Symbol.asyncIterator]()' method that returns an async iterator.
            returns of functions
              1:24 TS2322: Type 'number' is not assignable to type 'string'.
              2:25 TS2322: Type 'number' is not assignable to type 'string'.
              2:54 TS2322: Type 'number' is not assignable to type 'string'.
              3:27 TS2322: Type 'number' is not assignable to type 'string'.
            the whole check cannot be turned off
              4:7 TS2322: Type 'number' is not assignable to type 'string'.
            a misspelt tool
              1:7 TS2304: Cannot find name 'a_c'.
              2:13 TS2591: Cannot find name 'process'. Do you need to install type definitions for node? Try `npm i --save-dev @types/node` and then add 'node' to the types field in your tsconfig.
            short names that are taken
              3:4 TS2339: Property 'c' does not exist on type '2'.
        "#]],
    );
}
