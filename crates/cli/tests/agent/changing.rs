//! Others change routes while an agent has set some.

use crate::world::{THERE, TestOracle, World, comes_within, cue};
use policy::{Cue, Settings};
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::eventually;

const SECOND: Duration = Duration::from_secs(1);

/// An initial window that no route here has by itself.
fn window() -> Settings {
    Settings { initial_cwnd: Some(20), ..Settings::default() }
}

/// The same for a prefix that has no route of its own.
fn window_there() -> Cue {
    let mut cue = cue(1, window());
    cue.scope.sessions.remote = Some("10.97.0.0/16".parse().unwrap());
    cue
}

/// How long it takes until `is_so`.
fn time_until(is_so: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    assert!(eventually(is_so));
    began.elapsed()
}

impl World {
    /// Has `ip` read lines on the first host.
    fn batch(&self, name: &str, lines: &str) {
        fs::write(self.path(name), lines).unwrap();
        self.ip(&format!("-batch {}", self.path(name).display()));
    }

    /// How many IPv6 routes have the window.
    fn with_window(&self) -> usize {
        self.ip("-6 route show").matches("initcwnd 20").count()
    }
}

/// The kernel interrupts a dump of a table that changes meanwhile, and what it has listed until then lacks routes.
#[test]
fn routes_are_restored_while_others_change_the_table() {
    const MANY: usize = 2000;
    let Some(world) = World::new() else { return };
    let lines = |what: &str, bits: u8| {
        (0..MANY).fold(String::new(), |mut lines, i| {
            writeln!(lines, "route {what} fd80:{i:x}::/{bits} via fd99::2 metric 20").unwrap();
            lines
        })
    };
    world.batch("add", &lines("add", 48));
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, window()));
    assert!(eventually(|| world.with_window() > MANY), "{}", agent.said());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                world.batch("churn", &(lines("add", 52) + &lines("del", 52)));
            }
        });
        agent.stop();
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(world.with_window(), 0, "{}", fs::read_to_string(world.path("log-agent")).unwrap());
    world.batch("del", &lines("del", 48));
    world.assert_as_before();
}

/// A restoration does not bring back what others have removed.
#[test]
fn a_route_that_others_have_removed_stays_removed() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, window()));
    assert!(eventually(|| world.ip("route show default").contains("initcwnd 20")), "{}", agent.said());
    world.ip("route del default");
    agent.stop();
    assert_eq!(world.ip("route show default"), "");
    world.ip(&format!("route add default via {THERE}"));
    world.assert_as_before();
}

#[test]
fn a_route_of_the_agents_own_follows_the_gateway_within_a_second() {
    comes_within(SECOND, || {
        let world = World::new()?;
        let mut oracle = TestOracle::new(&world);
        let agent = world.agent(&mut oracle, &["--means", "routes"]);
        oracle.send(&window_there());
        let own = || world.ip("route show 10.97.0.0/16");
        assert!(eventually(|| own().contains(&format!("via {THERE} dev eth0 initcwnd 20"))), "{}", agent.said());
        world.ip("route replace default via 10.99.0.3");
        let moved = time_until(|| own().contains("via 10.99.0.3 dev eth0 initcwnd 20"));
        world.ip("route del default");
        let withdrawn = time_until(|| own().is_empty());
        world.ip(&format!("route add default via {THERE}"));
        let made_anew = time_until(|| own().contains(&format!("via {THERE}")));
        // the kernel removes a link's routes of IPv4 without a word about them
        world.ip("link add eth1 type veth peer name eth2");
        world.ip("address add 10.96.0.1/24 dev eth1");
        world.ip("link set eth1 up");
        world.ip("link set eth2 up");
        world.ip("route add 10.96.0.0/12 via 10.96.0.2");
        let narrower = time_until(|| own().contains("via 10.96.0.2"));
        world.ip("link set eth1 down");
        let back = time_until(|| own().contains(&format!("via {THERE}")));
        world.ip("link del eth1");
        agent.stop();
        world.assert_as_before();
        let all = [moved, withdrawn, made_anew, narrower, back];
        println!("the route follows after {all:?}");
        all.into_iter().max()
    });
}

