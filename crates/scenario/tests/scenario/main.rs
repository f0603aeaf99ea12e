//! The scenario file: correct ones, wrong ones, and arbitrary texts.

mod broken;
mod common;
mod fuzz;
mod jobs;
mod reading;
mod reference;
mod sizes;
mod unused;
