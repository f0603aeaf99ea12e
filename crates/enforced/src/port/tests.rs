//! Between which interfaces an enforcer may stand, by what the kernel says of them.

use super::*;
use netlink_packet_route::link::LinkHeader;

fn interface(index: u32, name: &str, controller: Option<u32>) -> Interface {
    let address = Some([2, 0, 0, 0, 0, index as u8]);
    Interface { index, name: name.to_string(), mtu: 1500, queues: 1, address, controller, ..Interface::default() }
}

fn bridge(index: u32, name: &str) -> Interface {
    Interface { is_bridge: true, ..interface(index, name, None) }
}

fn tap(index: u32, name: &str, controller: Option<u32>) -> Interface {
    Interface { is_tap: true, ..interface(index, name, controller) }
}

/// Why these interfaces cannot be used.
fn refused(all: Vec<Interface>) -> String {
    Place::among(all, "a", "b").err().expect("it is refused")
}

#[test]
fn two_ports_of_a_bridge_are_a_place_and_the_machines_addresses_pass_it_by() {
    let all =
        vec![bridge(1, "br0"), interface(2, "a", Some(1)), interface(3, "b", Some(1)), interface(4, "eth9", None)];
    let place = Place::among(all, "a", "b").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(place.to_string(), "a and b of the bridge br0");
    assert_eq!(place.interfaces.iter().map(|one| one.index).collect::<Vec<_>>(), [2, 3]);
    // those of both ports and the bridge
    assert_eq!(place.own.iter().map(|address| address[5]).collect::<Vec<_>>(), [2, 3, 1]);
}

#[test]
fn two_taps_outside_bridges_are_a_place_without_one() {
    let place =
        Place::among(vec![tap(2, "a", None), tap(3, "b", None)], "a", "b").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((place.bridge.as_deref(), place.own.len()), (None, 0));
    assert_eq!(place.to_string(), "a and b");
}

#[test]
fn interfaces_that_are_no_place_are_refused_with_what_to_do() {
    assert_eq!(Place::find("a", "a").err().as_deref(), Some("--between takes two different interfaces; both are a"));
    assert_eq!(refused(vec![interface(2, "a", None)]), "there is no interface `b` here");
    let plain = refused(vec![interface(2, "a", None), interface(3, "b", None)]);
    assert!(plain.starts_with("a is not a port of a bridge") && plain.contains("ip link set a master br0"), "{plain}");
    let one = refused(vec![bridge(1, "br0"), interface(2, "a", Some(1)), interface(3, "b", None)]);
    assert!(one.starts_with("b is not a port of a bridge"), "{one}");
    // its master is no bridge, such as a bond
    let bond = refused(vec![interface(1, "bond0", None), interface(2, "a", Some(1)), interface(3, "b", Some(1))]);
    assert!(bond.starts_with("a is not a port of a bridge"), "{bond}");
    let two = vec![bridge(1, "br0"), bridge(5, "br1"), interface(2, "a", Some(1)), interface(3, "b", Some(5))];
    assert_eq!(refused(two), "a and b are ports of two bridges; both must be in one");
    let three =
        vec![bridge(1, "br0"), interface(2, "a", Some(1)), interface(3, "b", Some(1)), interface(4, "c", Some(1))];
    assert!(refused(three).starts_with("c is a third port of br0"));
}

#[test]
fn a_tap_of_a_virtual_machine_is_refused_with_a_way_that_works() {
    let lone = refused(vec![bridge(1, "br0"), tap(2, "a", None), interface(3, "b", Some(1))]);
    assert_eq!(lone, "a is a TAP outside any bridge; use two such TAPs, or two ports of a bridge");
    let lone = refused(vec![bridge(1, "br0"), interface(2, "a", Some(1)), tap(3, "b", None)]);
    assert!(lone.starts_with("b is a TAP outside any bridge"), "{lone}");
    let vm = refused(vec![bridge(1, "vmbr"), interface(2, "a", Some(1)), tap(3, "b", Some(1))]);
    assert!(vm.starts_with("b is a virtual machine's TAP"), "{vm}");
    assert!(vm.contains("ip link set to-br1 master vmbr up") && vm.ends_with("and name vms instead of b"), "{vm}");
}

