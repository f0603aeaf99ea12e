//! Links, queue disciplines, topologies and routing, one module each.

mod common;
mod disciplines;
mod held;
mod link;
mod pie;
mod routing;
mod shapes;
mod topology;
