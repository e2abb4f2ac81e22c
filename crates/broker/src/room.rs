//! Room that is shared by all that is there at a time: for so many bytes, values or calls.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many places.
#[derive(Debug)]
pub(crate) struct Room {
    most: u32,
    left: Arc<Semaphore>,
}

/// Places in a room, which are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Places(OwnedSemaphorePermit);

impl Room {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            left: Arc::new(Semaphore::new(most as usize)),
        }
    }

    /// How many places it has, taken or not.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Takes so many, if they are free.
    pub(crate) fn take(&self, places: usize) -> Option<Places> {
        let places = u32::try_from(places).ok()?;
        let taken = Arc::clone(&self.left).try_acquire_many_owned(places);
        taken.ok().map(Places)
    }
}

impl Places {
    /// Adds places of the same room.
    pub(crate) fn add(&mut self, Self(more): Self) {
        self.0.merge(more);
    }

    /// Gives so many of them back, or all if there are fewer.
    pub(crate) fn give_back(&mut self, places: usize) {
        let places = places.min(self.0.num_permits());
        drop(self.0.split(places));
    }

    /// Keeps them taken for as long as there is the room.
    pub(crate) fn keep(self) {
        self.0.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_given_back_and_kept() {
        let room = Room::new(8);
        let free = |places: usize| room.take(places).is_some() && room.take(places + 1).is_none();
        assert!(room.take(usize::MAX).is_none());
        let mut taken = room.take(3).expect("there is room");
        taken.add(room.take(2).expect("there is room"));
        assert!(free(3));
        taken.give_back(4);
        assert!(free(7));
        taken.give_back(4);
        assert!(free(8));
        drop(taken);
        room.take(6).expect("there is room").keep();
        assert!(free(2));
    }
}
