//! Where the threads of one run meet at the end of a window.

use super::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, SPINS, spin};

/// A barrier that spins, because a window takes some microseconds, less than it takes to wake a thread; and then sleeps, because on a
/// busy machine the thread that is waited for may not have a core yet.
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// Changes when all have arrived.
    round: AtomicUsize,
    broken: AtomicBool,
    /// Threads that sleep, or are about to.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    /// For so many threads.
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits until all have come. The last one does `alone`, while the others wait, who then see all that was done before. False if
    /// the barrier is broken.
    pub fn wait(&self, alone: impl FnOnce()) -> bool {
        // it cannot change before this thread has arrived
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            alone();
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::SeqCst);
            self.wake_all();
            return true;
        }
        for _ in 0..SPINS {
            if !self.keeps(round) {
                return !self.broken.load(Ordering::Acquire);
            }
            spin();
        }
        // counted before it looks once more: either it sees the new round, or the last one sees it
        let mut guard = self.sleep.lock().expect("no thread panics here");
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.keeps(round) {
            guard = self.wake.wait(guard).expect("no thread panics here");
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        !self.broken.load(Ordering::Acquire)
    }

    /// One of the threads will not come any more: the others need not wait.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Is there a reason to wait?
    fn keeps(&self, round: usize) -> bool {
        self.round.load(Ordering::SeqCst) == round && !self.broken.load(Ordering::SeqCst)
    }

    fn wake_all(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.sleep.lock().expect("no thread panics here"));
            self.wake.notify_all();
        }
    }
}
