//! The check of a ledger file: its chains, and the heads that were kept of it.
//!
//! Pure: the caller reads the files, and passes their lines.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::line::START;

/// The limit of a line, in bytes: no ledger line is longer.
pub const MAX_LINE_BYTES: u64 = 1 << 29;

/// The time, in milliseconds, in which lines of several threads and processes may be written in a
/// different order than that of their times.
const DISORDER_MS: i64 = 1_000;

/// What the beginning of a file was at some time. As long as the file has the same beginning, none
/// of it was changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// The file's path then. It may have another now.
    pub file: String,
    /// SHA-256 of the file's first line, in hexadecimal: the file is found by it.
    pub first: String,
    /// The number of lines.
    pub lines: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// SHA-256 of these bytes, in hexadecimal.
    pub sha256: String,
    /// The time of the last line: RFC 3339.
    pub time: String,
}

/// The place of a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the file, from 0, in the order in which they were read.
    file: usize,
    /// The line in it, from 1.
    line: u64,
    name: Arc<str>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.line)
    }
}

/// A fault of a ledger, and where it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line; `None` for a file that is missing.
    pub place: Option<Place>,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if self.fault.is_warning() {
            f.write_str("warning: ")?;
        }
        write!(f, "{}", self.fault)
    }
}

/// A fault of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A line that was cut off.
    #[error(
        "the line is torn: its writing was cut off by a crash or a full disk, or it was changed"
    )]
    Torn,
    /// A text that is no line of a ledger.
    #[error("this is no line of a ledger: it was changed or inserted")]
    NotALine,
    /// A line over [`MAX_LINE_BYTES`].
    #[error("the line is over {MAX_LINE_BYTES} bytes: the rest of the file was not read")]
    TooLong,
    /// A line without a number among lines that have one.
    #[error(
        "the line has no number, and lines before it do: it was changed or inserted, or written by \
         an older version of callgate"
    )]
    Unchained,
    /// A line whose members exclude each other.
    #[error("{chain}: line {number} cannot be as it is: it was changed or inserted")]
    Impossible { chain: ChainId, number: u64 },
    /// Lines of a chain that are not there.
    #[error("{chain}: lines {from} to {to} are missing before this one")]
    Missing { chain: ChainId, from: u64, to: u64 },
    /// A line that is not the successor of the one before it in its chain.
    #[error("{chain}: line {number} does not follow {before}: one of the two was changed")]
    Changed {
        chain: ChainId,
        number: u64,
        before: Place,
    },
    /// A line whose number is not above that of the one before it in its chain.
    #[error("{chain}: line {number} comes after {before}: it was duplicated, moved or inserted")]
    Again {
        chain: ChainId,
        number: u64,
        before: Place,
    },
    /// A line of a run that has ended.
    #[error("{chain}: the line comes after the end of the run: it was inserted")]
    AfterEnd { chain: ChainId },
    /// A run without a last line. A warning.
    #[error("{chain} has no end: it is under way, its process was killed, or its end was removed")]
    NoEnd { chain: ChainId },
    /// A file with less than its head says.
    #[error("lines up to {} are missing: the file was cut after {}", .head.lines, .head.time)]
    Cut { head: Head },
    /// A file that is different from its head.
    #[error("line {} or one before it was changed, inserted or removed", .head.lines)]
    Rewritten { head: Head },
    /// A head without a file.
    #[error(
        "no file begins as {:?} did with its last line of {}: the file was removed, or its first \
         line was changed",
        .head.file, .head.time
    )]
    Gone { head: Head },
    /// A head without a file, older than all lines that are there. A warning.
    #[error(
        "no file begins as {:?} did with its last line of {}: rotation, which deletes the oldest \
         file, or something else removed it",
        .head.file, .head.time
    )]
    Deleted { head: Head },
}

impl Fault {
    /// True if it may have a harmless reason.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::NoEnd { .. } | Self::Deleted { .. })
    }
}

/// A chain of lines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChainId {
    /// All lines of a run, by its id.
    Run(String),
    /// The first and last lines of a writer's runs, by the writer's id.
    Writer(String),
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(id) => write!(f, "run {id:?}"),
            Self::Writer(id) => write!(f, "writer {id:?}"),
        }
    }
}

/// The members of a line that its chains need.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    event: String,
    run: String,
    time: String,
    n: Option<u64>,
    prev: Option<String>,
    prev_time: Option<String>,
    writer: Option<WriterMembers>,
}

#[derive(Deserialize)]
struct WriterMembers {
    id: String,
    #[serde(flatten)]
    step: Step,
}

