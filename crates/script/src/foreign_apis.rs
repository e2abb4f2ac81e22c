//! APIs and syntax of other runtimes that scripts lack, with advice.

use swc_common::Span;
use swc_ecma_ast::{AutoAccessor, Decorator, JSXElement, JSXFragment, Module};
use swc_ecma_visit::{Visit, VisitWith};

/// Advice for a global of browsers, Node.js and similar runtimes; `None` for any other name.
pub fn replacement_for(name: &str) -> Option<&'static str> {
    Some(match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" | "Request" | "Response"
        | "Headers" => "there is no network; call a tool that fetches",
        "process" => {
            "there is no process; write values into the script (`callgate run` gives it mcp.args and \
             mcp.stdin), and end it with return or throw"
        }
        "Deno" | "Bun" => "there are no files, no network and no environment; call tools for them",
        "Buffer" => {
            "there is no Buffer; use Uint8Array with TextEncoder and TextDecoder, or atob and btoa"
        }
        "module" | "exports" => "a script is not a module; return the value",
        "require" => "there are no modules; call tools as global functions",
        "__dirname" | "__filename" => "a script has no folder; call a tool that knows the files",
        "window" | "global" | "self" => "the global object is called globalThis",
        "document" | "navigator" | "location" | "alert" | "prompt" | "confirm" => {
            "there is no page; print with console.log, and call tools for other actions"
        }
        "localStorage" | "sessionStorage" | "indexedDB" | "store" | "load" | "save" | "recall" => {
            "nothing is kept between scripts; call a tool that stores"
        }
        "setImmediate" => "use queueMicrotask, or setTimeout without a delay",
        "eval" => "code in strings does not run; write it into the script",
        "Worker" | "SharedArrayBuffer" | "Atomics" => {
            "there is one thread; make concurrent calls with Promise.all"
        }
        "WebAssembly" => "there is no WebAssembly; write the code in TypeScript",
        "print" | "notify" | "display" => "print with console.log",
        "text" => "print with console.log; mcp.text(result) is the text of a result",
        "image" => "hand an image to the caller with mcp.emit(content)",
        "exit" | "quit" => "end the script with return or throw",
        "sleep" | "delay" => "write await new Promise((done) => setTimeout(done, ms))",
        "search" | "searchTools" | "search_tools" | "findTools" | "find_tools" | "listTools"
        | "list_tools" | "ALL_TOOLS" | "mcp.search" | "mcp.find" | "mcp.findTools"
        | "mcp.search_tools" | "mcp.list" | "mcp.listTools" | "mcp.list_tools" => {
            "find tools with await mcp.searchTools(\"what they do\")"
        }
        "describe"
        | "getToolDetails"
        | "get_tool_details"
        | "mcp.describe"
        | "mcp.getTool"
        | "mcp.get_tool_details" => "read declarations with await mcp.getToolDetails(name)",
        "callTool" | "call_tool" | "use_mcp_tool" | "mcp.call" | "mcp.call_tool" | "mcp.invoke"
        | "mcp.execute" | "mcp.run" | "mcp.use" => {
            "call a tool by its name with await mcp.callTool(name, input)"
        }
        "Temporal" => "use Date, and Intl.DateTimeFormat for time zones",
        "crypto.subtle" | "crypto.createHash" | "crypto.createHmac" => {
            "there are no hashes, keys and ciphers; call a tool for them"
        }
        "crypto.randomBytes" | "crypto.randomInt" => {
            "use crypto.getRandomValues(new Uint8Array(length))"
        }
        "True" | "False" | "None" => "write true, false or null",
        "len" => "write .length",
        "str" => "write String(value)",
        "json" => "use JSON.parse and JSON.stringify",
        _ => return None,
    })
}

/// First words of Python's own lines, which end with a colon, and a part of each such line.
const PYTHON: [(&str, &str); 9] = [
    ("def ", "("),
    ("async def ", "("),
    ("class ", ""),
    ("for ", " in "),
    ("with ", " as "),
    ("while True", ""),
    ("elif ", ""),
    ("except", ""),
    ("try:", ""),
];

/// True if a line is Python. Only for code that is not TypeScript.
pub(crate) fn is_python(code: &str) -> bool {
    code.lines().any(|line| {
        let line = line.trim();
        let is_list = |names: &str| {
            let in_list = |c: char| c.is_alphanumeric() || "_., ".contains(c);
            names.chars().all(in_list)
        };
        let opens = |(word, part): &(&str, &str)| line.starts_with(word) && line.contains(part);
        line.strip_prefix("import ").is_some_and(is_list)
            || (line.starts_with("from ") && line.contains(" import "))
            || (line.ends_with(':') && !line.contains('{') && PYTHON.iter().any(opens))
            || line.contains("print(f\"")
    })
}

/// Finds the first syntax that V8 does not run, with advice, in a module that was parsed with all
/// syntax of TypeScript.
pub(crate) fn find_unsupported(module: &Module) -> Option<(Span, &'static str)> {
    let mut finder = Finder::default();
    module.visit_with(&mut finder);
    finder.found.into_iter().min_by_key(|(span, _)| span.lo)
}

#[derive(Default)]
struct Finder {
    found: Vec<(Span, &'static str)>,
}

const JSX: &str = "JSX is not available; build text with template literals";

impl Visit for Finder {
    fn visit_jsx_element(&mut self, element: &JSXElement) {
        self.found.push((element.span, JSX));
    }

    fn visit_jsx_fragment(&mut self, fragment: &JSXFragment) {
        self.found.push((fragment.span, JSX));
    }

    fn visit_decorator(&mut self, decorator: &Decorator) {
        let message = "decorators are not available; call the function yourself";
        self.found.push((decorator.span, message));
    }

    fn visit_auto_accessor(&mut self, accessor: &AutoAccessor) {
        let message = "\"accessor\" is not available; write a field, or a getter and a setter";
        self.found.push((accessor.span, message));
        accessor.visit_children_with(self);
    }
}
