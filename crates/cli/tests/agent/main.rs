//! The agent and the Oracle as processes, on the running kernel: what they set, what they restore, also when they are killed. Only root
//! can run these tests.

mod changing;
mod faults;
mod fuzz;
mod idle;
mod lossy;
mod oracle;
mod restoring;
mod rollout;
mod setting;
mod several;
mod world;