/// A line's place in a chain, as the line says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    #[serde(rename = "n")]
    number: u64,
    prev: Option<String>,
    prev_time: Option<String>,
}

/// The last line of a chain so far.
struct Link {
    number: u64,
    hash: [u8; 32],
    place: Place,
    is_end: bool,
}

impl Link {
    /// The fault of the next line of the chain, if there is one.
    fn fault_of_next(&self, chain: &ChainId, step: &Step) -> Option<Fault> {
        let (chain, number, before) = (chain.clone(), step.number, self.place.clone());
        if number <= self.number {
            return Some(Fault::Again {
                chain,
                number,
                before,
            });
        }
        if self.is_end {
            return Some(Fault::AfterEnd { chain });
        }
        if number - self.number > 1 {
            return Some(Fault::Missing {
                chain,
                from: self.number + 1,
                to: number - 1,
            });
        }
        let follows = step.prev.as_deref() == Some(&*hex::encode(self.hash));
        (!follows).then_some(Fault::Changed {
            chain,
            number,
            before,
        })
    }
}

/// The file that is read.
#[derive(Default)]
struct OpenFile {
    number: usize,
    name: Arc<str>,
    hasher: Sha256,
    bytes: u64,
    lines: u64,
    first: String,
    time: Option<String>,
    /// The heads of this file that its text has not reached.
    heads: Vec<Head>,
}

/// The numbers of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Files.
    pub files: usize,
    /// Lines, with those that are no lines of a ledger.
    pub lines: u64,
    /// Runs.
    pub runs: usize,
    /// Lines of a version without chains, before all lines with one.
    pub unchained: u64,
    /// Heads of files that were deleted since, as rotation does with the oldest.
    pub deleted: usize,
}

/// Checks the files of a ledger, the oldest first, line by line.
#[derive(Default)]
pub struct Verifier {
    heads: Vec<Head>,
    file: OpenFile,
    chains: HashMap<ChainId, Link>,
    /// The time of the first line. What is missing from before may have been deleted by rotation.
    began: Option<Timestamp>,
    summary: Summary,
    findings: Vec<Finding>,
}

impl Verifier {
    /// A check of chains, and of heads that were kept.
    pub fn new(heads: Vec<Head>) -> Self {
        Self {
            heads,
            ..Self::default()
        }
    }

    /// Begins the next file.
    pub fn begin_file(&mut self, name: &str) {
        self.file = OpenFile {
            number: self.summary.files,
            name: name.into(),
            ..OpenFile::default()
        };
        self.summary.files += 1;
    }

    /// Checks the next line of the file, with its line feed if it has one.
    pub fn line(&mut self, line: &[u8]) {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        self.summary.lines += 1;
        self.file.lines += 1;
        // A writer that meets the half-written line of a different process begins a new line.
        if !text.is_empty() {
            self.check(text);
        }
        let file = &mut self.file;
        if file.lines == 1 {
            file.first = hex::encode(Sha256::digest(text));
            let is_of_file = |head: &mut Head| head.first == file.first;
            file.heads = self.heads.extract_if(.., is_of_file).collect();
        }
        if text.len() == line.len() {
            // The last line is not complete.
            return;
        }
        file.hasher.update(line);
        file.bytes += line.len() as u64;
        let bytes = file.bytes;
        let reached = file.heads.extract_if(.., |head| head.bytes <= bytes);
        let reached: Vec<Head> = reached.collect();
        for head in reached {
            let hash = hex::encode(self.file.hasher.clone().finalize());
            if head.bytes != bytes || head.sha256 != hash {
                self.find(Fault::Rewritten { head });
            }
        }
    }

    /// Notes that the next line is over the limit. The rest of the file is not read.
    pub fn too_long(&mut self) {
        self.file.lines += 1;
        self.find(Fault::TooLong);
    }

    /// Ends the file. Returns its head, if it has a line.
    pub fn end_file(&mut self) -> Option<Head> {
        for head in std::mem::take(&mut self.file.heads) {
            self.find(Fault::Cut { head });
        }
        let file = std::mem::take(&mut self.file);
        Some(Head {
            file: file.name.to_string(),
            first: file.first,
            lines: file.lines,
            bytes: file.bytes,
            sha256: hex::encode(file.hasher.finalize()),
            time: file.time.filter(|_| file.bytes > 0)?,
        })
    }

