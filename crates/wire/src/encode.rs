//! The one writer of frames.

use bytes::Bytes;

use crate::frames::*;
use crate::{HEADER_BYTES, LENGTH_BYTES, Text, VERSION, WireError, stretches};

/// A frame as bytes, in two pieces so that a long payload is not copied: what comes before the
/// payload, and the payload. They are written one after the other, or with one vectored write.
#[derive(Debug, Clone)]
pub struct Encoded {
    head: Vec<u8>,
    payload: Bytes,
}

impl Encoded {
    /// The two pieces, in order. The second can be empty.
    #[must_use]
    pub fn slices(&self) -> [&[u8]; 2] {
        [&self.head, &self.payload]
    }

    /// Bytes of the whole frame, with its length prefix.
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len().saturating_add(self.payload.len())
    }

    /// Both pieces in one; copies.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.slices().concat()
    }
}

/// A frame that can be written.
pub trait ToWire: Sized {
    /// The frame as bytes.
    ///
    /// `max_frame` is the limit of this connection for the body of a frame, in bytes, and the same
    /// at both ends; over it the error is [`WireError::TooLarge`] and nothing has been copied.
    fn encode(self, max_frame: usize) -> Result<Encoded, WireError>;
}

impl ToWire for HostFrame {
    fn encode(self, max_frame: usize) -> Result<Encoded, WireError> {
        match self {
            Self::Read(read) => {
                let mut w = Writer::new(kind::READ);
                w.u8(match read.what {
                    Readable::Script => 0,
                    Readable::Type => 1,
                });
                w.finish(read.text, max_frame)
            }
            Self::Start(start) => {
                let mut w = Writer::new(kind::START);
                w.text(&start.source_name);
                let l = start.limits;
                for number in [
                    l.output_bytes,
                    l.output_lines,
                    l.message_bytes,
                    u64::from(l.depth),
                    l.more_bytes,
                    l.emits,
                    l.emit_bytes,
                    l.result_bytes,
                    l.frame_bytes,
                    l.buffer_bytes,
                ] {
                    w.u64(number);
                }
                w.count(start.functions.len());
                for function in &start.functions {
                    w.text(function);
                }
                stretches::write(&start.stretches, &mut w.head);
                w.finish(start.code, max_frame)
            }
            Self::Reply(reply) => {
                let mut w = Writer::new(kind::REPLY);
                w.u64(reply.call);
                match reply.outcome {
                    Ok(json) => {
                        w.u8(tag::OK);
                        w.finish(json, max_frame)
                    }
                    Err(thrown) => {
                        w.u8(tag::ERR);
                        w.u8(class_to_byte(thrown.class));
                        w.text(&thrown.message);
                        w.finish(thrown.fields, max_frame)
                    }
                }
            }
        }
    }
}

impl ToWire for WorkerFrame {
    fn encode(self, max_frame: usize) -> Result<Encoded, WireError> {
        match self {
            Self::Ready(ready) => {
                let mut w = Writer::new(kind::READY);
                w.u8(ready.landlock);
                w.u8(u8::from(ready.seccomp));
                w.u8(ready.namespaces);
                w.u8(u8::from(ready.protection_keys));
                w.u64(ready.data_bytes);
                w.finish(Text::default(), max_frame)
            }
            Self::Read { outcome } => Writer::new(kind::HAS_READ).finish(outcome, max_frame),
            Self::Call(call) => {
                let mut w = Writer::new(kind::CALL);
                w.u64(call.id);
                w.u8(call_flags::of(&call));
                if let Some(milliseconds) = call.timeout_ms {
                    w.u64(milliseconds);
                }
                if let Some((line, column)) = call.place {
                    w.u32(line);
                    w.u32(column);
                }
                w.text(&call.tool);
                w.finish(call.input, max_frame)
            }
            Self::Cancel { call } => {
                let mut w = Writer::new(kind::CANCEL);
                w.u64(call);
                w.finish(Text::default(), max_frame)
            }
            Self::Output(output) => {
                let mut w = Writer::new(kind::OUTPUT);
                w.u8(match output.level {
                    Level::Debug => 0,
                    Level::Log => 1,
                    Level::Info => 2,
                    Level::Warn => 3,
                    Level::Error => 4,
                });
                w.finish(output.text, max_frame)
            }
            Self::More { text } => Writer::new(kind::MORE).finish(text, max_frame),
            Self::Emit { block } => Writer::new(kind::EMIT).finish(block, max_frame),
            Self::OutputEnd(end) => {
                let mut w = Writer::new(kind::OUTPUT_END);
                w.u64(end.cut_bytes);
                w.u64(end.cut_lines);
                w.u64(end.missing_bytes);
                w.finish(end.tail, max_frame)
            }
            Self::LimitHit(hit) => {
                let mut w = Writer::new(kind::LIMIT_HIT);
                w.u8(match hit.which {
                    WhichLimit::Memory => 0,
                });
                w.u64(hit.limit);
                w.u64(hit.observed);
                w.finish(Text::default(), max_frame)
            }
            Self::Done(done) => {
                let mut w = Writer::new(kind::DONE);
                let payload = match done {
                    Done::Returned(ReturnValue::Undefined) => {
                        w.u8(tag::UNDEFINED);
                        Text::default()
                    }
                    Done::Returned(ReturnValue::Json(json)) => {
                        w.u8(tag::JSON);
                        json
                    }
                    Done::Returned(ReturnValue::Shown(text)) => {
                        w.u8(tag::SHOWN);
                        text
                    }
                    Done::Returned(ReturnValue::Cut {
                        head,
                        tail,
                        total_bytes,
                    }) => {
                        w.u8(tag::CUT);
                        w.u64(total_bytes);
                        w.text(&head);
                        tail
                    }
                    Done::Threw(exception) => {
                        w.u8(tag::THREW);
                        w.text(&exception.name);
                        w.text(&exception.message);
                        w.u32(exception.line);
                        w.u32(exception.column);
                        exception.stack
                    }
                    Done::NeverSettled => {
                        w.u8(tag::NEVER_SETTLED);
                        Text::default()
                    }
                    Done::Terminated => {
                        w.u8(tag::TERMINATED);
                        Text::default()
                    }
                };
                w.finish(payload, max_frame)
            }
        }
    }
}

