//! The text that teaches a model the tool: the rules of the sandbox in a few
//! lines, then the declarations of the tools that are not denied.

use callgate::{Detail, Gate};

/// The description of `run_script` for this gate.
pub(crate) fn run_script(gate: &Gate) -> String {
    let limits = gate.limits();
    let mut text = format!(
        "Run one TypeScript script that does the whole job by calling the functions declared \
         below, and console.log only what you need to see.\n\
         - Top-level await and return work; types need no import. Besides the functions there \
         are the language, Intl, console, timers, URL, TextEncoder, structuredClone, \
         AbortController and crypto.randomUUID; there are no imports, no fetch, no process, no \
         files.\n\
         - Call independent functions together with Promise.all. Filter, join and count in the \
         script: results stay in the sandbox unless you print or return them.\n\
         - A function that returns unknown gives its text as a string, null if there is none, or \
         {{ content: [...] }} for images and resources.\n\
         - A failing call throws McpToolError, McpProtocolError, McpTimeoutError or \
         McpDeniedError; catch it to go on. A denied call will be denied again. Every function takes \
         {{ signal, timeoutMs }} as its second argument.\n\
         - Output over {} bytes keeps its head and tail; script time is limited to {} ms, waiting \
         for functions not counted.\n",
        limits.output_bytes,
        limits.script_time.as_millis(),
    );
    for server in gate.unavailable() {
        text.push_str(&format!(
            "- Not available now: the functions of server {:?}.\n",
            server.server
        ));
    }
    text.push_str("\n```ts\n");
    text.push_str(callgate::ambient_declarations());
    text.push_str(&gate.declarations(Detail::Full, |function| !gate.denies(function)));
    text.push_str("```\n");
    text
}
