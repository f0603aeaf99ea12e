//! The enforcer without I/O, one module for each kind of trial. Memory is counted in a program of its own (`memory.rs`).

mod abuse;
mod behaviour;
mod completion;
mod rig;
mod segments;
mod transparency;
mod window;
mod world;
