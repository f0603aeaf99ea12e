//! Addresses and ports, which policies match.

use super::*;

#[test]
fn a_host_has_an_address_and_an_address_its_host() {
    assert_eq!((address(0), address(255)), (Ipv4Addr::new(10, 64, 0, 1), Ipv4Addr::new(10, 64, 1, 0)));
    for host in [0, 1, 255, 256, 99_999] {
        assert_eq!(host_of(address(host), 100_000), Some(host));
    }
    assert_eq!(host_of(address(3), 3), None, "there are three");
    assert_eq!(host_of(Ipv4Addr::new(10, 64, 0, 0), 3), None, "the one before the first");
}

#[test]
fn ports_of_flows_begin_again_and_never_reach_the_end_of_ports() {
    assert_eq!((sender_port(0), sender_port(39_999), sender_port(40_000)), (20_000, 59_999, 20_000));
    assert_eq!(sender_port(u32::MAX), 20_000 + 7_295, "4,294,967,295 is 107,374 x 40,000 + 7,295");
}
