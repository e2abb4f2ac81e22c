//! JSON text as it may be handed on: what everybody sees of it is the same text.

use serde_json::value::RawValue;

/// The text with U+FFFD for halves of surrogate pairs, of which a script can have any and
/// others make nothing.
pub(crate) fn mended(json: Box<RawValue>) -> Box<RawValue> {
    let mended = callgate_schema::mended(json.get());
    mended
        .and_then(|mended| RawValue::from_string(mended).ok())
        .unwrap_or(json)
}