    /// The findings since the last call.
    pub fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Ends the check, and returns its last findings.
    pub fn finish(mut self) -> (Vec<Finding>, Summary) {
        let was_rotated = self.summary.files > 1;
        let mut told = HashSet::new();
        // The last head of a file stands for the others.
        for head in std::mem::take(&mut self.heads).into_iter().rev() {
            let is_gone = !was_rotated || self.must_be_there(head.time.parse().ok());
            self.summary.deleted += usize::from(!is_gone);
            if told.insert((is_gone, head.first.clone())) {
                let fault = if is_gone {
                    Fault::Gone { head }
                } else {
                    Fault::Deleted { head }
                };
                self.findings.push(Finding { place: None, fault });
            }
        }
        let mut open = Vec::new();
        for (chain, link) in self.chains {
            if !matches!(chain, ChainId::Run(_)) {
                continue;
            }
            self.summary.runs += 1;
            if !link.is_end {
                open.push((link.place, chain));
            }
        }
        open.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let open = open.into_iter().map(|(place, chain)| Finding {
            place: Some(place),
            fault: Fault::NoEnd { chain },
        });
        self.findings.extend(open);
        (self.findings, self.summary)
    }

    fn check(&mut self, text: &[u8]) {
        let members: Members = match serde_json::from_slice(text) {
            Ok(members) => members,
            Err(error) => {
                // A line may follow one that was cut off.
                let mut starts = text.windows(START.len());
                let whole = starts.rposition(|part| part == START.as_bytes());
                if let Some(whole) = whole.filter(|at| *at > 0) {
                    self.find(Fault::Torn);
                    return self.check(text.get(whole..).unwrap_or_default());
                }
                let is_torn = error.is_eof() && !text.is_empty();
                return self.find(if is_torn {
                    Fault::Torn
                } else {
                    Fault::NotALine
                });
            }
        };
        if self.began.is_none() {
            self.began = members.time.parse().ok();
        }
        self.file.time = Some(members.time);
        let run = ChainId::Run(members.run);
        let Some(number) = members.n else {
            if self.chains.is_empty() {
                self.summary.unchained += 1;
            } else {
                self.find(Fault::Unchained);
            }
            return;
        };
        let hash: [u8; 32] = Sha256::digest(text).into();
        let (is_start, is_end) = (members.event == "runStarted", members.event == "runEnded");
        let is_of_run = is_start || is_end;
        if is_start != (number == 1) || is_of_run != members.writer.is_some() {
            let chain = run.clone();
            self.find(Fault::Impossible { chain, number });
        }
        let step = Step {
            number,
            prev: members.prev,
            prev_time: members.prev_time,
        };
        self.follow(run, &step, hash, is_end);
        if let Some(writer) = members.writer {
            self.follow(ChainId::Writer(writer.id), &writer.step, hash, false);
        }
    }

    /// Adds a line to its chain.
    fn follow(&mut self, chain: ChainId, step: &Step, hash: [u8; 32], is_end: bool) {
        let fault = match self.chains.get(&chain) {
            Some(last) => last.fault_of_next(&chain, step),
            None => self.fault_of_first(&chain, step),
        };
        // After a line that came too late, the chain continues from its last line.
        if !matches!(fault, Some(Fault::Again { .. })) {
            let link = Link {
                number: step.number,
                hash,
                place: self.place(),
                is_end,
            };
            self.chains.insert(chain, link);
        }
        if let Some(fault) = fault {
            self.find(fault);
        }
    }

    /// The fault of a chain's first line in these files, if there is one.
    fn fault_of_first(&self, chain: &ChainId, step: &Step) -> Option<Fault> {
        let (chain, number) = (chain.clone(), step.number);
        let has_prev = step.prev.is_some() && step.prev_time.is_some();
        if number == 0 || (number > 1) != has_prev {
            return Some(Fault::Impossible { chain, number });
        }
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let own = self.file.time.as_deref().and_then(time);
        let is_missed = step.prev_time.as_deref().is_some_and(|prev| {
            let prev = time(prev);
            // If the clock was set back, times say nothing about the order.
            let was_set_back = prev.zip(own).is_some_and(|(prev, own)| prev > own);
            !was_set_back && self.must_be_there(prev)
        });
        is_missed.then(|| Fault::Missing {
            chain,
            from: 1,
            to: number - 1,
        })
    }

    /// True if a line of this time must be in these files.
    fn must_be_there(&self, time: Option<Timestamp>) -> bool {
        match (time, self.began) {
            (Some(time), Some(began)) => {
                time.as_millisecond() - began.as_millisecond() > DISORDER_MS
            }
            _ => true,
        }
    }

    fn find(&mut self, fault: Fault) {
        let place = Some(self.place());
        self.findings.push(Finding { place, fault });
    }

    fn place(&self) -> Place {
        Place {
            file: self.file.number,
            line: self.file.lines,
            name: Arc::clone(&self.file.name),
        }
    }
}

#[cfg(test)]
mod tests;
