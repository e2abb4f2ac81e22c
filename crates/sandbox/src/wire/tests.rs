//! No bytes do harm.

use proptest::prelude::*;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;

const MAX: usize = 1 << 16;

fn worker_frames() -> Vec<WorkerFrame> {
    let done = |value| WorkerFrame::Done(Done::Returned(value));
    let text = || "ä text".to_owned();
    vec![
        WorkerFrame::Ready(Ready {
            landlock: 7,
            seccomp: true,
            namespaces: 15,
            protection_keys: false,
            data_bytes: 1 << 40,
            space_bytes: u64::MAX,
        }),
        WorkerFrame::Read { outcome: text() },
        WorkerFrame::Call(Call {
            id: 3,
            timeout_ms: Some(u64::MAX),
            cancellable: true,
            place: Some((1, u32::MAX)),
            tool: "files_read".to_owned(),
            input: "{}".into(),
        }),
        WorkerFrame::Cancel { call: 3 },
        WorkerFrame::Output { text: text() },
        WorkerFrame::More { text: text() },
        WorkerFrame::Emit { block: "{}".into() },
        WorkerFrame::OutputEnd(OutputEnd {
            timers: vec![LeftTimer {
                repeats: true,
                line: 3,
            }],
            cut_bytes: 1,
            cut_lines: 2,
            missing_bytes: 3,
            tail: text(),
        }),
        WorkerFrame::LimitHit(LimitHit {
            limit: 1,
            observed: 2,
        }),
        done(ReturnValue::Undefined),
        done(ReturnValue::Json("1".into())),
        done(ReturnValue::Shown(text())),
        done(ReturnValue::Cut {
            head: "a".to_owned(),
            tail: text(),
            total_bytes: 9,
        }),
        WorkerFrame::Done(Done::Threw(ScriptException {
            name: "Error".to_owned(),
            message: "no".to_owned(),
            line: 1,
            column: 2,
            stack: text(),
        })),
        WorkerFrame::Done(Done::NeverSettled),
        WorkerFrame::Done(Done::Terminated),
    ]
}

fn to_bytes(frame: &impl Serialize) -> Vec<u8> {
    encode(frame, MAX).expect("a small frame")
}

/// Reads bytes that may be anything, until an error or the end of what is there.
fn survives<F: DeserializeOwned>(bytes: &[u8], piece: usize) {
    let mut decoder = Decoder::<F>::new(MAX);
    for chunk in bytes.chunks(piece) {
        decoder.space(chunk.len()).extend_from_slice(chunk);
        while let Ok(Some(_)) = decoder.next() {}
        assert!(decoder.space(1).capacity() <= 4 * (MAX + bytes.len()));
    }
}

proptest! {
    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1usize..70) {
        survives::<HostFrame>(&bytes, piece);
        survives::<WorkerFrame>(&bytes, piece);
    }

    #[test]
    fn random_bodies_do_no_harm(kind in 0u8..12, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = (body.len() as u32 + 1).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[kind]);
        bytes.extend_from_slice(&body);
        survives::<HostFrame>(&bytes, bytes.len());
        survives::<WorkerFrame>(&bytes, bytes.len());
    }

    #[test]
    fn damaged_frames_do_no_harm(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bits in 1u8..) {
        let frames = worker_frames();
        let mut bytes = to_bytes(which.get(&frames));
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        survives::<WorkerFrame>(&bytes, 7);
    }
}

/// Reads one body as a worker's frame of at most 64 bytes, and expects this error.
fn check(body: &[u8], expected: WireError) {
    let mut decoder = Decoder::<WorkerFrame>::new(64);
    let buffer = decoder.space(0);
    buffer.extend_from_slice(&(body.len() as u32).to_le_bytes());
    buffer.extend_from_slice(body);
    assert_eq!(decoder.next(), Err(expected), "{body:?}");
}

#[test]
fn broken_frames_are_refused() {
    use postcard::Error::{
        DeserializeBadBool, DeserializeBadUtf8, DeserializeUnexpectedEnd, SerdeDeCustom,
    };
    check(&[], WireError::Broken(DeserializeUnexpectedEnd));
    // No such kind; a flag that is neither 0 nor 1; a name that is longer than the frame.
    check(&[77], WireError::Broken(SerdeDeCustom));
    check(&[0, 1, 2, 0], WireError::Broken(DeserializeBadBool));
    let long_name = [2, 1, 0, 0, 0, 0xff, 0xff, 3, b'x'];
    check(&long_name, WireError::Broken(DeserializeUnexpectedEnd));
    check(&[0, 1, 1, 3, 0, 0, 0, 5], WireError::Trailing(1));
    check(&[4, 1, 0xff], WireError::Broken(DeserializeBadUtf8));
    let (size, limit) = (65, 64);
    check(&[0; 65], WireError::TooLarge { size, limit });
}

#[test]
fn frame_over_limit_is_neither_read_nor_sent() {
    let mut decoder = Decoder::<WorkerFrame>::new(64);
    decoder.space(0).extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(decoder.space(1).capacity() < 1024);
    let text = "x".repeat(63);
    let sent = encode(&WorkerFrame::More { text }, 64);
    let (size, limit) = (65, 64);
    assert_eq!(sent.unwrap_err(), WireError::TooLarge { size, limit });
}
