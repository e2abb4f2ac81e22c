//! Internal crate of Callgate: files that other people may have put there.
//!
//! A cloned repository, an archive or another user of the machine decides what lies at a path.
//! [`read`] and [`read_text`] neither wait for a pipe nor read a device without end; [`exposure`]
//! finds out who else can change a file that says which programs run.

mod owners;
mod read;

pub use owners::{Exposure, exposure, has_other_owner};
pub use read::{read, read_text};
