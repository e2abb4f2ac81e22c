//! Connections without an admitted request. They are closed when all places are taken, so that
//! half-sent heads, which need no token, do not block other clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The connections without an admitted request, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Newcomers(Mutex<Vec<(IpAddr, CancellationToken)>>);

impl Newcomers {
    /// Adds a connection from this address.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr) -> Arc<Newcomer> {
        let end = CancellationToken::new();
        self.0.lock().push((address, end.clone()));
        Arc::new(Newcomer {
            address,
            all: Arc::clone(self),
            end,
        })
    }

    /// Ends the oldest newcomer of the address that has the largest number. So the connections of an
    /// address with few, and of a proxy whose clients send their requests quickly, stay.
    pub(crate) fn end_one(&self) {
        let mut newcomers = self.0.lock();
        let mut counts = HashMap::<IpAddr, usize>::new();
        for (address, _) in newcomers.iter() {
            *counts.entry(*address).or_default() += 1;
        }
        let max = counts.into_iter().max_by_key(|(_, count)| *count);
        let oldest = max.and_then(|(max, _)| newcomers.iter().position(|(it, _)| *it == max));
        if let Some(oldest) = oldest {
            newcomers.remove(oldest).1.cancel();
        }
    }
}

/// A connection that is a newcomer until it settles.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) address: IpAddr,
    all: Arc<Newcomers>,
    end: CancellationToken,
}

impl Newcomer {
    /// Makes it an ordinary connection, after a request on it was admitted.
    pub(crate) fn settle(&self) {
        let mut newcomers = self.all.0.lock();
        newcomers.retain(|(_, end)| *end != self.end);
    }

    /// Resolves when it has to make room.
    pub(crate) async fn ended(&self) {
        self.end.cancelled().await;
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_of_the_address_with_most_ends() {
        let newcomers = Arc::<Newcomers>::default();
        let add = |address: [u8; 4]| newcomers.add(IpAddr::from(address));
        let (few, settled) = (add([10, 0, 0, 1]), add([10, 0, 0, 2]));
        let many = [(); 3].map(|()| add([10, 0, 0, 2]));
        settled.settle();
        let gone = add([10, 0, 0, 2]);
        drop(gone);
        newcomers.end_one();
        newcomers.end_one();
        let ended = many.iter().map(|it| it.end.is_cancelled());
        assert_eq!(ended.collect::<Vec<_>>(), [true, true, false]);
        assert!(!few.end.is_cancelled() && !settled.end.is_cancelled());
    }
}
