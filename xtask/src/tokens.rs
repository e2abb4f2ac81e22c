//! `cargo xtask tokens`: counts the tokens of a model's input and output by mode, and writes them into
//! `docs/tokens.md`.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{corpus, files, pinned, process, say, setup, test};

const DOCUMENT: &str = "docs/tokens.md";
/// The lines around the tables in the document.
const BEGIN: &str = "<!-- by cargo xtask tokens -->\n";
const END: &str = "<!-- end -->\n";

pub(crate) fn run(project: &Project) -> Result<()> {
    setup::for_build(project)?;
    let corpus = corpus::lists(project)?;
    let real_servers = pinned::real_servers(project)?;
    say::step("build (the first time: about seven minutes on two cores)");
    test::build(project)?;
    say::step("tokens (half a minute)");
    let mut ledger = Command::new(project.built("examples/token_ledger"));
    ledger.arg(corpus).env(pinned::REAL_SERVERS, real_servers);
    let tables = process::output(&mut ledger)?;
    let file = project.root.join(DOCUMENT);
    let text = with_tables(&files::read(&file)?, &tables)?;
    files::write(&file, &text)?;
    say::result(format_args!("the tables are in {DOCUMENT}"));
    Ok(())
}

/// Replaces the tables of the text.
fn with_tables(text: &str, tables: &str) -> Result<String> {
    let missing = || format!("{DOCUMENT} needs the lines {BEGIN:?} and {END:?}");
    let (before, rest) = text.split_once(BEGIN).with_context(missing)?;
    let (_, after) = rest.split_once(END).with_context(missing)?;
    Ok(format!("{before}{BEGIN}\n{tables}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_replaced_and_the_rest_stays() {
        let old = format!("# A\n{BEGIN}old\n{END}# B\n");
        let new = with_tables(&old, "new\n").unwrap();
        assert_eq!(new, format!("# A\n{BEGIN}\nnew\n\n{END}# B\n"));
        assert_eq!(with_tables(&new, "new\n").unwrap(), new);
        assert!(with_tables("# A\n", "new").is_err());
    }
}
