use super::*;
use net::{LinkParams, QueueSpec};
use units::Rate;

/// Host to switch to host, with these rates in Mbit/s, 1 us each.
fn path_of(rates: [u64; 2], burst: (u64, u64, u64)) -> u128 {
    let params =
        |mbps| LinkParams { rate: Rate::from_mbps(mbps), delay: Time::from_us(1), queue: QueueSpec::drop_tail(100) };
    let cable =
        |a: &str, b: &str, mbps| net::Cable { a: a.into(), b: b.into(), forward: params(mbps), backward: params(mbps) };
    let hosts = ["a".to_string(), "b".to_string()];
    let cables = [cable("a", "s", rates[0]), cable("s", "b", rates[1])];
    let topology = Topology::explicit(&hosts, &["s".to_string()], &cables).unwrap();
    let router = Router::new(&topology, net::Routing::SinglePath);
    let mut links = Vec::new();
    router.path(topology.host(0), topology.host(1), 0, &mut links).unwrap();
    let (count, full, last) = burst;
    IdlePath { topology: &topology, forwarding_delay: Time::ZERO, links: &links }.of_burst(count, full, last)
}

#[test]
fn a_burst_is_stored_and_forwarded_and_waits_for_the_slowest_link() {
    const US: u128 = 1_000_000;
    // 1000 B take 80 us at 100 Mbit/s and 8 us at 1 Gbit/s; the two propagations take 2 us.
    assert_eq!(path_of([100, 100], (1, 1000, 1000)), 162 * US);
    // first packet 160 us, two more behind it 160 us
    assert_eq!(path_of([100, 100], (3, 1000, 1000)), 322 * US);
    // slow, then fast: three on the slow link 240 us, the last on the fast one 8 us
    assert_eq!(path_of([100, 1000], (3, 1000, 1000)), 250 * US);
    // the same with a last packet of 100 B, 8 us and 0.8 us: the fast link forwards it at once
    assert_eq!(path_of([100, 1000], (3, 1000, 100)), (2 + 160 + 8) * US + 800_000);
    // fast, then slow: the first packet 8 us, then three on the slow link 240 us
    assert_eq!(path_of([1000, 100], (3, 1000, 1000)), 250 * US);
    // with a last packet of 100 B: 8 us, two on the slow link 160 us, the last 8 us
    assert_eq!(path_of([1000, 100], (3, 1000, 100)), 178 * US);
}

/// The ideal times of transfers in a network of 1 Gbit/s and 25 us a link, with Ethernet's framing and Linux's timestamps.
fn ideal_of(topology: &str, more: &str, transfers: &[(u32, (&str, &str), u64)]) -> Vec<Option<u64>> {
    let text = format!(
        "duration = \"1 s\"\n[network]\ntopology = {topology}\nrate = \"1 Gbit/s\"\ndelay = \"25 us\"\nframing = \"ethernet\"\n{more}\n"
    );
    let scenario = testkit::scenario(&text);
    let topology = crate::topology(&scenario).unwrap();
    let ideal = Ideal::of(&scenario);
    let mut times = ideal.on(&topology, transfers.iter().map(|(entry, ..)| *entry));
    let node = |name: &str| topology.find_node(name).unwrap();
    let one = |(flow, (entry, (src, dst), bytes)): (u32, &(u32, (&str, &str), u64))| {
        let transfer = Transfer { entry: *entry, flow, hosts: (node(src), node(dst)), bytes: *bytes };
        times.fct_ns(transfer)
    };
    (0..).zip(transfers).map(one).collect()
}

const STAR: &str = "{ star = { hosts = 4 } }";
const BULK: &str = "[[traffic]]\nbulk = { from = \"h1\", to = \"h2\", bytes = \"1 MB\" }";

