//! Writes the seeds that programs write: `cargo run -p parsers --example write_seeds`. The others are written by hand, or recorded.

use audit::{Kind, Limits, Log, Timestamp};
use bus::sealed::Sealer;
use bus::{
    Ask, Effective, FctTimes, FileStore, InForce, Measurement, Reply, Report, Request, Store as _, Target, Telemetry,
};
use oracle::Shared;
use policy::{
    Addressees, Beacon, Cue, CueGuard, CueScope, Host, Link, OracleKey, Progress, RackPair, Sessions, Settings,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use units::{Rate, Time};

fn put(name: &str, seed: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(seed), bytes)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let key = OracleKey::from_secret([7; 32]);
    signed(&key)?;
    reports()?;
    files(&key)?;
    recorded()
}

fn signed(key: &OracleKey) -> Result<(), Box<dyn Error>> {
    let sessions = Sessions { remote: Some("10.0.0.0/8".parse()?), port: Some(443), cgroup: Some("/bulk".into()) };
    let plain = Cue {
        epoch: 41,
        id: 1,
        policy: "p".into(),
        rule: "r".into(),
        rank: 0,
        lifetime: Time::from_secs(90),
        scope: CueScope::default(),
        set: Settings { cc: Some("dctcp".into()), initial_cwnd: Some(20), ..Settings::default() },
        guard: None,
        reason: String::new(),
    };
    let rich = Cue {
        scope: CueScope {
            hosts: Addressees::UpTo(1 << 62),
            names: vec!["h*".into()],
            labels: BTreeMap::from([("rack".to_string(), "r1".to_string())]),
            sessions,
        },
        set: Settings { max_pacing_rate: Some(Rate::from_mbps(100)), ecn: Some(true), ..plain.set.clone() },
        guard: Some(CueGuard { revert_if: "host.drop_rate > 0.001".into(), hold: Time::from_secs(60) }),
        reason: "network.max_link_utilization was 0.2".into(),
        ..plain.clone()
    };
    let named = CueScope { hosts: Addressees::Named(vec!["h1".into(), "h2".into()]), ..CueScope::default() };
    put("cue", "plain", &plain.to_bytes())?;
    put("cue", "rich", &rich.to_bytes())?;
    put("cue", "named", &Cue { scope: named, ..plain.clone() }.to_bytes())?;
    put("cue", "signed", &key.sign(&plain))?;
    put("beacon", "beacon", &key.beacon(Beacon { epoch: 41, period: Time::from_secs(60), oracle: 1 }))?;
    put("answer", "two", &key.answer(40, &[[1; 32], [2; 32]]))
}

fn reports() -> Result<(), Box<dyn Error>> {
    let host = Host {
        name: "h1".into(),
        rack: "r1".into(),
        cc: "cubic".into(),
        algorithms: vec!["cubic".into(), "dctcp".into()],
        sent_segments: Some(10_000),
        retransmitted_segments: Some(11),
        srtt_us: vec![(64, 1), (108, 2)],
        labels: BTreeMap::from([("role".to_string(), "web".to_string())]),
        ..Host::default()
    };
    let link = Link {
        name: "tor1 eth0".into(),
        from: "tor1".into(),
        to: "h1".into(),
        rate: Some(Rate::from_gbps(10)),
        utilization: Some(0.5),
        drop_rate: Some(0.001),
        ..Link::default()
    };
    let mut times = FctTimes::default();
    (1..100).for_each(|us| times.record(us * 100));
    let telemetry =
        Telemetry { group: "p/r".into(), flows: 99, bytes: 1 << 20, fct_us: times.bins(), ..Telemetry::default() };
    let effective = Effective { setting: "cc".into(), asked: "dctcp".into(), connections: 3, ..Effective::default() };
    let in_force =
        InForce { policy: "p".into(), rule: "r".into(), left: Time::from_secs(30), effective: vec![effective] };
    let report = Report {
        host: host.clone(),
        links: vec![link.clone()],
        epoch: Some(41),
        of_epoch: Some(40),
        question: Some([3; 32]),
        in_force: vec![in_force],
        telemetry: vec![telemetry],
        notes: vec!["dctcp is not loaded".into()],
        ..Report::default()
    };
    put("report", "rich", &report.clone().to_bytes())?;
    put(
        "report",
        "plain",
        &Report { host: Host { name: "h1".into(), ..Host::default() }, ..Report::default() }.to_bytes(),
    )?;
    let mut sealer = Sealer::new([1; 32], [9; 8]);
    put("sealed", "report", &sealer.seal(Some(41), &report.to_bytes()))?;
    put("sealed", "question", &sealer.seal(None, &bus::kind::ask(&[3; 32])))?;
    let pair = RackPair { from: "r1".into(), to: "r2".into(), rate: Rate::from_mbps(100) };
    let measurement =
        Measurement { source: "tor1".into(), links: vec![link], matrix: vec![pair], ..Measurement::default() };
    for (i, message) in measurement.to_messages().iter().enumerate() {
        put("measurement", &i.to_string(), message)?;
    }
    let to = Target::File { name: "p.toml".into(), text: "period = \"60 s\"".into() };
    let apply = Ask::Apply { to, against: "0123456789ab".into(), allow_lacking: true, trial: None };
    let asks = [Ask::Show, apply, Ask::Pause { lasts: Some(Time::from_secs(60)) }, Ask::Resume];
    for (i, ask) in asks.into_iter().enumerate() {
        put("request", &i.to_string(), &Request::new("alice".into(), ask)?.to_bytes())?;
    }
    let replies = [Reply::answer("7", &[1, 2]), Reply::refused("7", "no".into(), true)];
    for (i, reply) in replies.iter().enumerate() {
        put("reply", &i.to_string(), reply.to_bytes().strip_prefix(bus::REPLY).unwrap_or_default())?;
    }
    Ok(())
}

