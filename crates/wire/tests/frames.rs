//! What is written is what is read, and nothing that is read does harm.

use callgate_wire::*;
use proptest::prelude::*;

const MAX: usize = 1 << 16;

fn text() -> impl Strategy<Value = Text> {
    ".{0,40}".prop_map(Text::from)
}

/// In order, near each other and far.
fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let number = || prop_oneof![1u32..40, 1u32..=u32::MAX];
    let author = prop::option::of((number(), number()));
    let places = prop::collection::btree_map((number(), number()), author, 0..9);
    places.prop_map(|places| {
        let stretch = |((line, column), author)| Stretch {
            line,
            column,
            author,
        };
        places.into_iter().map(stretch).collect()
    })
}

fn host_frame() -> impl Strategy<Value = HostFrame> {
    let start = (
        text(),
        stretches(),
        prop::collection::vec(text(), 0..5),
        any::<[u64; 10]>(),
        any::<u32>(),
        text(),
    )
        .prop_map(|(source_name, stretches, functions, n, depth, code)| {
            HostFrame::Start(Start {
                source_name,
                functions,
                stretches,
                limits: WorkerLimits {
                    output_bytes: n[0],
                    output_lines: n[1],
                    message_bytes: n[2],
                    depth,
                    more_bytes: n[7],
                    emits: n[8],
                    emit_bytes: n[9],
                    result_bytes: n[3],
                    frame_bytes: n[4],
                    buffer_bytes: n[5],
                },
                code,
            })
        });
    let class = prop_oneof![
        Just(ErrorClass::Tool),
        Just(ErrorClass::Protocol),
        Just(ErrorClass::Timeout),
        Just(ErrorClass::Denied),
        Just(ErrorClass::DryRun),
        Just(ErrorClass::Extract)
    ];
    let thrown = (class, text(), text()).prop_map(|(class, message, fields)| Thrown {
        class,
        message,
        fields,
    });
    let outcome = prop_oneof![text().prop_map(Ok), thrown.prop_map(Err)];
    let reply = (any::<u64>(), outcome)
        .prop_map(|(call, outcome)| HostFrame::Reply(Reply { call, outcome }));
    let what = prop_oneof![Just(Readable::Script), Just(Readable::Type)];
    let read = (what, text()).prop_map(|(what, text)| HostFrame::Read(Read { what, text }));
    prop_oneof![read, start, reply]
}

fn call() -> impl Strategy<Value = Call> {
    let timeout = prop::option::of(any::<u64>());
    let place = prop::option::of(any::<(u32, u32)>());
    (any::<u64>(), timeout, any::<bool>(), place, text(), text()).prop_map(
        |(id, timeout_ms, cancellable, place, tool, input)| Call {
            id,
            timeout_ms,
            cancellable,
            place,
            tool,
            input,
        },
    )
}

