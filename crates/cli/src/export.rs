//! `callgate export`: the tools in a provider's form.

use callgate::Gate;
use callgate::rule::Pattern;

use crate::args::ExportArgs;
use crate::{names, print, setup};

/// Prints the array, and notes on standard error.
pub fn print(gate: &Gate, args: &ExportArgs) -> anyhow::Result<u8> {
    let one_of = |patterns: &[Pattern], function: &str| {
        patterns.iter().any(|pattern| pattern.matches(function))
    };
    let tools = gate.tools();
    let patterns = args.tools.iter().chain(&args.load);
    let unmatched = patterns
        .filter(|pattern| !tools.iter().any(|tool| pattern.matches(&tool.function)))
        .map(|pattern| (pattern.as_str(), gate.unmatched_message(pattern.as_str())));
    // Without a server, no pattern can be checked.
    if !setup::lacks_all_servers(gate)
        && let Some(code) = names::no_such_tools(gate, unmatched)
    {
        return Ok(code);
    }
    if args.defer && !args.format.defers() {
        print::error(&format!(
            "{} has no search of its own, so every tool is loaded at once",
            args.format
        ));
    }
    let exported = gate.export(
        args.format,
        |function| args.tools.is_empty() || one_of(&args.tools, function),
        |function| args.defer && !one_of(&args.load, function),
    );
    for note in &exported.notes {
        print::error(note);
    }
    for (name, function) in &exported.renamed {
        print::error(&format!(
            "{function} is called {name} there: the provider does not take its name"
        ));
    }
    print::json(&exported.tools)?;
    Ok(0)
}
