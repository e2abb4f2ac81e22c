//! The one reader of frames.

use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};

use crate::encode::{call_flags, kind, tag};
use crate::frames::*;
use crate::{HEADER_BYTES, LENGTH_BYTES, Text, VERSION, WireError, stretches};

/// Turns received bytes into frames of one direction.
///
/// Bytes go in by [`push`](Self::push), or straight into [`space`](Self::space); frames come out of
/// [`next`](Self::next), which is called until it has no more before more bytes go in. Memory is
/// bounded by `max_frame` plus what was put in at once. After the first error the decoder stays in
/// error.
#[derive(Debug)]
pub struct Decoder<F> {
    buffer: BytesMut,
    max_frame: usize,
    failed: Option<WireError>,
    frames: PhantomData<fn() -> F>,
}

/// A frame that can be read.
pub trait FromWire: Sized {
    /// The frame in this body, which is everything after the length prefix.
    fn decode(body: Bytes) -> Result<Self, WireError>;
}

impl<F: FromWire> Decoder<F> {
    /// A decoder that refuses frames whose body is longer than `max_frame` bytes.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            max_frame,
            failed: None,
            frames: PhantomData,
        }
    }

    /// Refuses from now on frames whose body is longer than `max_frame` bytes.
    pub fn set_max_frame(&mut self, max_frame: usize) {
        self.max_frame = max_frame;
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The buffer, for a reader to append received bytes to, with room for at least `at_least` of
    /// them and, when the beginning of a frame is there, for the rest of that frame.
    pub fn space(&mut self, at_least: usize) -> &mut BytesMut {
        let missing = match self.announced() {
            Some(Ok(body)) => (LENGTH_BYTES + body).saturating_sub(self.buffer.len()),
            _ => 0,
        };
        self.buffer.reserve(missing.max(at_least));
        &mut self.buffer
    }

    /// The next frame, or `None` until more bytes come.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would not end at `None`"
    )]
    pub fn next(&mut self) -> Result<Option<F>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.try_next().inspect_err(|error| {
            self.failed = Some(error.clone());
            self.buffer = BytesMut::new();
        })
    }

    /// Whether the bytes so far end between two frames.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.failed.is_none() && self.buffer.is_empty()
    }

    fn try_next(&mut self) -> Result<Option<F>, WireError> {
        let Some(body) = self.announced() else {
            return Ok(None);
        };
        let body = body?;
        if self.buffer.len() < LENGTH_BYTES + body {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(LENGTH_BYTES + body).freeze();
        let body = frame.split_off(LENGTH_BYTES);
        F::decode(body).map(Some)
    }

    /// Length of the body of the frame that the buffer begins with, checked against the limit.
    fn announced(&self) -> Option<Result<usize, WireError>> {
        let prefix = self.buffer.first_chunk::<LENGTH_BYTES>()?;
        let size = u32::from_le_bytes(*prefix);
        let limit = self.max_frame.max(HEADER_BYTES);
        Some(match usize::try_from(size) {
            Ok(size) if size <= limit => Ok(size),
            _ => Err(WireError::TooLarge {
                size: u64::from(size),
                limit: limit as u64,
            }),
        })
    }
}

