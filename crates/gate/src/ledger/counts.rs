//! Counts a run's calls by function.

use std::collections::HashMap;

use super::call_line::LedgerLine;
use super::outcome::Outcome;
use crate::ask::Done;

/// The calls by function, in the order of the first call that counts. A call without an answer
/// yet counts as sent.
pub(super) fn count(lines: &[LedgerLine]) -> Vec<Done> {
    let mut counts: Vec<Done> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        let (sent, failed, denied) = match line.outcome {
            Outcome::Denied => (0, 0, 1),
            Outcome::Ok | Outcome::InFlight => (1, 0, 0),
            // Refused, given up, or still with the asker.
            _ if line.took_ms.is_none() => continue,
            _ => (1, 1, 0),
        };
        let place = *places.entry(&line.function).or_insert(counts.len());
        if place == counts.len() {
            counts.push(Done {
                function: line.function.clone(),
                sent: 0,
                failed: 0,
                denied: 0,
            });
        }
        if let Some(count) = counts.get_mut(place) {
            count.sent += sent;
            count.failed += failed;
            count.denied += denied;
        }
    }
    counts
}