#[test]
fn a_transfer_costs_its_handshake_and_its_packets_back_to_back() {
    // SYN and SYN-ACK: 40 B of IP and TCP, options of 4 (MSS), 4 (scale) and 12 (timestamps), 38 of Ethernet: 98 B, 784 ns on each link.
    // There and back, two links each of 25 us: 2 x (50,000 + 2 x 784) = 103,136 ns.
    const HANDSHAKE: u64 = 103_136;
    // A full packet: 1448 + 52 + 38 = 1538 B, 12,304 ns. One byte: 91 B, 728 ns.
    let times = ideal_of(STAR, BULK, &[(0, ("h1", "h2"), 1), (0, ("h1", "h2"), 1448), (0, ("h1", "h2"), 2 * 1448)]);
    assert_eq!(times[0], Some(HANDSHAKE + 50_000 + 2 * 728));
    assert_eq!(times[1], Some(HANDSHAKE + 50_000 + 2 * 12_304));
    // the second packet leaves the first link behind the first one: three serializations in all
    assert_eq!(times[2], Some(HANDSHAKE + 50_000 + 3 * 12_304));
    // a last packet of one byte waits for the full one on the second link, then follows it
    let short = ideal_of(STAR, BULK, &[(0, ("h1", "h2"), 1449)]);
    assert_eq!(short[0], Some(HANDSHAKE + 50_000 + 2 * 12_304 + 728));
}

#[test]
fn options_that_hosts_do_not_use_are_not_sent() {
    let time = |tcp: &str| ideal_of(STAR, &format!("[tcp]\n{tcp}\n{BULK}"), &[(0, ("h1", "h2"), 1)])[0].unwrap();
    let all = time("timestamps = true\nsack = true\nwindow_scaling = true");
    // Without timestamps the two packets of the handshake have 12 - 4 B less, since SACK was in their padding, and the data packet 12 B;
    // a byte less on two links is 16 ns less.
    assert_eq!(all - time("timestamps = false\nsack = true\nwindow_scaling = true"), (2 * 8 + 12) * 16);
    assert_eq!(
        all - time("timestamps = false\nsack = false\nrack = false\ntlp = false\nwindow_scaling = true"),
        (2 * 12 + 12) * 16
    );
    assert_eq!(all - time("timestamps = true\nsack = true\nwindow_scaling = false"), 2 * 4 * 16);
}

#[test]
fn a_server_that_forwards_adds_its_delay_each_way() {
    let time = |delay: &str| {
        // h1 and h4 of two cells of two servers differ in both digits: host, switch, host, switch, host
        let bcube = format!("{{ bcube = {{ n = 2, k = 1, forwarding_delay = \"{delay}\" }} }}");
        let bulk = BULK.replace("\"h2\"", "\"h4\"");
        ideal_of(&bcube, &bulk, &[(0, ("h1", "h4"), 1)])[0].unwrap()
    };
    // SYN, SYN-ACK and data pass one server each
    assert_eq!(time("11 us") - time("1 us"), 3 * 10_000);
}

#[test]
fn only_a_flow_that_is_one_transfer_has_an_ideal_time() {
    let traffic = [
        "bulk = { from = \"h1\", to = \"h2\", bytes = \"1 MB\" }",
        "name = \"endless\"\nbulk = { from = \"h1\", to = \"h2\" }",
        "incast = { senders = 2, bytes = \"1 kB\" }",
        "all_to_all = { bytes = \"1 kB\", connections = \"new\" }",
        "name = \"kept\"\nall_to_all = { bytes = \"1 kB\" }",
        "job = { all_to_all = { bytes = \"1 kB\" } }",
        "name = \"kept job\"\njob = { all_to_all = { bytes = \"1 kB\" }, connections = \"reuse\" }",
        "poisson = { load = \"1 %\", sizes = \"web-search\" }",
        "random_pairs = { flows = 1, bulk = {} }",
        "permutation = { bulk = { bytes = \"1 kB\" } }",
        "udp = { from = \"h1\", to = \"h2\", rate = \"1 Mbit/s\" }",
        "idle = { flows = 1 }",
    ];
    let traffic = traffic.map(|entry| format!("[[traffic]]\n{}\n", entry.replace("kept job", "kept_job"))).concat();
    let flows: Vec<(u32, (&str, &str), u64)> = (0..12).map(|entry| (entry, ("h1", "h2"), 1000)).collect();
    let has: Vec<bool> = ideal_of(STAR, &traffic, &flows).into_iter().map(|time| time.is_some()).collect();
    assert_eq!(has, [true, false, false, true, false, true, false, true, false, true, false, false]);
    assert_eq!(ideal_of(STAR, BULK, &[(0, ("h1", "h2"), 0)]), [None], "nothing was sent");
}
