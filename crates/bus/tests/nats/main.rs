//! The bus between machines, over a real server with TLS and the identities of a real fleet. Skipped where there is no nats-server.

mod attacks;
mod connection;
mod members;
mod restart;
mod site;
mod talk;
