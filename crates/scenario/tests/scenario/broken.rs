//! Scenarios that are wrong, each with the place and the text of the message.

use crate::common::{Memory, parse, parse_with};

/// Network, TCP, traffic; a case replaces one of them.
fn base(network: &str, tcp: &str, traffic: &str) -> String {
    format!("duration = \"10 s\"\n[network]\n{network}\n[tcp]\n{tcp}\n[[traffic]]\n{traffic}\n")
}

const STAR: &str = "topology = { star = { hosts = 4 } }";
const BULK: &str = "bulk = { from = \"h1\", to = \"h2\" }";

/// The problems as `line:column message | help`.
fn problems(text: &str, sets: &[&str]) -> Vec<String> {
    let error = parse(text, sets).expect_err("this scenario is wrong");
    let line = |p: &scenario::Located| {
        let place = format!("{}:{}:{}", p.file, p.line, p.column);
        assert!(error.to_string().contains(&place), "{place} is not shown in:\n{error}");
        format!("{place} {} | {}", p.message, p.help.as_deref().unwrap_or("-"))
    };
    error.problems().iter().map(line).collect()
}

/// The base with one line more in its network.
fn network(line: &str) -> String {
    base(&format!("{STAR}\n{line}"), "", BULK)
}

/// The base with another topology.
fn topology(value: &str) -> String {
    base(&format!("topology = {{ {value} }}"), "", BULK)
}

/// The base with a line of TCP.
fn tcp(line: &str) -> String {
    base(STAR, line, BULK)
}

/// The base with other traffic, and whatever follows it.
fn traffic(lines: &str) -> String {
    base(STAR, "", lines)
}

