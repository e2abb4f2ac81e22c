//! The type errors that stop a script, in TypeScript and in JavaScript.

use callgate_check::Script;

use crate::support;

const TOOLS: &str = "type Note = { id: number; title: string; due: string | null; tags: string[] };
declare function notes_get(input: { id: number }): Promise<Note>;
declare function notes_list(input?: { tag?: string }): Promise<{ notes: Note[] }>;
declare function notes_find(input: { state: \"open\" | \"done\" }): Promise<Note[]>;
declare function raw_get(input?: object): Promise<unknown>;
";

/// The type errors of each script, checked by itself.
fn errors_of(is_javascript: bool, scripts: &[&str]) -> Vec<String> {
    support::runtime().block_on(async {
        let checker = support::checker();
        let mut errors = Vec::new();
        for text in scripts {
            let script = Script {
                is_javascript,
                ..support::script(text, TOOLS)
            };
            let checked = checker.check(script).await;
            errors.push(support::shown(&checked.expect("an answer")));
        }
        errors
    })
}

#[track_caller]
fn check_passes(is_javascript: bool, scripts: &[&str]) {
    for (script, errors) in scripts.iter().zip(errors_of(is_javascript, scripts)) {
        assert_eq!(errors, "", "{script}");
    }
}

/// Scripts that lack types, and use no tool wrongly.
const LOOSE: &[&str] = &[
    "function add(a, b) { return a + b; } add(1, 2);",
    "const counts = {}; counts['x'] = 1; counts.y = 2; counts['x']++;",
    "const counts = {}; for (const n of (await notes_list()).notes) for (const t of n.tags) counts[t] = (counts[t] ?? 0) + 1; \
     Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([tag, n]) => `${tag}: ${n}`); Math.max(...Object.values(counts));",
    "const groups = (await notes_list()).notes.reduce((all, n) => { (all[n.title] ||= []).push(n); return all; }, {}); groups.x;",
    "const o = { a: 1 }; o['b'] = 2;",
    "let x = null; x = 1; let y; y = 2; y = 'a';",
    "let list = []; list.push(1); list.push('b'); const all = []; for (const n of list) all.push({ n }); all[0].n;",
    "[].concat(...[await notes_list()].map((page) => page.notes)).map((n) => n.title);",
    "const seen = new Set(); seen.add('a'); for (const s of seen) s.length; [...seen].map((s) => s.length);",
    "const byId = new Map(); byId.set(1, 'a'); byId.get(1).length;",
    "try { await notes_get({ id: 1 }); } catch (e) { console.log(e.message, e.code); }",
    "JSON.parse('{}').a.b.c; Object.entries(JSON.parse('{}')).map(([k, v]) => v.x);",
    "const f = (x) => x; const g = async ({ id, ...rest }) => rest; const h = (...all) => all; h(f(1), g({ id: 1 }));",
    "function Old() { this.a = 1; } console.log(Old);",
    "const row = await notes_get({ id: 1 }); for (const key of Object.keys(row)) console.log(row[key]);",
    "const args = {}; args.id = 1; await notes_get(args); const all = { args: {} }; all.x = args; console.log(all.x.id);",
    "const o = { a: 1 }; o.b = 2; console.log(o.b); class A { constructor() { this.list = []; } } console.log(new A().list);",
    "const call = { state: 'open' }; await notes_find(call); const state = ['open'][0]; await notes_find({ state });",
    "class Box { items = []; add(x) { this.items.push(x); return this; } } new Box().add(1);",
    "const e = new Error('x'); e.code = 5; console.log(e.code, Array(3).fill().map((_, i) => i));",
    "const all = await Promise.allSettled([notes_get({ id: 1 })]); all.map((r) => r.value?.title ?? r.reason.message);",
    "function walk(n) { return n ? walk(n - 1) : 0; } walk(3); const a = b(); function b() { return typeof a; }",
];

#[test]
fn implicit_any_never_stops_a_script() {
    check_passes(false, LOOSE);
    check_passes(true, LOOSE);
}

#[test]
fn javascript_fails_only_on_tool_and_name_errors() {
    check_passes(
        true,
        &[
            "function show(note, options) { return note ?? options; } show(1);",
            "const o = { a: 1 }; o.b = 2; console.log(o.b);",
            "let s = ''; s = 1; const days = (new Date() - new Date(0)) / 864e5; parseInt(5); isNaN('x'); console.log(s, days);",
            "function f(options = {}) { return options.limit; } f({ limit: 1 });",
            "function g({ a, b } = {}) { return a + b; } g({ a: 1 });",
            "const m = 'a'.match(/a/); console.log(m[0]);",
            "class A { constructor() { this.x = 1; } } new A().y = 2;",
            "function F() { this.a = 1; } console.log(new F().a);",
            "const o = { m() { return this.z; } }; console.log(o.m());",
            "add.count = 1; function add() {} setTimeout(() => {}, '5');",
            "let best = null; for (const n of [{ v: 1 }]) if (!best || n.v > best.v) best = n; console.log(best.v);",
        ],
    );
}

#[test]
fn wrong_tool_uses_fail_in_any_language() {
    let scripts = [
        "await nots_get({ id: 1 });",
        "await notes_get({ ident: 1 });",
        "await notes_get({ id: 'one' });",
        "await notes_get();",
        "(await notes_get({ id: 1 })).titel;",
        "(await notes_get({ id: 1 }))['headline'];",
        "(await notes_get({ id: 1 })).due.slice(0, 7);",
        "const { headline } = await notes_get({ id: 1 });",
        "notes_get({ id: 1 }).title;",
        "for (const note of await notes_list()) console.log(note);",
        "(await notes_list()).notes.map((n) => n.headline);",
        "async function f(id) { const n = await notes_get({ id }); return n.headline; } f(1);",
        "(await raw_get()).title;",
        "await notes_find({ state: 'opened' });",
        "const call = { state: 1 }; await notes_find(call);",
        "const args = {}; await notes_get(args);",
        "await notes_get({});",
        "const note = await notes_get({ id: 1 }); console.log(note.list); note.title = 'a';",
    ];
    for is_javascript in [false, true] {
        for (script, errors) in scripts.iter().zip(errors_of(is_javascript, &scripts)) {
            assert_eq!(errors.lines().count(), 1, "{script}: {errors}");
        }
    }
}

#[test]
fn other_type_errors_stop_typescript() {
    let scripts = [
        "const n: number = 'a'; console.log(n);",
        "'abc'.foo();",
        "console.lgo('x');",
        "const note: { a: number } = { a: 1 }; note.b;",
    ];
    for (script, errors) in scripts.iter().zip(errors_of(false, &scripts)) {
        assert_eq!(errors.lines().count(), 1, "{script}: {errors}");
    }
}
