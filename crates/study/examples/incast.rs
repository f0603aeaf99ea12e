//! The table of docs/incast.md: `cargo run --release -p study --example incast`, in the project's folder; two minutes.
use results::RunResults;
use study::{Event, Failure, Monitor, RunRequest, Stop, simulate};

const POLICY: &str = "policy.file=../policies/incast.toml";
const NONE: &str = "policy.file=none";
/// The hosts' name, and the settings.
const HOSTS: [(&str, &[&str]); 6] = [
    ("CUBIC, minimum RTO 200 ms", &[NONE]),
    ("CUBIC, minimum RTO 2 ms", &[NONE, "tcp.rto_min=2 ms"]),
    ("CUBIC, ICTCP", &[NONE, "tcp.ictcp=true"]),
    ("DCTCP", &[NONE, "tcp.cc=dctcp"]),
    ("CUBIC with the policy", &[POLICY]),
    ("DCTCP with the policy", &[POLICY, "tcp.cc=dctcp"]),
];

fn main() -> Result<(), Failure> {
    println!("| servers | hosts | reads | p50, ms | p99, ms | packets dropped | p99 of flows < 100 kB, ms |");
    println!("|---|---|---|---|---|---|---|");
    for servers in [8, 16, 32, 64, 128, 256] {
        for (name, settings) in HOSTS {
            let mut request = RunRequest::new("scenarios/incast-policy.toml");
            // handshakes that lose their SYNs end after 3 s
            let common = ["duration=8 s", "measure.warmup=3500 ms"].iter().chain(settings).map(ToString::to_string);
            request.sets = common.chain([format!("traffic.reads.incast.senders={servers}")]).collect();
            simulate(&request, Monitor::new(&|_: Event<'_>| (), &Stop::default()), |run| {
                println!("| {servers} | {name} | {} |", cells(&run));
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn cells(run: &RunResults) -> String {
    let extra = |name: &str| run.summary.extra.get(name).copied().unwrap_or(f64::NAN);
    let is_short = |flow: &&results::FlowRow| &*flow.group == "background" && flow.bytes.is_some_and(|n| n < 100_000);
    let mut short: Vec<u64> =
        run.flows.iter().filter(is_short).filter_map(|flow| Some(flow.end_ns? - flow.start_ns)).collect();
    short.sort_unstable();
    let p99 = short.get((short.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0);
    let dropped: u64 = run.links.iter().map(|link| link.dropped).sum();
    format!(
        "{} | {:.2} | {:.2} | {dropped} | {:.2}",
        extra("reads.rounds_completed"),
        extra("reads.round_ms_median"),
        extra("reads.round_ms_p99"),
        p99 as f64 / 1e6
    )
}
