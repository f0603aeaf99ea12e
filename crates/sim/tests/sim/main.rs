//! Whole runs of the simulator.

mod bbr3;
mod control;
mod deadlines;
mod enforcer;
mod incast;
mod jobs;
mod prague;
mod queues;
mod rules;
mod simulation;
mod slowdown;
mod support;
mod topologies;
mod udp;
