//! The scenario file from outside: what is right, what is wrong, and whatever else somebody types.

mod broken;
mod common;
mod fuzz;
mod reading;
mod reference;
mod sizes;
