//! What notifications make of the state, without a target: order, deletes, clocks, limits.

use super::proto::{Notification, Path, PathElem, TypedValue, Update, typed_value};
use super::state::State;
use super::{Login, Options, request};
use crate::{Neighbour, PortCounters, ReadError};
use proptest::prelude::*;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use units::{Rate, Time};

const SECOND: i64 = 1_000_000_000;
/// The target's clock at the beginning.
const BEGAN: i64 = 1_790_000_000 * SECOND;

#[test]
fn the_messages_are_those_of_the_definition() {
    let first = include_str!("proto.rs").lines().next().unwrap_or_default();
    let named = first.split(' ').next_back().unwrap_or_default().trim_end_matches('.');
    let hash = Sha256::digest(include_bytes!("gnmi.proto"));
    let same = (0..32).all(|i| named.get(2 * i..2 * i + 2) == Some(format!("{:02x}", hash[i]).as_str()));
    assert!(same && named.len() == 64, "run tools/gnmi: {first}");
}

fn path(text: &str) -> Path {
    let element = |element: &str| {
        let (name, key) = element.split_once('[').unwrap_or((element, ""));
        let key = key.trim_end_matches(']').split_once('=');
        let key = key.map(|(key, value)| (key.to_string(), value.to_string())).into_iter().collect();
        PathElem { name: name.to_string(), key }
    };
    Path { elem: text.split('/').filter(|element| !element.is_empty()).map(element).collect(), ..Path::default() }
}

fn number(text: &str, value: u64) -> Update {
    let value = TypedValue { value: Some(typed_value::Value::UintVal(value)) };
    Update { path: Some(path(text)), val: Some(value) }
}

fn text(at: &str, value: &str) -> Update {
    let value = TypedValue { value: Some(typed_value::Value::StringVal(value.to_string())) };
    Update { path: Some(path(at)), val: Some(value) }
}

fn octets(port: &str, value: u64) -> Update {
    number(&format!("/interfaces/interface[name={port}]/state/counters/in-octets"), value)
}

fn at(seconds: i64, update: Vec<Update>) -> Notification {
    Notification { timestamp: BEGAN + seconds * SECOND, update, ..Notification::default() }
}

fn deletes(seconds: i64, paths: &[&str]) -> Notification {
    Notification { delete: paths.iter().map(|text| path(text)).collect(), ..at(seconds, Vec::new()) }
}

/// Takes notifications, each with when it came, in seconds.
fn state(notifications: impl IntoIterator<Item = (u64, Notification)>) -> State {
    let mut state = State::new();
    for (now, notification) in notifications {
        state.notify(&notification, Time::from_secs(now)).unwrap();
    }
    state
}

fn names(state: &mut State) -> Vec<String> {
    state.answer("s").ports.into_iter().map(|port| port.name).collect()
}

fn only(state: &mut State) -> PortCounters {
    let mut ports = state.answer("s").ports;
    assert_eq!(ports.len(), 1);
    ports.remove(0)
}

#[test]
fn an_older_value_does_not_replace_a_newer() {
    let mut state =
        state([(0, at(10, vec![octets("a", 5)])), (1, at(9, vec![octets("a", 4)])), (1, at(10, vec![octets("a", 6)]))]);
    assert_eq!(only(&mut state).received.bytes, Some(6));
    assert!(!state.is_fresh());
    state.notify(&at(9, vec![octets("a", 7)]), Time::from_secs(2)).unwrap();
    state.notify(&at(10, vec![octets("a", 6)]), Time::from_secs(2)).unwrap();
    assert!(!state.is_fresh(), "the same sample twice");
    state.notify(&at(11, vec![octets("a", 7)]), Time::from_secs(2)).unwrap();
    assert!(state.is_fresh());
}

#[test]
fn late_notifications_change_no_rate() {
    let mut state = state([(0, at(0, vec![octets("a", 0)]))]);
    let first = only(&mut state).received.at.unwrap();
    state.notify(&at(10, vec![octets("a", 1)]), Time::from_secs(50)).unwrap();
    let second = only(&mut state).received.at.unwrap();
    assert_eq!(second.saturating_sub(first), Time::from_secs(10));
}

#[test]
fn times_before_and_after_a_clock_was_set_are_not_compared() {
    let day = 86_400;
    let mut state = state([(0, at(0, vec![octets("a", 0), octets("b", 0)]))]);
    let times = |state: &mut State| -> Vec<Option<Time>> {
        state.answer("s").ports.iter().map(|port| port.received.at).collect()
    };
    assert!(times(&mut state).iter().all(Option::is_some));
    state.notify(&at(-day, vec![octets("a", 1)]), Time::from_secs(10)).unwrap();
    assert!(state.is_fresh(), "the older time is the newer value");
    assert_eq!(times(&mut state), [None, None]);
    state.notify(&at(10 - day, vec![octets("a", 2), octets("b", 2)]), Time::from_secs(20)).unwrap();
    assert!(times(&mut state).iter().all(Option::is_some));
    // other leaves may have any time
    state
        .notify(&at(-9 * day, vec![text("/interfaces/interface[name=a]/state/oper-status", "UP")]), Time::from_secs(21))
        .unwrap();
    assert!(times(&mut state).iter().all(Option::is_some));
}

