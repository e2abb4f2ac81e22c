//! Reads frames from the socket between host and worker, at both ends.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use serde::de::DeserializeOwned;

use super::codec::{Decoder, WireError};

/// Minimum and maximum bytes of buffer for one system call.
const MIN_READ_BYTES: usize = 64 << 10;
const MAX_READ_BYTES: usize = 4 << 20;

/// Reads frames from a socket.
///
/// It is registered for readability only: registered for writing too, it would be woken by each read
/// of the other end.
#[derive(Debug)]
pub struct FrameReader<F> {
    socket: AsyncFd<UnixStream>,
    decoder: Decoder<F>,
}

impl<F: DeserializeOwned> FrameReader<F> {
    /// Reads frames of at most `max_frame` bytes. The socket may be in blocking mode.
    pub fn new(socket: UnixStream, max_frame: usize) -> io::Result<Self> {
        // SAFETY: the descriptor is owned, so it is open, and the same one, until it is dropped.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        Ok(Self {
            socket,
            decoder: Decoder::new(max_frame),
        })
    }

    pub fn set_max_frame(&mut self, max_frame: usize) {
        self.decoder.set_max_frame(max_frame);
    }

    pub fn socket(&self) -> &UnixStream {
        self.socket.get_ref()
    }

    /// The next frame of the bytes that have been read.
    pub fn next_read(&mut self) -> Result<Option<F>, WireError> {
        self.decoder.next()
    }

    /// Reads available bytes; false at the end of the stream.
    pub fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            let mut readable = ready!(self.socket.poll_read_ready(context))?;
            let buffer = self.decoder.space(MIN_READ_BYTES);
            let room = buffer.spare_capacity_mut();
            let bytes = room.len().min(MAX_READ_BYTES);
            // SAFETY: the kernel writes at most `bytes` bytes into memory that is ours and at least
            // that long.
            let read = unsafe {
                libc::recv(
                    readable.get_inner().as_raw_fd(),
                    room.as_mut_ptr().cast(),
                    bytes,
                    libc::MSG_DONTWAIT,
                )
            };
            let Ok(read) = usize::try_from(read) else {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => readable.clear_ready(),
                    _ => return Poll::Ready(Err(error)),
                }
                continue;
            };
            // A short read has emptied the socket; the runtime reports later bytes again.
            if read > 0 && read < bytes {
                readable.clear_ready();
            }
            let filled = buffer.len() + read;
            // SAFETY: the kernel has written `read` bytes behind those that were there.
            unsafe { buffer.set_len(filled) };
            return Poll::Ready(Ok(read > 0));
        }
    }
}
