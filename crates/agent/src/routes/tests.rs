//! Which routes change, how, and which are left alone.

use super::*;
use netlink_packet_route::route::{RouteCacheInfo, RouteNextHop, RouteRealm};

fn route(to: &str, metrics: &[RouteMetric]) -> RouteMessage {
    let to: Prefix = to.parse().unwrap();
    let mut route = RouteMessage::default();
    route.header.address_family = AddressFamily::Inet;
    route.header.kind = RouteType::Unicast;
    route.header.destination_prefix_length = to.bits();
    if to.bits() > 0 {
        route.attributes.push(RouteAttribute::Destination(to.address().into()));
    }
    route.attributes.push(RouteAttribute::Oif(2));
    if !metrics.is_empty() {
        route.attributes.push(RouteAttribute::Metrics(metrics.to_vec()));
    }
    route
}

fn wish(remote: Option<&str>, segments: u32) -> Wish {
    let remote = remote.map(|remote| remote.parse().unwrap());
    Wish { remote, metrics: Metrics { initial_cwnd: Some(segments), ..Metrics::default() } }
}

/// Names of the changes, and the metrics after each.
fn changes(table: &Table, wishes: &[Wish]) -> Vec<(String, bool, String)> {
    let (changes, _) = table.changes(wishes, true);
    let row = |(name, change): (String, Change)| (name, change.before.is_some(), metrics_of(&change.after));
    changes.into_iter().map(row).collect()
}

#[test]
fn a_route_is_known_again_when_its_algorithm_is_gone() {
    let wanted = |cc: &str| Metrics { cc: Some(cc.into()), initial_cwnd: Some(20), ..Metrics::default() };
    let plain = route("10.0.0.0/8", &[]);
    let own = with_metrics(plain.clone(), &wanted("ot_vegas"));
    let lock = RouteMetric::Lock(1 << RTAX_CC_ALGO);
    assert!(shows(&own, &own));
    assert!(shows(&route("10.0.0.0/8", &[RouteMetric::InitCwnd(20), lock.clone()]), &own));
    assert!(!shows(&with_metrics(plain.clone(), &wanted("cubic")), &own), "another has chosen another");
    assert!(!shows(&route("10.0.0.0/8", &[RouteMetric::InitCwnd(20)]), &own), "another has taken the lock off");
    assert!(!shows(&plain, &own));
}

#[test]
fn routes_in_a_prefix_change_and_a_wider_one_lends_its_way() {
    let table = Table::new(vec![route("0.0.0.0/0", &[]), route("10.1.0.0/16", &[RouteMetric::Mtu(1400)])]);
    let here = |to: &str| format!("{to} tos 0 priority 0");
    let found = changes(&table, &[wish(Some("10.0.0.0/8"), 20)]);
    assert_eq!(
        found,
        [
            (here("10.0.0.0/8"), false, "InitCwnd(20)".to_string()),
            (here("10.1.0.0/16"), true, "InitCwnd(20), Mtu(1400)".to_string())
        ]
    );
    let found = changes(&table, &[wish(Some("10.1.0.0/16"), 20), wish(None, 30)]);
    assert_eq!(
        found,
        [
            (here("0.0.0.0/0"), true, "InitCwnd(30)".to_string()),
            (here("10.1.0.0/16"), true, "InitCwnd(20), Mtu(1400)".to_string())
        ],
        "the first wish counts"
    );
    assert_eq!(changes(&table, &[]), []);
    assert_eq!(changes(&table, &[wish(Some("fd00::/8"), 20)]), [], "no way leads there");
}

#[test]
fn a_route_is_the_same_after_the_journal() {
    let before = route("10.1.0.0/16", &[RouteMetric::Mtu(1400), RouteMetric::Lock(4)]);
    assert_eq!(from_bytes(&to_bytes(&before)), Some(before.clone()));
    let all = Metrics {
        initial_cwnd: Some(20),
        rto_min_ms: Some(2),
        ecn: true,
        cc: Some("cubic".into()),
        window: Some(9000),
    };
    let after = with_metrics(before, &all);
    assert_eq!(from_bytes(&to_bytes(&after)).as_ref(), Some(&after));
    // the MTU's lock stays: 4 + 2^13 + 2^16
    assert_eq!(
        metrics_of(&after),
        "CcAlgo(\"cubic\"), Features(1), InitCwnd(20), Lock(73732), Mtu(1400), RtoMin(2), Window(9000)"
    );
}

