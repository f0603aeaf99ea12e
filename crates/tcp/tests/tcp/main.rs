//! The endpoint against scripts, against another endpoint, and against recorded Linux.

mod accecn;
mod compare;
mod duet;
mod golden;
mod packet_scripts;
mod packet_scripts_loss;
mod packetdrill;
mod pair_properties;
mod peer;
mod receiver;
mod recorder;
mod replay;
mod sequence_parity;
mod wire;
