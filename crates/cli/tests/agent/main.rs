//! The agent and the Oracle as processes, on the running kernel: what they set, what they give back, and what becomes of it when they are
//! killed. Only root can try.

mod faults;
mod fuzz;
mod giving_back;
mod idle;
mod lossy;
mod oracle;
mod rollout;
mod setting;
mod world;
