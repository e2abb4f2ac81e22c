//! What goes to a worker: frames in their order, and how much of them it has not read yet.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_wire::{Encoded, HostFrame, ToWire, WireError};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;

/// Bytes of an answer that still makes a frame.
pub(super) const LONGEST_ANSWER: usize = u32::MAX as usize - (1 << 10);

/// Bytes that may wait for the worker to read them. A worker that makes calls and reads no answers
/// must not fill the host's memory with them.
const UNREAD_BYTES: usize = 256 << 20;

/// The end where frames go in.
#[derive(Debug)]
pub(super) struct Outbox {
    frames: mpsc::UnboundedSender<Encoded>,
    unread: Arc<AtomicUsize>,
}

impl Outbox {
    /// Both ends.
    pub(super) fn new() -> (Self, ToWrite) {
        let (frames, queue) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let to_write = ToWrite {
            queue,
            unread: Arc::clone(&unread),
        };
        (Self { frames, unread }, to_write)
    }

    /// Whether an answer of this length may wait too; an error says how much waits already. Where
    /// nothing waits there is room for any length.
    pub(super) fn has_room(&self, bytes: usize) -> Result<(), usize> {
        match self.unread.load(Ordering::Relaxed) {
            0 => Ok(()),
            unread if unread.saturating_add(bytes) <= UNREAD_BYTES => Ok(()),
            unread => Err(unread),
        }
    }

    /// Sends a frame, whether there is room or not.
    pub(super) fn send(&self, frame: HostFrame) -> Result<(), WireError> {
        let frame = frame.encode(u32::MAX as usize)?;
        self.unread.fetch_add(frame.len(), Ordering::Relaxed);
        // A worker that is gone shows on the reading side.
        let _gone = self.frames.send(frame);
        Ok(())
    }
}

/// The end where they come out.
#[derive(Debug)]
pub(super) struct ToWrite {
    queue: mpsc::UnboundedReceiver<Encoded>,
    unread: Arc<AtomicUsize>,
}

impl ToWrite {
    /// Writes frames in the order they come, until the worker or the run is gone.
    pub(super) async fn write(mut self, mut writing: OwnedWriteHalf) {
        while let Some(frame) = self.queue.recv().await {
            let mut slices = frame.slices().map(IoSlice::new);
            let mut slices = slices.as_mut_slice();
            while !slices.is_empty() {
                match writing.write_vectored(slices).await {
                    Ok(0) | Err(_) => return,
                    Ok(written) => IoSlice::advance_slices(&mut slices, written),
                }
            }
            self.unread.fetch_sub(frame.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate_wire::Reply;
    use tokio::net::UnixStream;

    use super::*;

    fn answer(bytes: usize) -> HostFrame {
        let outcome = Ok("x".repeat(bytes).into());
        HostFrame::Reply(Reply { call: 1, outcome })
    }

    #[tokio::test]
    async fn what_is_not_read_is_bounded() {
        let (outbox, to_write) = Outbox::new();
        assert_eq!(outbox.has_room(usize::MAX), Ok(()));
        outbox.send(answer(1 << 20)).expect("it is short enough");
        let unread = outbox.unread.load(Ordering::Relaxed);
        assert!(unread > 1 << 20);
        assert_eq!(outbox.has_room(UNREAD_BYTES - unread), Ok(()));
        assert_eq!(outbox.has_room(UNREAD_BYTES - unread + 1), Err(unread));
        assert_eq!(outbox.has_room(usize::MAX), Err(unread));

        // Read, it makes room again.
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
        let (_reading, writing) = ours.into_split();
        let read = async {
            let mut bytes = vec![0; unread];
            tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut bytes).await
        };
        let unread = Arc::clone(&outbox.unread);
        drop(outbox);
        let ((), read) = tokio::join!(to_write.write(writing), read);
        assert!(read.is_ok());
        assert_eq!(unread.load(Ordering::Relaxed), 0);
    }
}
