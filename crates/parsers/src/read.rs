//! Each parser, down to what reads its result.

use audit::{Filter, read as read_audit, verify};
use bus::{FileStore, Measurement, Report, Request, Store as _, hello};
use collect::flows::{Exporter, Flows, Protocol, Racks, Settings};
use congestion::replay::Event;
use fleet::{KeyRing, Statement, Token};
use oracle::Shared;
use packet_io::{Ethernet, OwnedFrame, VnetHeader, segment, tuple};
use policy::{Cue, CueError, Gate, Identity, Known, NetworkView, OracleKey, Policy, PublicKeys};
use scenario::{Disk, Graph, Input, Scenario, SizeDistribution};
use std::cell::RefCell;
use std::fs;
use std::net::IpAddr;
use tempfile::TempDir;
use units::Time;

/// The key that signed the seeds.
fn key() -> OracleKey {
    OracleKey::from_secret([7; 32])
}

fn gate() -> Gate {
    let mut gate = Gate::new(key().public(), Identity { host: "h1".into(), ..Identity::default() }, None);
    gate.ask([1; 32]);
    gate
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// A CUE's body, and the body as it is once it is signed: so changes get beyond the signature.
pub fn cue(bytes: &[u8]) {
    let _ = PublicKeys::from(key().public()).open(bytes);
    let Ok(cue) = Cue::from_bytes(bytes) else { return };
    let signed = key().sign(&cue);
    match PublicKeys::from(key().public()).open(&signed) {
        Ok(opened) => assert_eq!(opened, cue, "what is read is what is written"),
        Err(CueError::Long(_)) => {}
        Err(error) => panic!("a CUE that was read and signed: {error}"),
    }
    let mut agent = policy::Agent::new(Gate::new(key().public(), Identity::default(), None));
    let _ = agent.on_cue(Time::ZERO, &signed);
    agent.on_measured(Time::ZERO, &policy::Host::default());
    let _ = agent.rules();
}

pub fn beacon(bytes: &[u8]) {
    let _ = gate().heard(bytes);
}

pub fn answer(bytes: &[u8]) {
    let _ = gate().answered(bytes);
}

pub fn report(bytes: &[u8]) {
    let Ok(report) = Report::from_bytes(bytes) else { return };
    let again = Report::from_bytes(&report.to_bytes());
    assert!(again.is_ok(), "what was read can be written and read");
}

pub fn measurement(bytes: &[u8]) {
    let _ = Measurement::is(bytes);
    let _ = Measurement::from_bytes(bytes);
}

pub fn request(bytes: &[u8]) {
    let _ = Request::from_bytes(bytes);
    let _ = hello(bytes);
}

pub fn reply(bytes: &[u8]) {
    let _ = serde_json::from_slice::<bus::Reply>(bytes);
    let _ = serde_json::from_slice::<fleet::Reply>(bytes);
}

pub fn sealed(bytes: &[u8]) {
    let sealer = bus::sealed::Sealer::new([1; 32], [0; 8]);
    let _ = bus::sealed::open(bytes, &sealer.key());
    let _ = bus::kind::Kind::of(bytes);
}

/// A token, statements of keys, and the answer to one who enrols.
pub fn enrolment(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = Token::parse(text, 0);
    let _ = Statement::parse_all(text);
    let _ = serde_json::from_slice::<fleet::Answer>(bytes);
}

pub fn http(bytes: &[u8]) {
    let _ = metrics::answer(bytes);
}

fn flows(protocol: Protocol, bytes: &[u8]) {
    let from = IpAddr::from([10, 99, 0, 1]);
    let exporter = Exporter {
        address: from,
        switch: Some("s1".into()),
        racks: Vec::new(),
        ports: Vec::new(),
        sampling: None,
        rate: None,
        settings: std::collections::BTreeMap::new(),
    };
    let settings =
        Settings { protocol, exporters: vec![exporter], window: Time::from_secs(1), keep: Time::from_secs(60) };
    let racks = Racks::new(&[("10.0.0.0/8".parse().expect("a prefix"), "r1".to_string())]);
    let mut flows = Flows::new(&settings, racks, Time::ZERO);
    // the second is read with the templates of the first
    flows.take(Time::ZERO, (from, 4000).into(), bytes);
    flows.take(Time::from_ms(1), (from, 4000).into(), bytes);
    let _ = flows.round(Time::from_secs(1));
}

pub fn sflow(bytes: &[u8]) {
    flows(Protocol::Sflow, bytes);
}

pub fn netflow(bytes: &[u8]) {
    flows(Protocol::Ipfix, bytes);
}

/// A frame behind its virtio header, as a TAP gives it: read, cut into segments, and as the enforcer sees it.
pub fn frame(bytes: &[u8]) {
    let Some((header, frame)) = bytes.split_first_chunk::<{ VnetHeader::LEN }>() else { return };
    let header = VnetHeader::from_bytes(*header);
    let _ = tuple(frame);
    let _ = Ethernet::parse(frame);
    let _ = segment(&header, frame, 1500, &mut |_| ());
    let bare = OwnedFrame::received(frame, false);
    assert!(bare.frame_bytes() <= frame.len(), "a received frame loses padding at most");
    for (mut owned, bytes) in [(OwnedFrame::new(header, frame), frame.len()), (bare.clone(), bare.frame_bytes())] {
        use enforcer::Packet as _;
        let _ = owned.header();
        owned.set_window(1000, 7);
        owned.set_timestamps(1, 2);
        assert_eq!(owned.to_vec().len(), bytes, "a frame keeps its length");
    }
}

pub fn ended_connection(bytes: &[u8]) {
    let _ = kernel::retune::Record::from_bytes(bytes);
}

pub fn traced_call(bytes: &[u8]) {
    let _ = Event::parse(bytes);
}

pub fn keys(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = OracleKey::from_hex(text);
    let _ = PublicKeys::parse(text);
    let _ = KeyRing::parse(text);
}

/// Calls `with` with a folder in which a file of this name has these bytes.
fn in_folder(name: &str, bytes: &[u8], with: impl FnOnce(&std::path::Path)) {
    thread_local!(static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) });
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a folder for temporary files")).path();
        fs::write(folder.join(name), bytes).expect("a small file");
        with(folder);
        fs::remove_file(folder.join(name)).expect("it was just written");
    });
}