/// Each text is refused, and one of its problems contains what is expected.
fn refused(cases: &[(String, &str)]) {
    let mut missed = Vec::new();
    for (text, expected) in cases {
        let found = problems(text, &[]);
        if !found.iter().any(|line| line.contains(expected)) {
            missed.push(format!("\n{text}\nexpected {expected}\nfound    {found:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn keys_and_syntax_are_checked() {
    refused(&[
        (network("dellay = \"1 us\""), "4:1 `[network]` has no key `dellay` | did you mean `delay`?"),
        (tcp("initial_cwd = 10"), "5:1 `[tcp]` has no key `initial_cwd` | did you mean `initial_cwnd`?"),
        ("duratoin = \"1 s\"".into(), "1:1 the scenario has no key `duratoin` | did you mean `duration`?"),
        (base("", "", BULK), "2:1 `[network]` lacks `topology` | -"),
        (
            "duration = \"1 s\"\n[network]\ntopology = { star = { hosts = 2 } }".into(),
            "1:1 the scenario lacks `traffic`",
        ),
        ("duration = 10 s".into(), "1:12 this is not TOML:"),
    ]);
}

#[test]
fn data_center_networks_and_their_balancing_are_checked() {
    let bcube = "bcube = { n = 4, k = 1, forwarding_delay = \"1 us\" }";
    let on_bcube = |line: &str| base(&format!("topology = {{ {bcube} }}\n{line}"), "", BULK);
    let rule = "bulk = { from = \"h1\", to = \"h2\" }\n[enforcer]\nat = \"h1\"\nrule = [{ cc = \"vegas\" }]";
    refused(&[
        (topology("vl2 = { aggregation_ports = 5, intermediate_ports = 4 }"), "3:42 5 is not an even number"),
        (topology("vl2 = { aggregation_ports = 4, intermediate_ports = 3 }"), "3:66 3 is not an even number"),
        (topology("vl2 = { aggregation_ports = 4, intermediate_ports = 4, hosts_per_tor = 0 }"), "`0` is out of range"),
        (topology("bcube = { n = 4, k = 1 }"), "lacks `forwarding_delay`"),
        (topology("bcube = { n = 1, k = 1, forwarding_delay = \"0 s\" }"), "3:28 `1` is out of range"),
        (topology("bcube = { n = 4, k = 21, forwarding_delay = \"0 s\" }"), "3:35 `21` is out of range: from 0 to 20"),
        (topology("bcube = { n = 1000, k = 9, forwarding_delay = \"0 s\" }"), "nodes are too many: at most 1048576"),
        (topology("bcube = { n = 4, k = 1, forwarding_delay = \"2 s\" }"), "`2 s` is out of range: at most 1 s"),
        (topology("dcell = { n = 4, l = 1, forwarding_delay = \"-1 s\" }"), "`-1 s` is negative"),
        (topology("dcell = { n = 9, l = 4, forwarding_delay = \"0 s\" }"), "nodes are too many"),
        (topology("jellyfish = { switches = 4, ports = 8, hosts_per_switch = 4 }"), "more than 4"),
        (topology("jellyfish = { switches = 9, ports = 4, hosts_per_switch = 2 }"), "at least 3 are needed"),
        (topology("jellyfish = { switches = 9, ports = 8, hosts_per_switch = 2, seed = -1 }"), "`-1` is out of range"),
        (topology("dragonfly = { hosts_per_switch = 2, switches_per_group = 0, global_ports = 2 }"), "out of range"),
        (topology("dragonfly = { hosts_per_switch = 2, switches_per_group = 4 }"), "lacks `global_ports`"),
        (network("balancing = \"packets\""), "4:13 `packets` is not known here"),
        (network("balancing = { flowlet = { gap = \"0 s\" } }"), "`0 s` is out of range: more than zero"),
        (network("balancing = { flowlet = {} }"), "lacks `gap`"),
        (
            network("routing = \"single-path\"\nbalancing = \"packet\""),
            "5:13 `routing` \"single-path\" leaves one path",
        ),
        (on_bcube("routing = \"valiant\""), "4:11 this network's servers forward by its own routing"),
        (on_bcube("balancing = \"packet\""), "4:13 a flow keeps to one interface"),
        (base(&format!("topology = {{ {bcube} }}"), "", rule), "an enforcer sees all of a flow only where"),
        (on_bcube("[[network.failure]]\nlink = \"h1-s7\"\nat = \"1 s\""), "there is no link `h1-s7`"),
    ]);
}

#[test]
fn units_and_ranges_are_checked() {
    refused(&[
        (network("rate = \"100 mbps\""), "4:8 `100 mbps` has the unit `mbps`; a rate is written with one of bit/s,"),
        (network("rate = \"10 ms\""), "4:8 `10 ms` has the unit `ms`; a rate"),
        (network("rate = \"0 Mbit/s\""), "4:8 `0 bit/s` is out of range: from 10 kbit/s to 10000 Gbit/s"),
        (network("rate = 100"), "4:8 a quantity is written in quotes with its unit, such as \"10 ms\", not an integer"),
        (network("delay = \"-1 us\""), "4:9 `-1 us` is negative; a time is zero or more"),
        (network("delay = \"0 s\""), "4:9 `0 s` is out of range: from 1 ns to 1000 s (the engine looks ahead"),
    ]);
}

#[test]
fn topologies_are_checked() {
    refused(&[
        (
            topology("fat_tree = { k = 5 }"),
            "3:31 k = 5 is odd | half of a switch's ports lead up; write k = 4 or k = 6",
        ),
        (topology("fat_tree = { k = 200 }"), "3:31 2050000 nodes are too many: at most 1048576"),
        (topology("star = { hosts = 1_000_000_000_000 }"), "3:31 1000000000000 nodes are too many: at most 1048576"),
        (topology("fat_tee = { k = 4 }"), "3:14 unknown topology `fat_tee` | did you mean `fat_tree`?"),
        (
            topology("star = { hosts = 2 }, dumbbell = { pairs = 2 }"),
            "3:36 topology is already `star`; `dumbbell` is a second",
        ),
        (topology(""), "3:12 topology is empty; it has one of `fat_tree`, `leaf_spine`"),
        (topology("star = { hosts = -1 }"), "3:31 `-1` is out of range: at least 2"),
        (
            topology("leaf_spine = { leaves = 1000, spines = 9000, hosts_per_leaf = 1 }"),
            "cables are too many: at most 4194304",
        ),
        (
            network("tier.core.rate = \"1 Gbit/s\""),
            "4:6 `[network.tier]` of this topology has no key `core` | allowed: `host`",
        ),
    ]);
}

#[test]
fn queues_are_checked() {
    refused(&[
        (network("queue = { drop_tail = { packets = 0 } }"), "4:35 `0` is out of range: from 1 to 1000000"),
        (network("queue = { drop_tail = {} }"), "this queue has no limit | say `packets = 100`"),
        (
            network("queue = { drop_tail = { bytes = \"1 kB\" } }"),
            "4:33 `1 kB` is out of range: at least one full packet (1538 B)",
        ),
        (
            network("queue = { threshold_ecn = { mark_packets = 200, packets = 100 } }"),
            "4:44 the threshold 200 is not below the limit 100",
        ),
        (
            network("queue = { threshold_ecn = { mark_packets = 2, bytes = \"99 kB\" } }"),
            "4:44 the threshold is in packets and the limit in bytes | write `mark_bytes`",
        ),
        (network("queue = { red = { min = 20, max = 15 } }"), "4:25 `min` (20) is not below `max` (15)"),
        (
            network("queue = { red = { max_probability = \"130 %\" } }"),
            "4:37 `130 %` is out of range: from 0.0001 % to 100 %",
        ),
        (network("queue = { red = { max_probability = 0.1 } }"), "a percentage is written in quotes with its sign"),
    ]);
}

#[test]
fn shared_buffers_are_checked() {
    let buffer = |keys: &str| network(&format!("buffer = {{ shared = {{ bytes = \"64 kB\", {keys} }} }}"));
    refused(&[
        (buffer("alpha = 0"), "`0` is out of range"),
        (buffer("alpha_not_ect = -1"), "`-1` is out of range"),
        (buffer("reserve = \"65 kB\""), "`65 kB` is out of range: at most `bytes`"),
        (buffer("reserve = 8000"), "a quantity is written in quotes with its unit"),
        (buffer("headroom = \"100 %\""), "the headroom is below 100 %"),
        (buffer("headroom = \"0 %\""), "`0 %` is out of range"),
        (buffer("head = \"10 %\""), "has no key `head`"),
    ]);
}

#[test]
fn queues_by_delay_are_checked() {
    refused(&[
        (network("queue = { pie = { target = \"0 s\" } }"), "`0 s` is out of range: more than zero"),
        (network("queue = { pie = { alpha = 0 } }"), "`0` is out of range"),
        (network("queue = { pie = { mark_max = \"200 %\" } }"), "`200 %` is out of range"),
        (network("queue = { codel = { packets = 0 } }"), "`0` is out of range: from 1 to 1000000"),
        (network("queue = { codel = { interval = \"5\" } }"), "`5` has no unit"),
        (network("queue = { fq_codel = { quantum = \"500 B\" } }"), "at least one full packet (1538 B)"),
        (network("queue = { fq_codel = { memory = \"1 kB\" } }"), "at least one full packet (1538 B)"),
        (network("queue = { fq_codel = { flows = 100000 } }"), "`100000` is out of range: from 1 to 65536"),
        (network("queue = { dualpi2 = { coupling = 0.5 } }"), "the coupling is at least 1"),
        (
            network("queue = { dualpi2 = { classic_share = \"100 %\" } }"),
            "the classic queue cannot have the whole link",
        ),
        (network("queue = { dualpi2 = { step = \"-1 ms\" } }"), "`-1 ms`"),
    ]);
}

#[test]
fn failures_are_checked() {
    refused(&[
        (
            network("failure = [{ link = \"h1-s1\", at = \"11 s\" }]"),
            "4:35 `11 s` is out of range: the run ends at 10 s (`duration`)",
        ),
        (
            network("failure = [{ link = \"h1-s1\", at = \"5 s\", until = \"4 s\" }]"),
            "`until` (4 s) is not after `at` (5 s)",
        ),
        (
            network("failure = [{ link = \"h9-s1\", at = \"1 s\" }]"),
            "4:21 there is no node `h9` | hosts are h1 to h4; switches are s1",
        ),
        (network("failure = [{ link = \"h1->h2\", at = \"1 s\" }]"), "4:21 there is no link `h1->h2` | no cable joins"),
    ]);
}

#[test]
fn tcp_is_checked() {
    refused(&[
        (tcp("cc = \"cubik\""), "5:6 unknown algorithm `cubik` | did you mean `cubic`? Allowed: `newreno`, `vegas`"),
        (
            tcp("cc = \"mine.c\""),
            "5:6 cannot read `mine.c`: no such file | a path is relative to the scenario's folder",
        ),
        (tcp("preset = \"linx\""), "5:10 `linx` is not known here | did you mean `linux`?"),
        (tcp("mss = 1448\nmtu = 1500"), "5:7 `mtu` and `mss` exclude each other | keep one of the two"),
        (tcp("rto_min = \"200 s\""), "5:11 `rto_min` (200 s) is above `rto_max` (120 s)"),
        (tcp("sack = false\nrack = true"), "6:8 `rack` needs `sack` | set `sack = true`"),
        (
            tcp("delayed_ack = { segments = 2, timeout = \"0 s\" }"),
            "5:41 an acknowledgement that waits for a second segment",
        ),
        (tcp("sack = \"yes\""), "5:8 this is `true` or `false`, not a text"),
    ]);
}

#[test]
fn traffic_is_checked() {
    refused(&[
        (traffic("bulk = { from = \"h1\", to = \"h5\" }"), "7:28 there is no host `h5` | hosts are h1 to h4"),
        (traffic("bulk = { from = \"h1\", to = \"h1\" }"), "7:28 `h1` would send to itself"),
        (traffic("bulc = { from = \"h1\", to = \"h2\" }"), "7:1 this traffic has no key `bulc` | did you mean `bulk`?"),
        (traffic("start = \"1 s\""), "6:1 this traffic does not say what is sent | it has one of `random_pairs`"),
        (traffic(&format!("{BULK}\nidle = {{ flows = 3 }}")), "8:8 this traffic is already `bulk`"),
        (traffic("permutation = { across = \"pods\", bulk = {} }"), "7:26 this topology has fewer than two pods"),
        (traffic("random_pairs = { flows = 3 }"), "7:16 this entry does not say what its flows send | add `bulk = {}`"),
        (traffic("udp = { from = \"h1\", to = \"h2\" }"), "`udp` lacks `rate`"),
        (traffic("udp = { from = \"h1\", to = \"h1\", rate = \"1 Mbit/s\" }"), "7:27 `h1` would send to itself"),
        (
            traffic("udp = { from = \"h1\", to = \"h2\", rate = \"1 Mbit/s\", packet = \"1473 B\" }"),
            "7:61 `1.473 kB` is out of range: from 1 B to 1472 B, which with IP and UDP headers are the MTU",
        ),
        (
            traffic("random_pairs = { flows = 2, udp = { rate = \"1 bit/s\" } }"),
            "7:44 `1 bit/s` is out of range: from 1 kbit/s to",
        ),
        (
            traffic("permutation = { bulk = {}, udp = { rate = \"1 Mbit/s\" } }"),
            "`bulk` and `udp` exclude each other | keep one of the two",
        ),
        (
            traffic("cc = \"cubic\"\nudp = { from = \"h1\", to = \"h2\", rate = \"1 Mbit/s\" }"),
            "7:6 UDP has no congestion control | leave out `cc`",
        ),
        (traffic("incast = { senders = 4, bytes = \"1 kB\" }"), "7:22 `4` is out of range: from 1 to 3"),
        (traffic("poisson = { load = \"0 %\", sizes = \"web-search\" }"), "7:20 `0 %` is out of range"),
        (
            traffic("poisson = { load = \"9 %\", sizes = \"websearch\" }"),
            "unknown distribution of sizes `websearch` | did you mean `web-search`?",
        ),
        (traffic("trace = { file = \"nothing.csv\" }"), "7:18 cannot read `nothing.csv`"),
        (
            traffic(&format!("name = \"a\"\n{BULK}\n[[traffic]]\nname = \"a\"\n{BULK}")),
            "9:1 a second traffic entry `a`",
        ),
    ]);
}

#[test]
fn measurements_and_sweeps_are_checked() {
    refused(&[
        (
            traffic(&format!("{BULK}\n[measure]\nwarmup = \"10 s\"")),
            "9:10 `10 s` is out of range: it must end before the run does",
        ),
        (traffic(&format!("{BULK}\n[measure]\nqueues = [\"s1-h1\"]")), "9:11 `s1-h1` is not a link | write `a->b`"),
        (traffic(&format!("{BULK}\n[measure]\nlinks = \"0 s\"")), "9:9 `0 s` is out of range: at least 1 us"),
        (traffic(&format!("{BULK}\n[sweep]\nseed = []")), "9:8 an empty sweep: no value, no run"),
        (traffic(&format!("{BULK}\n[sweep]\nseed = 3")), "9:8 a swept key has a list of values, not an integer"),
        (
            traffic(&format!("{BULK}\n[sweep]\n\"tcp.cc\" = [\"vegas\", \"vgas\"]")),
            "9:22 unknown algorithm `vgas` | did you mean `vegas`?",
        ),
        (
            traffic(&format!("{BULK}\n[sweep]\n\"tcp.ccc\" = [\"vegas\"]")),
            "9:1 `[tcp]` has no key `ccc` | did you mean `cc`?",
        ),
    ]);
}

#[test]
fn all_mistakes_are_shown_at_once() {
    let text = base(
        &format!("{STAR}\nrat = 1\ndelay = \"2\""),
        "cc = \"x\"\nsak = true",
        "bulk = { from = \"h1\", to = \"h7\", size = 1 }",
    );
    insta::assert_snapshot!(problems(&text, &[]).join("\n"), @r##"
    a.toml:4:1 `[network]` has no key `rat` | did you mean `rate`? Allowed: `framing`, `rate`, `delay`, `queue`, `nic_queue`, `host_jitter`, `routing`, `balancing`, `buffer`, `topology`, `tier`, `failure` or `loss`
    a.toml:5:9 `2` has no unit; a time is written with one of ps, ns, us, ms, s, min, µs | -
    a.toml:7:6 unknown algorithm `x` | allowed: `newreno`, `vegas`, `highspeed`, `scalable`, `westwood`, `bic`, `cubic`, `yeah`, `dctcp` or `bbr`; or the path of a C file
    a.toml:8:1 `[tcp]` has no key `sak` | did you mean `sack`? Allowed: `preset`, `cc`, `timestamps`, `mtu`, `mss`, `window_scaling`, `initial_cwnd`, `initial_ssthresh`, `send_buffer`, `receive_buffer`, `rto_min`, `rto_max`, `rto_initial`, `syn_rto`, `syn_retries`, `timer_tick`, `delayed_ack`, `sack`, `rack`, `tlp`, `prr`, `frto`, `ecn`, `ect1`, `ictcp`, `pacing`, `slow_start_after_idle`, `tso_segments` or `limit_output`
    a.toml:10:28 there is no host `h7` | hosts are h1 to h4
    a.toml:10:34 `bulk` has no key `size` | allowed: `from`, `to`, `count` or `bytes`
    "##);
}

#[test]
fn a_message_shows_the_line() {
    let text = base(&format!("{STAR}\nqueue = {{ drop_tial = {{ packets = 10 }} }}"), "", BULK);
    insta::assert_snapshot!(parse(&text, &[]).unwrap_err(), @r##"
     × unknown queue `drop_tial`
      ╭─[a.toml:4:11]
    3 │ topology = { star = { hosts = 4 } }
    4 │ queue = { drop_tial = { packets = 10 } }
      ·           ─────────
    5 │ [tcp]
      ╰────
     help: did you mean `drop_tail`? Allowed: `drop_tail`, `threshold_ecn`, `red`, `pie`, `codel`, `fq_codel`
           or `dualpi2`
    "##);
}

#[test]
fn a_wrong_override_points_at_the_flag() {
    let text = base(STAR, "", BULK);
    let found = |set: &str| problems(&text, &[set]).join("\n");
    insta::assert_snapshot!(
        ["tcp.cc=cubik", "tcp.cx=1", "network.rate=3 parsecs", "seed=[1", "seed", "tcp..cc=1", "traffic.bulk2.start=1 s",
         "traffic.0.bulk.to=h9", "network.topology.dumbbell.pairs=2", "duration.x=1"]
            .map(found).join("\n"), @r##"
    --set:1:8 unknown algorithm `cubik` | did you mean `cubic`? Allowed: `newreno`, `vegas`, `highspeed`, `scalable`, `westwood`, `bic`, `cubic`, `yeah`, `dctcp` or `bbr`; or the path of a C file
    --set:1:5 `[tcp]` has no key `cx` | did you mean `cc`? Allowed: `preset`, `cc`, `timestamps`, `mtu`, `mss`, `window_scaling`, `initial_cwnd`, `initial_ssthresh`, `send_buffer`, `receive_buffer`, `rto_min`, `rto_max`, `rto_initial`, `syn_rto`, `syn_retries`, `timer_tick`, `delayed_ack`, `sack`, `rack`, `tlp`, `prr`, `frto`, `ecn`, `ect1`, `ictcp`, `pacing`, `slow_start_after_idle`, `tso_segments` or `limit_output`
    --set:1:14 `3 parsecs` has the unit `parsecs`; a rate is written with one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s | -
    --set:1:6 `[1` is not a value: unclosed array, expected `]` | -
    --set:1:1 `seed` has no `=` | write key=value with a dotted key, such as tcp.cc=vegas
    --set:1:1 `tcp..cc` is not a dotted key | write key=value with a dotted key, such as tcp.cc=vegas
    --set:1:9 no entry `bulk2` in this list; it has: 0 | -
    --set:1:19 there is no host `h9` | hosts are h1 to h4
    --set:1:18 topology is already `star`; `dumbbell` is a second one | keep one of the two
    --set:1:10 `x` would be a key inside a text, which has none | -
    "##);
}

#[test]
fn explicit_networks_are_checked_cable_by_cable() {
    let network = |nodes: &str, links: &str| {
        base(&format!("[network.topology.explicit]\nnodes = [{nodes}]\nlinks = [{links}]"), "", "idle = { flows = 1 }")
    };
    let nodes =
        r#"{ name = "alice", kind = "host" }, { name = "bob", kind = "host" }, { name = "sw", kind = "switch" }"#;
    let cases = [
        (nodes, r#"{ a = "alice", b = "sv" }, { a = "bob", b = "sw" }"#, "there is no node `sv` | did you mean `sw`?"),
        (nodes, r#"{ a = "alice", b = "sw" }"#, "no path leads from `alice` to `bob`"),
        (nodes, r#"{ a = "alice", b = "sw" }, { a = "sw", b = "alice" }"#, "a second cable between"),
        (
            nodes,
            r#"{ a = "alice", b = "sw" }, { a = "bob", b = "sw" }, { a = "alice", b = "bob" }"#,
            "has a second cable",
        ),
        (nodes, r#"{ a = "alice", b = "alice" }"#, "`alice` is linked to itself"),
        (r#"{ name = "a-b", kind = "host" }"#, "", "`a-b` is not a node's name"),
        (r#"{ name = "a", kind = "hst" }"#, "", "`hst` is not known here | did you mean `host`?"),
        (r#"{ name = "a", kind = "host" }, { name = "a", kind = "host" }"#, "", "a second node `a`"),
    ];
    for (nodes, links, expected) in cases {
        let found = problems(&network(nodes, links), &[]);
        assert!(found.iter().any(|line| line.contains(expected)), "expected {expected}\nfound {found:#?}");
    }
}

#[test]
fn mistakes_in_named_files_point_into_those_files() {
    let text = base(
        STAR,
        "",
        "trace = { file = \"flows.csv\" }\n[[traffic]]\npoisson = { load = \"5 %\", sizes = \"s.csv\" }",
    );
    let found = |flows: &str, sizes: &str| {
        let files = Memory::of(&[("flows.csv", flows), ("s.csv", sizes)]);
        let error = parse_with(&text, &[], &files).unwrap_err();
        error
            .problems()
            .iter()
            .map(|p| format!("{}:{}:{} {}", p.file, p.line, p.column, p.message))
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!([
        found("time_s,src,dst,bytes\n0,h1,h2,10\n0,h1,h9,10\n", "bytes,cdf\n10,0\n5,1\n"),
        found("time,src,dst,bytes\n", "bytes,cdf\n10,0\n20,0.5\n"),
        found("time_s,src,dst,bytes\n1,h1,h2,10\n0.5,h1,h2,10\n", "# comment\n\nbytes,cdf\n10,0.5\n20,0.4\n"),
        found("time_s,src,dst,bytes\n99,h1,h2,10\n", "sizes\n"),
        found("time_s,src,dst,bytes\n1,h1,h2,0\n", "bytes,cdf\n"),
        found("time_s,src,dst,bytes\n1,h1,h1,5\n", "bytes,cdf\n1,2\n"),
        found("time_s,src,dst,bytes\n1,h1\n", "bytes,cdf\nx,1\n"),
        found("time_s,src,dst,bytes\n1,h1,h2,5\n", "bytes,cdf\n0,1\n"),
    ].join("\n"), @r##"
    flows.csv:3:1 there is no host `h9`; hosts are h1 to h4
    s.csv:3:1 the size falls from 10 B to 5 B; sort the table by size
    flows.csv:1:1 the header of a trace is `time_s,src,dst,bytes`
    s.csv:3:1 the last probability is 0.5; it must be 1
    flows.csv:3:1 this flow begins before the one above: sort by time
    s.csv:5:1 the probability falls from 0.5 to 0.4; a cumulative distribution never falls
    flows.csv:2:1 `99` is not a time in seconds within the run of 10 s
    s.csv:1:1 the header is `sizes`; it must be `bytes,cdf` or `packets_of_1460_bytes,cdf`
    flows.csv:2:1 `0` is not a number of bytes, from 1 to 1000000000000000
    s.csv:1:1 no points after the header
    flows.csv:2:1 `h1` would send to itself
    s.csv:2:1 the probability 2 is outside 0..1
    flows.csv:2:1 2 columns; a flow has 4: time_s,src,dst,bytes
    s.csv:2:1 `x` is not a number
    s.csv:2:1 the mean size is 0 B; it must be at least 1 B
    "##);
}

#[test]
fn a_mistake_in_the_policys_file_is_reported_there() {
    let text = format!("{}[policy]\nfile = \"p.toml\"\nperiod = \"2 s\"\n", base(STAR, "", BULK));
    let policy = |when: &str| {
        format!("mode = \"enforce\"\nperiod = \"60 s\"\n[[rule]]\nname = \"a\"\n{when}\nset = {{ cwnd_clamp = 9 }}\n")
    };
    let place = |when: &str, period: &str| {
        let files = Memory::of(&[("p.toml", &policy(when))]);
        let error = parse_with(&text.replace("2 s", period), &[], &files).expect_err("this policy is wrong");
        let problem = &error.problems()[0];
        (problem.file.clone(), problem.line, problem.column)
    };
    assert_eq!(place("when = \"network.live_flow > 2\"", "2 s"), ("p.toml".into(), 5, 9), "in an expression");
    assert_eq!(place("wenn = \"true\"", "2 s").0, "p.toml");
    assert_eq!(place("when = \"true\"", "2 min").0, "a.toml", "a period longer than the run");
}

#[test]
fn labels_are_of_hosts_that_exist() {
    let label = |lines: &str| traffic(&format!("{BULK}\n[policy]\n[[policy.label]]\n{lines}"));
    refused(&[
        (label("hosts = [\"h1\", \"x*\"]\nset = { a = \"b\" }"), "10:16 there is no host `x*` | hosts are h1 to h4"),
        (label("hosts = [\"h1\"]\nset = \"storage\""), "11:7 labels are a table, such as `{ role = \"storage\" }`"),
        (label("set = { a = \"b\" }"), "9:1 an entry of `label` lacks `hosts`"),
        (label("hosts = [\"*\"]\nset = { a = 1 }"), "11:13 "),
    ]);
}

#[test]
fn enforcers_and_losses_are_checked() {
    let enforcer = |lines: &str| traffic(&format!("{BULK}\n[enforcer]\n{lines}"));
    let rule = |line: &str| enforcer(&format!("at = \"s1\"\n[[enforcer.rule]]\n{line}"));
    let loss = |lines: &str| network(&format!("[[network.loss]]\n{lines}"));
    refused(&[
        (enforcer("at = \"s1\""), "8:1 `[enforcer]` lacks `rule`"),
        (enforcer("at = \"s1\"\nrule = []"), "10:8 an enforcer without a rule enforces nothing"),
        (
            enforcer("at = \"s2\"\nrule = [{ cc = \"bbr\" }]"),
            "9:6 there is no node `s2` | hosts are h1 to h4; switches are s1",
        ),
        (rule("cc = \"bbrr\""), "11:6 unknown algorithm `bbrr` | did you mean `bbr`?"),
        (rule("src = \"h1\""), "10:1 a rule has one of `cc`, `echo = true` and `mark`"),
        (rule("cc = \"bbr\"\necho = true"), "11:6 a rule has one of `cc`, `echo = true` and `mark`"),
        (rule("echo = true\nwindow_total = \"1 MB\""), "12:16 a total of windows binds flows that are enforced"),
        (rule("mark = \"0 %\""), "11:8 "),
        (
            traffic(&format!("{BULK}\n[[enforcer]]\nat = \"s1\"\nrule = [{{ cc = \"bbr\" }}]\n"))
                + "[[enforcer]]\nat = \"s1\"\nrule = [{ echo = true }]\n",
            "12:1 two enforcers are at `s1` | put the rules of both into one `[[enforcer]]`",
        ),
        (rule("cc = \"bbr\"\nsrc = \"h9\""), "12:7 there is no host `h9`"),
        (rule("cc = \"bbr\"\ndst = \"10.0.0.0/99\""), "12:7 `10.0.0.0/99` has a length of 99"),
        (rule("cc = \"bbr\"\nport = 0"), "12:8 "),
        (rule("cc = \"bbr\"\nwindow_total = \"1 B\""), "12:16 `1 B` is out of range"),
        (rule("cc = \"bbr\"\nwindow_total = \"2 GB\""), "12:16 `2 GB` is out of range"),
        (rule("cc = \"bbr\"\nprot = 80"), "12:1 a rule of the enforcer has no key `prot` | did you mean `port`?"),
        (enforcer("at = \"s1\"\nbuffer = \"1 kB\"\nrule = [{ cc = \"bbr\" }]"), "10:10 `1 kB` is out of range"),
        (
            base(
                &format!("{STAR}\n[[network.failure]]\nlink = \"h1-s1\"\nat = \"1 s\""),
                "",
                &format!("{BULK}\n[enforcer]\nat = \"s1\"\nrule = [{{ cc = \"bbr\" }}]"),
            ),
            "12:6 when links fail, flows could be rerouted around an enforcer at a switch",
        ),
        (network("host_jitter = \"0 us\"\n"), "4:15 `0 s` is out of range"),
        (loss("link = \"s1->h1\""), "4:1 a loss lacks `probability`"),
        (loss("link = \"s1->h9\"\nprobability = \"1 %\""), "5:8 there is no node `h9`"),
        (loss("link = \"s1->h1\"\nprobability = \"101 %\""), "6:15 "),
    ]);
}
