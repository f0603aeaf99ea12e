//! A fleet against the Oracle: hosts that lie, reports that come late, Oracles that take each other's place.

mod lease;
mod liars;
mod periods;
mod verdict;
