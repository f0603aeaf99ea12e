//! What changes in a namespace's network, as the kernel tells it.

#[cfg(test)]
mod tests;

use netlink_packet_core::{NetlinkBuffer, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// `RTNLGRP_*` (linux/rtnetlink.h), a bit each: links, and of both families addresses, routes and rules; nexthop objects.
const GROUPS: u32 = group(1)
    | group(5) | group(7) | group(8) // IPv4
    | group(9) | group(11) | group(19) // IPv6
    | group(32);

const fn group(number: u32) -> u32 {
    1 << (number - 1)
}

/// The kernel's announcements, of the network namespace in which this was opened.
#[derive(Debug)]
pub struct Changes {
    socket: Socket,
}

/// What has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Routes that came, were replaced, or went.
    pub routes: Vec<RouteMessage>,
    /// Something else has changed, or more than the kernel could announce: any route may be another one. IPv4's go without a word with
    /// their link or their address.
    pub more: bool,
}

impl Changes {
    /// Listens from now on.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Changes> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_non_blocking(true)?;
        socket.bind(&SocketAddr::new(0, GROUPS))?;
        Ok(Changes { socket })
    }

    /// What has changed since the last call, without what the socket of number `own` has changed. Does not wait.
    pub fn take(&mut self, own: Option<u32>) -> Changed {
        let mut changed = Changed::default();
        loop {
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => changed.add(&datagram, own),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return changed,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // ENOBUFS: the kernel has thrown announcements away; the next call finds those that are left
                Err(_) => {
                    changed.more = true;
                    return changed;
                }
            }
        }
    }
}

impl Changed {
    /// Whether nothing has.
    pub fn is_nothing(&self) -> bool {
        self.routes.is_empty() && !self.more
    }

    fn add(&mut self, datagram: &[u8], own: Option<u32>) {
        let mut rest = datagram;
        while !rest.is_empty() {
            let Ok(buffer) = NetlinkBuffer::new_checked(rest) else {
                self.more = true;
                return;
            };
            let (length, by) = (buffer.length() as usize, buffer.port_number());
            // this one is unknown if the library does not read it, such as those of nexthop objects
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            if own == Some(by) {
                continue;
            }
            match message.map(|message| message.payload) {
                Ok(NetlinkPayload::InnerMessage(
                    RouteNetlinkMessage::NewRoute(route) | RouteNetlinkMessage::DelRoute(route),
                )) => self.routes.push(route),
                _ => self.more = true,
            }
        }
    }
}
