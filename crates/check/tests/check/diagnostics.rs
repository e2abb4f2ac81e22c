//! Each kind of type error, with its exact message.

use expect_test::{Expect, expect};

use crate::support;

const TOOLS: &str = r#"
type Issue = { number: number; title: string; body: string | null; labels: { name: string }[]; user: { login: string } };
/** Lists the issues of a repository. */
declare function github_listIssues(input: {
  owner: string;
  repo: string;
  /** which ones */
  state?: "open" | "closed" | "all";
  page?: number;
  labels?: string[];
}): Promise<{ total: number; items: Issue[] }>;
declare function raw_get(input?: { path?: string }): Promise<unknown>;
declare function shape_make(
  input: { id: string } & ({ kind: "circle"; radius: number } | { kind: "square"; side: number }),
): Promise<string>;
declare function wide_set(input: {
  first: string;
  second: string;
  third: { one: string; two: number[]; three: { four: string } };
  choice: "aaaaaaaaaaaaaaaa" | "bbbbbbbbbbbbbbbb" | "cccccccccccccccc" | "dddddddddddddddd" | "eeeeeeeeeeeeeeee" | "ffffffffffffffff";
}): Promise<string>;
"#;

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&support::check(TOOLS, text));
}

#[test]
fn nothing_is_wrong() {
    check(
        r#"const { items } = await github_listIssues({ owner: "a", repo: "b" });
const byNumber = new Map<number, Issue>(items.map((issue) => [issue.number, issue]));
for (const [number, issue] of byNumber) console.log(number, issue.body?.length ?? 0);
await shape_make({ id: "a", kind: "circle", radius: 1 });
try { await raw_get(); } catch (error) { if (error instanceof McpToolError) console.log(error.content); }
throw byNumber.size;"#,
        expect![""],
    );
}

