//! The routes of the calling thread's network namespace (rtnetlink(7)), one request at a time.

use netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{RouteHeader, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;

/// The routes, of the namespace in which this was opened.
pub struct RoutingTable(Netlink);

impl RoutingTable {
    /// Opens it.
    pub fn open() -> io::Result<RoutingTable> {
        Netlink::open().map(RoutingTable)
    }

    /// The routes of the main table, of one family.
    pub fn routes(&mut self, family: AddressFamily) -> io::Result<Vec<RouteMessage>> {
        let mut asked = RouteMessage::default();
        asked.header.address_family = family;
        asked.header.table = RouteHeader::RT_TABLE_MAIN;
        let all = self.0.ask(NLM_F_DUMP, RouteNetlinkMessage::GetRoute(asked))?;
        let route = |message| match message {
            // kernels before 4.20 dump all tables
            RouteNetlinkMessage::NewRoute(route) if route.header.table == RouteHeader::RT_TABLE_MAIN => Some(route),
            _ => None,
        };
        Ok(all.into_iter().filter_map(route).collect())
    }

    /// Replaces the route with the same destination.
    pub fn replace(&mut self, route: RouteMessage) -> io::Result<()> {
        self.0.ask(NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewRoute(route)).map(|_| ())
    }

    /// Adds a route where there is none with its destination.
    pub fn add(&mut self, route: RouteMessage) -> io::Result<()> {
        self.0.ask(NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewRoute(route)).map(|_| ())
    }

    /// Deletes a route.
    pub fn remove(&mut self, route: RouteMessage) -> io::Result<()> {
        self.0.ask(0, RouteNetlinkMessage::DelRoute(route)).map(|_| ())
    }
}
