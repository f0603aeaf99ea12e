//! Interfaces, addresses and routes, over rtnetlink, one request at a time.

use netlink::Netlink;
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use packet_io::Mac;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// The loopback interface's number in every namespace.
pub const LOOPBACK: u32 = 1;

// linux/pkt_sched.h
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// A namespace's interfaces, addresses and routes.
pub struct Network(Netlink);

impl Network {
    /// Those of the calling thread's namespace.
    pub fn open() -> io::Result<Network> {
        Netlink::open().map(Network)
    }

    /// Changes an interface, and brings it up.
    pub fn set_link_up(&mut self, index: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = attributes;
        self.change(0, RouteNetlinkMessage::SetLink(message))
    }

    /// All attributes of an interface.
    pub fn link(&mut self, index: u32) -> io::Result<Vec<LinkAttribute>> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        match self.0.ask(0, RouteNetlinkMessage::GetLink(message))?.pop() {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link.attributes),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }

    /// Gives an interface an address, without the route that usually comes with it.
    pub fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix_len: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_len;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(IpAddr::V4(address)),
            AddressAttribute::Address(IpAddr::V4(address)),
            AddressAttribute::Flags(AddressFlags::Noprefixroute),
        ];
        self.change(NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewAddress(message))
    }

    /// Sets the host's on-link route to its subnet, with the metrics that TCP is to read from it; replaces an existing one.
    pub fn set_route(
        &mut self,
        index: u32,
        (within, prefix_len): (Ipv4Addr, u8),
        address: Ipv4Addr,
        metrics: &[RouteMetric],
    ) -> io::Result<()> {
        let subnet = Ipv4Addr::from_bits(within.to_bits() & (u32::MAX << (32 - u32::from(prefix_len))));
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            destination_prefix_length: prefix_len,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(subnet)),
            RouteAttribute::PrefSource(RouteAddress::Inet(address)),
            RouteAttribute::Oif(index),
        ];
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics.to_vec()));
        }
        self.change(NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewRoute(message))
    }

    /// Sets a permanent neighbour entry.
    pub fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        self.change(NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewNeighbour(message))
    }

    /// Limits an interface to `rate` bytes of frames a second, after a pause at most `burst` bytes at once; up to `limit` bytes
    /// wait for that in the host (a token bucket, `tc-tbf(8)`).
    pub fn set_card_rate(&mut self, index: u32, rate: u32, burst: u32, limit: u32) -> io::Result<()> {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle::ROOT;
        let option = |kind: u16, value: Vec<u8>| TcOption::Other(DefaultNla::new(kind, value));
        message.attributes = vec![
            TcAttribute::Kind("tbf".to_string()),
            TcAttribute::Options(vec![
                option(TCA_TBF_PARMS, token_bucket(rate, limit)),
                option(TCA_TBF_BURST, burst.to_ne_bytes().to_vec()),
            ]),
        ];
        self.change(NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewQueueDiscipline(message))
    }

    fn change(&mut self, flags: u16, message: RouteNetlinkMessage) -> io::Result<()> {
        self.0.ask(flags, message).map(|_| ())
    }
}

/// `struct tc_tbf_qopt`: twice `struct tc_ratespec`, limit, and two sizes that have attributes of their own.
fn token_bucket(rate: u32, limit: u32) -> Vec<u8> {
    // cell_log, linklayer, overhead, cell_align, mpu; then the rate
    let mut bytes = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    bytes.extend(rate.to_ne_bytes());
    bytes.extend([0; 12]);
    bytes.extend(limit.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}
