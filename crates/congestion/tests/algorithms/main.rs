//! The algorithms, one by one: their equations by hand, and the course of a window.

mod bbr;
mod equations;
mod flow;
mod trajectories;
