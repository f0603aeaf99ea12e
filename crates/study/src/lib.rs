//! Scenarios, papers, policies and demonstrations, run from beginning to end: what every front end calls.
//!
//! A request goes in (a plain struct with defaults), a [`Monitor`] watches, an answer comes out, and a folder of results is written.
//! There are four kinds of requests: [`run`](run()) a scenario, [`reproduce`](reproduce()) a paper, [`demonstrate`] the policy loop,
//! and [`try_policy`].
//!
//! Nothing here prints, reads arguments or handles signals. How far the work is comes as an [`Event`] to the front end's [`Sink`], from
//! any thread; a [`Stop`] ends it between two steps; a [`Failure`] says why there is no answer. Then no folder was written, or it was
//! left as it was before.
#![forbid(unsafe_code)]

mod demo;
pub mod emu;
mod failure;
mod known;
mod monitor;
mod reproduce;
mod request;
mod run;
mod stop;
mod sweep;
pub mod table;
mod trial;

pub use demo::{Compared, Demonstrated, Estimate, Group, Turn, demonstrate};
pub use failure::Failure;
pub use known::{algorithm_facts, algorithm_names, emulated_algorithm_facts, load_policy};
pub use monitor::{Event, Monitor, Sink};
pub use reproduce::{DctcpOptions, ParityOptions, Reproduced, Request, STUDIES, Study, TconOptions, Wanted, reproduce};
pub use request::{all_cores, results_folder};
pub use run::{Backend, Done, Kept, RunRequest, Words, run};
pub use stop::Stop;
pub use trial::{TrialRequest, Tried, try_policy};
