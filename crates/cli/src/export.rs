//! `callgate export`: prints the tools in the format of a provider's API.

use callgate::Gate;
use callgate::faces::Pattern;

use crate::args::ExportArgs;
use crate::{names, print, setup};

/// Prints the array to standard output, and notes to standard error.
pub fn print(gate: &Gate, args: &ExportArgs) -> anyhow::Result<u8> {
    let one_of = |patterns: &[Pattern], function: &str| {
        patterns
            .iter()
            .any(|pattern| gate.view().matches(pattern, function))
    };
    let tools = gate.tools();
    let patterns = args.tools.iter().chain(&args.load);
    let unmatched = patterns
        .filter(|pattern| {
            !tools
                .iter()
                .any(|tool| gate.view().matches(pattern, &tool.function))
        })
        .map(|pattern| {
            (
                pattern.as_str(),
                gate.view().unmatched_message(pattern.as_str()),
            )
        });
    // Patterns can be checked only if a server has started.
    if !setup::lacks_all_servers(gate)
        && let Some(code) = names::no_such_tools(gate, unmatched)
    {
        return Ok(code);
    }
    if args.defer && !args.format.defers() {
        print::warning(&format!(
            "{} cannot search for tools, so every tool is loaded at once",
            args.format
        ));
    }
    let exported = gate.view().export(
        args.format,
        |function| args.tools.is_empty() || one_of(&args.tools, function),
        |function| args.defer && !one_of(&args.load, function),
    );
    for note in &exported.notes {
        print::warning(note);
    }
    for (name, function) in &exported.renamed {
        print::warning(&format!(
            "{function} is named {name} there: the provider does not accept its name"
        ));
    }
    print::json(&exported.tools)?;
    Ok(0)
}
