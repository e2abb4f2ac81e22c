//! Equal values that several owners share, such as the tool lists of the users of a host.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Values in use, without duplicates. A value is dropped with its last owner.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Vec<Weak<T>>>);

impl<T> Shared<T> {
    /// A collection without values.
    pub const fn empty() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The value in use that `is_same` accepts, or else a new one.
    pub fn get(&self, is_same: impl Fn(&T) -> bool, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut values = self.0.lock();
        values.retain(|value| value.strong_count() > 0);
        let mut in_use = values.iter().filter_map(Weak::upgrade);
        if let Some(value) = in_use.find(|value| is_same(value)) {
            return value;
        }
        let value = make();
        values.push(Arc::downgrade(&value));
        value
    }
}