fn worker_frame() -> impl Strategy<Value = WorkerFrame> {
    let level = prop_oneof![
        Just(Level::Debug),
        Just(Level::Log),
        Just(Level::Info),
        Just(Level::Warn),
        Just(Level::Error)
    ];
    let value = prop_oneof![
        Just(ReturnValue::Undefined),
        text().prop_map(ReturnValue::Json),
        text().prop_map(ReturnValue::Shown),
        (text(), text(), any::<u64>()).prop_map(|(head, tail, total_bytes)| ReturnValue::Cut {
            head,
            tail,
            total_bytes
        }),
    ];
    let exception = (text(), text(), any::<u32>(), any::<u32>(), text()).prop_map(
        |(name, message, line, column, stack)| Exception {
            name,
            message,
            line,
            column,
            stack,
        },
    );
    let done = prop_oneof![
        value.prop_map(Done::Returned),
        exception.prop_map(Done::Threw),
        Just(Done::NeverSettled),
        Just(Done::Terminated)
    ];
    prop_oneof![
        any::<(u8, bool, u8, bool, u64)>().prop_map(
            |(landlock, seccomp, namespaces, protection_keys, data_bytes)| {
                WorkerFrame::Ready(Ready {
                    landlock,
                    seccomp,
                    namespaces,
                    protection_keys,
                    data_bytes,
                })
            }
        ),
        call().prop_map(WorkerFrame::Call),
        any::<u64>().prop_map(|call| WorkerFrame::Cancel { call }),
        text().prop_map(|outcome| WorkerFrame::Read { outcome }),
        (level, text()).prop_map(|(level, text)| WorkerFrame::Output(Output { level, text })),
        text().prop_map(|text| WorkerFrame::More { text }),
        text().prop_map(|block| WorkerFrame::Emit { block }),
        (any::<[u64; 3]>(), text()).prop_map(|([cut_bytes, cut_lines, missing_bytes], tail)| {
            WorkerFrame::OutputEnd(OutputEnd {
                cut_bytes,
                cut_lines,
                missing_bytes,
                tail,
            })
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(limit, observed)| {
            WorkerFrame::LimitHit(LimitHit {
                which: WhichLimit::Memory,
                limit,
                observed,
            })
        }),
        done.prop_map(WorkerFrame::Done),
    ]
}

/// Writes the frames, feeds them to a decoder in pieces of `piece` bytes, and expects them back.
fn roundtrip<F>(frames: Vec<F>, piece: usize)
where
    F: FromWire + ToWire + Clone + PartialEq + std::fmt::Debug,
{
    let mut bytes = Vec::new();
    for frame in frames.clone() {
        let encoded = frame.encode(MAX).expect("a small frame");
        let before = bytes.len();
        encoded
            .slices()
            .iter()
            .for_each(|slice| bytes.extend_from_slice(slice));
        assert_eq!(bytes.len() - before, encoded.len());
    }
    let mut decoder = Decoder::<F>::new(MAX);
    let mut read = Vec::new();
    for chunk in bytes.chunks(piece) {
        decoder.push(chunk);
        while let Some(frame) = decoder.next().expect("a whole frame") {
            read.push(frame);
        }
    }
    assert_eq!(read, frames);
    assert!(decoder.is_between_frames());
}

/// Feeds anything at all and expects an end: a frame, an error, or a wait for more.
fn survives<F: FromWire>(bytes: &[u8], piece: usize) {
    let mut decoder = Decoder::<F>::new(MAX);
    for chunk in bytes.chunks(piece) {
        decoder.push(chunk);
        while let Ok(Some(_)) = decoder.next() {}
        assert!(decoder.space(1).capacity() <= 4 * (MAX + bytes.len()));
    }
}

proptest! {
    #[test]
    fn host_frames_come_back(frames in prop::collection::vec(host_frame(), 0..6), piece in 1usize..70) {
        roundtrip(frames, piece);
    }

    #[test]
    fn worker_frames_come_back(frames in prop::collection::vec(worker_frame(), 0..6), piece in 1usize..70) {
        roundtrip(frames, piece);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1usize..70) {
        survives::<HostFrame>(&bytes, piece);
        survives::<WorkerFrame>(&bytes, piece);
    }

    #[test]
    fn random_bodies_do_no_harm(kind in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = (body.len() as u32 + 2).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[VERSION, kind]);
        bytes.extend_from_slice(&body);
        survives::<HostFrame>(&bytes, bytes.len());
        survives::<WorkerFrame>(&bytes, bytes.len());
    }

    #[test]
    fn damaged_frames_do_no_harm(frame in worker_frame(), at in any::<prop::sample::Index>(), bits in 1u8..) {
        let mut bytes = frame.encode(MAX).expect("a small frame").to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        survives::<WorkerFrame>(&bytes, 7);
    }
}

/// Reads one body as a worker's frame, with a limit of 64 bytes, and expects this error.
fn check(body: &[u8], expected: WireError) {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    let mut decoder = Decoder::<WorkerFrame>::new(64);
    decoder.push(&bytes);
    assert_eq!(decoder.next(), Err(expected.clone()), "{body:?}");
    decoder.push(&[2, 0, 0, 0, VERSION, 0x86]);
    assert_eq!(decoder.next(), Err(expected), "stays in error: {body:?}");
}