#[test]
fn what_could_not_be_put_back_is_left_alone_and_that_is_said_in_a_line() {
    let twice = |to: &str| {
        vec![route(to, &[]), with(route(to, &[]), RouteAttribute::Realm(RouteRealm { source: 0, destination: 1 }))]
    };
    let table = Table::new([twice("10.0.0.0/8"), twice("10.1.0.0/16"), vec![route("10.2.0.0/16", &[])]].concat());
    let (changes, notes) = table.changes(&[wish(None, 20)], true);
    assert_eq!(changes.len(), 1);
    let named = "(10.0.0.0/8 tos 0 priority 0; 10.1.0.0/16 tos 0 priority 0)";
    let rest = "new connections there get from BPF what it can set";
    assert_eq!(notes, [format!("2 routes that could not be restored exactly left unchanged {named}: {rest}")]);
    assert!(table.changes(&[wish(Some("10.2.0.0/16"), 20)], true).1.is_empty(), "they are none of its business");
    assert!(table.changes(&[], true).1.is_empty());
    assert_eq!(table.initial_windows(None).1, 3);
}

fn with(mut route: RouteMessage, attribute: RouteAttribute) -> RouteMessage {
    route.attributes.push(attribute);
    route
}

/// A route of IPv6.
fn route6(to: &str) -> RouteMessage {
    let mut route = route(to, &[]);
    route.header.address_family = AddressFamily::Inet6;
    route
}

#[test]
fn a_way_is_taken_from_the_longest_prefix_and_of_these_from_the_lowest_priority_number() {
    let via = |interface: u32, priority: u32, to: &str| {
        let mut route = with(route(to, &[]), RouteAttribute::Priority(priority));
        route.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Oif(_)));
        with(route, RouteAttribute::Oif(interface))
    };
    let table = Table::new(vec![via(1, 0, "0.0.0.0/0"), via(2, 200, "10.0.0.0/8"), via(3, 100, "10.0.0.0/8")]);
    let (changes, _) = table.changes(&[wish(Some("10.1.0.0/16"), 20)], true);
    let (name, change) = changes.iter().next().expect("a route is added");
    assert_eq!((changes.len(), name.as_str()), (1, "10.1.0.0/16 tos 0 priority 100"));
    assert!(change.before.is_none() && change.after.attributes.contains(&RouteAttribute::Oif(3)), "{change:?}");
    assert_eq!(destination(&change.after), Some("10.1.0.0/16".parse().unwrap()));
}

#[test]
fn a_wish_for_all_is_for_both_families_and_one_for_a_prefix_for_its_own() {
    let table = Table::new(vec![route("0.0.0.0/0", &[]), route6("::/0"), route6("fd98::/16")]);
    let names = |wishes: &[Wish]| changes(&table, wishes).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    let here = |to: &str| format!("{to} tos 0 priority 0");
    assert_eq!(names(&[wish(None, 20)]), ["0.0.0.0/0", "::/0", "fd98::/16"].map(here));
    assert_eq!(names(&[wish(Some("fd98:1::/32"), 20)]), [here("fd98:1::/32")]);
    assert_eq!(names(&[wish(Some("10.0.0.0/8"), 20)]), [here("10.0.0.0/8")]);
}

fn special(to: &str, kind: RouteType) -> RouteMessage {
    let mut route = route(to, &[]);
    route.header.kind = kind;
    route
}

#[test]
fn link_local_and_multicast_routes_are_left_alone_and_so_are_those_that_tcp_does_not_take() {
    let all = vec![
        route6("fe80::/64"),
        route6("ff00::/8"),
        route("169.254.0.0/16", &[]),
        route("224.0.0.0/4", &[]),
        special("10.6.0.0/16", RouteType::Unreachable),
        special("10.7.0.0/16", RouteType::BlackHole),
        route("10.9.0.0/16", &[]),
    ];
    let table = Table::new(all);
    let (changes, notes) = table.changes(&[wish(None, 20)], true);
    assert_eq!(changes.keys().map(String::as_str).collect::<Vec<_>>(), ["10.9.0.0/16 tos 0 priority 0"]);
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn a_route_of_a_nexthop_object_is_replaced_by_one_of_the_same_number() {
    let object = with(route("10.8.0.0/16", &[]), RouteAttribute::NhId(5));
    let table = Table::new(vec![object]);
    let (changes, notes) = table.changes(&[wish(None, 20)], true);
    let change = &changes["10.8.0.0/16 tos 0 priority 0"];
    // the kernel refuses a gateway or an interface beside the number
    for route in [change.before.as_ref().unwrap(), &change.after] {
        assert!(route.attributes.contains(&RouteAttribute::NhId(5)), "{route:?}");
        assert!(!route.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::Oif(_))), "{route:?}");
    }
    assert_eq!((metrics_of(&change.after).as_str(), notes.len()), ("InitCwnd(20)", 0));
}

