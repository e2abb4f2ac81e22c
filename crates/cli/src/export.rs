//! `callgate export`: prints the tools in the format of a provider's API.

use std::collections::HashSet;

use callgate::Gate;

use crate::args::ExportArgs;
use crate::{names, print, setup};

/// Prints the array to standard output, and notes to standard error.
pub fn print(gate: &Gate, args: &ExportArgs) -> anyhow::Result<u8> {
    // Names can be checked only if a server has started.
    let lacks_servers = setup::lacks_all_servers(gate);
    let functions = |wanted: &[String]| -> Result<HashSet<String>, u8> {
        if lacks_servers {
            return Ok(HashSet::new());
        }
        let tools = names::chosen(gate, wanted)?.into_iter();
        Ok(tools.map(|tool| tool.function).collect())
    };
    let loaded = if args.load.is_empty() {
        Ok(HashSet::new())
    } else {
        functions(&args.load)
    };
    let (chosen, loaded) = match (functions(&args.tools), loaded) {
        (Ok(chosen), Ok(loaded)) => (chosen, loaded),
        (Err(code), _) | (_, Err(code)) => return Ok(code),
    };
    if args.defer && !args.format.defers() {
        print::warning(&format!(
            "{} cannot search for tools, so every tool is loaded at once",
            args.format
        ));
    }
    let exported = gate.view().export(
        args.format,
        |function| chosen.contains(function),
        |function| args.defer && !loaded.contains(function),
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
