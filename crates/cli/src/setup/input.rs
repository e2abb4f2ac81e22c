//! The inputs of a run: the script, standard input, and the results of a dry run.

use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use callgate::CancellationToken;
use callgate::dry_run::DryRun;
use callgate::faces::{MAX_SCRIPT_BYTES, MAX_STDIN};
use callgate_text::one_line;

use crate::args::{DryRunArgs, RunArgs};

/// Bytes of a file of recorded results.
const MAX_RECORDED: u64 = 64 << 20;

pub fn dry_run(flags: &DryRunArgs) -> anyhow::Result<Option<DryRun>> {
    if !flags.dry_run {
        return Ok(None);
    }
    let mut dry_run = DryRun::default();
    dry_run.reads.clone_from(&flags.reads);
    if let Some(file) = &flags.recorded {
        let name = file.display();
        let text = callgate_files::read_text(file, MAX_RECORDED);
        let text = text.with_context(|| format!("could not read {name}"))?;
        dry_run.recorded = serde_json::from_str(&text).with_context(|| {
            format!(
                "{name} must contain one JSON object from tool names to results, such as \
                 {{ \"ticketing_createIssue\": {{ \"id\": 7 }} }}"
            )
        })?;
    }
    Ok(Some(dry_run))
}

/// A script of `run`.
pub struct Program {
    pub source: String,
    /// Its name in messages.
    pub name: String,
    /// Its arguments.
    pub words: Vec<String>,
}

/// Reads the script that `run` is given: code, or a file.
pub fn program(args: &RunArgs) -> anyhow::Result<Program> {
    let file = args.file.as_deref();
    let mut words = args.args.clone();
    let Some(code) = &args.eval else {
        let (source, name) = script(Path::new(file.unwrap_or_default()))?;
        return Ok(Program {
            source,
            name,
            words,
        });
    };
    // The first word is not a file then.
    if let Some(word) = file {
        let word = word.to_str().context("an argument is not UTF-8 text")?;
        words.insert(0, word.to_owned());
    }
    Ok(Program {
        source: code.clone(),
        name: "eval.ts".to_owned(),
        words,
    })
}

/// Reads standard input for `mcp.stdin`, which is empty at a terminal; `None` after Ctrl-C.
pub async fn standard_input(cancel: &CancellationToken) -> anyhow::Result<Option<String>> {
    if io::stdin().is_terminal() {
        return Ok(Some(String::new()));
    }
    let read = || read_up_to(io::stdin().lock(), MAX_STDIN);
    // A pipe may be silent for long.
    let bytes = tokio::select! {
        bytes = tokio::task::spawn_blocking(read) => bytes?,
        () = cancel.cancelled() => return Ok(None),
    };
    let bytes = bytes.context("could not read standard input")?;
    if bytes.len() > MAX_STDIN {
        bail!(
            "standard input is longer than {} MiB, the limit of mcp.stdin; run the script for one \
             part at a time, or let a tool read the data",
            MAX_STDIN >> 20
        );
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        anyhow!(
            "standard input is not UTF-8 text (byte {at}), so mcp.stdin cannot have it; convert it \
             first, for instance with `iconv` or `base64`"
        )
    })?;
    Ok(Some(text))
}

/// Reads a script, and returns its text and its name in messages.
pub fn script(file: &Path) -> anyhow::Result<(String, String)> {
    if file == Path::new("-") {
        let text = read_bounded(io::stdin().lock());
        let text = text.context("could not read standard input")?;
        return Ok((text, "stdin.ts".to_owned()));
    }
    let name = one_line(&file.display().to_string(), usize::MAX);
    let opened = std::fs::File::open(file).map_err(anyhow::Error::from);
    let text = opened.and_then(read_bounded);
    Ok((
        text.with_context(|| format!("could not read {name}"))?,
        name,
    ))
}

/// Reads up to one byte more than the limit of a script, so that the run refuses a longer one.
fn read_bounded(reader: impl Read) -> anyhow::Result<String> {
    let bytes = read_up_to(reader, MAX_SCRIPT_BYTES)?;
    if bytes.len() > MAX_SCRIPT_BYTES {
        // The cut may split a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).context("it is not UTF-8 text")
}

/// Reads up to one byte more than the limit, which shows that the input is longer.
pub fn read_up_to(reader: impl Read, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