#[test]
fn a_target_without_a_clock_is_timed_here() {
    let none = |value| Notification { timestamp: 0, ..at(0, vec![octets("a", value)]) };
    let mut state = state([(5, none(1))]);
    let first = only(&mut state).received.at.unwrap();
    state.notify(&none(2), Time::from_secs(15)).unwrap();
    let port = only(&mut state);
    assert_eq!((port.received.bytes, port.received.at.unwrap().saturating_sub(first)), (Some(2), Time::from_secs(10)));
}

#[test]
fn deletes_remove_what_is_below_them() {
    let all = || {
        let queue = |port: &str, queue: &str| {
            format!(
                "/qos/interfaces/interface[interface-id={port}]/output/queues/queue[name={queue}]/state/transmit-pkts"
            )
        };
        let neighbour =
            |id: u32| format!("/lldp/interfaces/interface[name=a]/neighbors/neighbor[id={id}]/state/system-name");
        let status = "/interfaces/interface[name=a]/state/oper-status";
        let mut updates = vec![octets("a", 1), octets("b", 1), text(status, "UP")];
        updates.extend([number(&queue("a", "0"), 1), number(&queue("a", "1"), 1), number(&queue("b", "0"), 1)]);
        updates.extend([text(&neighbour(1), "one"), text(&neighbour(2), "two")]);
        at(0, updates)
    };
    // ports; then of port a: bytes, up, queues, neighbour
    let after = |paths: &[&str]| {
        let mut state = state([(0, all()), (1, deletes(1, paths))]);
        let ports = state.answer("s").ports;
        let a = ports.iter().find(|port| port.name == "a");
        let of_a = a.map(|a| (a.received.bytes, a.up, a.queues.len(), a.neighbour.as_ref().map(|n| n.system.clone())));
        (ports.len(), of_a)
    };
    let one = || Some("one".to_string());
    // two neighbours are a segment
    assert_eq!(after(&[]), (2, Some((Some(1), Some(true), 2, None))));
    assert_eq!(
        after(&["/lldp/interfaces/interface[name=a]/neighbors/neighbor[id=2]"]),
        (2, Some((Some(1), Some(true), 2, one())))
    );
    assert_eq!(after(&["/interfaces/interface[name=a]"]), (1, None));
    assert_eq!(after(&["/interfaces/interface[name=*]/state/counters"]), (1, Some((None, Some(true), 2, None))));
    assert_eq!(after(&["/interfaces/interface[name=a]/state/oper-status"]), (2, Some((Some(1), None, 2, None))));
    assert_eq!(after(&["/qos/interfaces/interface[interface-id=a]/output"]), (2, Some((Some(1), Some(true), 0, None))));
    assert_eq!(
        after(&["/qos/interfaces/interface/output/queues/queue[name=0]"]),
        (2, Some((Some(1), Some(true), 1, None)))
    );
    assert_eq!(
        after(&["/interfaces/interface[name=a]/state/coun", "/system"]),
        (2, Some((Some(1), Some(true), 2, None)))
    );
    assert_eq!(after(&["/"]), (0, None));
}

#[test]
fn an_atomic_notification_replaces_what_is_below_its_prefix() {
    let queue = "/qos/interfaces/interface[interface-id=a]/output/queues/queue[name=0]/state/dropped-pkts";
    let mut state = state([(0, at(0, vec![octets("a", 1), octets("b", 1), number(queue, 3)]))]);
    let whole = Notification {
        prefix: Some(path("/openconfig-interfaces:interfaces")),
        atomic: true,
        ..at(1, vec![number("interface[name=c]/state/counters/in-octets", 1)])
    };
    state.notify(&whole, Time::from_secs(1)).unwrap();
    assert_eq!(names(&mut state), ["c"]);
    state.notify(&at(2, vec![octets("a", 2)]), Time::from_secs(2)).unwrap();
    assert_eq!(state.answer("s").ports[0].queues[0].dropped, Some(3), "queues are elsewhere");
}

#[test]
fn speeds_and_names_are_openconfigs() {
    let speed = |value: &str| {
        let at_port = "/interfaces/interface[name=a]/ethernet/state/port-speed";
        only(&mut state([(0, at(0, vec![text(at_port, value)]))])).rate
    };
    assert_eq!(speed("SPEED_2500MB"), Some(Rate::from_mbps(2_500)));
    assert_eq!(speed("oc-eth:SPEED_800GB"), Some(Rate::from_gbps(800)));
    for odd in ["SPEED_UNKNOWN", "SPEED_0GB", "SPEED_99999999GB", "SPEED_10", "10GB", "SPEED_GB", ""] {
        assert_eq!(speed(odd), None, "{odd}");
    }
    let neighbour = |leaf: &str, value: &str| {
        text(&format!("/lldp/interfaces/interface[name=a]/neighbors/neighbor[id=7]/state/{leaf}"), value)
    };
    let mut state =
        state([(0, at(0, vec![octets("a", 1), neighbour("chassis-id", "00:01"), neighbour("port-description", "p")]))]);
    let expected = Neighbour { system: "00:01".into(), port: "p".into() };
    assert_eq!(only(&mut state).neighbour, Some(expected));
}