fn files(key: &OracleKey) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let at = Timestamp::from_second(1_790_000_000)?;
    let mut log = Log::open(folder.path(), Limits::default(), at)?;
    log.append(at, Kind::Started, &serde_json::json!({ "policy": "p", "epoch": 41 }));
    log.append(at, Kind::Leader, &serde_json::json!({ "leads": true, "term": 3 }));
    log.sync();
    for entry in fs::read_dir(folder.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            put("audit", "log.jsonl", &fs::read(path)?)?;
        }
    }
    let store = tempfile::tempdir()?;
    let shared = Shared {
        policy: "name = \"p\"".into(),
        file: "p.toml".into(),
        progress: Progress {
            lasted: Time::from_secs(60),
            ended: Some("rolled back: it hurts".into()),
            ..Progress::default()
        },
        paused: None,
        began: 0,
    };
    FileStore::open(store.path())?.put("shared", &serde_json::to_vec(&shared)?, None)?;
    put("lease", "shared", &fs::read(store.path().join("shared"))?)?;
    put("keys", "secret", format!("{}\n", key.to_hex()).as_bytes())?;
    put("keys", "public", format!("# two are valid\n{0}\n{0}\n", key.public().to_hex()).as_bytes())?;
    put("sizes", "cdf", b"bytes,cdf\n# small\n1000,0.1\n10000,0.5\n1000000,1\n")?;
    put("journal", "journal.json", JOURNAL.as_bytes())?;
    put("reverted", "reverted.json", REVERTED.as_bytes())?;
    put(
        "view",
        "view.json",
        &fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/example-view.json"))?,
    )?;
    put("goal", "two-ranks", GOAL.as_bytes())?;
    put("job", "two-ranks.json", JOB.as_bytes())?;
    put("http", "get", b"GET /metrics HTTP/1.1\r\nHost: h1\r\n\r\n")?;
    put("http", "head", b"HEAD /healthz HTTP/1.0\n\n")
}

/// A route's message: Linux's rtmsg and the attributes RTA_DST and RTA_OIF.
const JOURNAL: &str = r#"{"boot": "b", "namespace": 1, "sysctls": {"net.ipv4.tcp_ecn": {"before": "2", "ours": ["1"]}},
"routes": {"10.0.0.0/8": {"before": null, "ours": ["0208000003fd00010000000008000100000000000a000000080004000200000000"]}}}"#;
const REVERTED: &str = r#"{"boot": "b", "rules": [{"policy": "p", "rule": "r", "until_ms": 60000, "hold_ms": 60000}]}"#;
const GOAL: &str = "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 1000b to 1 tag 7\nl2 requires l1\n}\nrank 1 {\nl1: recv 1000b from 0 tag 7\n}\n";
const JOB: &str = r#"{ "ranks": 2, "tasks": [
  { "id": "a", "rank": 0, "compute": "1 ms" },
  { "id": "b", "from": 0, "to": 1, "bytes": "1 kB", "after": ["a"] } ] }
"#;