impl FromWire for HostFrame {
    fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut r = Reader::new(body);
        match r.kind()? {
            kind::READ => {
                let what = match r.u8("what")? {
                    0 => Readable::Script,
                    1 => Readable::Type,
                    other => return Err(bad("what", other)),
                };
                let text = r.rest("text")?;
                Ok(Self::Read(Read { what, text }))
            }
            kind::START => {
                let source_name = r.text("source_name")?;
                let limits = WorkerLimits {
                    output_bytes: r.u64("output_bytes")?,
                    output_lines: r.u64("output_lines")?,
                    message_bytes: r.u64("message_bytes")?,
                    depth: {
                        let depth = r.u64("depth")?;
                        u32::try_from(depth).map_err(|_| WireError::Value {
                            field: "depth",
                            value: depth,
                        })?
                    },
                    more_bytes: r.u64("more_bytes")?,
                    emits: r.u64("emits")?,
                    emit_bytes: r.u64("emit_bytes")?,
                    result_bytes: r.u64("result_bytes")?,
                    frame_bytes: r.u64("frame_bytes")?,
                    buffer_bytes: r.u64("buffer_bytes")?,
                };
                let count = r.u32("functions")?;
                // Not trusted for the capacity: each name takes at least its length prefix, so
                // pushing runs out of frame before it runs out of memory.
                let mut functions = Vec::new();
                for _ in 0..count {
                    functions.push(r.text("functions")?);
                }
                let stretches = stretches::read(&mut r.body)?;
                let code = r.rest("code")?;
                Ok(Self::Start(Start {
                    source_name,
                    functions,
                    stretches,
                    limits,
                    code,
                }))
            }
            kind::REPLY => {
                let call = r.u64("call")?;
                let outcome = match r.u8("outcome")? {
                    tag::OK => Ok(r.rest("result")?),
                    tag::ERR => Err(Thrown {
                        class: match r.u8("class")? {
                            0 => ErrorClass::Tool,
                            1 => ErrorClass::Protocol,
                            2 => ErrorClass::Timeout,
                            3 => ErrorClass::Denied,
                            4 => ErrorClass::DryRun,
                            5 => ErrorClass::Extract,
                            other => return Err(bad("class", other)),
                        },
                        message: r.text("message")?,
                        fields: r.rest("fields")?,
                    }),
                    other => return Err(bad("outcome", other)),
                };
                Ok(Self::Reply(Reply { call, outcome }))
            }
            kind => Err(WireError::Kind { kind }),
        }
    }
}

impl FromWire for WorkerFrame {
    fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut r = Reader::new(body);
        match r.kind()? {
            kind::READY => {
                let ready = Ready {
                    landlock: r.u8("landlock")?,
                    seccomp: flag(&mut r, "seccomp")?,
                    namespaces: r.u8("namespaces")?,
                    protection_keys: flag(&mut r, "protection keys")?,
                    data_bytes: r.u64("data bytes")?,
                };
                r.end()?;
                Ok(Self::Ready(ready))
            }
            kind::HAS_READ => Ok(Self::Read {
                outcome: r.rest("outcome")?,
            }),
            kind::CALL => Ok(Self::Call(call(&mut r)?)),
            kind::CANCEL => {
                let call = r.u64("call")?;
                r.end()?;
                Ok(Self::Cancel { call })
            }
            kind::OUTPUT => {
                let level = match r.u8("level")? {
                    0 => Level::Debug,
                    1 => Level::Log,
                    2 => Level::Info,
                    3 => Level::Warn,
                    4 => Level::Error,
                    other => return Err(bad("level", other)),
                };
                Ok(Self::Output(Output {
                    level,
                    text: r.rest("text")?,
                }))
            }
            kind::MORE => Ok(Self::More {
                text: r.rest("text")?,
            }),
            kind::EMIT => Ok(Self::Emit {
                block: r.rest("block")?,
            }),
            kind::OUTPUT_END => Ok(Self::OutputEnd(OutputEnd {
                cut_bytes: r.u64("cut_bytes")?,
                cut_lines: r.u64("cut_lines")?,
                missing_bytes: r.u64("missing_bytes")?,
                tail: r.rest("tail")?,
            })),
            kind::LIMIT_HIT => {
                let which = match r.u8("which")? {
                    0 => WhichLimit::Memory,
                    other => return Err(bad("which", other)),
                };
                let hit = LimitHit {
                    which,
                    limit: r.u64("limit")?,
                    observed: r.u64("observed")?,
                };
                r.end()?;
                Ok(Self::LimitHit(hit))
            }
            kind::DONE => Ok(Self::Done(done(&mut r)?)),
            kind => Err(WireError::Kind { kind }),
        }
    }
}

