//! Code in the forms of models and other programs: in fences, after thoughts, in JSON, escaped.

use callgate_script::{prepare, rewritten};

/// Line and column of the call of `f` in each text, which is run.
#[track_caller]
fn check_runs(texts: &[&str], place: (u32, u32)) {
    for text in texts {
        let prepared = prepare(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let named = prepared
            .mentions
            .tools
            .iter()
            .find(|mention| mention.name == "f");
        let found = named.map(|mention| (mention.line, mention.column));
        assert_eq!(found, Some(place), "{text}");
        if prepared.is_rewritten {
            assert!(rewritten(text).is_some(), "{text}");
        }
    }
}

#[track_caller]
fn check_refused(text: &str, part: &str) {
    let error = prepare(text).expect_err(text);
    assert!(
        error.message().contains(part),
        "{text}: {}",
        error.message()
    );
}

#[test]
fn code_fences_of_every_kind_are_removed() {
    check_runs(
        &[
            "```ts\nreturn f()\n```",
            "```tsx\nreturn f()\n```",
            "```jsx\nreturn f()\n```",
            "```JavaScript\nreturn f()\n```",
            "~~~\nreturn f()\n~~~",
            "~~~ts\nreturn f()\n~~~~",
            "````\nreturn f()\n````",
            "````typescript\nreturn f(/*\n```ts\n```\n*/)\n````",
            "```ts title=\"a.ts\" {1,3}\nreturn f()\n```",
            "```title=\"a.ts\"\nreturn f()\n```",
            "```ts:src/a.ts\nreturn f()\n```",
            "```{.ts .numberLines}\nreturn f()\n```",
            "~~~js\nreturn f(/*\n```\n*/)\n~~~",
        ],
        (2, 8),
    );
    for (text, is_javascript) in [
        ("```js\nf()\n```", true),
        ("```jsx\nf()\n```", true),
        ("~~~mjs\nf()\n~~~", true),
        ("```ts\nf()\n```", false),
        ("f()", false),
    ] {
        assert_eq!(
            prepare(text).expect(text).checkable.is_javascript,
            is_javascript,
            "{text}"
        );
    }
    check_refused("```python\nf()\n```", "marked \"python\"");
    check_refused("```c++\nf()\n```", "marked \"c++\"");
    check_refused("```ts return f() ```", "lines of their own");
    check_refused("~~~~ts\nf()\n~~~", "end it with a line \"~~~~\"");
    check_refused(
        "~~~ts\nf()\n~~~\n\n~~~ts\nf()\n~~~",
        "more than one code block",
    );
    check_refused("Here:\n~~~ts\nf()\n~~~", "text before the code block");
}

#[test]
fn python_is_named_as_such() {
    for text in [
        "import json\nprint(json.dumps(1))",
        "import os, sys",
        "from datetime import date\nprint(date.today())",
        "def total(items):\n    return sum(items)",
        "notes = await list_notes()\nfor note in notes:\n    print(note)",
        "print(f\"{1}\")",
    ] {
        check_refused(text, "this looks like Python, and scripts are TypeScript: ");
    }
    for text in [
        "import { a }",
        "for (const x of y) { on:",
        "class A { def(:",
    ] {
        let error = prepare(text).expect_err(text);
        assert!(!error.message().contains("Python"), "{text}");
    }
}

#[test]
fn thinking_text_before_code_is_removed() {
    check_runs(&["<think>\nI call f.\n</think>\nreturn f()"], (4, 8));
    check_runs(
        &["<thinking>f, or\n```ts\ng()\n```\n</thinking>\n```ts\nreturn f()\n```"],
        (7, 8),
    );
    check_runs(
        &[
            "<code>\nreturn f()\n</code>",
            "<pre><code class=\"ts\">\nreturn f()\n</code></pre>\n",
            "<script>\nreturn f()</script>",
            "<think>I call f.</think><code>\nreturn f()\n</code>",
        ],
        (2, 8),
    );
    check_runs(
        &["<typescript>\n```ts\nreturn f()\n```\n</typescript>"],
        (3, 8),
    );
    check_refused("<think>I call f.\nf()", "<think> is not closed");
    assert!(prepare("const id = <T>(x: T) => x; id(1)").is_ok());
}

#[test]
fn code_inside_json_is_extracted() {
    check_runs(
        &[
            r#"{"code": "const a = \"x\";\nreturn f(a)"}"#,
            r#"{ "script": "const a = 1;\nreturn f(a)", "timeoutMs": 100 }"#,
            r#"{"name": "run_script", "arguments": {"code": "const a = 1;\nreturn f(a)"}}"#,
            r#""const a = 1;\nreturn f(a)""#,
            r#"{"code": "```ts\nreturn f()\n```"}"#,
            "```json\n{\"code\": \"const a = 1;\\nreturn f(a)\"}\n```",
        ],
        (2, 8),
    );
    check_refused(r#"{"code": "const a = ;"}"#, "the text is a JSON object");
    check_refused(r#"{"code": "a", "script": "b"}"#, "a JSON object");
    check_refused(r#"{"tool": "f", "with": {"x": 1}}"#, "a JSON object");
    // A text as a value, an object literal and a block.
    for text in ["\"a text\"", "({ \"code\": \"a\" })", "{ code: f(); }"] {
        assert!(!prepare(text).expect(text).is_rewritten, "{text}");
    }
}

#[test]
fn escaped_code_is_unescaped() {
    check_runs(
        &[
            "for (const a of b) if (a &lt; 2 &amp;&amp; a &gt; 1)\nreturn f(a)",
            "const a = b &lt; c;\nreturn f(&quot;&amp;amp;&quot;)",
            "const a = (b) =&gt; b; const c = a < 1;\nreturn f('&amp;')",
            r#"const a = "x"; // one\nreturn f("a\nb")"#,
            r#"const a = \"x\";\nreturn f(\"a\\nb\")"#,
            "const a = “it’s”;\nreturn f(‘b’)",
            "const a = 1;\u{200b}\nreturn f(\u{200b}\u{2060}\"“\u{200b}”\")",
            "const a = 1;\u{200b}\nreturn f(1 \u{2013} 2)\u{ff1b}",
            "const a = /\\n\u{201c}/;\u{200b}\nreturn f()",
            "\u{feff}const\u{a0}a = 1;\nreturn\u{a0}f(a)",
        ],
        (2, 8),
    );
    // Strings, templates and comments are the author's.
    for text in [
        r#"const a = "x\ny"; f(a)"#,
        "f('&lt;', `&amp;`) // “&gt;”",
        "f('“\u{200b}”')",
        "f(/[“/”]\u{200b}/g.test('a') ? 1 / 2 : /\\//)",
        "/* &lt; */ f(/\\n/) // a line end",
    ] {
        assert!(!prepare(text).expect(text).is_rewritten, "{text}");
    }
    check_refused("if (a &lt; b", "HTML entities");
    check_refused("let a = ;\\nlet b = 1", "in place of line ends");
    check_refused("let a = “b;", "only look like quotes");
}

#[test]
fn standard_input_is_named_by_property_or_value() {
    for (text, expected) in [
        ("return mcp.stdin.length", true),
        (
            "const lines = mcp?.[`stdin`].split('-'); return lines",
            true,
        ),
        ("const { stdin, args } = mcp; return [stdin, args]", true),
        ("const { stdin: text } = globalThis.mcp; return text", true),
        ("const m = mcp; return m.stdin", true),
        ("const job = await a_b({}); return job.stdin", false),
        ("const stdin = 'mcp.stdin'; return [stdin, mcp.args]", false),
        ("const mcp = { stdin: 1 }; return mcp.stdin", false),
    ] {
        let prepared = prepare(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(prepared.mentions.stdin, expected, "{text}");
    }
}
