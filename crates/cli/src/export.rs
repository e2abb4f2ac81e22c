//! `callgate export`: the tools as a provider's interface takes them.

use callgate::flow::Pattern;
use callgate::{ExportFormat, Gate};
use clap::Args;

use crate::session::Sources;
use crate::{names, print, session};

/// Flags of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Patterns of the tools, by generated name; all if none is given
    #[arg(value_name = "PATTERN")]
    pub tools: Vec<Pattern>,

    /// The provider: anthropic (Messages), openai (Responses) or gemini
    #[arg(long, value_name = "FORMAT")]
    pub format: ExportFormat,

    /// Leave the tools for the provider's own search to load, where it has one
    #[arg(long)]
    pub defer: bool,

    /// With --defer, load tools of this pattern at once all the same; may be
    /// repeated
    #[arg(long, value_name = "PATTERN", requires = "defer")]
    pub load: Vec<Pattern>,
}

/// Prints the array; what it does not say goes to standard error.
pub async fn execute(config: &Sources, args: ExportArgs) -> anyhow::Result<u8> {
    session::with_tools(config, async |gate| print_tools(gate, &args)).await
}

fn print_tools(gate: &Gate, args: &ExportArgs) -> anyhow::Result<u8> {
    let one_of = |patterns: &[Pattern], function: &str| {
        patterns.iter().any(|pattern| pattern.matches(function))
    };
    let tools = gate.tools();
    let patterns = args.tools.iter().chain(&args.load);
    let unmatched = patterns
        .filter(|pattern| !tools.iter().any(|tool| pattern.matches(&tool.function)))
        .map(|pattern| (pattern.as_str(), gate.unmatched_message(pattern.as_str())));
    // Where no server is up, nothing is known of any pattern.
    if !session::lacks_all_servers(gate)
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
    print::out(&format!(
        "{}\n",
        serde_json::to_string_pretty(&exported.tools)?
    ))?;
    Ok(0)
}
