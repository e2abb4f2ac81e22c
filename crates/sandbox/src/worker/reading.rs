//! Reading texts for the host: scripts and types are parsed in the process that a script of theirs
//! would run in, so that whatever a text does to the parser ends with that process.

use callgate_wire::{Read, Readable, WorkerFrame};

use super::lock_down;

/// Bytes of memory that reading may take besides the parser's stack, which is reserved in whole and
/// used in part.
const MEMORY: u64 = 1 << 30;

/// What came of a text: JSON text of the reader's `Result`.
pub(super) fn read(read: &Read) -> WorkerFrame {
    let stack = callgate_script::stack_bytes(read.text.len());
    lock_down::limit_memory_for_now(stack as u64 + MEMORY);
    let outcome = match read.what {
        Readable::Script => serde_json::to_string(&callgate_script::prepare(&read.text)),
        Readable::Type => serde_json::to_string(&callgate_script::json_schema(&read.text)),
    };
    // Values of plain types, which JSON has room for. The host takes an empty text for no outcome.
    let outcome = outcome.unwrap_or_default().into();
    WorkerFrame::Read { outcome }
}
