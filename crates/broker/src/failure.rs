//! Why a request has no result.

use std::fmt;
use std::time::Duration;

use rmcp::model::ErrorData;

use crate::calls::Rounds;
use crate::link::LinkError;
use crate::listed::Change;

/// Why a request has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The server refused it.
    Refused(ErrorData),
    /// It refused it before it did anything for it, since it no longer speaks the revision
    /// that was agreed on.
    Left(ErrorData),
    /// It refused a request of a call that had come so far, before it did anything for that
    /// request, for headers that are not what its list asks for. How far, the call knows: the
    /// link says that it had not begun.
    Headers(ErrorData, Box<Rounds>),
    /// It did not get there, or its answer not back.
    Lost(LinkError),
    /// Something is not as it was when the call was decided about: it was
    /// not sent, or had been `sent` and was not gone on with. So much of its time is
    /// `spent`.
    Changed {
        what: Change,
        sent: bool,
        spent: Duration,
    },
    /// The arguments cannot be sent as the tool takes them.
    Unfit(String),
    /// No answer in time, and no sign of work either.
    Timeout(Duration),
    /// The answer is over this limit, in bytes.
    TooLarge(usize),
    /// The answer makes no sense.
    Malformed(String),
    /// The server wants input, again and again or more than is reasonable.
    Input(String),
}

impl Failure {
    /// Something is not as it was when the call was decided about, and it was not sent.
    pub(crate) fn changed(what: Change) -> Self {
        Self::Changed {
            what,
            sent: false,
            // Whoever has the call's clock says.
            spent: Duration::ZERO,
        }
    }
}

/// One clause for people. What a server says in it is not redacted.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) | Self::Left(error) | Self::Headers(error, _) => {
                write!(f, "{} (code {})", error.message, error.code.0)
            }
            Self::Lost(error) => error.fmt(f),
            Self::Changed { what, sent, .. } => {
                f.write_str(match what {
                    Change::Gone => "its server no longer lists the tool; ",
                    Change::Tool => {
                        "the server has changed the tool, which is another than the one that was \
                         decided about; "
                    }
                    Change::Login => {
                        "requests go with another login by now than the server's tools were listed \
                         with; "
                    }
                })?;
                f.write_str(match (sent, what) {
                    (true, _) => "the call had begun and was given up, and may have done something",
                    (false, Change::Gone) => "nothing was done",
                    (false, Change::Login) => "nothing was done; call it again later",
                    (false, Change::Tool) => {
                        "nothing was done; call it again to have it decided anew"
                    }
                })
            }
            Self::Timeout(limit) => write!(f, "no answer within {} ms", limit.as_millis()),
            Self::TooLarge(limit) => write!(
                f,
                "the answer is over the limit of {limit} bytes; ask the tool for less (a filter, \
                 a page), or raise \"result\" under \"limits\""
            ),
            Self::Malformed(reason) => write!(f, "the answer is malformed: {reason}"),
            Self::Unfit(reason) | Self::Input(reason) => f.write_str(reason),
        }
    }
}

impl Failure {
    /// Whether the server may have seen the request. If not, sending it again
    /// cannot do anything twice.
    pub(crate) fn was_sent(&self) -> bool {
        match self {
            Self::Lost(error) => error.sent,
            Self::Changed { sent, .. } => *sent,
            Self::Unfit(_) => false,
            _ => true,
        }
    }
}
