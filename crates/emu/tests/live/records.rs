//! What is recorded of a connection against what the kernel knew at the instant it closed (`closes.bpf.c`), and against the counters of
//! its host, over thousands of short flows. Root only; one test at a time on a machine.

use crate::run_support::{self, machine};
use emu::{Emulated, Slowdown, Watch, emulate};
use libbpf_rs::{Link, MapCore as _, MapFlags, Object, ObjectBuilder};
use plan::sender_port;
use results::FlowRow;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use testkit::{Random, counters, scenario, scenario_with};
use units::Time;

/// Hosts that send, to one that only receives.
const SENDERS: u64 = 4;
const FLOWS: u64 = 3000;
/// Flows that begin at the same time.
const BURST: u64 = 6;
const LASTS: Time = Time::from_secs(10);
/// After the last of them.
const QUIET: Time = Time::from_ms(9500);

/// `struct connection` of `closes.bpf.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Closed {
    syn_retransmits: u32,
    syn_rtos: u32,
    retransmits: u32,
    rtos: u32,
    data_segments: u32,
    cwnd: u32,
    srtt_us: u32,
    min_rtt_us: u32,
    from: u32,
}

/// The state of a connection whose FIN was not acknowledged when the other end's arrived.
const CLOSING: u32 = 11;

impl Closed {
    /// As a flow's row has it: without what concerns the SYN.
    fn as_recorded(&self) -> [u64; 6] {
        let counters = [
            self.data_segments,
            self.retransmits - self.syn_retransmits,
            self.rtos - self.syn_rtos,
            self.cwnd,
            self.srtt_us,
            self.min_rtt_us,
        ];
        counters.map(u64::from)
    }
}

/// The same of a row.
fn recorded(row: &FlowRow) -> [u64; 6] {
    let known = |value: Option<u64>| value.unwrap_or(u64::MAX);
    [
        row.data_packets_sent,
        row.retransmits,
        row.rtos,
        u64::from(row.final_cwnd),
        known(row.srtt_us),
        known(row.min_rtt_us),
    ]
}

/// The program at the kernel's tracepoint.
struct Witness {
    _link: Link,
    object: Object,
}

impl Witness {
    fn attach() -> Witness {
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/closes.bpf.c"));
        let bytes = congestion::compile_for_bpf(source).unwrap_or_else(|error| panic!("{error}"));
        let object = ObjectBuilder::default().open_memory(&bytes).and_then(libbpf_rs::OpenObject::load).unwrap();
        let link = object.progs_mut().next().expect("it has a program").attach().unwrap();
        Witness { _link: link, object }
    }

    /// What it saw of the connection that was sent from `port`.
    fn closed(&self, port: u16) -> Option<Closed> {
        let map = self.object.maps().find(|map| map.name() == "connections").expect("it has the map");
        let bytes = map.lookup(&u32::from(port).to_ne_bytes(), MapFlags::ANY).unwrap()?;
        let words: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
        // the socket comes first, and padding last
        let [_, _, syn_retransmits, syn_rtos, retransmits, rtos, data_segments, cwnd, srtt_us, min_rtt_us, from, _] =
            words[..]
        else {
            panic!("{} words", words.len())
        };
        (from > 0).then_some(Closed {
            syn_retransmits,
            syn_rtos,
            retransmits,
            rtos,
            data_segments,
            cwnd,
            srtt_us,
            min_rtt_us,
            from,
        })
    }
}

/// Reads the senders' counters once all is quiet.
#[derive(Default)]
struct Totals {
    /// Sums over the senders; empty until then.
    sums: BTreeMap<String, u64>,
}

impl Watch for Totals {
    fn on_progress(&mut self, now: Time) -> bool {
        if now >= QUIET && self.sums.is_empty() {
            (1..=SENDERS).for_each(|n| self.add(&format!("h{n}")));
        }
        true
    }
}

impl Totals {
    fn add(&mut self, host: &str) {
        let found = emu::hosts::find(host).expect("a run is under way");
        let namespace = format!("--net={}", found.namespace().display());
        let out = Command::new("nsenter").args([&namespace, "cat", "/proc/net/snmp", "/proc/net/netstat"]).output();
        let text = String::from_utf8_lossy(&out.unwrap().stdout).into_owned();
        for (name, value) in counters(&text) {
            *self.sums.entry(name).or_default() += value;
        }
    }

    fn of(&self, name: &str) -> u64 {
        *self.sums.get(name).unwrap_or_else(|| panic!("no counter {name}"))
    }
}