#[test]
fn names() {
    check(
        r#"await github_listIsues({ owner: "a", repo: "b" });
await gitlab_mergeRequest({});
const issues: Isue[] = [];
fetch("https://example.com"); process.exit(1); document.title; require("fs");
nothing = 1; Math.flor(1); throw new McpToolErorr("x");
const data = await import("node:fs");"#,
        expect![[r#"
            1:7 cannot find name `github_listIsues`; did you mean `github_listIssues`?
            2:7 cannot find name `gitlab_mergeRequest`: no tool is named so, and the sandbox does not have it
            3:15 cannot find name `Isue`; did you mean `Issue`?
            4:1 cannot find name `fetch`: no tool is named so, and the sandbox does not have it
            4:31 cannot find name `process`: no tool is named so, and the sandbox does not have it
            4:48 cannot find name `document`: no tool is named so, and the sandbox does not have it
            4:64 cannot find name `require`: no tool is named so, and the sandbox does not have it
            5:1 cannot find name `nothing`: no tool is named so, and the sandbox does not have it
            5:19 property `flor` does not exist on type `Math`; did you mean `floor`?
            5:38 cannot find name `McpToolErorr`; did you mean `McpToolError`?
            and 1 more
        "#]],
    );
}

#[test]
fn inputs() {
    check(
        r#"await github_listIssues({ owner: "a" });
await github_listIssues({ owner: "a", repo: 3 });
await github_listIssues({ owner: "a", repo: "b", sate: "open" });
await github_listIssues({ owner: "a", repo: "b", state: "opened" });
await github_listIssues();
await github_listIssues("a", "b");
const options = { owner: 1, repo: "b", state: "open" };
await github_listIssues(options);
await github_listIssues({ owner: "a", repo: "b", labels: ["x", null] });"#,
        expect![[r#"
            1:25 property `repo` is missing in type `{ owner: string; }` but required in type `{ owner: string; repo: string; state?: "all" | "closed" | "open" | undefined; page?: number | undefined; … }`
            2:39 type `number` is not assignable to type `string`
            3:50 object literal may only specify known properties, but `sate` does not exist in type `{ owner: string; repo: string; state?: "all" | "closed" | "open" | undefined; page?: number | undefined; … }`; did you mean to write `state`?
            4:50 type `"opened"` is not assignable to type `"all" | "closed" | "open" | undefined`; did you mean `"open"`?
            5:7 expected 1 arguments, but got 0; an argument for `input` was not provided; it takes `(input: { owner: string; repo: string; state?: "open" | "closed" | "all"; page?: number; labels?: string[]; })`
            6:30 expected 1 arguments, but got 2
            8:25 argument of type `{ owner: number; repo: string; state: string; }` is not assignable to parameter of type `{ owner: string; repo: string; state?: "all" | "closed" | "open" | undefined; page?: number | undefined; … }`: types of property `owner` are incompatible: type `number` is not assignable to type `string`
            9:64 type `null` is not assignable to type `string`
        "#]],
    );
}

#[test]
fn unions_and_long_types() {
    check(
        r#"await shape_make({ id: "a", kind: "circle", side: 3 });
await shape_make({ id: "a", kind: "triangle" });
await shape_make({ id: "a", kind: "circle" });
await wide_set({ first: "", second: "", third: { one: "", two: ["x"], three: { four: 1 } }, choice: "none" });
await wide_set({ first: "" });
const third = { one: "", two: [1], three: { four: 4 } };
await wide_set({ first: "", second: "", third, choice: "aaaaaaaaaaaaaaaa" });"#,
        expect![[r#"
            1:45 object literal may only specify known properties, and `side` does not exist in type `{ id: string; } & { kind: "circle"; radius: number; }`
            2:29 type `"triangle"` is not assignable to type `"circle" | "square"`
            3:18 argument of type `{ id: string; kind: "circle"; }` is not assignable to parameter of type `{ id: string; } & ({ kind: "circle"; radius: number; } | { kind: "square"; side: number; })`: type `{ id: string; kind: "circle"; }` is not assignable to type `{ id: string; } & { kind: "circle"; radius: number; }`: property `radius` is missing in type `{ id: string; kind: "circle"; }` but required in type `{ kind: "circle"; radius: number; }`
            4:65 type `string` is not assignable to type `number`
            4:80 type `number` is not assignable to type `string`
            4:93 type `"none"` is not assignable to type `"aaaaaaaaaaaaaaaa" | "bbbbbbbbbbbbbbbb" | "cccccccccccccccc" | "dddddddddddddddd" | "eeeeeeeeeeeeeeee" …`
            5:16 type `{ first: string; }` is missing the following properties from type `{ first: string; second: string; third: { one: string; two: number[]; three: { four: string; }; }; … }`: second, third, choice
            7:41 type `{ one: string; two: number[]; three: { four: number; }; }` is not assignable to type `{ one: string; two: number[]; three: { four: string; }; }`: the types of `three.four` are incompatible between these types: type `number` is not assignable to type `string`
        "#]],
    );
}

#[test]
fn results() {
    check(
        r#"const found = await github_listIssues({ owner: "a", repo: "b" });
found.itens;
found.items[0].titel;
found.items[0].body.length;
github_listIssues({ owner: "a", repo: "b" }).items;
const raw = await raw_get();
raw.name;
for (const issue of found) console.log(issue);
const names: string = found.items.map((issue) => issue.user.logn);
const { missing } = found;
found.total();"#,
        expect![[r#"
            2:7 property `itens` does not exist on type `{ total: number; items: Issue[]; }`; did you mean `items`?
            3:16 property `titel` does not exist on type `Issue`; did you mean `title`?
            4:1 object is possibly `null`
            5:46 property `items` does not exist on type `Promise<{ total: number; items: Issue[]; }>`; did you forget to use `await`?
            7:1 `raw` is of type `unknown`
            8:21 type `{ total: number; items: Issue[]; }` must have a `[Symbol.iterator]()` method that returns an iterator
            9:7 type `any[]` is not assignable to type `string`
            9:61 property `logn` does not exist on type `{ login: string; }`; did you mean `login`?
            10:9 property `missing` does not exist on type `{ total: number; items: Issue[]; }`
            11:7 this expression is not callable: type `Number` has no call signatures
        "#]],
    );
}

#[test]
fn the_language() {
    check(
        r#"const one: number = "1";
function add(a: number, b?: string) { return a; }
add("x"); add(1, "2", 3);
const two = 2; two = 3;
const f = (value) => value;
let late: string; console.log(late);
if (one === "a") f(null.x);
class A { x: number; }
try { f(1); } catch (error) { console.log(error.message); }
[1, 2].join(1);"#,
        expect![[r#"
            1:7 type `string` is not assignable to type `number`
            3:5 argument of type `string` is not assignable to parameter of type `number`
            3:23 expected 1-2 arguments, but got 3
            4:16 cannot assign to `two` because it is a constant
            5:12 parameter `value` implicitly has an `any` type
            6:31 variable `late` is used before being assigned
            7:5 this comparison appears to be unintentional because the types `number` and `string` have no overlap
            7:20 the value `null` cannot be used here
            8:11 property `x` has no initializer and is not definitely assigned in the constructor
            10:13 argument of type `number` is not assignable to parameter of type `string`
        "#]],
    );
}

#[test]
fn what_the_sandbox_does_not_have() {
    check(
        r#"eval("1");
new Function("return 1");
new SharedArrayBuffer(1);
Atomics.load;
WebAssembly.compile;
Temporal.Now;
new Date().toTemporalInstant();
setTimeout("1", 1);"#,
        expect![[r#"
            1:1 cannot find name `eval`: no tool is named so, and the sandbox does not have it
            2:5 this expression is not constructable: type `FunctionConstructor` has no construct signatures
            3:5 cannot find name `SharedArrayBuffer`: no tool is named so, and the sandbox does not have it
            4:1 cannot find name `Atomics`: no tool is named so, and the sandbox does not have it
            5:1 cannot find name `WebAssembly`: no tool is named so, and the sandbox does not have it
            6:1 cannot find name `Temporal`: no tool is named so, and the sandbox does not have it
            7:12 property `toTemporalInstant` does not exist on type `Date`
            8:12 argument of type `string` is not assignable to parameter of type `(...args: any[]) => unknown`
        "#]],
    );
}

#[test]
fn columns_are_utf16_units() {
    check(
        "const é = '日本😀'; const n: number = '😀';\r\n\t/* 😀 */ nope;\u{2028}  nope2;",
        expect![[r#"
            1:25 type `string` is not assignable to type `number`
            2:11 cannot find name `nope`: no tool is named so, and the sandbox does not have it
            3:3 cannot find name `nope2`: no tool is named so, and the sandbox does not have it
        "#]],
    );
}

#[test]
fn at_most_ten_are_shown() {
    check(
        &"undefined_name;\n".repeat(14),
        expect![[r#"
            1:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            2:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            3:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            4:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            5:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            6:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            7:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            8:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            9:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            10:1 cannot find name `undefined_name`: no tool is named so, and the sandbox does not have it
            and 4 more
        "#]],
    );
}

#[test]
fn comments_that_steer_the_checker() {
    // One line may be excused; a whole script may not.
    check(
        r#"// @ts-nocheck
// @ts-ignore
const a: number = "a";
// @ts-expect-error
const b: number = "b";
// @ts-expect-error
const c: number = 1;
const d: number = "d";"#,
        expect![[r#"
            6:1 unused `@ts-expect-error` directive
            8:7 type `string` is not assignable to type `number`
        "#]],
    );
}

#[test]
fn types_of_the_script_hide_those_of_tools() {
    check(
        r#"type Issue = { mine: boolean };
const issue: Issue = { mine: 1 };
const console = { log: (n: number) => n };
console.log("x");"#,
        expect![[r#"
            2:24 type `number` is not assignable to type `boolean`
            4:13 argument of type `string` is not assignable to parameter of type `number`
        "#]],
    );
}

#[test]
fn text_that_steers_a_terminal_is_not_passed_on() {
    check(
        "const x: \"\\u001b[31m\\u202e\" = \"b\"; ({ \"a\\u001bb\": 1 }) satisfies { c: 1 };",
        expect![[r#"
            1:7 type `"b"` is not assignable to type `"\u001B[31m�"`
            1:39 object literal may only specify known properties, and `"a\u001bb"` does not exist in type `{ c: 1; }`
        "#]],
    );
}
