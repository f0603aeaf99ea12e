//! The routes of the calling thread's network namespace (rtnetlink(7)), one request at a time.

use netlink::{Dump, Netlink};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteHeader, RouteMessage};
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;

/// The routes and the rules that lead to them, of the namespace in which this was opened.
#[derive(Debug)]
pub struct RoutingTable(Netlink);

impl RoutingTable {
    /// Opens it.
    pub fn open() -> io::Result<RoutingTable> {
        Netlink::open().map(RoutingTable)
    }

    /// The routes of the main table, of one family.
    pub fn routes(&mut self, family: AddressFamily) -> io::Result<Dump<RouteMessage>> {
        let mut asked = RouteMessage::default();
        asked.header.address_family = family;
        asked.header.table = RouteHeader::RT_TABLE_MAIN;
        let dump = self.0.dump(&RouteNetlinkMessage::GetRoute(asked))?;
        // kernels before 4.20 dump all tables
        let messages = dump.messages.into_iter().filter_map(of_main).collect();
        Ok(Dump { messages, is_whole: dump.is_whole })
    }

    /// The rules by which packets take a table, of one family.
    pub fn rules(&mut self, family: AddressFamily) -> io::Result<Vec<RuleMessage>> {
        let mut asked = RuleMessage::default();
        asked.header.family = family;
        let all = self.0.ask(NLM_F_DUMP, RouteNetlinkMessage::GetRule(asked))?;
        let rule = |message| match message {
            RouteNetlinkMessage::NewRule(rule) => Some(rule),
            _ => None,
        };
        Ok(all.into_iter().filter_map(rule).collect())
    }

    /// The socket's number in the kernel, which names it to those who hear of changes.
    pub fn port(&self) -> u32 {
        self.0.port()
    }

    /// The route by which packets to the destination of `to` go; `None`: there is none.
    ///
    /// # Errors
    /// The kernel's; also if the route is in another table.
    pub fn matching(&mut self, to: &RouteMessage) -> io::Result<Option<RouteMessage>> {
        let mut asked = RouteMessage::default();
        asked.header.address_family = to.header.address_family;
        asked.header.destination_prefix_length = if to.header.address_family == AddressFamily::Inet { 32 } else { 128 };
        // the route itself, not what the kernel makes of it for one packet
        asked.header.flags = RouteFlags::FibMatch;
        let is_destination = |attribute: &&RouteAttribute| matches!(attribute, RouteAttribute::Destination(_));
        asked.attributes.extend(to.attributes.iter().find(is_destination).cloned());
        match self.0.ask(0, RouteNetlinkMessage::GetRoute(asked)) {
            Ok(found) => found.into_iter().find_map(of_main).map(Some).ok_or(io::ErrorKind::Unsupported.into()),
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the route with the same destination. If it has gone meanwhile, that is an error: it must not come back by us.
    pub fn replace(&mut self, route: RouteMessage) -> io::Result<()> {
        self.0.ask(NLM_F_REPLACE, RouteNetlinkMessage::NewRoute(sent(route))).map(|_| ())
    }

    /// Adds a route where there is none with its destination.
    pub fn add(&mut self, route: RouteMessage) -> io::Result<()> {
        self.0.ask(NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewRoute(sent(route))).map(|_| ())
    }

    /// Deletes a route.
    pub fn remove(&mut self, route: RouteMessage) -> io::Result<()> {
        self.0.ask(0, RouteNetlinkMessage::DelRoute(route)).map(|_| ())
    }
}

/// As it is sent. For a route of a nexthop object without metrics, Linux takes any other route's description of that object, metrics included
/// (`fib_find_info_nh`); an empty list of metrics is one of its own.
fn sent(mut route: RouteMessage) -> RouteMessage {
    let has = |is: fn(&RouteAttribute) -> bool| route.attributes.iter().any(is);
    if has(|attribute| matches!(attribute, RouteAttribute::NhId(_)))
        && !has(|attribute| matches!(attribute, RouteAttribute::Metrics(_)))
    {
        route.attributes.push(RouteAttribute::Metrics(Vec::new()));
    }
    route
}

fn of_main(message: RouteNetlinkMessage) -> Option<RouteMessage> {
    match message {
        RouteNetlinkMessage::NewRoute(route) if is_of_main(&route) => Some(route),
        _ => None,
    }
}

/// Whether the route is of the main table.
pub fn is_of_main(route: &RouteMessage) -> bool {
    route.header.table == RouteHeader::RT_TABLE_MAIN
}
