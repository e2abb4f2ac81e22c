//! The globals declared for the type check are the globals of the sandbox, and the sandbox has no
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use callgate_tests::{Workbench, demo_ticketing, repository, typescript_modules};
use serde_json::{Value, json};

type Names = BTreeSet<String>;

/// Parts of TypeScript's library with declarations that the sandbox does not have.
const LEFT_OUT: &[&str] = &[
    "sharedmemory",
    "temporal",
    "esnext.date",
    "decorators",
    "scripthost",
    "dom",
    "webworker",
];

#[test]
fn every_global_of_the_sandbox_is_declared() {
    let names = globals();
    let uses = names
        .iter()
        .map(|name| format!("void {name}; void globalThis.{name};\n"));
    check_passes(&uses.collect::<String>());
}

/// Classes are declared as variables; a script extends them and tells them apart as ever.
#[test]
fn declared_classes_are_types_and_can_be_extended() {
    check_passes(
        "class Missing extends McpError { id = 1; }
         class Later extends CustomEvent<number> {}
         const errors: McpError[] = [new Missing('none', { cause: 1 })];
         const later = new Later('soon', { detail: 5 });
         const told: Event | URL = [later, new URL('a:b')][0]!;
         const detail: number = told instanceof CustomEvent ? told.detail : later.detail;
         const signal: EventTarget = AbortSignal.timeout(5);
         if (signal instanceof AbortSignal) signal.throwIfAborted();
         const Made: typeof URL = globalThis.URL;
         if (!(errors[0] instanceof Missing)) throw new Error('not one of its class');
         if (detail + errors[0].id !== 6 || !Made.canParse('a:b')) throw new Error('a wrong value');",
    );
}

/// Also what V8 has and TypeScript's library lacks.
#[test]
fn every_member_of_a_global_is_declared() {
    let listed = "const own = (object) => Reflect.ownKeys(object)
           .filter((key) => typeof key === 'string' && /^[\\w$]+$/.test(key));
         const places = [];
         for (const name of own(globalThis)) {
           const value = globalThis[name];
           if (Object(value) !== value) continue;
           for (const key of own(value)) places.push(`${name}.${key}`);
           if (typeof value !== 'function' || !value.prototype) continue;
           for (const key of own(value.prototype)) places.push(`${name}.prototype.${key}`);
         }
         return places;";
    let report = Workbench::empty().report(listed, &["--check=off"]);
    let mut places = names_in(&report["value"]["json"]);
    assert!(places.len() > 600, "{}", places.len());
    places.retain(|place| {
        let is_constant = place.starts_with("DOMException.prototype.") && place.ends_with("_ERR");
        !is_constant && !OLD_MEMBERS.contains(&place.as_str())
    });
    let uses = places.iter().map(|place| format!("void {place};\n"));
    let uses = uses.collect::<String>();
    // Not called: some getters throw.
    check_passes(&format!("const unused = () => {{\n{uses}}};"));
}

#[test]
fn members_beyond_the_library_of_typescript_run() {
    let script = "const big = JSON.rawJSON(12345678901234567890n);
         const seen: (string | undefined)[] = [];
         JSON.parse('[1.0]', (key, value, context) => { seen.push(context.source); return value; });
         return [
           JSON.stringify({ big }), JSON.isRawJSON(big), seen[0],
           Math.sumPrecise([1e20, 0.1, -1e20]), [...Iterator.concat([1], new Set([2]))],
           new Intl.Locale('de-1996').variants ?? null, 'toTemporalInstant' in Date.prototype,
         ];";
    let report = Workbench::empty().report(script, &["--check=require"]);
    let expected = json!([
        r#"{"big":12345678901234567890}"#,
        true,
        "1.0",
        0.1,
        [1, 2],
        "1996",
        false,
    ]);
    assert_eq!(report["value"]["json"], expected, "{report:#}");
}

#[test]
fn keys_of_the_global_object_are_the_functions() {
    let bench = Workbench::new(json!({ "desk": demo_ticketing(), "other": demo_ticketing() }));
    let report = bench.report("return Object.keys(globalThis)", &["--check=require"]);
    let functions = [
        "desk_createIssue",
        "desk_listIssues",
        "other_createIssue",
        "other_listIssues",
    ];
    assert_eq!(report["value"]["json"], json!(functions), "{report:#}");
    let copied = "return Object.keys({ ...globalThis }).length";
    let report = bench.report(copied, &["--check=off"]);
    assert_eq!(report["value"]["json"], 4, "{report:#}");
}

/// The script passes the check and runs.
#[track_caller]
fn check_passes(script: &str) {
    let report = Workbench::empty().report(script, &["--check=require"]);
    assert_eq!(report["check"]["errors"], json!([]), "{report:#}");
    assert_eq!(report["status"], "completed", "{report:#}");
}

