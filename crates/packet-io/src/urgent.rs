//! Short work for which packets wait.

use nix::libc;

/// The lowest of the real-time priorities: above all programs without one, below all others.
const PRIORITY: libc::c_int = 1;

/// While this lives, the thread that began it runs before every program of normal priority (SCHED_FIFO), so that its work takes no longer
/// than its instructions do. Start no thread meanwhile: it would have the same priority. Without CAP_SYS_NICE, or for a thread that has a
/// real-time priority of its own, nothing changes.
#[derive(Debug)]
#[must_use]
pub struct Urgent {
    is_raised: bool,
}

impl Urgent {
    /// Raises this thread.
    pub fn begin() -> Urgent {
        // SAFETY: the call takes a number, 0 for this thread, and returns one.
        let policy = unsafe { libc::sched_getscheduler(0) };
        let is_normal = policy == libc::SCHED_OTHER;
        Urgent { is_raised: is_normal && schedule(libc::SCHED_FIFO, PRIORITY) }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if self.is_raised {
            schedule(libc::SCHED_OTHER, 0);
        }
    }
}

/// Returns whether this thread is scheduled so now.
fn schedule(policy: libc::c_int, sched_priority: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the kernel reads the structure during the call, and it lives longer.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: as above.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_is_raised_while_it_is_urgent() {
        assert_eq!(policy(), libc::SCHED_OTHER);
        let urgent = Urgent::begin();
        if !urgent.is_raised {
            println!("skipped: this process may not raise its priority");
            return;
        }
        assert_eq!(policy(), libc::SCHED_FIFO);
        drop(Urgent::begin());
        assert_eq!(policy(), libc::SCHED_FIFO, "the one that raised it lowers it");
        drop(urgent);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
