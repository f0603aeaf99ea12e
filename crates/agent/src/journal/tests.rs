//! What a journal remembers, what it takes back, and what it leaves because others have changed it.

use super::*;
use netlink_packet_route::route::{RouteAttribute, RouteMetric, RouteType};
use policy::Prefix;

fn opened(text: &[u8]) -> Result<Journal, FileError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.json");
    fs::write(&path, text).unwrap();
    Journal::open(&path)
}

#[test]
fn a_journal_that_no_agent_has_written_is_refused() {
    let with = |routes: &str, sysctls: &str| {
        format!(r#"{{"boot": "b", "namespace": 1, "routes": {{{routes}}}, "sysctls": {{{sysctls}}}}}"#)
    };
    let route = |bytes: &str| with(&format!(r#""default": {{"before": "{bytes}", "ours": []}}"#), "");
    assert!(opened(with("", "").as_bytes()).unwrap().is_empty());
    // a path outside of /proc/sys would let an edited journal write any file
    let sysctl = |name: &str| with("", &format!(r#""{name}": {{"before": "1", "ours": ["0"]}}"#));
    assert!(opened(sysctl(ECN).as_bytes()).is_ok());
    let broken = [
        sysctl("/etc/passwd"),
        sysctl("kernel.core_pattern"),
        route("0"),
        route("zz"),
        route("é"),
        with("", "").replace('1', "-1"),
        with("", "").replace('1', "1e308"),
        with("", "").replace('1', "18446744073709551616"),
        "[".repeat(100_000),
        "{\"routes\":".repeat(20_000),
        String::new(),
    ];
    for text in &broken {
        assert!(opened(text.as_bytes()).is_err(), "{}", &text[..text.len().min(80)]);
    }
    assert!(opened(&[0xff; 1000]).is_err());
}

#[test]
fn whatever_happens_to_a_byte_of_a_journal_is_an_error_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.json");
    let mut journal = Journal::open(&path).unwrap();
    journal.content.sysctls.insert(ECN.to_string(), Sysctl { before: "2".into(), ours: vec!["1".into()] });
    let route = Route { before: None, ours: vec![Bytes(to_bytes(&RouteMessage::default()))] };
    journal.content.routes.insert("default".to_string(), route);
    journal.write(&journal.content).unwrap();
    let sound = fs::read(&path).unwrap();
    let opened = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Journal::open(&path).map(|journal| journal.content)
    };
    assert_eq!(opened(&sound).unwrap(), journal.content);
    for at in 0..sound.len() {
        if let Ok(read) = opened(&sound[..at]) {
            assert_eq!(read, journal.content, "cut at {at}");
        }
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            if let Ok(read) = opened(&damaged) {
                assert_eq!(read, journal.content, "byte {at} changed by {flip}");
            }
        }
    }
    // an earlier version wrote no checksum
    let old = serde_json::to_vec(&journal.content).unwrap();
    assert_eq!(opened(&old).unwrap(), journal.content);
}

#[test]
fn bytes_that_are_no_route_are_none() {
    let good = to_bytes(&RouteMessage::default());
    let mut state = 1u64;
    for i in 0..20_000 {
        // xorshift64
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let noise: Vec<u8> = (0..i % 200).map(|_| byte()).collect();
        let _ = from_bytes(&noise);
        let _ = from_bytes(&[&good[..], &noise].concat());
    }
    assert!(from_bytes(&[]).is_none() && from_bytes(&good).is_some());
}

fn destined(to: &str, metrics: &[RouteMetric]) -> RouteMessage {
    let to: Prefix = to.parse().unwrap();
    let mut route = RouteMessage::default();
    route.header.address_family = AddressFamily::Inet;
    route.header.kind = RouteType::Unicast;
    route.header.destination_prefix_length = to.bits();
    route.attributes.push(RouteAttribute::Destination(to.address().into()));
    if !metrics.is_empty() {
        route.attributes.push(RouteAttribute::Metrics(metrics.to_vec()));
    }
    route
}

const TEN: &str = "10.0.0.0/8 tos 0 priority 0";

fn window(segments: u32) -> RouteMessage {
    destined("10.0.0.0/8", &[RouteMetric::InitCwnd(segments)])
}

fn of_routes(before: Option<&RouteMessage>, ours: &[&RouteMessage]) -> Route {
    Route { before: before.map(Bytes::of), ours: ours.iter().map(|route| Bytes::of(route)).collect() }
}

fn of_sysctl(before: &str, ours: &[&str]) -> Sysctl {
    Sysctl { before: before.into(), ours: ours.iter().map(ToString::to_string).collect() }
}

#[test]
fn a_sysctl_keeps_the_value_that_it_had_before_the_first_change() {
    let wanted = |known: Option<&Sysctl>, now: &str, value: &str| Sysctl::wanted(known, now.to_string(), value);
    assert_eq!(wanted(None, "2", "1"), Some(of_sysctl("2", &["1"])));
    assert_eq!(wanted(None, "1", "1"), None, "it has that without us, so it is nothing to be restored");
    let ours = of_sysctl("2", &["1"]);
    assert_eq!(wanted(Some(&ours), "1", "0"), Some(of_sysctl("2", &["0"])));
    assert_eq!(wanted(Some(&ours), "1", "2"), None, "back at what it was");
    assert_eq!(
        wanted(Some(&ours), "0", "1"),
        Some(of_sysctl("0", &["1"])),
        "another has changed it, and wants that back"
    );
}

#[test]
fn a_sysctl_is_restored_only_while_it_is_as_we_made_it() {
    let ours = of_sysctl("2", &["1", "0"]);
    let undoing = |now| ours.undoing(now);
    // after a crash between two values either may be in force
    assert_eq!((undoing(Some("1")), undoing(Some("0"))), (Undoing::Restore, Undoing::Restore));
    assert_eq!(undoing(Some("2")), Undoing::Nothing);
    assert_eq!((undoing(Some("3")), undoing(None)), (Undoing::Leave, Undoing::Leave));
}

#[test]
fn a_route_is_restored_only_while_it_is_as_we_made_it() {
    let (before, own, other) = (destined("10.0.0.0/8", &[]), window(20), window(33));
    let changed = of_routes(Some(&before), &[&own]);
    assert_eq!(changed.undoing(Some(&own)), Undoing::Restore);
    assert_eq!(changed.undoing(Some(&before)), Undoing::Nothing);
    assert_eq!(changed.undoing(Some(&other)), Undoing::Leave);
    assert_eq!(changed.undoing(None), Undoing::Nothing, "it is gone");
    let added = of_routes(None, &[&own]);
    assert_eq!((added.undoing(Some(&own)), added.undoing(None)), (Undoing::Restore, Undoing::Nothing));
    assert_eq!(added.undoing(Some(&other)), Undoing::Leave);
}

#[test]
fn a_route_whose_algorithm_was_unloaded_is_still_ours() {
    // the kernel shows such a route without the name; 2^16 is the lock of the algorithm
    let lock = RouteMetric::Lock(1 << 16);
    let own = destined("10.0.0.0/8", &[RouteMetric::CcAlgo("ot_yeah".into()), lock.clone()]);
    let shown = destined("10.0.0.0/8", &[lock]);
    let before = destined("10.0.0.0/8", &[]);
    assert_eq!(of_routes(Some(&before), &[&own]).undoing(Some(&shown)), Undoing::Restore);
    // a route that had the algorithm before us counts as restored without it
    assert_eq!(of_routes(Some(&own), &[&window(20)]).undoing(Some(&shown)), Undoing::Nothing);
}

#[test]
fn an_algorithm_that_the_kernel_refuses_by_now_is_left_out_of_a_route() {
    let named = destined("10.0.0.0/8", &[RouteMetric::CcAlgo("ot_yeah".into()), RouteMetric::InitCwnd(7)]);
    let asked = |route: &RouteMessage, refusal: fn(&RouteMessage) -> Option<io::ErrorKind>| {
        let mut tried = Vec::new();
        let done = set(
            |route| {
                tried.push(metrics_of(&route));
                refusal(&route).map_or(Ok(()), |kind| Err(kind.into()))
            },
            route.clone(),
        );
        (done.map_err(|error| error.kind()), tried)
    };
    let (full, rest) = ("CcAlgo(\"ot_yeah\"), InitCwnd(7)".to_string(), "InitCwnd(7)".to_string());
    assert_eq!(asked(&named, |_| None), (Ok(true), vec![full.clone()]));
    let unknown = |route: &RouteMessage| metrics_of(route).contains("CcAlgo").then_some(io::ErrorKind::InvalidInput);
    assert_eq!(asked(&named, unknown), (Ok(false), vec![full.clone(), rest.clone()]));
    // what is refused for another reason, or has no name to leave out, is not tried again
    let forbidden = |_: &RouteMessage| Some(io::ErrorKind::PermissionDenied);
    assert_eq!(asked(&named, forbidden), (Err(io::ErrorKind::PermissionDenied), vec![full]));
    assert_eq!(
        asked(&window(7), |_| Some(io::ErrorKind::InvalidInput)),
        (Err(io::ErrorKind::InvalidInput), vec![rest])
    );
}

#[test]
fn what_is_reported_of_routes_names_them_and_what_is_missing_the_same_in_one_line() {
    let said = |names: &[&str], done: &str, results: [io::Result<bool>; 2]| {
        let mut remarks = Remarks::default();
        for result in results {
            let what = remark(done, result);
            for name in names {
                remarks.add(name, what.clone());
            }
        }
        remarks.lines().collect::<Vec<_>>()
    };
    let refused = || Err(io::Error::other("no"));
    assert_eq!(said(&[TEN], "set", [Ok(true), Ok(true)]), Vec::<String>::new());
    let without = format!("route {TEN} is restored without its algorithm, which is not loaded any more");
    assert_eq!(said(&[TEN], "restored", [Ok(true), Ok(false)]), [without]);
    assert_eq!(said(&[TEN], "set", [Ok(true), refused()]), [format!("route {TEN} is not set: no")]);
    let many = ["a", "b", "c", "d", "e"];
    assert_eq!(said(&many, "set", [Ok(true), refused()]), ["5 routes are not set: no (a; b; c; ...)"]);
}

#[test]
fn a_journal_written_before_a_change_knows_both_values() {
    let mut one = Content { boot: "b".into(), ..Content::default() };
    one.sysctls.insert(ECN.into(), of_sysctl("2", &["1"]));
    one.routes.insert(TEN.into(), of_routes(None, &[&window(20)]));
    let mut other = Content::default();
    other.sysctls.insert(ECN.into(), of_sysctl("2", &["0"]));
    other.routes.insert("new".into(), of_routes(None, &[&window(30)]));
    let both = merged(&one, &other);
    assert_eq!((both.boot.as_str(), &both.sysctls[ECN]), ("b", &of_sysctl("2", &["1", "0"])));
    assert_eq!(both.routes[TEN], one.routes[TEN], "what ends is still to be restored");
    assert_eq!(both.routes["new"], other.routes["new"]);
}

#[test]
fn changes_are_reckoned_from_the_routes_as_they_were() {
    let (before, own) = (destined("10.0.0.0/8", &[RouteMetric::Mtu(1400)]), window(20));
    let added = destined("10.1.0.0/16", &[RouteMetric::InitCwnd(20)]);
    let to_add = "10.1.0.0/16 tos 0 priority 0";
    let mut content = Content::default();
    content.routes.insert(TEN.into(), of_routes(Some(&before), &[&own]));
    content.routes.insert(to_add.into(), of_routes(None, &[&added]));
    let journal = Journal { path: PathBuf::from("journal.json"), content, netlink: None, missed: BTreeMap::new() };
    let base = journal.base(&Table::new(vec![own, added.clone()])).unwrap();
    assert_eq!(base.route(TEN).map(metrics_of).as_deref(), Some("Mtu(1400)"));
    assert!(base.route(to_add).is_none());
    // where another has changed a route since, its own is where we begin
    let base = journal.base(&Table::new(vec![window(33), added])).unwrap();
    assert_eq!(base.route(TEN).map(metrics_of).as_deref(), Some("InitCwnd(33)"));
}

#[test]
fn a_journal_counts_for_its_boot_and_its_namespace_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.json");
    let here = Journal::open(&path).unwrap();
    let mut content = here.content.clone();
    content.sysctls.insert(ECN.into(), of_sysctl("2", &["1"]));
    let reads = |content: Content| {
        Journal { path: path.clone(), content: content.clone(), netlink: None, missed: BTreeMap::new() }
            .write(&content)
            .unwrap();
        Journal::open(&path).unwrap().content.sysctls.len()
    };
    assert_eq!(reads(content.clone()), 1);
    assert_eq!(reads(Content { boot: "another".into(), ..content.clone() }), 0);
    assert_eq!(reads(Content { namespace: content.namespace + 1, ..content }), 0);
}

#[test]
fn a_journal_that_lists_nothing_is_removed_and_that_twice_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.json");
    let mut journal = Journal::open(&path).unwrap();
    journal.write(&journal.content).unwrap();
    assert!(journal.is_empty() && path.exists());
    assert_eq!(journal.undo().unwrap(), Vec::<String>::new());
    assert!(!path.exists());
    assert_eq!(journal.undo().unwrap(), Vec::<String>::new());
}

