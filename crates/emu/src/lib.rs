//! The emulator: the network model on the wall clock, with real Linux hosts in network namespaces attached.
#![forbid(unsafe_code)]
