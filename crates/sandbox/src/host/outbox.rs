//! Frames that wait to be sent to a worker.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::os::unix::net::UnixStream;

use crate::wire::{HostFrame, WireError, encode};
use bytes::{Buf as _, Bytes};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Maximum bytes of an answer, so that it fits into a frame.
pub(super) const MAX_ANSWER_BYTES: usize = u32::MAX as usize - (1 << 10);

/// Bytes that may wait for the worker to read them. A worker that makes calls and reads no answers
/// must not fill the host's memory with them.
const UNREAD_BYTES: usize = 256 << 20;

/// Maximum number of frames in one system call.
const FRAMES_AT_ONCE: usize = 64;

/// The frames that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    frames: VecDeque<Bytes>,
    /// Bytes of all frames.
    unread: usize,
}

impl Outbox {
    /// True if all frames have been written.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Checks that an answer of this length may wait; the error is the number of bytes that wait
    /// already. An empty outbox has room for any length.
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), usize> {
        match self.unread {
            0 => Ok(()),
            unread if unread.saturating_add(bytes) <= UNREAD_BYTES => Ok(()),
            unread => Err(unread),
        }
    }

    /// Adds a frame, whether there is room or not.
    pub(super) fn push(&mut self, frame: HostFrame) -> Result<(), WireError> {
        let frame = encode(&frame, u32::MAX as usize)?;
        self.unread = self.unread.saturating_add(frame.len());
        self.frames.push_back(frame.into());
        Ok(())
    }

    /// Writes as much as the socket accepts without blocking.
    pub(super) fn flush(&mut self, mut socket: &UnixStream) {
        while !self.is_empty() {
            let frames = self.frames.iter().take(FRAMES_AT_ONCE);
            let frames: Vec<_> = frames.map(|frame| IoSlice::new(frame)).collect();
            match socket.write_vectored(&frames) {
                Ok(written) => self.remove(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The reading side reports a worker that is gone; it reads nothing more.
                Err(_) => *self = Self::default(),
            }
        }
    }

    /// Removes written bytes from the front.
    fn remove(&mut self, mut bytes: usize) {
        self.unread = self.unread.saturating_sub(bytes);
        while let Some(frame) = self.frames.front_mut() {
            if bytes < frame.len() {
                frame.advance(bytes);
                return;
            }
            bytes -= frame.len();
            self.frames.pop_front();
        }
    }

    /// Waits until the socket accepts more, on a descriptor of its own: the runtime waits for one
    /// kind of event on each.
    pub(super) async fn room(socket: UnixStream) -> io::Result<()> {
        // SAFETY: the descriptor is owned, so it is open, and the same one, until it is dropped.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::WRITABLE) }?;
        socket.writable().await?.retain_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use crate::wire::Reply;

    use super::*;

    fn answer(bytes: usize) -> HostFrame {
        let outcome = Ok("x".repeat(bytes));
        HostFrame::Reply(Reply { call: 1, outcome })
    }

    #[test]
    fn unread_frames_are_bounded() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.check_room(usize::MAX), Ok(()));
        outbox.push(answer(1 << 20)).expect("it is short enough");
        let unread = outbox.unread;
        assert!(unread > 1 << 20);
        assert_eq!(outbox.check_room(UNREAD_BYTES - unread), Ok(()));
        assert_eq!(outbox.check_room(UNREAD_BYTES - unread + 1), Err(unread));
        assert_eq!(outbox.check_room(usize::MAX), Err(unread));
    }

    #[tokio::test]
    async fn frames_are_written_in_order() {
        let frames: Vec<_> = (0..100).map(|i| answer(i * 997)).collect();
        let mut expected = Vec::new();
        let mut outbox = Outbox::default();
        for frame in frames {
            expected.extend(encode(&frame, u32::MAX as usize).expect("short"));
            outbox.push(frame).expect("it is short enough");
        }
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        ours.set_nonblocking(true).expect("it is a socket");
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            // In pieces that are no multiple of a frame.
            let mut piece = vec![0; 10_007];
            while let Ok(bytes @ 1..) = (&theirs).read(&mut piece) {
                read.extend_from_slice(piece.get(..bytes).unwrap_or_default());
            }
            read
        });
        outbox.flush(&ours);
        while !outbox.is_empty() {
            let writing = ours.try_clone().expect("a descriptor");
            Outbox::room(writing).await.expect("the reader is there");
            outbox.flush(&ours);
        }
        drop(ours);
        let read = reader.join().expect("it ends");
        assert!(
            read == expected,
            "the bytes are other than those of the frames"
        );
        assert!(outbox.is_empty());
        assert_eq!(outbox.unread, 0);
    }
}
