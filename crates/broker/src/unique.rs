//! Names that are given once.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use jiff::Timestamp;

/// 128 bits that nothing else has, as 32 hexadecimal digits. They are no secret, so the
/// seeds that the system gives to hash tables will do: random ones for each thread.
pub(crate) fn unique_id() -> String {
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_i128(Timestamp::now().as_nanosecond());
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(), half())
}
