//! What is read from announcements.

use super::*;
use netlink_packet_core::NetlinkHeader;
use netlink_packet_route::link::LinkMessage;

fn bytes(by: u32, message: RouteNetlinkMessage) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.port_number = by;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn changed(datagram: &[u8]) -> (usize, bool) {
    let mut changed = Changed::default();
    changed.add(datagram, Some(7));
    (changed.routes.len(), changed.more)
}

#[test]
fn routes_of_others_are_heard_and_anything_else_may_be_any_route() {
    let route = |by| bytes(by, RouteNetlinkMessage::NewRoute(RouteMessage::default()));
    let gone = bytes(0, RouteNetlinkMessage::DelRoute(RouteMessage::default()));
    let link = bytes(0, RouteNetlinkMessage::NewLink(LinkMessage::default()));
    assert_eq!(changed(&[]), (0, false));
    assert_eq!(changed(&[route(8), gone].concat()), (2, false));
    assert_eq!(changed(&[route(7), route(8)].concat()), (1, false), "its own are left out");
    assert_eq!(changed(&link), (0, true));
    // RTM_NEWNEXTHOP, which is known to no library here
    let mut nexthop = route(8);
    nexthop[4..6].copy_from_slice(&104_u16.to_ne_bytes());
    assert_eq!(changed(&[nexthop, route(8)].concat()), (1, true));
    assert_eq!(changed(&[1, 2, 3]), (0, true), "cut off");
}
