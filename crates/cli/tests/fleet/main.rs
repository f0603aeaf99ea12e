//! A fleet as its operator has it: servers, Oracles and agents as processes, on machines that are network namespaces with cables between
//! them. Only root can run these tests; they are skipped where there is no nats-server.

mod certificates;
mod clocks;
mod damaged;
mod full;
mod leaders;
mod parted;
mod rotation;
mod steering;
mod world;
