//! A running simulation for a view: its network once, frames while it runs, its results at the end.
//!
//! ```text
//! text ─ check ─▶ Run ─ Scope::of ─▶ stage()                      what is drawn once
//!                          │  advance(to, packet-hops) ─ frame()  queues, windows, drops of the moment
//!                          └─ finish() ─▶ RunResults              the bytes that the command writes
//! ```
//!
//! No I/O, no clock, no thread: the caller says how far to run and when to look, and neither changes the results. What
//! a view gets is JSON, the same in a browser that simulates and from a server that does.
#![forbid(unsafe_code)]

mod frame;
mod outcome;
mod stage;

pub use frame::{Ends, FLOWS, Flow, Frame, LINK_FIELDS};
pub use outcome::Outcome;
pub use stage::{Link, Stage};

use net::LinkId;
use scenario::{Diagnostic, FileRef, Files, Run};
use serde::Serialize;
use sim::{SimError, Simulation};
use std::io;
use std::path::Path;
use units::Time;

/// Packet-hops after which a step ends; a step of a fast network is some microseconds long.
const STEP_HOPS: u64 = 20_000;

/// A simulation that is watched.
pub struct Scope {
    simulation: Simulation,
    run: Run,
    /// The next step's length, from the work in the last ones.
    step: Time,
    seen: frame::Seen,
}

/// A mistake in a scenario's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// No files: a scenario that names one is refused where it does.
struct NoFiles;

impl Files for NoFiles {
    fn resolve(&self, written: &str) -> FileRef {
        FileRef { written: written.to_string(), path: written.into() }
    }

    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there are no files here: use what is built in"))
    }
}

/// The runs of a scenario that is a text alone: `name` as a file would have it.
///
/// # Errors
/// All its mistakes.
pub fn check(name: &str, text: &str) -> Result<Vec<Run>, Vec<Mistake>> {
    plan::runs(name, text, &[], &NoFiles).map_err(|diagnostic| mistakes(&diagnostic))
}

/// The mistakes that a diagnostic lists.
pub fn mistakes(diagnostic: &Diagnostic) -> Vec<Mistake> {
    let of = |problem: &scenario::Located| Mistake {
        line: problem.line,
        column: problem.column,
        message: problem.message.clone(),
        help: problem.help.clone(),
    };
    diagnostic.problems().iter().map(of).collect()
}

impl Scope {
    /// Sets a run up, at time zero.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn of(run: Run) -> Result<Scope, SimError> {
        let simulation = Simulation::new(&run.scenario)?;
        let seen = frame::Seen::of(&simulation);
        Ok(Scope { simulation, step: Time::from_us(1), run, seen })
    }

    /// What is drawn once: the network, its links, what is worth a look.
    pub fn stage(&self) -> Stage {
        stage::stage(&self.run, self.simulation.topology())
    }

    /// The simulated time.
    pub fn now(&self) -> Time {
        self.simulation.now()
    }

    /// When the run ends.
    pub fn end(&self) -> Time {
        self.run.scenario.duration
    }

    /// Is it at its end?
    pub fn is_done(&self) -> bool {
        self.now() >= self.end()
    }

    /// Runs up to `to`, or until about `hops` more packet-hops are done; the work done, packet-hops.
    pub fn advance(&mut self, to: Time, hops: u64) -> u64 {
        let to = to.min(self.end());
        let began = self.simulation.packet_hops();
        let mut done = 0;
        while self.now() < to && done < hops {
            let next = self.now().saturating_add(self.step).min(to);
            self.simulation.run_to(next);
            let before = std::mem::replace(&mut done, self.simulation.packet_hops().saturating_sub(began));
            match done.saturating_sub(before) {
                few if few < STEP_HOPS / 2 => self.step = (self.step * 2).min(Time::from_secs(1)),
                many if many > STEP_HOPS * 2 => self.step = (self.step / 2).max(Time::from_ps(1)),
                _ => {}
            }
        }
        done
    }

    /// The moment, and what happened since the last frame.
    pub fn frame(&mut self) -> Frame {
        self.seen.frame(&self.simulation)
    }

    /// Runs what is left of the run, and ends it.
    pub fn finish(mut self) -> Outcome {
        self.simulation.run_to(self.run.scenario.duration);
        let Run { name, scenario, .. } = &self.run;
        let results = plan::titled(self.simulation.finish(), name, &plan::parameters(&self.run), scenario);
        outcome::outcome(&results, scenario.duration)
    }
}

/// The numbers of `n` links.
fn link_ids(n: usize) -> impl Iterator<Item = LinkId> {
    (0..n as u32).map(LinkId)
}
