//! Where code stands in its author's text: how places are found, and how the stretches that say so
//! are written in a few bytes each.

use bytes::Bytes;

use crate::{Stretch, WireError};

/// The most stretches that a script can have.
pub const MAX_STRETCHES: usize = 1 << 20;

/// The author's line and column of a place in the code; `None` if it is not the author's.
///
/// A place keeps its distance to where its stretch begins: on the first line of the stretch by
/// columns, and below that by lines, in a column of its own.
#[must_use]
pub fn author_place(stretches: &[Stretch], line: u32, column: u32) -> Option<(u32, u32)> {
    let after = stretches.partition_point(|s| (s.line, s.column) <= (line, column));
    let stretch = stretches.get(after.checked_sub(1)?)?;
    let (author_line, author_column) = stretch.author?;
    Some(match line.saturating_sub(stretch.line) {
        0 => (
            author_line,
            author_column.saturating_add(column.saturating_sub(stretch.column)),
        ),
        lines => (author_line.saturating_add(lines), column),
    })
}

/// Appends the stretches: how many there are, and each as its distance from the one before.
pub(crate) fn write(stretches: &[Stretch], out: &mut Vec<u8>) {
    number(out, stretches.len() as u64);
    let mut before = Before::default();
    for stretch in stretches {
        // Places in order have distances that are not negative; what is out of order wraps, and is
        // refused by the reader.
        number(out, u64::from(stretch.line.wrapping_sub(before.line)));
        if stretch.line != before.line {
            before.column = 0;
        }
        number(out, u64::from(stretch.column.wrapping_sub(before.column)));
        (before.line, before.column) = (stretch.line, stretch.column);
        match stretch.author {
            None => number(out, 0),
            Some((line, column)) => {
                // One more than the zigzag of the distance, so that 0 is left for nobody's.
                number(out, zigzag(line, before.author.0) + 1);
                number(out, zigzag(column, before.author.1));
                before.author = (line, column);
            }
        }
    }
}

/// Takes stretches from the front of a frame; they must be in order.
pub(crate) fn read(from: &mut Bytes) -> Result<Vec<Stretch>, WireError> {
    let mut input: &[u8] = from;
    let count = take(&mut input)?;
    if count > MAX_STRETCHES as u64 {
        return Err(bad(count));
    }
    // The count is not trusted for the capacity: reading runs out of frame before it runs out of
    // memory.
    let mut stretches = Vec::new();
    let mut before = Before::default();
    for _ in 0..count {
        let lines = take_u32(&mut input)?;
        if lines > 0 {
            before.column = 0;
        }
        let columns = take_u32(&mut input)?;
        let line = checked(before.line.checked_add(lines), lines)?;
        let column = checked(before.column.checked_add(columns), columns)?;
        if columns == 0 || line == 0 {
            return Err(bad(0));
        }
        (before.line, before.column) = (line, column);
        let author = match take(&mut input)? {
            0 => None,
            distance => {
                let line = moved(before.author.0, distance - 1)?;
                let column = moved(before.author.1, take(&mut input)?)?;
                before.author = (line, column);
                Some((line, column))
            }
        };
        stretches.push(Stretch {
            line,
            column,
            author,
        });
    }
    let read = from.len() - input.len();
    let _read = from.split_to(read);
    Ok(stretches)
}

/// What a stretch's distances are counted from.
#[derive(Default)]
struct Before {
    line: u32,
    column: u32,
    author: (u32, u32),
}

/// A number in as few bytes as it needs, seven bits each, the lowest first.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(input: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0;
    for shift in (0..36).step_by(7) {
        let (byte, rest) = input
            .split_first()
            .ok_or(WireError::Short { field: "stretches" })?;
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(bad(value))
}

fn take_u32(input: &mut &[u8]) -> Result<u32, WireError> {
    let value = take(input)?;
    u32::try_from(value).map_err(|_| bad(value))
}

/// A distance of either direction as a number that is small where it is.
fn zigzag(to: u32, from: u32) -> u64 {
    let distance = i64::from(to) - i64::from(from);
    ((distance << 1) ^ (distance >> 63)) as u64
}

fn moved(from: u32, zigzag: u64) -> Result<u32, WireError> {
    // At most 42 bits were read.
    let distance = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
    u32::try_from(i64::from(from) + distance)
        .ok()
        .filter(|to| *to > 0)
        .ok_or_else(|| bad(zigzag))
}

fn checked(value: Option<u32>, distance: u32) -> Result<u32, WireError> {
    value.ok_or_else(|| bad(u64::from(distance)))
}

fn bad(value: u64) -> WireError {
    WireError::Value {
        field: "stretches",
        value,
    }
}
