//! Where the threads of one run meet at the end of a window.

use super::sync::{AtomicBool, AtomicUsize, Ordering, relax};

/// A barrier that spins: a window takes some microseconds, less than it takes to wake a sleeping thread.
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// Changes when all have arrived.
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    /// For so many threads.
    pub fn new(threads: usize) -> Barrier {
        let (arrived, round) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Barrier { threads, arrived, round, broken: AtomicBool::new(false) }
    }

    /// Waits until all have come. The last one does `alone`, while the others wait, who then see all that was done before. False if
    /// the barrier is broken.
    pub fn wait(&self, alone: impl FnOnce()) -> bool {
        // it cannot change before this thread has arrived
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            alone();
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut spins = 0;
        while self.round.load(Ordering::Acquire) == round {
            if self.broken.load(Ordering::Acquire) {
                return false;
            }
            relax(&mut spins);
        }
        true
    }

    /// One of the threads will not come any more: the others need not wait.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::Release);
    }
}
