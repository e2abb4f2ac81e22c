//! What building a catalog has to say: one line for each thing that is not as
//! its server meant it.

use std::fmt;

use callgate_typegen::Degradation;
use callgate_typegen::names::Collision;

use crate::{Malformed, quoted};

/// Something about the tools of a catalog that a person may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// An entry of a list is no tool and is dropped.
    Malformed(Malformed),
    /// A member of a tool has the wrong form; the tool goes without it.
    Ignored {
        /// The server as it is configured.
        server: String,
        /// The tool as the server calls it.
        tool: String,
        /// The member of the definition.
        member: &'static str,
        /// What is wrong with it.
        fault: String,
    },
    /// A server lists a name a second time; the later tool is dropped.
    Duplicate {
        /// The server as it is configured.
        server: String,
        /// The name it lists twice.
        tool: String,
    },
    /// Several tools want one function name; each gets another.
    Collision(Collision),
    /// A declaration says less than its schema.
    Degraded(Degradation),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::Ignored {
                server,
                tool,
                member,
                fault,
            } => write!(
                f,
                "server {}: `{member}` of the tool {} is ignored: it {fault}",
                quoted(server),
                quoted(tool)
            ),
            Self::Duplicate { server, tool } => write!(
                f,
                "server {}: the tool {} is listed more than once; the first one counts",
                quoted(server),
                quoted(tool)
            ),
            Self::Collision(collision) => {
                let why = match collision.members.as_slice() {
                    // It is another tool's, or begins as another server's do.
                    [_one] => "a name that is, or may be, another tool's:",
                    _ => "more than one tool would be",
                };
                write!(f, "{why} {}; use ", collision.name)?;
                for (index, member) in collision.members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(
                        f,
                        "{comma}{} for {} of {}",
                        member.function,
                        quoted(&member.tool),
                        quoted(&member.server)
                    )?;
                }
                Ok(())
            }
            Self::Degraded(degradation) if !degradation.widens() => write!(
                f,
                "server {}: the declaration of the tool {} says less than its schema: {} at {}",
                quoted(&degradation.server),
                quoted(&degradation.tool),
                degradation.reason,
                quoted(&degradation.pointer)
            ),
            Self::Degraded(degradation) => write!(
                f,
                "server {}: the types of the tool {} are wider than its schema: {} at {}",
                quoted(&degradation.server),
                quoted(&degradation.tool),
                degradation.reason,
                quoted(&degradation.pointer)
            ),
        }
    }
}

impl From<Malformed> for Warning {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}