/// What other crates have recorded, one message in hexadecimal digits a line.
fn recorded() -> Result<(), Box<dyn Error>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let bytes = |digits: &str| -> Vec<u8> {
        (0..digits.len() / 2).filter_map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()).collect()
    };
    let text = fs::read_to_string(crates.join("collect/src/openflow/tests/recorded.txt"))?;
    for (name, digits) in text.lines().filter_map(|line| line.split_once(' ')) {
        // without their header
        put("openflow", name, &bytes(digits)[8..])?;
    }
    for (i, digits) in fs::read_to_string(crates.join("collect/src/flows/recorded.txt"))?.lines().enumerate() {
        put("netflow", &format!("ipfix-{i}"), &bytes(digits))?;
    }
    by_hand()
}

/// Messages that no crate here writes, field by field.
fn by_hand() -> Result<(), Box<dyn Error>> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    // sFlow 5: a flow sample of one packet's IPv4 header, 1 in 100
    let sflow =
        [5, 1, 0x0a63_0001, 0, 1, 9, 1, 1, 76, 1, 3, 100, 0, 0, 1, 2, 1, 3, 32, 1000, 6, 0x0a01_0001, 0x0a02_0001];
    put("sflow", "sampled", &words(&[&sflow[..], &[1, 2, 0, 0]].concat()))?;
    // NetFlow 5: a header of 24 bytes and a record of 48
    let netflow =
        [0x0005_0001, 0, 0, 0, 1, 0, 0x0a01_0001, 0x0a02_0001, 0, 0x0001_0002, 2, 3000, 0, 0, 0x9c40_1389, 0x0010_0600];
    put("netflow", "version-5", &words(&[&netflow[..], &[0, 0]].concat()))?;
    // a TAP's header, Ethernet, IPv4 and TCP with timestamps and a payload of five bytes
    let mut frame = vec![0; 12];
    frame.extend([2, 0, 10, 0, 0, 2, 2, 0, 10, 0, 0, 1, 8, 0]);
    frame.extend([0x45, 2, 0, 57, 0, 1, 0x40, 0, 64, 6, 0x26, 0xba, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x9c, 0x40, 0x13, 0x89, 0, 0, 3, 0xe8, 0, 0, 0, 77, 0x80, 0x18, 1, 0xf4, 0, 0, 0, 0]);
    frame.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame.extend(b"hello");
    put("frame", "segment", &frame)?;
    let mut offloaded = frame.clone();
    // to be segmented: VIRTIO_NET_HDR_F_NEEDS_CSUM, GSO_TCPV4, headers of 66 bytes, 1448 bytes each, the checksum at 34 + 16
    offloaded[..10].copy_from_slice(&[1, 1, 66, 0, 0xa8, 5, 34, 0, 16, 0]);
    offloaded.extend([0; 4000]);
    offloaded[12 + 16..12 + 18].copy_from_slice(&4057_u16.to_be_bytes());
    put("frame", "offloaded", &offloaded)?;
    // gNMI: an update of /interfaces/interface[name=a]/state/counters/in-octets to 5
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let element = |name: &str| field(3, &field(1, name.as_bytes()));
    let key = field(2, &[field(1, b"name"), field(2, b"a")].concat());
    let interface = field(3, &[field(1, b"interface"), key].concat());
    let path = [element("interfaces"), interface, element("state"), element("counters"), element("in-octets")].concat();
    let update = field(4, &[field(1, &path), field(3, &[0x18, 5])].concat());
    put("gnmi", "octets", &field(1, &[&[0x08, 0x80, 0x80, 0x80, 0x80, 1], &update[..]].concat()))?;
    // SNMP: ifHCInOctets.1 = 1000 and ifName.1 = eth0
    let variable = |oid: &[u8], value: &[u8]| {
        let content = [&[6, oid.len() as u8], oid, value].concat();
        [&[0x30, content.len() as u8], &content[..]].concat()
    };
    let octets = variable(&[0x2b, 6, 1, 2, 1, 31, 1, 1, 1, 6, 1], &[0x46, 2, 3, 0xe8]);
    let name = variable(&[0x2b, 6, 1, 2, 1, 31, 1, 1, 1, 1, 1], b"\x04\x04eth0");
    let list = [octets, name].concat();
    put("snmp", "two-columns", &[&[0x30, list.len() as u8], &list[..]].concat())?;
    // a connection's end (bpf/agent.c) and a traced call (bpf/trace.c) of zeros
    put("ended-connection", "zeros", &[0; 160])?;
    put("traced-call", "zeros", &[0; 64])?;
    put("enrolment", "token", b"opentcp-token eyJ0eXAiOiJKV1QifQ.eyJqdGkiOiJBIn0.c2lnbmF0dXJl")
}
