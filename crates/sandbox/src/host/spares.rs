//! How many workers wait for a script: as many as was asked for, and more while
//! runs come faster than workers start.

use std::time::{Duration, Instant};

use crate::worker::Settings;

/// Runs that come within this time of each other come fast.
const FAST: Duration = Duration::from_secs(1);

/// After so long without a run that had to wait for its worker, one fewer is kept.
const CALM: Duration = Duration::from_secs(10);

/// A worker as the spares see it.
pub(super) trait Spare {
    /// What it was started with.
    fn settings(&self) -> Settings;

    /// Whether the process has not ended yet.
    fn is_alive(&mut self) -> bool;

    /// Whether a run in it begins at once.
    fn is_ready(&self) -> bool;
}

/// Workers that wait, and how many of them are wanted.
#[derive(Debug)]
pub(super) struct Spares<W> {
    least: usize,
    most: usize,
    wanted: usize,
    settings: Settings,
    waiting: Vec<W>,
    /// Those on their way, with [`Self::settings`].
    starting: usize,
    last_run: Option<Instant>,
    /// When `wanted` was last changed, or a run last had to wait.
    calm_since: Option<Instant>,
}

impl<W: Spare> Spares<W> {
    pub(super) fn new(least: usize, most: usize, settings: Settings) -> Self {
        Self {
            least,
            most: most.max(least),
            wanted: least,
            settings,
            waiting: Vec::new(),
            starting: 0,
            last_run: None,
            calm_since: None,
        }
    }

    /// A worker for a run that comes now. The next spares will have its settings.
    pub(super) fn take(&mut self, settings: Settings, now: Instant) -> Option<W> {
        if settings != self.settings {
            self.settings = settings;
            self.starting = 0;
        }
        // Those that died while they waited are of no use to anyone.
        self.waiting
            .retain_mut(|worker| worker.settings() == settings && worker.is_alive());
        let ready = self.waiting.iter().position(W::is_ready);
        self.adapt(ready.is_some(), now);
        // Of those that are not ready, the one that was started first.
        (!self.waiting.is_empty()).then(|| self.waiting.remove(ready.unwrap_or(0)))
    }

    /// The settings of a worker that must be started now and comes back by [`Self::started`];
    /// `None` if there are as many as are wanted.
    pub(super) fn begin_start(&mut self) -> Option<Settings> {
        let is_missing = self.waiting.len() + self.starting < self.wanted;
        self.starting += usize::from(is_missing);
        is_missing.then_some(self.settings)
    }

    /// One that was started with these settings, or could not be. Gives back one that nobody wants
    /// any more.
    pub(super) fn started(&mut self, settings: Settings, worker: Option<W>) -> Option<W> {
        if settings != self.settings || self.starting == 0 {
            return worker;
        }
        self.starting -= 1;
        self.waiting.extend(worker);
        None
    }

    fn adapt(&mut self, was_ready: bool, now: Instant) {
        let since = |before: Option<Instant>| before.map(|at| now.saturating_duration_since(at));
        // A run that comes alone, before the first spare is ready, would not be faster with two.
        let is_fast = since(self.last_run).is_some_and(|time| time < FAST);
        self.last_run = Some(now);
        if !was_ready && is_fast && self.least > 0 {
            self.wanted = self.most.min(self.wanted + 1);
            self.calm_since = Some(now);
        } else if since(self.calm_since).is_some_and(|time| time >= CALM) {
            self.wanted = self.least.max(self.wanted.saturating_sub(1));
            self.calm_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{Jit, Layers};

    const SETTINGS: Settings = Settings {
        heap_bytes: 64 << 20,
        jit: Jit::Keys,
        layers: Layers::NONE,
    };
    const OTHERS: Settings = Settings {
        heap_bytes: 128 << 20,
        jit: Jit::Keys,
        layers: Layers::NONE,
    };

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Fake {
        number: u32,
        settings: Settings,
        is_alive: bool,
        is_ready: bool,
    }

    impl Spare for Fake {
        fn settings(&self) -> Settings {
            self.settings
        }

        fn is_alive(&mut self) -> bool {
            self.is_alive
        }

        fn is_ready(&self) -> bool {
            self.is_ready
        }
    }

    fn fake(number: u32, is_ready: bool) -> Fake {
        Fake {
            number,
            settings: SETTINGS,
            is_alive: true,
            is_ready,
        }
    }

    fn spares(least: usize, most: usize) -> Spares<Fake> {
        Spares::new(least, most, SETTINGS)
    }

    /// How many are started.
    fn missing(spares: &mut Spares<Fake>) -> usize {
        std::iter::from_fn(|| spares.begin_start()).count()
    }

    /// Starts all that are missing; says how many.
    fn refill(spares: &mut Spares<Fake>, is_ready: bool) -> usize {
        let missing = missing(spares);
        for number in 0..missing {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            assert_eq!(spares.started(SETTINGS, Some(fake(number, is_ready))), None);
        }
        missing
    }

    #[test]
    fn one_on_its_way_is_not_started_again() {
        let mut spares = spares(1, 4);
        assert_eq!(missing(&mut spares), 1);
        assert_eq!(missing(&mut spares), 0);
        assert_eq!(spares.started(SETTINGS, None), None);
        assert_eq!(missing(&mut spares), 1);
    }

    #[test]
    fn the_ready_one_goes_first_and_the_dead_one_never() {
        let now = Instant::now();
        let mut spares = spares(3, 3);
        assert_eq!(missing(&mut spares), 3);
        let dead = Fake {
            is_alive: false,
            ..fake(0, true)
        };
        for worker in [dead, fake(1, false), fake(2, true)] {
            assert_eq!(spares.started(SETTINGS, Some(worker)), None);
        }
        let taken = [(); 3].map(|()| spares.take(SETTINGS, now).map(|worker| worker.number));
        assert_eq!(taken, [Some(2), Some(1), None]);
    }

    #[test]
    fn settings_of_the_last_run_hold() {
        let now = Instant::now();
        let mut spares = spares(1, 4);
        assert_eq!(missing(&mut spares), 1);
        assert_eq!(spares.take(OTHERS, now), None);
        let late = fake(0, true);
        assert_eq!(spares.started(SETTINGS, Some(late)), Some(late));
        assert_eq!(missing(&mut spares), 1);
        let fitting = Fake {
            settings: OTHERS,
            ..late
        };
        assert_eq!(spares.started(OTHERS, Some(fitting)), None);
        assert_eq!(spares.take(OTHERS, now), Some(fitting));
    }

    #[test]
    fn more_wait_while_runs_come_fast_and_fewer_after() {
        let mut now = Instant::now();
        let mut spares = spares(1, 3);
        let mut started = Vec::new();
        for _ in 0..5 {
            started.push(refill(&mut spares, false));
            spares.take(SETTINGS, now);
            now += FAST / 100;
        }
        // A first run alone changes nothing; then one more with each, up to the most.
        assert_eq!(started, [1, 1, 2, 2, 1]);
        let mut waiting = Vec::new();
        for _ in 0..3 {
            refill(&mut spares, true);
            waiting.push(spares.waiting.len());
            for worker in &mut spares.waiting {
                worker.is_ready = true;
            }
            now += CALM;
            spares.take(SETTINGS, now);
        }
        assert_eq!(waiting, [3, 2, 1]);
    }

    #[test]
    fn without_spares_none_are_kept() {
        let mut now = Instant::now();
        let mut spares = spares(0, 4);
        for _ in 0..3 {
            assert_eq!(missing(&mut spares), 0);
            assert_eq!(spares.take(SETTINGS, now), None);
            now += FAST / 100;
        }
    }
}
