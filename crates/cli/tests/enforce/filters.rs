//! Filters and shapers of the bridge, which enforced packets pass by.

use crate::world::World;
use testkit::on_path;

#[test]
fn what_tcp_would_pass_by_is_named_and_the_start_refused_unless_it_may() {
    let Some(world) = World::new() else { return };
    let refused = || {
        let start = ["enforce", "--socket", "enforce.sock", "--rule", "bbr", "--between", "s", "c"];
        let (code, _, error) = world.opentcp(&start);
        assert!(code == Some(2) && error.contains("--bypass-filters") && !world.has_xdp(), "{code:?} {error}");
        error
    };
    world.run(1, "tc qdisc add dev c root tbf rate 50mbit burst 32k latency 50ms");
    let error = refused();
    assert!(error.contains("(the queue discipline tbf of c)"), "{error}");
    if on_path("nft").is_some() {
        world.run(1, "nft add table bridge f");
        world.run(1, "nft add chain bridge f x { type filter hook forward priority 0 ; }");
        assert!(!refused().contains("chain"), "a chain without rules changes nothing");
        world.run(1, "nft add rule bridge f x tcp dport 7000-7999 counter drop");
        let error = refused();
        assert!(error.contains("the chain x of the bridge table f in nftables, the queue discipline"), "{error}");
    } else {
        eprintln!("without nftables: no nft on the PATH");
    }
    let enforcer = world.enforce(&["--rule", "bbr", "--bypass-filters"]);
    assert!(enforcer.said().contains("TCP passes by"), "{}", enforcer.said());
}
