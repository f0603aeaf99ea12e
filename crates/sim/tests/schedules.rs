//! What the threads of one run share, under random schedules of a scheduler that decides at each access who goes on.
//!
//! The sources are those of the simulator, with shuttle's atomics and mutex in place of the standard library's.

#[path = "../src/parts/barrier.rs"]
mod barrier;
#[path = "../src/parts/mail.rs"]
mod mail;

mod sync {
    pub use shuttle::hint::spin_loop as spin;
    pub use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub use shuttle::sync::{Condvar, Mutex, RwLock};

    /// Few, so that both ways to wait are taken.
    pub const SPINS: u32 = 2;
}

use barrier::Barrier;
use mail::{Mail, Outbox};
use shuttle::sync::Arc;
use shuttle::thread;
use sync::{AtomicUsize, Ordering};

const THREADS: usize = 3;
const WINDOWS: usize = 4;
const SCHEDULES: usize = 2000;

/// Windows as of a run: each thread takes what the last window has brought, and sends to all others.
fn windows() {
    let barrier = Arc::new(Barrier::new(THREADS));
    let mail = Arc::new(Mail::new(THREADS));
    let turn = Arc::new(AtomicUsize::new(0));
    let threads = (0..THREADS).map(|thread| {
        let (barrier, mail, turn) = (barrier.clone(), mail.clone(), turn.clone());
        thread::spawn(move || {
            let mut outbox = Outbox::new(THREADS);
            for window in 0..WINDOWS {
                let now = turn.load(Ordering::Acquire);
                let others = || (0..THREADS).filter(|other| *other != thread);
                let mut taken = Vec::new();
                mail.take(now, thread, |letter| taken.push(*letter));
                let expected: Vec<[usize; 3]> = match window {
                    0 => Vec::new(),
                    _ => others().flat_map(|from| [[from, window - 1, 0], [from, window - 1, 1]]).collect(),
                };
                assert_eq!(taken, expected, "what the last window has brought, by sender");
                for number in 0..2 {
                    others().rev().for_each(|to| outbox.push(to as u32, [thread, window, number]));
                }
                assert!(mail.send(now + 1, thread, &mut outbox));
                assert_eq!(outbox.iter().count(), 0);
                assert!(barrier.wait(|| turn.store(now + 1, Ordering::Release)));
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    for to in 0..THREADS {
        let mut left = Vec::new();
        mail.take(WINDOWS, to, |[_, window, _]| left.push(*window));
        assert_eq!(left, [WINDOWS - 1; 2 * (THREADS - 1)], "only what the last window has sent is left");
    }
}

#[test]
fn each_window_brings_what_the_last_has_sent() {
    shuttle::check_random(windows, SCHEDULES);
}

#[test]
fn one_thread_alone_acts_between_two_windows() {
    let run = || {
        let barrier = Arc::new(Barrier::new(THREADS));
        let (inside, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = (0..THREADS).map(|_| {
            let (barrier, inside, turns) = (barrier.clone(), inside.clone(), turns.clone());
            thread::spawn(move || {
                for window in 0..WINDOWS {
                    inside.fetch_add(1, Ordering::AcqRel);
                    assert_eq!(turns.load(Ordering::Acquire), window);
                    inside.fetch_sub(1, Ordering::AcqRel);
                    barrier.wait(|| {
                        assert_eq!(inside.load(Ordering::Acquire), 0, "the others wait");
                        turns.fetch_add(1, Ordering::AcqRel);
                    });
                }
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(turns.load(Ordering::Acquire), WINDOWS);
    };
    shuttle::check_random(run, SCHEDULES);
}

#[test]
fn nobody_waits_for_a_thread_that_has_failed() {
    let run = || {
        let barrier = Arc::new(Barrier::new(2));
        let waiting = barrier.clone();
        let thread = thread::spawn(move || waiting.wait(|| unreachable!("not all have come")));
        barrier.break_up();
        assert!(!thread.join().unwrap());
    };
    shuttle::check_random(run, SCHEDULES);
}
