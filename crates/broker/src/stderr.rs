//! What a server writes to its standard error, in the host's log.

use std::sync::Arc;

use crate::flood::FloodGate;
use crate::logging::{fit, searched};
use callgate_auth::Redact;

/// The longest line that is logged, in characters; the rest of it is left out.
const MAX_LINE: usize = 4 << 10;

/// Logs line by line, at level debug.
pub(crate) struct Log {
    server: Arc<str>,
    flood: FloodGate,
    secrets: Redact,
    line: Vec<u8>,
}

impl Log {
    pub(crate) fn new(server: Arc<str>, secrets: Redact) -> Self {
        Self {
            flood: FloodGate::new(Arc::clone(&server)),
            server,
            secrets,
            line: Vec::new(),
        }
    }

    /// Takes what was written.
    pub(crate) fn take(&mut self, chunk: &[u8]) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            // It is cut once its secrets are out of it: of one that was cut, a part would stay.
            let most = searched(MAX_LINE).saturating_add(self.secrets.span());
            let room = most.saturating_sub(self.line.len());
            self.line.extend(line.iter().take(room));
            if line.ends_with(b"\n") {
                self.end();
            }
        }
    }

    /// Logs what is left of a line.
    pub(crate) fn end(&mut self) {
        if let Some(line) = said(&self.line, &self.secrets)
            && self.flood.admit()
        {
            tracing::debug!(server = %self.server, line, "a server writes to stderr");
        }
        self.line.clear();
    }
}

/// A line as people may see it; none, if it is empty.
fn said(line: &[u8], secrets: &Redact) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end();
    (!line.is_empty()).then(|| fit(line, MAX_LINE, secrets))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fake::TakesAll;
    use crate::spec::{Stdio, Transport};

    #[test]
    fn lines_are_escaped_and_without_secrets() {
        let secrets = Transport::Stdio(Stdio {
            env: BTreeMap::from([("TOKEN".to_owned(), "hunter2!".into())]),
            ..Stdio::default()
        })
        .redact();
        let shown = said(b"token=hunter2! \x1b[2K\xff\r\n", &secrets).expect("a line");
        assert!(
            !shown.contains("hunter2!") && !shown.contains('\u{1b}'),
            "{shown}"
        );
        assert!(shown.contains("TOKEN"), "{shown}");
        assert_eq!(said(b" \r\n", &secrets), None);
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut log = Log::new("s".into(), Redact::default());
        let write = |log: &mut Log| {
            for _ in 0..100 {
                log.take(&[b'x'; 1_000]);
            }
        };
        // Where nobody listens nothing is kept.
        write(&mut log);
        assert_eq!(log.line.len(), 0);
        let _listening = tracing::subscriber::set_default(TakesAll);
        write(&mut log);
        assert_eq!(log.line.len(), searched(MAX_LINE));
        log.take(b"\n");
        assert_eq!(log.line.len(), 0);
    }
}