/// The kind bytes. Host frames have the low ones, worker frames the high ones, so that a frame sent
/// back to where it came from is no frame.
pub(crate) mod kind {
    pub(crate) const START: u8 = 0x01;
    pub(crate) const REPLY: u8 = 0x02;
    pub(crate) const READ: u8 = 0x03;
    pub(crate) const READY: u8 = 0x81;
    pub(crate) const CALL: u8 = 0x82;
    pub(crate) const OUTPUT: u8 = 0x83;
    pub(crate) const OUTPUT_END: u8 = 0x84;
    pub(crate) const LIMIT_HIT: u8 = 0x85;
    pub(crate) const DONE: u8 = 0x86;
    pub(crate) const CANCEL: u8 = 0x87;
    pub(crate) const MORE: u8 = 0x88;
    pub(crate) const EMIT: u8 = 0x89;
    pub(crate) const HAS_READ: u8 = 0x8a;
}

/// The bits that say what a call's frame has besides what all have.
pub(crate) mod call_flags {
    use crate::frames::Call;

    pub(crate) const TIMEOUT: u8 = 1;
    pub(crate) const PLACE: u8 = 2;
    pub(crate) const CANCELLABLE: u8 = 4;
    pub(crate) const ALL: u8 = TIMEOUT | PLACE | CANCELLABLE;

    pub(crate) fn of(call: &Call) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(call.timeout_ms.is_some(), TIMEOUT)
            | bit(call.place.is_some(), PLACE)
            | bit(call.cancellable, CANCELLABLE)
    }
}

/// The bytes that tell variants within a kind apart.
pub(crate) mod tag {
    pub(crate) const OK: u8 = 0;
    pub(crate) const ERR: u8 = 1;

    pub(crate) const UNDEFINED: u8 = 0;
    pub(crate) const JSON: u8 = 1;
    pub(crate) const SHOWN: u8 = 2;
    pub(crate) const CUT: u8 = 3;
    pub(crate) const THREW: u8 = 4;
    pub(crate) const NEVER_SETTLED: u8 = 5;
    pub(crate) const TERMINATED: u8 = 6;
}

fn class_to_byte(class: ErrorClass) -> u8 {
    match class {
        ErrorClass::Tool => 0,
        ErrorClass::Protocol => 1,
        ErrorClass::Timeout => 2,
        ErrorClass::Denied => 3,
        ErrorClass::DryRun => 4,
        ErrorClass::Extract => 5,
    }
}

struct Writer {
    head: Vec<u8>,
}

impl Writer {
    fn new(kind: u8) -> Self {
        let mut head = Vec::with_capacity(64);
        head.extend_from_slice(&[0; LENGTH_BYTES]);
        head.push(VERSION);
        head.push(kind);
        Self { head }
    }

    fn u8(&mut self, value: u8) {
        self.head.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.head.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.head.extend_from_slice(&value.to_le_bytes());
    }

    /// A count or length. One that does not fit saturates: such a frame is far over any limit, and
    /// `finish` refuses it before anyone sees the number.
    fn count(&mut self, value: usize) {
        self.u32(u32::try_from(value).unwrap_or(u32::MAX));
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.head.extend_from_slice(text.as_bytes());
    }

    fn finish(mut self, payload: Text, max_frame: usize) -> Result<Encoded, WireError> {
        let body = (self.head.len() - LENGTH_BYTES).saturating_add(payload.len());
        let limit = max_frame.max(HEADER_BYTES);
        match u32::try_from(body) {
            Ok(length) if body <= limit => {
                if let Some(prefix) = self.head.get_mut(..LENGTH_BYTES) {
                    prefix.copy_from_slice(&length.to_le_bytes());
                }
                Ok(Encoded {
                    head: self.head,
                    payload: payload.into_bytes(),
                })
            }
            _ => Err(WireError::TooLarge {
                size: body as u64,
                limit: limit as u64,
            }),
        }
    }
}
