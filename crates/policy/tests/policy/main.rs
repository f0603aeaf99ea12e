//! Policies from outside: what is right, what is wrong, and what is decided.

mod agent;
mod broken;
mod common;
mod comparing;
mod deciding;
mod epistles;
mod explaining;
mod expressions;
mod judging;