#[test]
fn what_is_wrong_is_said() {
    check(&[], WireError::Short { field: "version" });
    check(&[VERSION], WireError::Short { field: "kind" });
    check(
        &[9, 0x81],
        WireError::Version {
            found: 9,
            expected: VERSION,
        },
    );
    check(&[VERSION, 0x01], WireError::Kind { kind: 0x01 });
    check(
        &[VERSION, 0x81, 1, 1],
        WireError::Short {
            field: "namespaces",
        },
    );
    check(
        &[VERSION, 0x81, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5],
        WireError::Trailing { extra: 1 },
    );
    check(
        &[VERSION, 0x83, 7],
        WireError::Value {
            field: "level",
            value: 7,
        },
    );
    check(&[VERSION, 0x83, 1, 0xff], WireError::Utf8 { field: "text" });
    check(
        &[VERSION, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, b'x'],
        WireError::Short { field: "tool" },
    );
    check(
        &[VERSION, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 8],
        WireError::Value {
            field: "flags",
            value: 8,
        },
    );
    check(
        &[VERSION, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0],
        WireError::Short {
            field: "timeout_ms",
        },
    );
    check(
        &[VERSION, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 2, 5, 0, 0, 0],
        WireError::Short { field: "column" },
    );
    check(
        &[VERSION, 0x87, 1, 0, 0],
        WireError::Short { field: "call" },
    );
    check(
        &[VERSION, 0x87, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        WireError::Trailing { extra: 1 },
    );
    check(&[VERSION, 0x86, 0, 0], WireError::Trailing { extra: 1 });
    check(
        &[VERSION, 0x86, 77],
        WireError::Value {
            field: "done",
            value: 77,
        },
    );
    check(
        &[0; 65],
        WireError::TooLarge {
            size: 65,
            limit: 64,
        },
    );
}

/// Reads a `Start` with these bytes for its stretches.
fn check_stretches(bytes: &[u8], expected: Result<usize, WireError>) {
    let mut body = vec![VERSION, 0x01];
    // No name, no limits, no functions.
    body.extend_from_slice(&[0; 4 + 10 * 8 + 4]);
    body.extend_from_slice(bytes);
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&body);
    let mut decoder = Decoder::<HostFrame>::new(MAX);
    decoder.push(&frame);
    let read = decoder.next().map(|frame| match frame {
        Some(HostFrame::Start(start)) => start.stretches.len(),
        other => panic!("{bytes:?} gave {other:?}"),
    });
    assert_eq!(read, expected, "{bytes:?}");
}

#[test]
fn stretches_that_are_wrong_are_refused() {
    let wrong = |value| WireError::Value {
        field: "stretches",
        value,
    };
    let short = WireError::Short { field: "stretches" };
    check_stretches(&[0], Ok(0));
    check_stretches(&[1, 1, 1, 0], Ok(1));
    check_stretches(&[1, 1, 1, 3, 2], Ok(1));
    check_stretches(&[], Err(short.clone()));
    check_stretches(&[2, 1, 1, 0], Err(short.clone()));
    check_stretches(&[1, 0x81], Err(short));
    // The line is 0, the column is 0, the second is where the first is.
    check_stretches(&[1, 0, 1, 0], Err(wrong(0)));
    check_stretches(&[1, 1, 0, 0], Err(wrong(0)));
    check_stretches(&[2, 1, 1, 0, 0, 0, 0], Err(wrong(0)));
    // The author's line is 0, before the first, and beyond the last.
    check_stretches(&[1, 1, 1, 1, 2], Err(wrong(0)));
    check_stretches(&[1, 1, 1, 2, 2], Err(wrong(1)));
    check_stretches(
        &[1, 1, 1, 0x81, 0x80, 0x80, 0x80, 0x20, 2],
        Err(wrong(1 << 33)),
    );
    // The line is beyond the last, the count is beyond all, a number has no end.
    check_stretches(
        &[2, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 1, 1, 0],
        Err(wrong(1)),
    );
    check_stretches(&[0x81, 0x80, 0x40], Err(wrong((1 << 20) + 1)));
    check_stretches(&[0x80; 7], Err(wrong(0)));
}

#[test]
fn a_frame_over_the_limit_is_refused_before_it_is_there() {
    let mut decoder = Decoder::<WorkerFrame>::new(64);
    decoder.push(&u32::MAX.to_le_bytes());
    assert!(decoder.space(1).capacity() < 1024);
    let error = decoder.next().expect_err("over the limit");
    assert_eq!(
        error.to_string(),
        "frame of 4294967295 bytes is over the limit of 64 bytes"
    );
}

#[test]
fn a_frame_over_the_limit_is_not_written() {
    let frame = WorkerFrame::Output(Output {
        level: Level::Log,
        text: "x".repeat(62).into(),
    });
    assert_eq!(
        frame.encode(64).unwrap_err(),
        WireError::TooLarge {
            size: 65,
            limit: 64
        }
    );
}

#[test]
fn a_payload_is_not_copied() {
    let json = Text::from("[1,2,3]");
    let frame = HostFrame::Reply(Reply {
        call: 1,
        outcome: Ok(json.clone()),
    });
    let encoded = frame.encode(MAX).expect("a small frame");
    assert_eq!(encoded.slices()[1].as_ptr(), json.as_ptr());
}