/// Members that only old scripts use, or only V8 has.
const OLD_MEMBERS: &[&str] = &[
    "BigInt.prototype.toJSON",
    "Date.prototype.getYear",
    "Date.prototype.setYear",
    "Date.prototype.toGMTString",
    "Function.length",
    "Function.name",
    "Intl.v8BreakIterator",
    "Object.prototype.__defineGetter__",
    "Object.prototype.__defineSetter__",
    "Object.prototype.__lookupGetter__",
    "Object.prototype.__lookupSetter__",
    "Object.prototype.__proto__",
];

/// The fields of the error are as they are declared, and the report has them.
#[test]
fn denial_error_matches_its_declaration() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "permissions": { "deny": ["ticketing_list*"] },
    }));
    let script = "try { await ticketing_listIssues(); } catch (error) {
  if (!(error instanceof McpDeniedError)) throw error;
  const told: [unknown, string | null, string] = [error.rule, error.writtenIn, error.advice];
  return told;
}";
    let report = bench.report(script, &["--check=require"]);
    let advice = &report["denials"][0]["advice"];
    let told = json!(["ticketing_list*", "permissions.deny", advice]);
    assert_eq!(report["value"]["json"], told, "{report:#}");
    let shown = bench.run(script, &[]).stderr;
    let advice = advice.as_str().expect("advice");
    let rule = "by rule \"ticketing_list*\" in permissions.deny";
    let footer = format!("denied: ticketing_listIssues (line 1): {rule}; {advice}\n");
    assert!(shown.ends_with(&footer), "{shown}");
}

#[test]
fn no_other_global_is_declared() {
    let there = globals();
    // All global names in TypeScript's libraries, also those of browsers and workers.
    let mut names = Names::new();
    for text in libraries(&[]) {
        for line in text.lines() {
            names.extend(declared_value(line).map(str::to_owned));
        }
    }
    names.extend(["eval", "Deno", "process", "require", "global"].map(str::to_owned));
    let others: Vec<&String> = names.difference(&there).collect();
    assert!(others.len() > 500, "{others:?}");
    let script: String = others
        .iter()
        .map(|name| format!("void {name};\n"))
        .collect();
    let report = Workbench::empty().report(&script, &["--check=require"]);
    let errors = &report["check"]["errors"];
    let shown = errors.as_array().map_or(0, Vec::len) as u64;
    let more = report["check"]["more"].as_u64().unwrap_or_default();
    assert_eq!(shown + more, others.len() as u64, "{report:#}");
}

#[test]
fn declared_language_members_exist_in_the_sandbox() {
    let there = globals();
    let mut declared: BTreeMap<String, Names> = BTreeMap::new();
    for text in libraries(LEFT_OUT) {
        for (object, member) in interface_members(&text) {
            declared.entry(object).or_default().insert(member);
        }
    }
    let mut places: Vec<[String; 2]> = Vec::new();
    for (name, members) in declared {
        // `MapConstructor` is the type of `Map`, and `Map` that of its instances.
        let place = match name.strip_suffix("Constructor") {
            Some(class) if there.contains(class) => class.to_owned(),
            _ if OBJECTS.contains(&name.as_str()) => name.clone(),
            _ if there.contains(&name) => format!("{name}.prototype"),
            _ => continue,
        };
        places.extend(members.into_iter().map(|member| [place.clone(), member]));
    }
    assert!(places.len() > 600, "{}", places.len());
    let script = format!(
        "const missing = [];
         for (const [place, member] of {list}) {{
           const [name, inside] = place.split('.');
           const object = inside ? globalThis[name][inside] : globalThis[name];
           if (!(member in object)) missing.push(place + '.' + member);
         }}
         return missing;",
        list = json!(places)
    );
    let report = Workbench::empty().report(&script, &["--check=off"]);
    assert_eq!(
        report["value"]["json"],
        json!(NOT_ON_THE_PROTOTYPE),
        "{report:#}"
    );
}

#[test]
fn v8_error_extensions_are_declared() {
    let script = "function made() {
           const place: { stack?: string } = {};
           Error.captureStackTrace(place, made);
           return place.stack;
         }
         Error.stackTraceLimit = 1;
         return [made(), new Error('x').stack?.split('\\n').length];";
    let report = Workbench::empty().report(script, &["--check=require"]);
    assert_eq!(report["check"]["errors"], json!([]), "{report:#}");
    let expected = json!(["Error\n    at stdin.ts:7:18", 2]);
    assert_eq!(report["value"]["json"], expected, "{report:#}");
}

/// Objects with a type of the same name.
const OBJECTS: &[&str] = &["JSON", "Math", "Reflect", "Intl"];

/// Declared members that are no members of the prototype, only of instances or some instances.
const NOT_ON_THE_PROTOTYPE: &[&str] = &[
    "AggregateError.prototype.errors",
    "Error.prototype.cause",
    "Error.prototype.stack",
    "Function.prototype.prototype",
    "Iterator.prototype.next",
    "Iterator.prototype.return",
    "Iterator.prototype.throw",
    "RegExp.prototype.lastIndex",
    "SuppressedError.prototype.error",
    "SuppressedError.prototype.suppressed",
];