#[test]
fn what_others_set_back_is_set_again_within_a_second_and_theirs_is_restored() {
    comes_within(SECOND, || {
        let world = World::new()?;
        let mut oracle = TestOracle::new(&world);
        let agent = world.agent(&mut oracle, &["--means", "routes"]);
        let ecn = |value: Option<&str>| {
            let path = "/proc/sys/net/ipv4/tcp_ecn";
            world.here(|| value.map_or((), |value| fs::write(path, value).unwrap()));
            world.here(|| fs::read_to_string(path).unwrap().trim().to_string())
        };
        let before = ecn(None);
        oracle.send(&cue(1, Settings { ecn: Some(true), ..window() }));
        let default = || world.ip("route show default");
        assert!(eventually(|| default().contains("initcwnd 20") && ecn(None) == "1"), "{}", agent.said());
        // as a DHCP client does with each renewal
        world.ip(&format!("route replace default via {THERE}"));
        let route = time_until(|| default().contains("initcwnd 20"));
        ecn(Some(&before));
        let sysctl = time_until(|| ecn(None) == "1");
        world.ip(&format!("route replace default via {THERE} initcwnd 12 mtu 1300"));
        let other = time_until(|| default().contains("initcwnd 20") && default().contains("mtu 1300"));
        world.ip("route add 10.95.0.0/16 via 10.99.0.3");
        let new = time_until(|| world.ip("route show 10.95.0.0/16").contains("initcwnd 20"));
        agent.stop();
        assert_eq!(default().trim(), format!("default via {THERE} dev eth0 mtu 1300 initcwnd 12"), "theirs, by now");
        world.ip(&format!("route replace default via {THERE}"));
        world.ip("route del 10.95.0.0/16");
        world.assert_as_before();
        let all = [route, sysctl, other, new];
        println!("set again after {all:?}");
        all.into_iter().max()
    });
}

#[test]
fn what_others_always_set_back_is_left_to_them_and_that_is_said() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, window()));
    let is_set = || world.ip("route show default").contains("initcwnd 20");
    let set_back = || world.ip(&format!("route replace default via {THERE}"));
    for _ in 0..4 {
        assert!(eventually(is_set), "{}", agent.said());
        set_back();
    }
    let said = "1 routes and sysctls are not set (0.0.0.0/0 tos 0 priority 0): something else sets them back";
    assert!(eventually(|| agent.said().contains(said)), "{}", agent.said());
    assert!(!is_set());
    // with the next CUE it is tried again
    oracle.send(&cue(2, window()));
    assert!(eventually(is_set), "{}", agent.said());
    agent.stop();
    world.assert_as_before();
}

#[test]
fn routes_of_nexthop_objects_are_set_and_restored_with_their_objects() {
    let Some(world) = World::new() else { return };
    world.ip(&format!("nexthop add id 11 via {THERE} dev eth0"));
    world.ip("nexthop add id 12 via 10.99.0.3 dev eth0");
    world.ip("nexthop add id 13 group 11/12");
    world.ip("nexthop add id 14 via fd99::2 dev eth0");
    world.ip("route add 10.94.0.0/16 nhid 11 proto 17 metric 20");
    world.ip("route add 10.93.0.0/16 nhid 13 mtu 1400");
    world.ip("-6 route add fd94::/32 nhid 14 metric 20");
    world.ip("route add blackhole 10.91.0.0/16");
    let all = || world.ip("-d route show") + &world.ip("-d -6 route show") + &world.ip("nexthop show");
    let before = all();
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, window()));
    let is_set = |route: &str| world.ip(&format!("route show {route}")).contains("initcwnd 20");
    for (route, id) in [("10.94.0.0/16", 11), ("10.93.0.0/16", 13)] {
        assert!(eventually(|| is_set(route)), "{route}: {}", agent.said());
        assert!(world.ip(&format!("route show {route}")).contains(&format!("nhid {id}")));
    }
    assert!(world.ip("-6 route show fd94::/32").contains("initcwnd 20"), "{}", agent.said());
    // Linux gives it the metrics of others of the object
    world.ip("route add 10.92.0.0/16 nhid 11 proto 17 metric 20");
    assert!(is_set("10.92.0.0/16"));
    // the next hop moves, and the route with it
    world.ip("nexthop replace id 11 via 10.99.0.4 dev eth0");
    assert!(world.ip("route show 10.94.0.0/16").contains("via 10.99.0.4 dev eth0 proto 17 metric 20 initcwnd 20"));
    world.ip(&format!("nexthop replace id 11 via {THERE} dev eth0"));
    assert!(!agent.said().contains("10.9"), "{}", agent.said());
    agent.stop();
    assert!(!is_set("10.92.0.0/16"));
    world.ip("route del 10.92.0.0/16");
    assert_eq!(all(), before);
    for id in [13, 12, 11, 14] {
        world.ip(&format!("nexthop del id {id}"));
    }
    world.ip("route del blackhole 10.91.0.0/16");
    world.assert_as_before();
}

#[test]
fn the_status_says_on_how_many_routes_a_window_is_and_which_tables_are_not_set() {
    let Some(world) = World::new() else { return };
    world.ip("rule add to 10.91.0.0/16 lookup 100");
    world.ip(&format!("route add default via {THERE} table 100"));
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--means", "routes"]);
    oracle.send(&cue(1, window()));
    let text = || {
        let (_, out, _) = world.opentcp(&["agent", "status", "--state", "state"]);
        out
    };
    // all but the kernel's on-link prefix of IPv6
    assert!(
        eventually(|| text().contains("20 by the route (4 of 5 routes)")),
        "{}{}",
        text(),
        world.ip("-6 route show")
    );
    assert!(
        text().contains("note: rules lead to tables besides main (100): connections there are not set"),
        "{}",
        text()
    );
    agent.stop();
    world.ip("rule del to 10.91.0.0/16 lookup 100");
    world.ip("route del default table 100");
    world.assert_as_before();
}
