//! Scripts that change the language under the worker's own JavaScript: what they change is theirs to
//! suffer, and still the run ends typed, in time, and says as much as can be said.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use expect_test::{Expect, expect};
use support::{run, shown};

/// Runs the script and compares how it ended.
async fn check(script: &str, expected: Expect) {
    expected.assert_eq(&shown(&run(script).await));
}

#[tokio::test]
async fn what_cannot_be_shown_is_thrown_all_the_same() {
    let traps = "get() { throw o; }, getOwnPropertyDescriptor() { throw o; }, getPrototypeOf() { throw o; }";
    check(
        &format!("const o = Object.create(new Proxy({{}}, {{ {traps} }})); throw o;"),
        expect![[r#"
            threw "" "a value that cannot be shown" at 0:0

        "#]],
    )
    .await;
    check(
        &format!("const o = Object.create(new Proxy({{}}, {{ {traps} }})); o.o = o; return o;"),
        expect![[r#"
            threw "" "a value that cannot be shown" at 0:0

        "#]],
    )
    .await;
    check(
        "const e = new Error('m');
         for (const key of ['name', 'message', 'stack', 'cause']) {
           Object.defineProperty(e, key, { get() { throw e; } });
         }
         throw e;",
        expect![[r#"
            threw "Error" "" at 0:0
            Error
        "#]],
    )
    .await;
    check(
        "Object.defineProperty(Object.prototype, 0, { get() { throw 1; }, set() { throw 2; } });
         throw new Error('x');",
        expect![[r#"
            threw "Error" "x" at 2:16
            Error: x
                at script.ts:2:16
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_thrown_has_a_bound() {
    // A name that is long and stands many times in what is shown.
    let name = "N".repeat(300);
    let ended = run(&format!(
        "class {name} {{ x = 1; get [Symbol.toStringTag]() {{ return 't'.repeat(300); }} }}
         const many = Array.from({{ length: 100 }}, () => new {name}());
         console.log(many);
         throw Array.from({{ length: 100 }}, () => many);"
    ))
    .await;
    match &ended.end {
        callgate_sandbox::End::Threw(e) => assert!(e.message.len() < 17_000, "{}", e.message.len()),
        other => panic!("{other:?}"),
    }
    let ended =
        run("const e = new Error('m'.repeat(1e6)); e.name = 'n'.repeat(1e6); throw e;").await;
    match &ended.end {
        callgate_sandbox::End::Threw(e) => {
            assert!(e.name.len() < 300, "{}", e.name.len());
            assert!(e.message.len() < 17_000, "{}", e.message.len());
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn prototypes_are_not_read() {
    check(
        "Object.prototype.depth = 1e9; Object.prototype.chars = 1e12;
         let deep = {}; for (let i = 0; i < 1e5; i++) deep = { deep };
         console.log(deep); throw deep;",
        expect![[r#"
            {
              deep: {
                deep: { deep: { deep: { deep: [Object] } } }
              }
            }
            threw "" "{\n  deep: {\n    deep: { deep: { deep: { deep: [Object] } } }\n  }\n}" at 0:0

        "#]],
    )
    .await;
    check(
        "Object.prototype.failed = [0, 'x', '{}']; Object.prototype.value = 1; Object.prototype.stack = 's';
         Object.prototype.position = [7, 7];
         console.log(await echo({ a: 1 }));
         try { await fail({}); } catch (e) { console.log(e.name, e.message); }
         throw new Error('x');",
        expect![[r#"
            { a: 1 }
            McpToolError fail failed
            threw "Error" "x" at 5:16
            Error: x
                at script.ts:5:16
        "#]],
    )
    .await;
}

#[tokio::test]
async fn promises_can_be_spoilt() {
    check(
        "Object.defineProperty(Promise, Symbol.species, { get() { throw new Error('species'); } }); return 1;",
        expect![[r#"
            threw "Error" "species" at 1:64
            Error: species
                at Promise.get (script.ts:1:64)
                at Promise.then (<anonymous>)
        "#]],
    )
    .await;
    check(
        "Promise.prototype.then = function () { throw new Error('then'); };
         return await echo({ a: 1 });",
        expect![[r#"
            => {"a":1}
        "#]],
    )
    .await;
    check(
        "Object.prototype.then = function (done) { done(7); }; return [await echo({ a: 1 })];",
        expect![[r#"
            => 7
        "#]],
    )
    .await;
    check(
        "Object.defineProperty(Promise.prototype, 'constructor', { get() { throw new Error('constructor'); } });
         return await echo({ a: 1 });",
        expect![[r#"
            threw "Error" "constructor" at 1:73
            Error: constructor
                at Promise.get (script.ts:1:73)
                at Promise.then (<anonymous>)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_fail_as_themselves_without_stacks() {
    for limit in [
        "delete Error.stackTraceLimit",
        "Error.stackTraceLimit = 'x'",
        "Error.stackTraceLimit = 0",
    ] {
        let script = format!(
            "{limit};
             try {{ await fail({{}}); }} catch (e) {{ console.log(e instanceof McpToolError, e.stack); }}
             try {{ await echo(5); }} catch (e) {{ console.log(e.stack); }}
             console.trace('here');
             await fail({{}});"
        );
        expect![[r#"
            true McpToolError: fail failed
            TypeError: echo: the input must be an object, not a number
            Trace: here
            threw "McpToolError" "fail failed" at 0:0
            McpToolError: fail failed
        "#]]
        .assert_eq(&shown(&run(&script).await));
    }
}

#[tokio::test]
async fn globals_can_go() {
    check(
        "const { ownKeys, deleteProperty } = Reflect;
         const prototypes = [Object, Array, Function, String, Promise].map((c) => c.prototype);
         for (const o of [globalThis, ...prototypes]) {
           const keys = ownKeys(o);
           for (let i = 0; i < keys.length; i++) deleteProperty(o, keys[i]);
         }
         return 1;",
        expect![[r#"
            => 1
        "#]],
    )
    .await;
}

#[tokio::test]
async fn index_setters_get_nothing_and_run_in_the_middle_of_nothing() {
    check(
        "let got = 0;
         for (let i = 0; i < 8; i++) {
           Object.defineProperty(Array.prototype, i, { get() { got++; }, set() { got++; Promise.reject(i); } });
         }
         for (let i = 1; i < 6; i++) setTimeout(() => {}, i);
         await new Promise((resolve) => setTimeout(resolve, 10));
         console.log([1], new Proxy({}, {}), Promise.resolve(2), new Map([[3, 4]]), new URL('a:b?c=d').searchParams);
         console.table([{ a: 1 }]);
         const target = new EventTarget();
         target.addEventListener('x', () => {});
         target.dispatchEvent(new Event('x'));
         structuredClone([new Map([[1, [2]]])]);
         await echo({});
         mcp.emit([{ type: 'text', text: 'x' }]);
         return got;",
        expect![[r#"
            [ 1 ] {} Promise { 2 } Map(1) { 3 => 4 } URLSearchParams { 'c' => 'd' }
            ┌─────────┬───┐
            │ (index) │ a │
            ├─────────┼───┤
            │ 0       │ 1 │
            └─────────┴───┘
            emitted {"type":"text","text":"x"}
            => 0
        "#]],
    )
    .await;
    check(
        "Object.defineProperty(Array.prototype, 0, { set() { Promise.reject('in the middle'); } });
         Promise.reject('first'); Promise.reject('second');
         return 1;",
        expect![[r#"
            threw "" "'first'" at 0:0

        "#]],
    )
    .await;
}

#[tokio::test]
async fn names_and_stacks_make_up_no_frames() {
    check(
        r"const f = () => { throw new Error('real'); };
         Object.defineProperty(f, 'name', { value: 'a\n    at b (c.ts:1:1)\nCaused by: d\r    at e' });
         f();",
        expect![[r#"
            threw "Error" "real" at 1:25
            Error: real
                at a     at b (c.ts:1:1) Caused by: d     at e (script.ts:1:25)
                at script.ts:3:10
        "#]],
    )
    .await;
    check(
        r"const error = new Error('real');
         error.stack = 'Error: real\n    at b (c.ts:1:1)\nCaused by: d';
         throw error;",
        expect![[r#"
            threw "Error" "real" at 0:0
            Error: real
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_console_asks_no_method_of_a_script_how_to_show_a_value() {
    check(
        "const values = [new URL('a:b'), new URLSearchParams('c=d'), AbortSignal.abort()];
         for (const { prototype } of [URL, URLSearchParams, AbortSignal]) {
           for (const key of Reflect.ownKeys(prototype)) {
             if (key !== 'constructor') Object.defineProperty(prototype, key, { value() { throw 1; } });
           }
         }
         console.log(...values);
         console.log(Object.create(URL.prototype), { __proto__: AbortSignal.prototype });",
        expect![[r#"
            URL {
              href: 'a:b',
              origin: 'null',
              protocol: 'a:',
              username: '',
              password: '',
              host: '',
              hostname: '',
              port: '',
              pathname: 'b',
              search: '',
              searchParams: URLSearchParams {},
              hash: ''
            } URLSearchParams { 'c' => 'd' } AbortSignal { aborted: true }
            URL {} AbortSignal {}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn made_up_host_objects_are_cloned_as_what_they_are() {
    check(
        "const brand = Symbol.for('Deno.core.hostObject');
         return structuredClone({ a: 1, [brand]: () => ({ type: 'x' }) });",
        expect![[r#"
            => {"a":1}
        "#]],
    )
    .await;
    check(
        "return [globalThis, mcp, echo, new WeakMap()].map((value) => {
           try { structuredClone(value); return 'cloned'; } catch (e) { return e.name; }
         });",
        expect![[r#"
            => ["DataCloneError","DataCloneError","DataCloneError","DataCloneError"]
        "#]],
    )
    .await;
}
