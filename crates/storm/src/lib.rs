//! The control loop in storms: real Oracles, with their lease, audit log and state files, the decisions of real agents
//! ([`agent::Life`]), real enforcers' CUEs and core ([`enforced::Cues`], [`enforcer::Enforcer`]) with packets of a few connections, and what
//! collectors send, in one process on a virtual clock. The bus loses, delays, reorders, repeats, changes and
//! forges; machines crash, lose or damage their disks, and come back with old ones; the store of the lease goes away and goes back in time.
//!
//! ```text
//! Plan (of a seed) ──▶ World: ticks of 100 ms ──▶ Net ◀──▶ oracle::Daemon, agent::Life, enforced::Cues
//!                                └──▶ Checks: what must hold, after every step ──▶ Violation
//! ```
//!
//! A [`Plan`] follows from its seed alone, and a run from its plan: the same log, byte for byte. A plan that fails is made smaller by
//! [`shrink`]: fewer faults, fewer hosts. What must hold is said at [`Invariant`].
#![forbid(unsafe_code)]

mod check;
mod enforcer;
mod host;
mod net;
mod oracles;
mod plan;
mod traffic;
mod world;

pub use check::{Invariant, Violation};
pub use plan::{Disk, Fault, Kind, Plan, found};
pub use world::{Outcome, run};

/// The smallest plan that still breaks the same invariant, as far as leaving out one part after the other finds it.
pub fn shrink(plan: &Plan, invariant: Invariant) -> Plan {
    let fails = |plan: &Plan| run(plan).violation.is_some_and(|violation| violation.invariant == invariant);
    let mut least = plan.clone();
    loop {
        let before = least.clone();
        let mut at = 0;
        while at < least.faults.len() {
            let mut fewer = least.clone();
            fewer.faults.remove(at);
            if fails(&fewer) { least = fewer } else { at += 1 }
        }
        while least.behind > 0 {
            let fewer = least.with_behind(least.behind - 1);
            if !fails(&fewer) {
                break;
            }
            least = fewer;
        }
        while least.hosts > 1 {
            let fewer = least.with_hosts(least.hosts - 1);
            if !fails(&fewer) {
                break;
            }
            least = fewer;
        }
        if least == before {
            return least;
        }
    }
}