#[test]
fn members_of_sandbox_additions_match_their_declarations() {
    let file = repository().join("crates/check/src/sandbox.d.ts");
    let declared = sandbox_members(&read(&file));
    assert!(declared.len() > 10, "{declared:?}");
    let names: Vec<&String> = declared.keys().collect();
    let script = format!(
        "const own = (object) => Reflect.ownKeys(object).filter((key) => typeof key === 'string');
         const skipped = ['constructor', 'prototype', 'length', 'name'];
         const found = {{}};
         for (const name of {names}) {{
           const value = globalThis[name];
           const members = typeof value === 'function'
             ? [...own(value).map((key) => 'static ' + key), ...own(value.prototype)]
             : own(value);
           found[name] = members.filter((key) => !skipped.includes(key.replace('static ', '')));
         }}
         found.AbortSignal.push('onabort');
         return found;",
        names = json!(names)
    );
    let report = Workbench::empty().report(&script, &["--check=off"]);
    for (name, mut declared) in declared {
        let mut there = names_in(&report["value"]["json"][&name]);
        // Constants such as `ABORT_ERR` are on the prototype too, but only declared as static.
        there.retain(|member| member.starts_with("static ") || !member.ends_with("_ERR"));
        declared.remove("name");
        assert_eq!(declared, there, "{name}: declared, and there");
    }
}

#[test]
fn members_of_mcp_match_their_declarations() {
    let text = read(&repository().join("typegen/src/ambient.d.ts"));
    let inside = text.split("declare namespace mcp {").nth(1).expect("it");
    let inside = inside.split("\n}").next().unwrap_or_default();
    let declared = inside.lines().filter_map(|line| {
        let words = ["  function ", "  const "];
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        member(rest)
    });
    let report = Workbench::empty().report("return Object.keys(mcp)", &["--check=off"]);
    let there = names_in(&report["value"]["json"]);
    assert_eq!(declared.collect::<Names>(), there, "declared, and there");
}

/// The global names of the isolate.
fn globals() -> Names {
    let script = "return Reflect.ownKeys(globalThis).filter((key) => typeof key === 'string')";
    let report = Workbench::empty().report(script, &["--check=off"]);
    names_in(&report["value"]["json"])
}

fn names_in(list: &Value) -> Names {
    let names = list.as_array().into_iter().flatten();
    names
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

/// The texts of the parts of TypeScript's library without these in their names.
fn libraries(left_out: &[&str]) -> Vec<String> {
    let packages = typescript_modules().join("@typescript");
    let package = packages.read_dir().expect("the packages").flatten().next();
    let folder: PathBuf = package.expect("the platform's package").path().join("lib");
    let files = folder.read_dir().expect("the library").flatten();
    let texts = files.filter_map(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let part = name.strip_prefix("lib.")?.strip_suffix(".d.ts")?;
        let is_taken = !left_out.iter().any(|left| part.contains(left));
        is_taken.then(|| read(&file.path()))
    });
    texts.collect()
}

/// `Map` in `declare var Map: MapConstructor;`.
fn declared_value(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("declare ")?;
    let kinds = [
        "var ",
        "let ",
        "const ",
        "function ",
        "class ",
        "abstract class ",
    ];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))?;
    rest.get(..end)
}

/// Interface and member, for each member of an interface at the top of a file.
fn interface_members(text: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    let mut interface = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("interface ") {
            let name = rest
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .next();
            interface = name.map(str::to_owned);
        } else if line.starts_with('}') {
            interface = None;
        } else if let Some(interface) = &interface
            && let Some(member) = line.strip_prefix("    ").and_then(member)
        {
            members.push((interface.clone(), member));
        }
    }
    members
}

/// The members that each class and object of our own declarations has.
fn sandbox_members(text: &str) -> BTreeMap<String, Names> {
    let mut all: BTreeMap<String, Names> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let object = line
            .strip_prefix("interface ")
            .and_then(|rest| rest.strip_suffix(" {"))
            .filter(|name| ["Crypto", "Performance"].contains(name));
        if let Some(object) = object {
            current = Some(object.to_lowercase());
            all.insert(object.to_lowercase(), Names::new());
        } else if line.ends_with('{') && line.starts_with("declare ") {
            current = declared_value(line).map(str::to_owned);
            all.extend(current.clone().map(|name| (name, Names::new())));
        } else if line.starts_with('}') {
            current = None;
        } else if let Some(members) = current.as_ref().and_then(|name| all.get_mut(name)) {
            let Some(line) = line.strip_prefix("  ") else {
                continue;
            };
            let (kind, rest) = match line.strip_prefix("static ") {
                Some(rest) => ("static ", rest),
                None => ("", line),
            };
            let found = member(rest).filter(|member| member != "constructor");
            members.extend(found.map(|member| format!("{kind}{member}")));
        }
    }
    all
}

/// `size` in `readonly size: number;`; `None` for a line without a named member.
fn member(line: &str) -> Option<String> {
    let line = line.strip_prefix("readonly ").unwrap_or(line);
    let end = line.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))?;
    let (name, rest) = line.split_at(end);
    let is_member = !name.is_empty() && rest.starts_with(['(', '<', ':', '?']);
    is_member.then(|| name.to_owned())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a text")
}
