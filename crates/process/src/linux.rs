//! Processes on Linux: started without a copy of the host, killed by the kernel when
//! the thread that started them ends, and waited for by their descriptor.
//!
//! A fork copies the host's page tables, and afterwards each page that the host
//! writes to is a fault. With the memory of a host, that takes the kernel
//! milliseconds for each child, during which no thread of the host gets memory.

mod image;
mod pipes;
mod running;

use std::io;

use image::Image;
use pipes::Pipes;
pub(crate) use running::Running;

use crate::{Child, Command};

/// Starts it. The calling thread must last as long as the host, and be within a
/// runtime.
pub(crate) fn start(command: &Command) -> io::Result<Child> {
    let pipes = Pipes::open(command.streams)?;
    let image = Image::of(command, pipes.inner())?;
    let running = Running::new(image.start()?)?;
    let (stdin, stdout, stderr) = pipes.into_outer()?;
    Ok(Child {
        stdin,
        stdout,
        stderr,
        running,
    })
}
