//! The TypeScript compiler's errors in scripts of every form, at the author's
//! own lines and columns.
//!
//! The compiler is the executable in `CALLGATE_TYPESCRIPT`, else the one that `cargo xtask setup`
//! installs below the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use callgate_script::prepare;

/// The declarations of the sandbox that these scripts use.
const AMBIENT: &str = "\
interface LogEntry { level: string; at: number }
declare function a_b(input: { x: number }): Promise<{ logs: LogEntry[] }>;
declare const console: { log(...values: unknown[]): void };
";

/// Checks the script in each line, as JSON, as a file of its own, with one run of the compiler for
/// all of them, and expects it to find the errors behind the arrow, in the author's positions.
#[track_caller]
fn check(test: &str, cases: &str) {
    let cases = cases.trim().lines().map(|case| {
        let (source, expected) = case.trim().rsplit_once(" → ").expect(case);
        let source: String = serde_json::from_str(source).expect(case);
        (source, expected)
    });
    let cases: Vec<_> = cases.collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkable-{test}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ambient.d.ts"), AMBIENT).unwrap();
    let mut command = Command::new(compiler());
    let options = "--noEmit --strict --target esnext --module esnext --lib esnext --pretty false";
    command.current_dir(&folder).args(options.split(' '));
    command.args(["--types", "", "ambient.d.ts"]);
    let mut offsets = Vec::new();
    for (index, (source, _)) in cases.iter().enumerate() {
        let prepared = prepare(source).unwrap_or_else(|error| panic!("{source}: {error}"));
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
        let code = message.split(':').next().unwrap();
        let index: usize = file.parse().unwrap();
        let line = line.parse::<u32>().unwrap() - offsets[index];
        found[index].push(format!("{line}:{column} {code}"));
    }
    for ((source, expected), found) in cases.iter().zip(found) {
        assert_eq!(found.join("; "), *expected, "{source}");
    }
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
        r##"
        "const x: number = 1;\nconst y: string = x;\n" → 2:7 TS2322
        "const { logs } = await a_b({ x: 1 });\nlogs.forEach(l => console.log(l.lvl));" → 2:33 TS2339
        "const { logs } = await a_b({ x: 1 });\nif (logs.length === 0) return;\n  return logs.map(l => l.lvl);" → 3:26 TS2339
        "let x: number | undefined = Math.random() > 1 ? 1 : undefined;\nif (!x) { return } else if (x > 2) return; else x.foo; x.toFixed(); x.bar\nreturn\n(x.baz)" → 2:51 TS2339; 2:71 TS2339; 4:2 TS18048; 4:4 TS2339
        "return (\n  a_b({ x: 'one' })\n)" → 2:9 TS2322
        "export default async () => {\n  return a_b({ y: 1 });\n}" → 2:16 TS2353
        "export default async function main(): Promise<string> { return 1 }" → 1:57 TS2322
        "const a = 1\nexport default a + b" → 2:20 TS2304
        "if (Math.random() > 2) return 1;\nexport default (await a_b({ x: 1 })).log" → 2:38 TS2551
        "async () => {\n  await a_b({ x: '1' });\n};" → 2:15 TS2322
        "async function () {\n  await a_b({ x: '1' });\n};" → 2:15 TS2322
        "async function main() {\n  await a_b({ x: '1' });\n}" → 2:15 TS2322
        "a_b({ x: '1' })" → 1:7 TS2322
        "(async () => {\n  await a_b({ x: '1' })\n})()" → 2:15 TS2322
        "\n  ```ts\nconst x: 1 = 2;\nreturn x + y\n```\n\n" → 3:7 TS2322; 4:12 TS2304
        "```\nasync () => a_b({ x: '1' })\n```" → 2:19 TS2322
        "const x = 1;\r\nconst y: string = x;\r\nreturn\r\n" → 2:7 TS2322
        "const x = 1;\rconst y: string = x;\r" → 2:7 TS2322
        "const x = 'a\u2028b';\nconst y: number = x;" → 3:7 TS2322
        "\ufefflet x: string = 1;" → 1:5 TS2322
        "#!/usr/bin/env callgate\nlet x: string = 1;" → 2:5 TS2322
        "/* 日本 */\tconst 値 = '😀'; const y: number = 値; return 値.foo" → 1:32 TS2322; 1:56 TS2339"##,
    );
}

#[test]
fn top_level_module_statements_are_checked() {
    check(
        "modules",
        r##"
        "interface LogEntry { mine: 1 }\nconst console = 1;\nconst a_b = (x: LogEntry) => x.mine;\nreturn a_b({ mine: 2 }) + console" → 4:14 TS2322
        "declare global { var y: number }\ndeclare const z: string;\nreturn y + z.foo" → 3:14 TS2339
        "namespace N { export const a = 1 }\nenum E { A }\nif (E.A === 0) return;\nreturn N.b" → 4:10 TS2339
        "export {}\nexport type A = number;\nexport interface B { a: A }\nconst b: B = { a: 'a' };\nreturn b" → 4:16 TS2322
        "const x = Math.random() > 1 ? 'a' : 1;\nif (typeof x === 'string') return x;\nconst y: string = x;" → 3:7 TS2322
        "let x: number;\ntry { if (Math.random() > 1) return; x = 1 } finally { console.log('') }\nlet y: number;\nif (x) { y = 1 } else { return }\ny.foo" → 5:3 TS2339
        "await using x = { async [Symbol.asyncDispose]() {} };\nfor await (const y of x) { return y }" → 2:23 TS2504
        "function f(): string { return 1 }\nclass A { m(): string { return 1 } get g(): string { return 1 } }\nconst g = (): string => { return 1 };\nreturn f() + g() + new A().m()" → 1:24 TS2322; 2:25 TS2322; 2:54 TS2322; 3:27 TS2322
        "// @ts-nocheck\n/// <reference path=\"missing.d.ts\" />\n/// <reference types=\"missing\" />\nconst x: string = 1" → 4:7 TS2322
        "await a_c({ x: 1 })\nconsole.log(process.env)" → 1:7 TS2304; 2:13 TS2591
        "const $a = 1, $b = 2;\nif ($a) return;\n$b.c" → 3:4 TS2339"##,
    );
}