#[test]
fn a_hostile_target_is_bounded() {
    let mut state = State::new();
    let queue = |i: usize| {
        number(
            &format!("/qos/interfaces/interface[interface-id=a]/output/queues/queue[name={i}]/state/dropped-pkts"),
            1,
        )
    };
    let error = state.notify(&at(0, (0..40_000).map(queue).collect()), Time::ZERO).unwrap_err();
    assert_eq!(error, ReadError::Beyond { what: "queues", most: 32_768 });
    state.notify(&at(0, vec![octets("a", 1)]), Time::ZERO).unwrap();
    assert_eq!(only(&mut state).queues.len(), 64);
    // each of these looks at all queues
    let wild = ["/qos/interfaces/interface[interface-id=*]/output/queues/queue[name=none]"; 1000];
    let error = state.notify(&deletes(1, &wild), Time::ZERO).unwrap_err();
    assert!(matches!(error, ReadError::Beyond { what: "entities that a notification deletes", .. }));
}

proptest! {
    /// No bytes make the reader fail in another way than by an error.
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200), now in 0..1000u64) {
        if let Ok(notification) = Notification::decode(&bytes[..]) {
            let mut state = State::new();
            let _ = state.notify(&notification, Time::from_secs(now));
            let _ = state.answer("s");
        }
    }

    /// Nor do odd values at known paths, with any timestamps.
    #[test]
    fn any_values_are_taken(values in prop::collection::vec((any::<i64>(), 0..6u8, any::<u64>(), ".{0,20}"), 0..20)) {
        let mut state = State::new();
        for (timestamp, kind, number, text) in values {
            let value = match kind {
                0 => typed_value::Value::UintVal(number),
                1 => typed_value::Value::IntVal(number as i64),
                2 => typed_value::Value::DoubleVal(f64::from_bits(number)),
                3 => typed_value::Value::StringVal(text),
                4 => typed_value::Value::JsonVal(text.into_bytes()),
                _ => typed_value::Value::JsonIetfVal(format!("{{\"{text}\": {number}}}").into_bytes()),
            };
            let mut update = octets("a", 0);
            update.val = Some(TypedValue { value: Some(value) });
            let notification = Notification { timestamp, update: vec![update], ..Notification::default() };
            state.notify(&notification, Time::from_secs(1)).unwrap();
            let _ = state.answer("s");
        }
    }
}

#[test]
fn the_subscription_is_what_the_options_say() {
    let mut options = Options::new("s", "switch", Time::from_secs(10));
    let list = |options: &Options| match request(options).request {
        Some(super::proto::subscribe_request::Request::Subscribe(list)) => list,
        None => unreachable!("a request subscribes"),
    };
    let all = list(&options);
    assert_eq!((all.subscription.len(), all.mode, all.encoding), (6, 0, 4));
    let [counters, status, ..] = &all.subscription[..] else { panic!("{all:?}") };
    assert_eq!((counters.mode, counters.sample_interval), (2, 10_000_000_000));
    assert_eq!((status.mode, status.sample_interval), (1, 0));
    let interface = &counters.path.as_ref().unwrap().elem[1];
    assert_eq!(interface.key, BTreeMap::from([("name".to_string(), "*".to_string())]));
    (options.queues, options.neighbours) = (false, false);
    assert_eq!(list(&options).subscription.len(), 4);
}

#[test]
fn a_mistake_in_a_login_is_located_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("login.toml");
    for (text, part) in [
        ("user = \"o\"\npassword = \"secret\"", ""),
        ("user = \"o\"", ":1:1: the file lacks `password`"),
        ("user = \"o\"\npassword = \"secret\\n\"", ":2:12: only printable ASCII"),
        ("user = \"o\"\npasword = \"secret\"", "did you mean `password`"),
    ] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let said = match Login::from_file(&file) {
            Ok(login) => format!("{login:?}"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(part) && !said.contains("secret"), "{text}: {said}");
        assert_eq!(part.is_empty(), said == "Login(…)", "{said}");
    }
}

#[test]
fn interfaces_without_a_cable_are_virtual() {
    for (kind, is_virtual) in [
        ("iana-if-type:ethernetCsmacd", false),
        ("iana-if-type:softwareLoopback", true),
        ("ieee8023adLag", true),
        ("unheard-of", false),
    ] {
        let said = text("/interfaces/interface[name=a]/state/type", kind);
        assert_eq!(only(&mut state([(1, at(1, vec![octets("a", 1), said]))])).is_virtual, is_virtual, "{kind}");
    }
}
