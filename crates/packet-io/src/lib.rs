//! Packets of real hosts: reception, parsing, segmentation and joining.
//!
//! A host's packets come through a [`Tap`]: an interface whose other end is a file. Linux's TCP gives a network
//! card packets of up to 64 KB ("super-segments") and leaves it to the card to cut them, and to fill in their checksums; the
//! [`VnetHeader`] before each frame says what was left to do. [`segment`] cuts, [`Glue`] joins packets that leave
//! together, and checksums may stay partial all the way, since no physical link can damage anything.
//! [`Ethernet`] and its related types read headers in place; [`Pcap`] records packets for Wireshark.
//!
//! Where the hosts are not ours, an [`XdpSocket`] receives the packets of an interface.
//!
//! Nothing here reads a clock. Forwarding allocates nothing, and no packet, however malformed, causes a panic.

#![allow(
    unsafe_code,
    reason = "ioctls, memory shared with the kernel and what happens between fork and exec have no safe form; each block says why it is sound"
)]

mod bytes;
mod checksum;
mod glue;
mod offload;
mod owned;
mod pcap;
mod process;
mod segment;
mod tap;
mod transport;
mod urgent;
mod view;
mod vnet;
mod xdp;

pub use glue::Glue;
pub use offload::complete;
pub use owned::OwnedFrame;
pub use pcap::{Pcap, PcapOptions, PcapTotals};
pub use process::die_with_this_thread;
pub use segment::{HEADERS_BYTES_MAX, Refused, Segment, segment};
pub use tap::{READ_BYTES_MAX, Tap};
pub use transport::{Tcp, TcpFlags, Udp};
pub use urgent::Urgent;
pub use view::{Ecn, Ethernet, Ip, Ipv4, Ipv6, Mac, Tuple, protocol, set_ce, tuple};
pub use vnet::VnetHeader;
pub use vnet::{Frame, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6};
pub use xdp::{XDP_FRAME_BYTES_MAX, XDP_PIECE_BYTES_MAX, XdpSocket, XdpState};
