//! State parity: an algorithm's native build does exactly what it does in the kernel, to the byte.
//!
//! The tracing build of each algorithm (`bpf/trace.c`) records every call of its hooks on live connections: many of random
//! sizes, with pauses and changes of algorithm, through rates and queues that change, losses and marks. Each record is
//! replayed by the native build, which must write the same bytes, return the same values, and call the same services.
//!
//! OPENTCP_PARITY_CALLS sets the number of compared calls per algorithm (10,000 by default).

use crate::support::{self, Path, algorithm, choose};
use congestion::Algorithm;
use congestion::Hook;
use congestion::replay::{Difference, Event, layout};
use congestion::replay_watch::Watch;
use kernel::{Reader, Trace};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{Random, asked};

/// Compared calls of each algorithm.
const CALLS: u64 = 10_000;

/// How long a path keeps its rate, queue, losses and marks.
const ROUND: Duration = Duration::from_millis(1500);

/// Bytes of a flow; sizes are drawn evenly on a logarithmic scale.
const FLOW_BYTES: [u64; 2] = [1 << 12, 1 << 21];

/// A path of one round.
struct Weather {
    rate_mbit: u32,
    queue_bytes: u32,
    /// Of 65,536 packets.
    loss: u32,
    mark: u32,
}

/// From calm to rough: queues that overflow, marks as of a shallow threshold, random losses, all of it.
const WEATHERS: [Weather; 5] = [
    Weather { rate_mbit: 400, queue_bytes: 200_000, loss: 0, mark: 0 },
    Weather { rate_mbit: 800, queue_bytes: 400_000, loss: 60, mark: 2000 },
    Weather { rate_mbit: 200, queue_bytes: 400_000, loss: 0, mark: 8000 },
    Weather { rate_mbit: 300, queue_bytes: 100_000, loss: 600, mark: 0 },
    Weather { rate_mbit: 100, queue_bytes: 600_000, loss: 100, mark: 20_000 },
];

/// Bytes of a flow.
fn size(random: &mut Random) -> usize {
    let doublings = (FLOW_BYTES[1] / FLOW_BYTES[0]).ilog2();
    let base = FLOW_BYTES[0] << random.below(u64::from(doublings));
    (base + random.below(base)) as usize
}

/// The replay's findings for one algorithm.
struct Tally {
    algorithm: &'static Algorithm,
    watch: Watch,
    calls: BTreeMap<Hook, u64>,
    differing_bytes: usize,
    /// The first few calls that differ.
    examples: Vec<(Hook, u64, Vec<Difference>)>,
}

