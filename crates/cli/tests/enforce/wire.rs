//! A host's interface, for raw frames.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike as _, SockaddrStorage, bind, recv, send,
    setsockopt, socket,
};
use std::os::fd::{AsRawFd as _, OwnedFd};
use testkit::{eventually, inside};

/// Frames of several megabytes of data wait until they are read.
const BUFFER_BYTES: usize = 256 << 20;

pub struct Wire {
    fd: OwnedFd,
    pub seen: Vec<Vec<u8>>,
}

impl Wire {
    /// Of this namespace's eth0. `EthAll` sees everything, both ways; `EthIp` the IPv4 that the host's own filter has passed.
    pub fn of(namespace: &str, protocol: SockProtocol) -> Wire {
        inside(namespace, || {
            let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_NONBLOCK, protocol).expect("root may");
            setsockopt(&fd, RcvBufForce, &BUFFER_BYTES).expect("root may");
            let is_eth0 = |address: &SockaddrStorage| {
                address.family() == Some(AddressFamily::Packet) && address.as_link_addr().is_some()
            };
            let found = getifaddrs().expect("there are some").filter(|one| one.interface_name == "eth0");
            let address = found.filter_map(|one| one.address).find(is_eth0).expect("every host has it");
            bind(fd.as_raw_fd(), &address).expect("it is up");
            Wire { fd, seen: Vec::new() }
        })
    }

    pub fn send(&self, frame: &[u8]) {
        send(self.fd.as_raw_fd(), frame, MsgFlags::empty()).expect("it is up");
    }

    /// Waits for a matching frame.
    pub fn has(&mut self, wanted: impl Fn(&[u8]) -> bool) -> bool {
        eventually(|| {
            self.read();
            self.seen.iter().any(|frame| wanted(frame))
        })
    }

    /// Reads all that waits.
    pub fn read(&mut self) {
        let mut buffer = [0; 2048];
        while let Ok(n) = recv(self.fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            self.seen.push(buffer[..n].to_vec());
        }
    }
}