#[test]
fn an_interface_is_what_the_kernel_says_it_is() {
    let link = |kind: InfoKind, layer: LinkLayerType| {
        let mut header = LinkHeader::default();
        (header.index, header.link_layer_type) = (7, layer);
        let mut message = LinkMessage::default();
        message.header = header;
        message.attributes = vec![
            LinkAttribute::IfName("x0".to_string()),
            LinkAttribute::Mtu(9000),
            LinkAttribute::NumRxQueues(4),
            LinkAttribute::Address(vec![2, 0, 0, 0, 0, 9]),
            LinkAttribute::Controller(3),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)]),
        ];
        Interface::of(&message)
    };
    let veth = link(InfoKind::Veth, LinkLayerType::Ether);
    assert_eq!((veth.index, veth.name.as_str(), veth.mtu, veth.queues), (7, "x0", 9000, 4));
    assert_eq!((veth.address, veth.controller), (Some([2, 0, 0, 0, 0, 9]), Some(3)));
    assert!(veth.local && !veth.is_bridge && !veth.is_tap && veth.is_jumbo());
    assert!(link(InfoKind::Bridge, LinkLayerType::Ether).is_bridge);
    let (tap, tun) = (link(InfoKind::Tun, LinkLayerType::Ether), link(InfoKind::Tun, LinkLayerType::None));
    assert!(tap.is_tap && !tun.is_tap, "a TUN has no Ethernet header");
    // a frame of an MTU of 1500 has 22 bytes more
    let plain = interface(1, "a", None);
    assert_eq!((plain.longest(), plain.is_jumbo()), (1522, false));
}

#[test]
fn what_has_changed_at_an_interface_ends_its_enforcer_with_a_reason() {
    let all = |third: Option<Interface>| {
        let mut all = vec![bridge(1, "br0"), interface(2, "a", Some(1)), interface(3, "b", Some(1))];
        all.extend(third);
        all
    };
    let check = |own: &Interface, all: &[Interface], has_program: bool, most: u32| {
        is_as_opened(("a", own), all, has_program, most).err()
    };
    let own = interface(2, "a", Some(1));
    assert_eq!(check(&own, &all(None), true, 1500), None);
    assert_eq!(
        check(&own, &all(None), true, 1499).as_deref(),
        Some("a has an MTU of 1500 now; this enforcer takes up to 1499. Start it again")
    );
    assert_eq!(check(&own, &all(None), false, 1500).as_deref(), Some("a: the enforcer's program was removed"));
    let third = check(&own, &all(Some(interface(4, "c", Some(1)))), true, 1500);
    assert!(third.is_some_and(|why| why.starts_with("c is a third port of br0")));
    let outside = interface(2, "a", None);
    assert_eq!(check(&outside, &all(None), true, 1500).as_deref(), Some("a is no longer a port of a bridge"));
}

#[test]
fn files_of_other_interfaces_are_not_taken_over() {
    let prepared =
        || Prepared { index: 2, name: "a".to_string(), local: false, pins: PathBuf::from("pins"), steering: None };
    let file = || OwnedFd::from(fs::File::open("/dev/null").expect("Linux has it"));
    let state = |name: &str| PortState { name: name.to_string(), received: 5, ..PortState::default() };
    assert_eq!(state("a").files(), 1, "a TAP has one");
    assert!(prepared().map(&state("a"), vec![file()]).is_ok_and(|port| port.name == "a" && port.received == 0));
    let why = prepared().map(&state("b"), vec![file()]).err().expect("it is of another");
    assert!(why.starts_with("a: the enforcer that runs has b in its place"), "{why}");
    assert!(
        prepared().map(&state("a"), vec![file(), file()]).is_err() && prepared().map(&state("a"), Vec::new()).is_err()
    );
    // sockets of queues have two files each, and need a program
    let queues = PortState { sockets: vec![XdpState::default(); 3], ..state("a") };
    assert_eq!(queues.files(), 6);
    assert!(prepared().map(&queues, (0..6).map(|_| file()).collect()).is_err());
}