/// Short flows in bursts into a queue that is too short for them, three quarters of the link's rate in all.
fn short_flows() -> Scenario {
    let (mut random, mut flows) = (Random(7), String::from("time_s,src,dst,bytes\n"));
    for flow in 0..FLOWS {
        let time = 0.01 + (flow / BURST * BURST) as f64 * 5.0 / FLOWS as f64;
        let bytes = 500 + (random.unit().powi(3) * 60_000.0) as u64;
        writeln!(flows, "{time},h{},h5,{bytes}", 1 + random.below(SENDERS)).unwrap();
    }
    let text = format!(
        r#"
        duration = "{LASTS}"
        [network]
        topology = {{ star = {{ hosts = {} }} }}
        rate = "100 Mbit/s"
        delay = "250 us"
        queue = {{ drop_tail = {{ packets = 30 }} }}
        [tcp]
        cc = "kernel:cubic"
        [[traffic]]
        trace = {{ file = "flows.csv" }}
        "#,
        SENDERS + 1
    );
    scenario_with(&text, &[("flows.csv", &flows)])
}

#[test]
fn a_flows_record_is_what_the_kernel_knew_when_it_closed() {
    let Some(_machine) = machine() else { return };
    let (witness, mut totals) = (Witness::attach(), Totals::default());
    let Emulated { results, .. } =
        emulate(&short_flows(), Slowdown::NONE, None, &mut totals).unwrap_or_else(|error| panic!("{error}"));
    let rows = &results.flows;
    let seen: Vec<(&FlowRow, Closed)> =
        rows.iter().filter_map(|row| Some((row, witness.closed(sender_port(row.flow as u32))?))).collect();
    let different: Vec<_> = seen.iter().filter(|(row, closed)| recorded(row) != closed.as_recorded()).collect();
    let count = |of: fn(&Closed) -> bool| seen.iter().filter(|(_, closed)| of(closed)).count();
    let sum = |of: fn(&FlowRow) -> u64| rows.iter().map(of).sum::<u64>();
    let of_syns = |of: fn(&Closed) -> u32| seen.iter().map(|(_, closed)| u64::from(of(closed))).sum::<u64>();
    let (syns, syn_rtos) = (of_syns(|closed| closed.syn_retransmits), of_syns(|closed| closed.syn_rtos));
    println!(
        "{} flows, {} with retransmissions, {} with RTOs, {} whose SYN was lost, {} closed before their FIN was \
         acknowledged; {} records differ from the kernel's",
        seen.len(),
        rows.iter().filter(|row| row.retransmits > 0).count(),
        rows.iter().filter(|row| row.rtos > 0).count(),
        count(|closed| closed.syn_retransmits > 0),
        count(|closed| closed.from == CLOSING),
        different.len(),
    );
    assert!(different.is_empty(), "data, retransmits, rtos, cwnd, srtt, min RTT: {:?}", &different[..1]);
    // all have ended, and the case is not trivial
    assert!(rows.iter().all(|row| row.end_ns.is_some()) && seen.len() as u64 == FLOWS);
    assert!(syns > 0 && sum(|row| row.rtos) > 0 && count(|closed| closed.from == CLOSING) > 0);
    // the hosts' own counters
    assert_eq!(sum(|row| row.retransmits) + syns, totals.of("RetransSegs"));
    assert_eq!(syns, totals.of("TCPSynRetrans"));
    assert_eq!(sum(|row| row.rtos) + syn_rtos, totals.of("TCPTimeouts"));
}

#[test]
fn a_messages_record_has_its_retransmissions() {
    let Some(_machine) = machine() else { return };
    let scenario = scenario(
        r#"
        duration = "4 s"
        [network]
        topology = { star = { hosts = 4 } }
        rate = "100 Mbit/s"
        delay = "250 us"
        queue = { drop_tail = { packets = 30 } }
        [tcp]
        cc = "kernel:cubic"
        [[traffic]]
        all_to_all = { bytes = "100 kB", rounds = 10 }
        [measure]
        messages = true
        "#,
    );
    let Some(run) = run_support::any("messages", &scenario) else { return };
    let (flows, messages) = (&run.results.flows, &run.results.messages);
    assert_eq!(messages.len(), 10 * 4 * 3, "ten rounds");
    let mut of_messages = vec![0; flows.len()];
    for message in messages {
        of_messages[message.flow as usize] += message.retransmits;
    }
    let all: u64 = of_messages.iter().sum();
    println!("{all} retransmissions of {} messages", messages.len());
    assert!(all > 0, "a queue of 30 packets is too short for three senders");
    for (flow, of_messages) in flows.iter().zip(of_messages) {
        // what follows the last message's arrival was not needed
        assert!(of_messages <= flow.retransmits && flow.retransmits <= of_messages + 3, "{of_messages}: {flow:?}");
    }
}
