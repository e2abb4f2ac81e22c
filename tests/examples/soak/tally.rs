//! What happened, counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shared by all clients.
#[derive(Default)]
pub struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    took: BTreeMap<&'static str, Vec<Duration>>,
    wrong: BTreeMap<String, u64>,
    passed: BTreeMap<String, u64>,
    happened: BTreeMap<&'static str, u64>,
    sent: u64,
}

impl Tally {
    /// A request was answered after this time.
    pub fn took(&self, kind: &'static str, time: Duration) {
        self.lock().took.entry(kind).or_default().push(time);
    }

    /// A request was not answered, or not as it must be.
    pub fn wrong(&self, kind: &str, why: &str) {
        let why: String = why.chars().take(200).collect();
        *self
            .lock()
            .wrong
            .entry(format!("{kind}: {why}"))
            .or_default() += 1;
    }

    /// How a call of a passing server ended.
    pub fn passed(&self, how: &str) {
        *self.lock().passed.entry(how.to_owned()).or_default() += 1;
    }

    /// What was done to a server.
    pub fn happened(&self, what: &'static str) {
        *self.lock().happened.entry(what).or_default() += 1;
    }

    /// Issues were sent to the steady server.
    pub fn sent(&self, issues: u64) {
        self.lock().sent += issues;
    }

    /// All the issues that were sent.
    pub fn all_sent(&self) -> u64 {
        self.lock().sent
    }

    /// How many runs of scripts were answered.
    pub fn runs(&self) -> usize {
        let inner = self.lock();
        let runs = inner.took.iter().filter(|(kind, _)| kind.contains("run"));
        runs.map(|(_, times)| times.len()).sum()
    }

    /// What 99 of 100 requests of a kind took at most.
    pub fn p99(&self, kind: &str) -> Duration {
        let mut times = self.lock().took.get(kind).cloned().unwrap_or_default();
        times.sort_unstable();
        part(&times, 99)
    }

    /// Prints all of it, and gives what was wrong.
    pub fn print(&self, time: Duration) -> Vec<String> {
        let mut inner = self.lock();
        let requests: usize = inner.took.values().map(Vec::len).sum();
        println!(
            "{requests} requests answered, {:.1} a second",
            requests as f64 / time.as_secs_f64()
        );
        for (kind, times) in &mut inner.took {
            times.sort_unstable();
            let [half, most, all] = [50, 99, 100].map(|share| part(times, share));
            println!(
                "{kind:<34} {:>7}  p50 {half:>9.1?}  p99 {most:>9.1?}  max {all:>9.1?}",
                times.len()
            );
        }
        println!("calls of passing servers: {}", listed(&inner.passed));
        println!("servers: {}", listed(&inner.happened));
        let wrong = inner.wrong.iter();
        wrong
            .map(|(what, count)| format!("{count} x {what}"))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The least time that this share of them, in percent, does not exceed.
fn part(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

fn listed(counts: &BTreeMap<impl AsRef<str>, u64>) -> String {
    let each = counts.iter();
    let each: Vec<String> = each
        .map(|(what, count)| format!("{} {count}", what.as_ref()))
        .collect();
    each.join(", ")
}