#[test]
fn no_route_is_added_where_it_would_lead_elsewhere_than_before() {
    let added = |more: RouteMessage, rules: &[RuleMessage]| {
        let mut table = Table::new(vec![route("0.0.0.0/0", &[]), more]);
        table.ruled(rules);
        let (changes, notes) = table.changes(&[wish(Some("10.7.1.0/24"), 20)], true);
        (changes.len(), notes.concat())
    };
    let why = |why: &str| (0, format!("no route to 10.7.1.0/24 is added: {why}"));
    assert_eq!(added(route("10.9.0.0/16", &[]), &[]).0, 1);
    assert_eq!(added(special("10.7.0.0/16", RouteType::BlackHole), &[]), why("packets do not get there"));
    let last = with(special("0.0.0.0/0", RouteType::Unreachable), RouteAttribute::Priority(9));
    assert_eq!(added(last, &[]).0, 1, "the default route comes before it");
    // as of WireGuard: ip rule add table main suppress_prefixlength 0
    let suppressing = |bits: u32| {
        let mut rule = RuleMessage::default();
        (rule.header.action, rule.header.table) = (RuleAction::ToTable, 254);
        rule.attributes = vec![RuleAttribute::Table(254), RuleAttribute::SuppressPrefixLen(bits)];
        rule
    };
    let elsewhere = "a rule sends packets elsewhere by the length of a route's prefix";
    assert_eq!(added(route("10.9.0.0/16", &[]), &[suppressing(0)]), why(elsewhere));
    assert_eq!(added(route("10.9.0.0/16", &[]), &[suppressing(u32::MAX)]).0, 1, "none");
}

#[test]
fn tables_to_which_rules_lead_are_named() {
    let rule = |table: u32, more: &[RuleAttribute]| {
        let mut rule = RuleMessage::default();
        rule.header.action = RuleAction::ToTable;
        rule.attributes = [&[RuleAttribute::Table(table)], more].concat();
        rule
    };
    let said = |rules: &[RuleMessage]| {
        let mut table = Table::new(vec![route("10.0.0.0/8", &[])]);
        table.ruled(rules);
        table.changes(&[wish(None, 20)], false).1
    };
    assert_eq!(said(&[255, 254, 253].map(|table| rule(table, &[]))), Vec::<String>::new());
    let both = [rule(100, &[]), rule(0, &[RuleAttribute::L3MDev(true)])];
    assert_eq!(said(&both), ["rules lead to tables besides main (100, those of VRFs): connections there are not set"]);
}

#[test]
fn a_route_that_has_its_metrics_already_does_not_change() {
    let table = Table::new(vec![route("10.0.0.0/8", &[RouteMetric::InitCwnd(20), RouteMetric::Mtu(1400)])]);
    assert_eq!(changes(&table, &[wish(None, 20)]), []);
    assert_eq!(changes(&table, &[wish(None, 21)]).len(), 1);
}

#[test]
fn what_was_changed_is_put_back_or_taken_away() {
    let (before, added) = ("10.0.0.0/8 tos 0 priority 0", "10.1.0.0/16 tos 0 priority 0");
    let mut table = Table::new(vec![route("10.0.0.0/8", &[RouteMetric::InitCwnd(20)]), route("10.1.0.0/16", &[])]);
    table.put_back(before, Some(route("10.0.0.0/8", &[])));
    table.put_back(added, None);
    assert_eq!(table.route(before).map(metrics_of), Some(String::new()));
    assert!(table.route(added).is_none());
}