pub fn audit(bytes: &[u8]) {
    in_folder("audit-00000000000000000001.jsonl", bytes, |folder| {
        let _ = verify(folder);
        let lines = read_audit(folder, Filter::default()).expect("the folder is there");
        let _ = lines.count();
    });
}

/// An entry of the store that several Oracles share.
pub fn lease(bytes: &[u8]) {
    in_folder("shared", bytes, |folder| {
        let entry = FileStore::open(folder).map(|mut store| store.get("shared"));
        if let Ok(Ok(Some(entry))) = entry {
            let _ = serde_json::from_slice::<Shared>(&entry.value);
        }
    });
}

pub fn sizes(bytes: &[u8]) {
    let _ = text(bytes).map(SizeDistribution::parse);
}

pub fn policy(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(policy) = Policy::parse("p.toml", text, Known::default()) else { return };
    let _ = policy::decide(&policy, &NetworkView::default(), &mut policy::History::default());
}

pub fn view(bytes: &[u8]) {
    let _ = text(bytes).map(NetworkView::from_json);
}

pub fn scenario(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let files = Disk { base: concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios").into() };
    let known = scenario::Known { algorithms: &["newreno", "cubic", "dctcp", "bbr"], ..scenario::Known::default() };
    let _ = Scenario::parse(&Input { name: "s.toml", text, sets: &[], known, files: &files });
}

pub fn goal(bytes: &[u8]) {
    let _ = text(bytes).map(Graph::from_goal);
}

pub fn job(bytes: &[u8]) {
    let _ = text(bytes).map(Graph::from_json);
}
