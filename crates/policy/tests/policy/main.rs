//! Policies from outside: what is right, what is wrong, and what is decided.

mod agent;
mod broken;
mod common;
mod deciding;
mod epistles;
mod explaining;
mod expressions;
mod judging;
