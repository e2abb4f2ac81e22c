//! Bounded reads of regular files.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The bytes of a regular file of at most `max` bytes.
///
/// The path of an open descriptor, such as that of a shell's `<(…)`, may be a pipe: only the person
/// who starts the program can name one.
///
/// # Errors
///
/// Those of the system, and errors for a folder ([`ErrorKind::IsADirectory`]), for a pipe, socket or
/// device, and for a file that is too large.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_with_metadata(path, max).map(|(bytes, _)| bytes)
}

/// [`read`], with the metadata of the file that was read.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_with_metadata(path: &Path, max: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let is_descriptor = path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    let file = if is_descriptor {
        File::open(path)?
    } else {
        open_regular(path)?
    };
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("it is over {max} bytes"));
    let metadata = file.metadata()?;
    if metadata.len() > max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(too_large());
    }
    Ok((bytes, metadata))
}

/// [`read`], for a file of UTF-8 text.
///
/// # Errors
///
/// Those of [`read`], and [`ErrorKind::InvalidData`].
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let invalid = |_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path, max)?).map_err(invalid)
}

/// Opens a regular file. Other files are refused before they are opened, because some devices act on
/// being opened.
fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(&path.metadata()?)?;
    let mut options = File::options();
    // Does not block on a pipe that has replaced the file, or on files of the kernel without data.
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.read(true).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(found: &Metadata) -> io::Result<()> {
    if found.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    if !found.is_file() {
        return Err(io::Error::other(
            "it is a pipe, a socket or a device, and not a file",
        ));
    }
    Ok(())
}