impl Tally {
    fn new(algorithm: &'static Algorithm) -> Tally {
        let watch = Watch::new(algorithm.ops());
        Tally { algorithm, watch, calls: BTreeMap::new(), differing_bytes: 0, examples: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) {
        let event = Event::parse(bytes).unwrap_or_else(|error| panic!("{error}"));
        self.watch.see(&event);
        let Event::Call(call) = event else { return };
        *self.calls.entry(call.hook).or_default() += 1;
        let differences = call.replay(self.algorithm);
        self.differing_bytes += differences.iter().map(Difference::bytes).sum::<usize>();
        if !differences.is_empty() && self.examples.len() < 5 {
            self.examples.push((call.hook, call.head.argument, differences));
        }
    }

    fn total(&self) -> u64 {
        self.calls.values().sum()
    }
}

#[test]
fn every_recorded_call_is_repeated_to_the_byte() {
    let Some(kernel) = support::kernel() else { return };
    let wanted = asked("OPENTCP_PARITY_CALLS").unwrap_or(CALLS);
    let traces: Vec<Trace> =
        kernel::builtins().map(|name| kernel.trace(name).unwrap_or_else(|error| panic!("{error}"))).collect();
    let tallies: Vec<RefCell<Tally>> = kernel::builtins()
        .map(|name| RefCell::new(Tally::new(Algorithm::named(name).expect("both crates build cc/"))))
        .collect();
    let readers: Vec<Reader<'_>> = traces
        .iter()
        .zip(&tallies)
        .map(|(trace, tally)| trace.reader(|bytes| tally.borrow_mut().take(bytes)).expect("a buffer can be mapped"))
        .collect();

    let start = Instant::now();
    // ten times as long as on an idle machine: a skipped call can cause timeouts of a connection
    let patience = Duration::from_mins(2) + Duration::from_millis(wanted * 20);
    for (round, weather) in (0_u64..).zip(WEATHERS.iter().cycle()) {
        if tallies.iter().all(|tally| tally.borrow().total() >= wanted) {
            break;
        }
        assert!(start.elapsed() < patience, "after {patience:?}: {:?}", totals(&tallies));
        play(round, weather, &traces, &|| {
            for reader in &readers {
                reader.drain().expect("a buffer can be read");
            }
        });
    }
    report(&traces, &tallies, start.elapsed());
    for tally in &tallies {
        let tally = tally.borrow();
        assert_eq!(tally.differing_bytes, 0, "{}: {:#?}", tally.algorithm.name(), tally.examples);
    }
}

fn totals(tallies: &[RefCell<Tally>]) -> Vec<(&'static str, u64)> {
    tallies.iter().map(|tally| tally.borrow()).map(|tally| (tally.algorithm.name(), tally.total())).collect()
}

/// Prints the number of compared calls, and of those that could not be.
fn report(traces: &[Trace], tallies: &[RefCell<Tally>], took: Duration) {
    println!("state parity in {:.1} s", took.as_secs_f64());
    for (trace, tally) in traces.iter().zip(tallies) {
        let tally = tally.borrow();
        println!(
            "{}: {} calls compared, {} bytes differ; not recorded: {} (buffer full), {} (kernel's count), {:?}",
            tally.algorithm.name(),
            tally.total(),
            tally.differing_bytes,
            trace.lost().expect("a map can be read"),
            trace.skipped().expect("programs can be asked"),
            tally.watch.missing(),
        );
        println!("    {:?}", tally.calls);
    }
}

/// One connection of each algorithm after the other, all algorithms at once, on such a path.
fn play(round: u64, weather: &Weather, traces: &[Trace], drain: &dyn Fn()) {
    let path = Path::new(weather.rate_mbit, weather.queue_bytes);
    // Bursts of single segments: more ACKs, and losses of one.
    path.ip_at_hosts("link set host0 gso_max_segs 2");
    let source = format!(
        "#define SEED {}u\n#define LOSS {}u\n#define MARK {}u\n{}",
        round + 1,
        weather.loss,
        weather.mark,
        include_str!("../../../../bpf/path.c")
    );
    let object = support::compile_to_file("path", &source);
    for interface in ["veth0", "veth1"] {
        path.tc_at_bottleneck(&format!("qdisc add dev {interface} clsact"));
        path.tc_at_bottleneck(&format!(
            "filter add dev {interface} egress bpf direct-action object-file {} section tc",
            object.display()
        ));
    }
    let names: Vec<&str> = traces.iter().map(Trace::name).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0_u64..)
            .zip(&names)
            .map(|(i, name)| {
                let (path, names, over) = (&path, &names, &over);
                scope.spawn(move || {
                    let mut random = Random(round * 1000 + i);
                    while !over.load(Ordering::Relaxed) {
                        carry(path, name, names, &mut random);
                    }
                })
            })
            .collect();
        let start = Instant::now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            over.store(start.elapsed() > ROUND, Ordering::Relaxed);
            drain();
            thread::sleep(Duration::from_millis(1));
        }
    });
    drop(path);
    drain();
}

/// One connection: sometimes with a pause, sometimes with a change to another algorithm and back.
fn carry(path: &Path, name: &str, names: &[&str], random: &mut Random) {
    let mut connection = path.connect(name, name);
    connection.carry(size(random));
    match random.below(4) {
        0 => thread::sleep(Duration::from_millis(random.below(400))),
        1 if begins(name) => {
            let other = names[random.below(names.len() as u64) as usize];
            if begins(other) {
                choose(&connection.source, other).expect("it is loaded");
                connection.carry(size(random));
                choose(&connection.source, name).expect("it is loaded");
            }
        }
        _ => {}
    }
    connection.carry(size(random));
    assert_eq!(algorithm(&connection.source), name);
    connection.close();
}

/// Whether it has an init. One without does not notice that a connection belonged to another algorithm for a while, and the
/// check would count skipped ACKs.
fn begins(name: &str) -> bool {
    let name = name.strip_prefix("tr_").expect("a traced algorithm's name");
    Algorithm::named(name).expect("it is built in").ops().init.is_some()
}

#[test]
fn the_record_is_laid_out_as_the_replay_reads_it() {
    let object = support::file("newreno.trace.o", kernel::traced_object("newreno").expect("it is built in"));
    let btf = Btf::from_path(&object).expect("the object describes its types");
    let mut names = Vec::new();
    let record: Struct<'_> = btf.type_by_name("trace_record").expect("trace.c declares it");
    for part in record.iter() {
        let part: Struct<'_> = btf.type_by_id(part.ty).expect("its parts are structures");
        for member in part.iter() {
            names.push(member.name.expect("members have names").to_string_lossy().into_owned());
        }
    }
    // One array of the C structure stands for six words.
    let at = names.iter().position(|name| name == "rtt_min").expect("trace.c has it");
    names.splice(at..=at, ["t0", "v0", "t1", "v1", "t2", "v2"].map(|which| format!("rtt_min_{which}")));
    assert_eq!(names, layout());
}
