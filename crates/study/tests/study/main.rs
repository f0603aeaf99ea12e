//! What a front end asks for, without one.

mod data_centers;
mod dataset;
mod ecn;
mod fast;
mod front_end;
mod pathologies;
