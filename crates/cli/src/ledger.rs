//! `callgate ledger`: checks ledger files, and prints what to keep elsewhere for later checks.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use callgate::faces::ledger::{Finding, Head, MAX_LINE_BYTES, Summary, Verifier};

use crate::args::LedgerCommand;
use crate::print;

/// The limit of rotated files, as in the configuration.
const MAX_ROTATED: u32 = 1_000;

/// The time for the write of a line that is under way.
const WRITING: Duration = Duration::from_millis(100);

/// Runs the command, and returns the exit code.
pub fn execute(command: LedgerCommand) -> anyhow::Result<u8> {
    let verifies = matches!(command, LedgerCommand::Verify { .. });
    let (file, known) = match command {
        LedgerCommand::Verify { file, heads } => (file, heads.as_deref().map(read_heads)),
        LedgerCommand::Heads { file } => (file, None),
    };
    let known = known.transpose()?.unwrap_or_default();
    let compared = known.len();
    let (mut found, mut warnings) = (0, 0);
    let (heads, summary) = check(&file, known, |finding| {
        let is_warning = finding.fault.is_warning();
        if is_warning {
            warnings += 1;
        } else {
            found += 1;
        }
        let line = format!("{finding}\n");
        if verifies {
            print::out(&line)?;
        } else if !is_warning {
            // A warning may be about a run under way.
            print::err(&line);
        }
        Ok(())
    })?;
    if verifies {
        print::out(&in_words(&summary, found, warnings, compared))?;
    } else {
        for head in &heads {
            print::out(&format!("{}\n", serde_json::to_string(head)?))?;
        }
    }
    Ok(u8::from(found > 0))
}

/// The counts in words. `heads`: the number of heads that were compared.
fn in_words(summary: &Summary, found: usize, warnings: usize, heads: usize) -> String {
    let mut text = format!(
        "files: {}, lines: {}, runs: {}, findings: {found}, warnings: {warnings}\n",
        summary.files, summary.lines, summary.runs
    );
    if summary.unchained > 0 {
        text += &format!(
            "not checked: {} lines of a version without chains\n",
            summary.unchained
        );
    }
    if heads > 0 {
        text += &format!(
            "heads: {heads}, of files that were deleted since: {}\n",
            summary.deleted
        );
    }
    text
}

/// The heads in a file, one a line.
fn read_heads(path: &Path) -> anyhow::Result<Vec<Head>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let heads = lines.map(|(index, line)| {
        let place = || format!("{}:{} is no head of a ledger", path.display(), index + 1);
        serde_json::from_str(line).with_context(place)
    });
    heads.collect()
}

/// Reads a ledger's files, tells each finding, and returns the heads of the files.
fn check(
    path: &Path,
    known: Vec<Head>,
    mut tell: impl FnMut(&Finding) -> anyhow::Result<()>,
) -> anyhow::Result<(Vec<Head>, Summary)> {
    let mut verifier = Verifier::new(known);
    let mut heads = Vec::new();
    for (place, file) in open(path)? {
        let name = place.display().to_string();
        verifier.begin_file(&name);
        let mut reader = BufReader::new(file);
        let mut waits = place == path;
        let mut line = Vec::new();
        while read_line(&mut reader, &mut line, &mut waits)
            .with_context(|| format!("cannot read {name}"))?
        {
            if line.len() as u64 > MAX_LINE_BYTES {
                verifier.too_long();
                break;
            }
            verifier.line(&line);
            verifier.findings().iter().try_for_each(&mut tell)?;
        }
        heads.extend(verifier.end_file());
        verifier.findings().iter().try_for_each(&mut tell)?;
    }
    let (last, summary) = verifier.finish();
    last.iter().try_for_each(tell)?;
    Ok((heads, summary))
}

/// Opens a ledger's files: the rotated ones, the oldest first, and the file itself.
fn open(path: &Path) -> anyhow::Result<Vec<(PathBuf, File)>> {
    let mut files = Vec::new();
    let mut known = Vec::new();
    // From the newest: a file that is rotated meanwhile is there twice, and not missed.
    for number in 0..=MAX_ROTATED {
        let mut name = path.as_os_str().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        let path = PathBuf::from(name);
        let file = match File::open(&path) {
            Err(error) if number > 0 && error.kind() == ErrorKind::NotFound => continue,
            opened => opened.with_context(|| format!("cannot open {}", path.display()))?,
        };
        let metadata = file.metadata()?;
        let id = (metadata.dev(), metadata.ino());
        if !known.contains(&id) {
            known.push(id);
            files.push((path, file));
        }
    }
    files.reverse();
    Ok(files)
}

/// Reads a line with its line feed, or the part up to the limit. False at the end of the file. If
/// `waits` is true, the first line without line feed gets time to be written.
fn read_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    waits: &mut bool,
) -> std::io::Result<bool> {
    line.clear();
    let limit = MAX_LINE_BYTES + 1;
    reader.by_ref().take(limit).read_until(b'\n', line)?;
    let is_at_end = !line.is_empty() && !line.ends_with(b"\n");
    if is_at_end && std::mem::take(waits) {
        std::thread::sleep(WRITING);
        let rest = limit.saturating_sub(line.len() as u64);
        reader.by_ref().take(rest).read_until(b'\n', line)?;
    }
    Ok(!line.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io::{self, Read};

    use super::*;

    /// A file that is written in parts; an empty part is an end that is read too early.
    struct Parts(VecDeque<&'static str>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let part = self.0.pop_front().unwrap_or_default();
            buffer[..part.len()].copy_from_slice(part.as_bytes());
            Ok(part.len())
        }
    }

    #[test]
    fn line_under_way_is_read_on_once() {
        let parts = Parts([r#"{"a""#, "", ":1}\n{"].into());
        let mut reader = BufReader::new(parts);
        let (mut line, mut lines, mut waits) = (Vec::new(), Vec::new(), true);
        while read_line(&mut reader, &mut line, &mut waits).expect("it is read") {
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        assert_eq!(lines, ["{\"a\":1}\n", "{"]);
    }
}