#[test]
fn initial_windows_are_those_of_the_routes_that_a_rule_is_for() {
    let table = Table::new(vec![
        route("0.0.0.0/0", &[RouteMetric::InitCwnd(20)]),
        route("10.1.0.0/16", &[RouteMetric::InitCwnd(30)]),
        route("10.2.0.0/16", &[RouteMetric::Mtu(1400)]),
    ]);
    let windows = |remote: Option<&str>| {
        let (windows, total) = table.initial_windows(remote.map(|remote| remote.parse().unwrap()));
        (windows.into_iter().collect::<Vec<_>>(), total)
    };
    assert_eq!(windows(None), (vec![(20, 1), (30, 1)], 3));
    assert_eq!(windows(Some("10.0.0.0/8")), (vec![(30, 1)], 2));
}

#[test]
fn what_the_kernel_adds_to_a_route_by_itself_is_not_written_back() {
    let mut seen = route("10.0.0.0/8", &[]);
    seen.header.flags = RouteFlags::Onlink | RouteFlags::Linkdown;
    let table = Table::new(vec![seen]);
    let kept = table.route("10.0.0.0/8 tos 0 priority 0").expect("it is there");
    assert_eq!(kept.header.flags, RouteFlags::Onlink);
}

fn lifetime(seconds: u32) -> RouteAttribute {
    let mut info = RouteCacheInfo::parse(&[0; 32]).unwrap();
    info.expires = seconds * 100;
    RouteAttribute::CacheInfo(info)
}

fn of(protocol: RouteProtocol, mut route: RouteMessage) -> RouteMessage {
    route.header.protocol = protocol;
    route
}

#[test]
fn what_the_kernel_made_or_will_end_is_not_replaced_and_that_is_said_in_a_line() {
    let table = Table::new(vec![
        of(RouteProtocol::Ra, with(route6("::/0"), lifetime(1800))),
        of(RouteProtocol::Kernel, with(route6("fd09::/64"), lifetime(3600))),
        of(RouteProtocol::Kernel, route("10.0.0.0/24", &[])),
        with(route6("fd10::/64"), lifetime(900)),
        of(RouteProtocol::Static, with(route("10.9.0.0/16", &[]), lifetime(0))),
    ]);
    assert_eq!(
        changes(&table, &[wish(None, 20)]).iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
        ["10.9.0.0/16 tos 0 priority 0"]
    );
    let said = |by_bpf| table.changes(&[wish(None, 20)], by_bpf).1;
    let named = "4 routes of the kernel or with a lifetime left unchanged (10.0.0.0/24 tos 0 priority 0; ::/0 tos 0 priority 0; \
                 fd09::/64 tos 0 priority 0; ...)";
    assert_eq!(said(true), [format!("{named}: new connections there get from BPF what it can set")]);
    assert_eq!(said(false), [format!("{named}: connections there are not set")]);
    assert!(table.changes(&[], true).1.is_empty());
}

#[test]
fn a_route_with_a_lifetime_lends_no_way_and_one_of_the_kernel_does() {
    let table = Table::new(vec![
        of(RouteProtocol::Ra, with(route6("::/0"), lifetime(1800))),
        of(RouteProtocol::Kernel, route("10.0.0.0/8", &[])),
    ]);
    let wishes = [wish(Some("fd98::/16"), 20), wish(Some("10.1.0.0/16"), 20)];
    let (changes, notes) = table.changes(&wishes, true);
    let added: Vec<_> =
        changes.values().map(|change| (destination(&change.after), change.after.header.protocol)).collect();
    assert_eq!(added, [(Some("10.1.0.0/16".parse().unwrap()), RouteProtocol::Static)], "it is not the kernel's");
    assert_eq!(notes, ["no route to fd98::/16 is added: the one that leads there has a lifetime"]);
}

#[test]
fn a_next_hop_whose_link_has_changed_its_state_is_the_same_next_hop() {
    let through = |flags: RouteNextHopFlags| {
        let mut hop = RouteNextHop::default();
        (hop.interface_index, hop.flags) = (3, flags);
        with(route("10.0.0.0/8", &[]), RouteAttribute::MultiPath(vec![hop]))
    };
    let up = through(RouteNextHopFlags::Onlink);
    let down = through(RouteNextHopFlags::all());
    let name = "10.0.0.0/8 tos 0 priority 0";
    let in_table = |route: &RouteMessage| Table::new(vec![route.clone()]).route(name).cloned();
    assert_eq!(in_table(&down), Some(up.clone()), "as it is sent, and compared");
    // a journal of an earlier version
    assert_eq!(from_bytes(&to_bytes(&down)), Some(up));
}
