use super::*;

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
    // Output for a stream that does not exist.
    check(&[4, 1, b'x', 2], WireError::Broken(DeserializeBadBool));
    check(&[5, 0, 0xff], WireError::Broken(DeserializeBadBool));
    let (size, limit) = (65, 64);
    check(&[0; 65], WireError::TooLarge { size, limit });
}

#[test]
fn frame_over_limit_is_neither_read_nor_sent() {
    let mut decoder = Decoder::<WorkerFrame>::new(64);
    decoder.space(0).extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(decoder.space(1).capacity() < 1024);
    let more = WorkerFrame::More {
        text: "x".repeat(62),
        is_error: false,
    };
    let sent = encode(&more, 64);
    let (size, limit) = (65, 64);
    assert_eq!(sent.unwrap_err(), WireError::TooLarge { size, limit });
}
