//! Scenarios, papers, policies and demonstrations, run from beginning to end; every front end calls this.
//!
//! A request goes in (a plain struct with defaults), a [`Monitor`] observes progress, an answer comes out, and a results folder is written.
//! There are four kinds of requests: [`run`](run()) a scenario, [`reproduce`](reproduce()) a paper, [`demonstrate`] the policy loop, and
//! [`try_policy`]; [`tune()`] searches a policy's numbers. [`sweep`](sweep()) runs a scenario's runs into a dataset that outlives an
//! interruption. [`simulate`] is [`run`](run()) for a front end that wants the tables in memory; [`write`](write()) makes the folder of
//! them.
//!
//! Nothing here prints, reads arguments or handles signals. Progress arrives as an [`Event`] at the front end's [`Sink`], from any
//! thread. A [`Stop`] ends the work between two steps. A [`Failure`] says why there is no answer; then the results folder was not
//! written, or is as it was before.
#![forbid(unsafe_code)]

mod dataset;
mod demo;
mod done;
pub mod emu;
mod failure;
mod fast;
mod known;
mod mistaken;
mod monitor;
mod overview;
mod place;
mod reproduce;
mod request;
mod run;
mod slower;
mod source;
mod statistics;
mod stop;
mod sweep;
pub mod table;
mod trial;
mod tune;
mod twin;
mod unvaried;

pub use dataset::{Shipped, Sweep, sweep};
pub use demo::{Compared, Demonstrated, Estimate, Group, Turn, demonstrate};
pub use done::{Done, Kept};
pub use failure::Failure;
pub use fast::{model_tables, run_fast};
pub use known::{algorithm_names, load_policy, load_scenario, parse_policy, policy_words, read_policy, read_scenario};
pub use monitor::{Event, Monitor, Sink};
pub use overview::tables;
pub use reproduce::{DctcpOptions, ParityOptions, Reproduced, Request, STUDIES, Study, TconOptions, Wanted, reproduce};
pub use request::{Backend, RunRequest, all_cores, results_folder};
pub use run::{Batch, Words, run, simulate, write};
pub use slower::Slower;
pub use source::Source;
pub use stop::Stop;
pub use sweep::Job;
pub use trial::{TrialRequest, Tried, try_policy};
pub use tune::{Answer, Change, TuneRequest, Tuned, TunedNumber, tune};
pub use twin::{Twin, TwinError};
