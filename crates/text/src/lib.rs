//! Foreign text for people: harmless, in one line, quoted, cut, as a word of a shell, and the
//! nearest known name; and units of time and size.
//!
//! Servers, scripts and files of other authors choose these texts. Nothing of them may move a
//! cursor, hide a line, pass for a line of ours, or be more than one word to a shell.

mod cut;
mod harmless;
mod invisible;
mod nearest;
mod quoted;
mod shell;
mod units;

pub use cut::{MAX_MESSAGE_BYTES, cut_message};
pub use harmless::{harmless, indented, one_line};
pub use invisible::is_invisible;
pub use nearest::nearest;
pub use quoted::{cut_to_width, label, quoted, text_width, undrawn, wrapped};
pub use shell::shell_word;
pub use units::{shown_duration, shown_size};
