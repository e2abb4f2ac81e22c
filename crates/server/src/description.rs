//! The text that teaches a model the tool: the rules of the sandbox in a few
//! lines, then the declarations.

use callgate::Gate;

/// The description of `run_script` for this gate.
pub(crate) fn run_script(gate: &Gate) -> String {
    let limits = gate.limits();
    let mut text = format!(
        "Run one TypeScript script that does the whole job by calling the functions declared \
         below, and print only what you need to see.\n\
         - Top-level await and return work; there are no imports, no file system and no network: \
         the functions are all there is. Types need no import.\n\
         - Call independent functions together with Promise.all. Filter, join and count in the \
         script: results stay in the sandbox unless you print or return them.\n\
         - A failing call throws McpToolError, McpProtocolError, McpTimeoutError or \
         McpDeniedError; catch it to go on. A denied call will be denied again.\n\
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
    text.push_str(&gate.declarations(|_| true));
    text.push_str("```\n");
    text
}
