//! Memory that several users share.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// An amount of memory that several users share in turn.
#[derive(Debug)]
pub struct MemoryBudget {
    /// In KiB, as all permits here.
    free: Arc<Semaphore>,
    total: u32,
}

impl MemoryBudget {
    pub fn new(bytes: u64) -> Arc<Self> {
        let total = kib(bytes).max(1);
        Arc::new(Self {
            free: Arc::new(Semaphore::new(total as usize)),
            total,
        })
    }

    /// The share of one user: all of the budget, or half of it if there are other users, so that
    /// one busy user cannot take the memory of all.
    pub fn share(self: &Arc<Self>, has_others: bool) -> MemoryShare {
        let divisor = if has_others { 2 } else { 1 };
        let max = (self.total / divisor).max(1);
        MemoryShare {
            budget: Arc::clone(self),
            free: Arc::new(Semaphore::new(max as usize)),
            max,
            turn: Arc::default(),
        }
    }
}

/// One user's share of a [`MemoryBudget`]. Clones are the same share.
#[derive(Debug, Clone)]
pub struct MemoryShare {
    budget: Arc<MemoryBudget>,
    free: Arc<Semaphore>,
    max: u32,
    /// Held by the one request of this user that waits for the budget. Semaphores serve in the
    /// order of the requests, so the users take turns.
    turn: Arc<Mutex<()>>,
}

impl MemoryShare {
    /// Takes this number of bytes, at most the whole share, when they are free and it is this
    /// user's turn.
    pub async fn take(&self, bytes: u64) -> TakenMemory {
        let amount = kib(bytes).min(self.max);
        let _turn = self.turn.lock().await;
        let own = Arc::clone(&self.free).acquire_many_owned(amount).await;
        let all = Arc::clone(&self.budget.free)
            .acquire_many_owned(amount)
            .await;
        TakenMemory {
            share: self.clone(),
            // Neither is ever closed.
            own: own.ok(),
            all: all.ok(),
        }
    }
}

/// Bytes that were taken from a [`MemoryShare`], until this is dropped.
#[derive(Debug)]
pub struct TakenMemory {
    share: MemoryShare,
    own: Option<OwnedSemaphorePermit>,
    all: Option<OwnedSemaphorePermit>,
}

impl TakenMemory {
    /// Changes the taken memory to this number of bytes; false, without a change, if they are not
    /// free now.
    pub fn try_resize(&mut self, bytes: u64) -> bool {
        let amount = kib(bytes).min(self.share.max) as usize;
        let (Some(own), Some(all)) = (&mut self.own, &mut self.all) else {
            return false;
        };
        let taken = own.num_permits();
        if let Some(less) = taken.checked_sub(amount) {
            drop((own.split(less), all.split(less)));
            return true;
        }
        let more = u32::try_from(amount - taken).unwrap_or(u32::MAX);
        let take = |free: &Arc<Semaphore>| Arc::clone(free).try_acquire_many_owned(more).ok();
        let (Some(more_own), Some(more_all)) =
            (take(&self.share.free), take(&self.share.budget.free))
        else {
            return false;
        };
        own.merge(more_own);
        all.merge(more_all);
        true
    }
}

fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

/// Bytes of memory that this process and its children may use together: those of the machine, or
/// of the smallest control group around the process. `None` where the kernel does not report them.
pub fn machine_memory() -> Option<u64> {
    memory_under(Path::new("/"))
}

fn memory_under(root: &Path) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(root.join(path)).ok();
    let machine = read(Path::new("proc/meminfo"))?;
    let machine = machine.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        kib.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
    })?;
    let groups = read(Path::new("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        // Such as "0::/user.slice" (version 2) and "7:memory:/user.slice" (version 1).
        let mut parts = line.splitn(3, ':').skip(1);
        let (mount, limit) = match parts.next() {
            Some("") => ("sys/fs/cgroup", "memory.max"),
            Some("memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let group = Path::new(parts.next().unwrap_or_default().trim_start_matches('/'));
        let limit = |group: &Path| {
            let text = read(&Path::new(mount).join(group).join(limit))?;
            text.trim().parse::<u64>().ok()
        };
        group.ancestors().filter_map(limit).collect()
    });
    limits.chain([machine]).min()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn users_wait_in_turn() {
        let budget = MemoryBudget::new(4 * MIB);
        let [greedy, other, last] = [(); 3].map(|()| budget.share(true));
        let whole_share = other.take(9 * MIB).await;
        let _first = greedy.take(MIB).await;
        let mut taken = vec![last.take(MIB / 2).await, last.take(MIB / 2).await];
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(greedy.take(MIB / 2))).collect();
        for waiting in &mut waiting {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut later = Box::pin(last.take(MIB / 2));
        assert!(later.as_mut().now_or_never().is_none());
        taken.pop();
        let _second = waiting.remove(0).now_or_never().expect("its turn");
        assert!(waiting[0].as_mut().now_or_never().is_none());
        taken.pop();
        assert!(later.now_or_never().is_some(), "the other user's turn");
        drop(whole_share);
        assert!(waiting.remove(0).now_or_never().is_some());
    }

    #[tokio::test]
    async fn taken_memory_grows_within_the_share() {
        let budget = MemoryBudget::new(4 * MIB);
        let (share, other) = (budget.share(true), budget.share(true));
        let mut taken = share.take(MIB).await;
        let others = other.take(2 * MIB).await;
        assert!(taken.try_resize(9 * MIB), "all of its share");
        assert!(share.take(1).now_or_never().is_none());
        assert!(taken.try_resize(MIB));
        let rest = share.take(MIB).now_or_never().expect("it was given back");
        assert!(!taken.try_resize(MIB + 1));
        drop((rest, others));
        assert!(taken.try_resize(2 * MIB));
    }

    #[test]
    fn smallest_control_group_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        };
        assert_eq!(memory_under(folder.path()), None);
        write("proc/meminfo", "MemFree: 1 kB\nMemTotal:  2048 kB\n");
        assert_eq!(memory_under(folder.path()), Some(2 * MIB));
        write("proc/self/cgroup", "7:cpu:/x\n5:memory:/a\n0::/b/c\n");
        write("sys/fs/cgroup/b/c/memory.max", "max\n");
        write(
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(memory_under(folder.path()), Some(2 * MIB));
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
        assert_eq!(memory_under(folder.path()), Some(MIB));
        write("sys/fs/cgroup/b/memory.max", "4096\n");
        assert_eq!(memory_under(folder.path()), Some(4096));
    }
}