fn call(r: &mut Reader) -> Result<Call, WireError> {
    let id = r.u64("id")?;
    let flags = r.u8("flags")?;
    if flags & !call_flags::ALL != 0 {
        return Err(bad("flags", flags));
    }
    let has = |bit: u8| flags & bit != 0;
    Ok(Call {
        id,
        cancellable: has(call_flags::CANCELLABLE),
        timeout_ms: match has(call_flags::TIMEOUT) {
            true => Some(r.u64("timeout_ms")?),
            false => None,
        },
        place: match has(call_flags::PLACE) {
            true => Some((r.u32("line")?, r.u32("column")?)),
            false => None,
        },
        tool: r.text("tool")?,
        input: r.rest("input")?,
    })
}

fn done(r: &mut Reader) -> Result<Done, WireError> {
    let done = match r.u8("done")? {
        tag::UNDEFINED => Done::Returned(ReturnValue::Undefined),
        tag::JSON => Done::Returned(ReturnValue::Json(r.rest("json")?)),
        tag::SHOWN => Done::Returned(ReturnValue::Shown(r.rest("shown")?)),
        tag::CUT => Done::Returned(ReturnValue::Cut {
            total_bytes: r.u64("total_bytes")?,
            head: r.text("head")?,
            tail: r.rest("tail")?,
        }),
        tag::THREW => Done::Threw(Exception {
            name: r.text("name")?,
            message: r.text("message")?,
            line: r.u32("line")?,
            column: r.u32("column")?,
            stack: r.rest("stack")?,
        }),
        tag::NEVER_SETTLED => Done::NeverSettled,
        tag::TERMINATED => Done::Terminated,
        other => return Err(bad("done", other)),
    };
    r.end()?;
    Ok(done)
}

fn flag(r: &mut Reader, field: &'static str) -> Result<bool, WireError> {
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(bad(field, other)),
    }
}

fn bad(field: &'static str, value: u8) -> WireError {
    WireError::Value {
        field,
        value: u64::from(value),
    }
}

struct Reader {
    body: Bytes,
}

impl Reader {
    fn new(body: Bytes) -> Self {
        Self { body }
    }

    fn kind(&mut self) -> Result<u8, WireError> {
        let version = self.u8("version")?;
        if version != VERSION {
            return Err(WireError::Version {
                found: version,
                expected: VERSION,
            });
        }
        self.u8("kind")
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let array = *self
            .body
            .first_chunk::<N>()
            .ok_or(WireError::Short { field })?;
        self.body.truncate_front(N);
        Ok(array)
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        let [byte] = self.array(field)?;
        Ok(byte)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.array(field).map(u32::from_le_bytes)
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        self.array(field).map(u64::from_le_bytes)
    }

    fn text(&mut self, field: &'static str) -> Result<Text, WireError> {
        let length = self.u32(field)?;
        match usize::try_from(length) {
            Ok(length) if length <= self.body.len() => {
                Text::from_utf8(self.body.split_to(length)).ok_or(WireError::Utf8 { field })
            }
            _ => Err(WireError::Short { field }),
        }
    }

    fn rest(&mut self, field: &'static str) -> Result<Text, WireError> {
        Text::from_utf8(std::mem::take(&mut self.body)).ok_or(WireError::Utf8 { field })
    }

    fn end(&self) -> Result<(), WireError> {
        match self.body.len() {
            0 => Ok(()),
            extra => Err(WireError::Trailing { extra }),
        }
    }
}

/// Dropping from the front, for which `Bytes` has only the panicking `advance`.
trait TruncateFront {
    fn truncate_front(&mut self, count: usize);
}

impl TruncateFront for Bytes {
    fn truncate_front(&mut self, count: usize) {
        let count = count.min(self.len());
        let _dropped = self.split_to(count);
    }
}
