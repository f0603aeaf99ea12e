//! The algorithms, one by one: their equations worked out by hand, and their windows over time.

mod bbr;
mod bbr3;
mod d2tcp;
mod equations;
mod flow;
mod trajectories;