#[test]
fn a_route_that_may_be_there_stays_in_the_journal() {
    let entries = BTreeMap::from([(TEN.to_string(), of_routes(Some(&destined("10.0.0.0/8", &[])), &[&window(20)]))]);
    let mut missed = BTreeMap::new();
    let mut unseen = |is_whole, table: Vec<RouteMessage>| {
        let mut kernel = Kernel { is_whole, table: Table::new(table), ..Kernel::default() };
        kernel.look_for(&entries, &mut missed);
        kernel.unseen.len()
    };
    assert_eq!(unseen(false, vec![window(20), window(20)]), 0, "it is there, twice in a dump that was interrupted");
    for _ in 0..2 * TRIES {
        assert_eq!(unseen(false, vec![]), 1, "it is in no dump, and the kernel does not answer");
        assert_eq!(unseen(true, vec![window(20), window(21)]), 1, "which of them is ours is not known");
    }
    for _ in 1..TRIES {
        assert_eq!(unseen(true, vec![]), 1, "a dump may lack it");
    }
    assert_eq!(unseen(true, vec![]), 0, "so many do not");
}

#[test]
fn what_the_kernel_answers_about_a_route_that_a_dump_lacked() {
    let answered = |answer: Option<RouteMessage>| {
        let mut table = Table::default();
        let is_gone = table.answered(TEN, 8, answer);
        (is_gone, table.route(TEN).is_some())
    };
    assert_eq!(answered(Some(window(20))), (Some(false), true));
    assert_eq!(answered(None), (Some(true), false), "no route leads there");
    assert_eq!(answered(Some(destined("0.0.0.0/0", &[]))), (Some(true), false), "only a wider one leads there");
    assert_eq!(answered(Some(destined("10.0.0.0/16", &[]))), (None, false), "a narrower one hides it");
}

#[test]
fn a_route_that_has_gone_is_no_longer_to_be_restored() {
    assert!([2, 3].map(io::Error::from_raw_os_error).iter().all(is_gone), "ENOENT, ESRCH");
    assert!(!is_gone(&io::Error::from_raw_os_error(22)), "refused, so it is still to be restored");
    assert_eq!(remark("restored", Err(io::Error::from_raw_os_error(3))), None);
}
