//! True if a release page answers at all. The v8 crate downloads without a
//! time limit; on a machine without a way out that is a build that hangs.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::{process, tools};

/// The answer of a release page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has the archive.
    There,
    /// It answers, but not with the archive: the HTTP status.
    Refused(u16),
    /// No answer within ten seconds, or no way to ask.
    Silent,
}

/// Asks for the head of `url`, by curl, else by Python.
pub(crate) fn probe(url: &str) -> Result<Answer> {
    // Ten seconds for the transfer; the rest is for a resolver that does not give up.
    let limit = Duration::from_secs(15);
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--location", "--head", "--max-time", "10"]);
    curl.args(["--output", if cfg!(windows) { "NUL" } else { "/dev/null" }]);
    curl.args(["--write-out", "%{http_code}", url]);
    if let Some(status) = process::output_within(&mut curl, limit)? {
        return Ok(answer(&status));
    }
    let mut python = Command::new(tools::python());
    python.args(["-c", PYTHON, url]);
    Ok(answer(
        &process::output_within(&mut python, limit)?.unwrap_or_default(),
    ))
}

const PYTHON: &str = "\
import sys, urllib.error, urllib.request
try:
    request = urllib.request.Request(sys.argv[1], method='HEAD')
    print(urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print('000')
";

fn answer(status: &str) -> Answer {
    match status.trim().parse() {
        Ok(200..=299) => Answer::There,
        Ok(status) if status > 0 => Answer::Refused(status),
        _ => Answer::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_apart() {
        assert_eq!(answer("200"), Answer::There);
        assert_eq!(answer("404\n"), Answer::Refused(404));
        assert_eq!(answer("000"), Answer::Silent);
        assert_eq!(answer(""), Answer::Silent);
    }
}
