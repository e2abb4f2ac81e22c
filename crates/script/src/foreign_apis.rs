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
            "there is no process; write values into the script, and end it with return or throw"
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
        "localStorage" | "sessionStorage" | "indexedDB" => {
            "nothing is kept between scripts; call a tool that stores"
        }
        "setImmediate" => "use queueMicrotask, or setTimeout without a delay",
        "eval" => "code in strings does not run; write it into the script",
        "Worker" | "SharedArrayBuffer" | "Atomics" => {
            "there is one thread; make concurrent calls with Promise.all"
        }
        "WebAssembly" => "there is no WebAssembly; write the code in TypeScript",
        "print" => "print with console.log",
        _ => return None,
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
