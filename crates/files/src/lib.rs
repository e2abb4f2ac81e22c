//! Internal crate of Callgate: safe access to files from untrusted sources.
//!
//! A cloned repository, an archive or a different user of the machine may control the file at a path.
//! [`read`] and [`read_text`] neither block on a pipe nor read an endless device; [`exposure`] reports
//! which other users can change a file, such as a configuration that names programs.

mod owners;
mod read;

pub use owners::{Exposure, exposure, has_other_owner, is_own};
pub use read::{read, read_text, read_with_metadata};
