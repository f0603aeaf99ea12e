//! What a switch answers, without a switch: order, limits, ends of tables, odd rows; and files of credentials.

use super::Access;
use super::interfaces::{self, Port};
use super::lldp;
use super::uptime::Uptime;
use super::walk::{Cell, Index, Row, Walk};
use crate::{Neighbour, ReadError};
use async_snmp::{Oid, Value, VarBind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use units::{Rate, Time};

const TABLE: [u32; 4] = [1, 3, 6, 1];

fn column(number: u32) -> Oid {
    Oid::from_slice(&TABLE).child(number)
}

fn number(column_number: u32, row: u32, value: u64) -> VarBind {
    VarBind::new(column(column_number).child(row), Value::Counter64(value))
}

fn two_columns() -> Walk {
    Walk::new("ports", 3, [column(1), column(2)])
}

#[test]
fn a_walk_takes_answers_that_are_cut_anywhere() {
    let mut walk = two_columns();
    assert_eq!(walk.request(), Some((vec![column(1), column(2)], 25)));
    walk.answer(&[number(1, 1, 10), number(2, 1, 20), number(1, 2, 11)], Time::ZERO).unwrap();
    assert_eq!(walk.request().unwrap().0, [column(1).child(2), column(2).child(1)]);
    // column 1 has ended (its next name is column 2's); column 2 continues, and then the agent's view ends
    let end = VarBind::new(column(2).child(2), Value::EndOfMibView);
    walk.answer(&[number(2, 1, 20), number(2, 2, 21), number(2, 2, 21), end], Time::ZERO).unwrap();
    assert_eq!(walk.request(), None);
    let rows = walk.into_rows();
    let cell = |value| Some((Cell::Number(value), Time::ZERO));
    assert_eq!(rows[&vec![1]], [cell(10), cell(20)]);
    assert_eq!(rows[&vec![2]], [cell(11), cell(21)]);
}

#[test]
fn a_walk_ends_whatever_is_answered() {
    let error = |answer: &[VarBind]| two_columns().answer(answer, Time::ZERO).unwrap_err();
    assert!(matches!(error(&[]), ReadError::Protocol(_)));
    assert!(matches!(error(&[number(1, 5, 0), number(2, 5, 0), number(1, 5, 0)]), ReadError::Protocol(_)), "no rise");
    assert!(matches!(error(&[number(1, 5, 0), number(2, 5, 0), number(1, 4, 0)]), ReadError::Protocol(_)), "a fall");
    let long = VarBind::new((0..9).fold(column(1), |oid, i| oid.child(i)), Value::Counter64(1));
    assert!(matches!(error(&[long]), ReadError::Protocol(_)));
    let many: Vec<VarBind> = (1..=4).flat_map(|row| [number(1, row, 0), number(2, row, 0)]).collect();
    assert_eq!(error(&many), ReadError::Beyond { what: "ports", most: 3 });
}

#[test]
fn a_walk_asks_for_less_of_a_switch_that_cannot_answer_as_much() {
    let mut walk = two_columns();
    let mut asked = vec![walk.request().unwrap().1];
    while walk.shrink() {
        asked.push(walk.request().unwrap().1);
    }
    assert_eq!(asked, [25, 12, 6, 3, 1]);
}

proptest! {
    /// No answer makes a walk fail in another way than by an error, and it keeps no more than it may.
    #[test]
    fn a_walk_is_bounded(answers in prop::collection::vec(prop::collection::vec((0..4u32, 0..9u32, 0..5u8), 0..20), 0..20)) {
        let mut walk = two_columns();
        for answer in answers {
            let value = |kind| match kind {
                0 => Value::EndOfMibView,
                1 => Value::OctetString(vec![b'x'; 300].into()),
                2 => Value::Null,
                3 => Value::Integer(-1),
                _ => Value::Counter32(7),
            };
            let answer: Vec<VarBind> =
                answer.iter().map(|(c, row, kind)| VarBind::new(column(*c).child(*row), value(*kind))).collect();
            if walk.request().is_none() || walk.answer(&answer, Time::ZERO).is_err() {
                break;
            }
        }
        prop_assert!(walk.len() <= 3);
    }
}

/// A row of IF-MIB: cells at the numbers of the columns, in the order of `interfaces::columns`.
fn interface(cells: &[(usize, Cell)]) -> Row {
    let mut row: Row = vec![None; interfaces::columns().count()];
    for (column, cell) in cells {
        row[*column] = Some((cell.clone(), Time::from_secs(1)));
    }
    row
}

fn text(text: &str) -> Cell {
    Cell::Bytes(text.into())
}

fn ports(rows: &[(u32, Row)]) -> Vec<Port> {
    let rows: BTreeMap<Index, Row> = rows.iter().map(|(index, row)| (vec![*index], row.clone())).collect();
    interfaces::ports(&rows, &BTreeMap::new(), &Uptime::default())
}

#[test]
fn speeds_names_and_states_are_as_if_mib_says() {
    let speed = |low: u64, high: u64| {
        let row = interface(&[(2, Cell::Number(low)), (3, Cell::Number(high))]);
        ports(&[(1, row)])[0].counters.rate
    };
    assert_eq!(speed(4_294_967_295, 40_000), Some(Rate::from_gbps(40)));
    assert_eq!(speed(1_544_000, 2), Some(Rate::from_bps(1_544_000)), "ifHighSpeed is rounded");
    assert_eq!(speed(0, 0), None);
    assert_eq!(speed(4_294_967_295, 0), None);
    assert_eq!(speed(0, u64::MAX), None, "no link is that fast");
    let named = ports(&[
        (7, interface(&[(0, text("Ethernet1")), (1, text("Front panel 1"))])),
        (8, interface(&[(1, text("Ethernet1"))])),
        (9, interface(&[(0, text("\x1b]0;")), (5, Cell::Number(2))])),
        (0, interface(&[(0, text("zero is no ifIndex"))])),
        (10, interface(&[(5, Cell::Number(4))])),
    ]);
    let all: Vec<_> =
        named.iter().map(|port| (port.counters.number, &port.counters.name[..], port.counters.up)).collect();
    assert_eq!(all, [(7, "Ethernet1", None), (8, "Ethernet1#8", None), (9, "]0;", Some(false)), (10, "10", None)]);
}

#[test]
fn interfaces_without_a_cable_are_virtual() {
    // columns 19 and 20: ifType, ifConnectorPresent (1 yes, 2 no)
    let kind = |kind: u64, connector: u64| {
        ports(&[(1, interface(&[(19, Cell::Number(kind)), (20, Cell::Number(connector))]))])[0].counters.is_virtual
    };
    assert!(!kind(6, 1), "Ethernet");
    assert!(kind(6, 2), "a VLAN of a switch that calls everything Ethernet");
    assert!(kind(24, 1) && kind(131, 1) && kind(161, 1), "loopback, tunnel, aggregate");
    let without = interface(&[(19, Cell::Number(24))]);
    assert!(ports(&[(1, without)])[0].counters.is_virtual, "without ifXTable");
    assert!(!ports(&[(1, interface(&[]))])[0].counters.is_virtual, "nothing is said");
}

#[test]
fn a_missing_direction_is_not_filled_from_the_narrow_table() {
    // received in 64 bits only: the width is one for both directions
    let row = interface(&[(6, Cell::Number(1 << 40))]);
    let narrow = BTreeMap::from([(vec![1], vec![Some((Cell::Number(5), Time::ZERO)); 2])]);
    let rows = BTreeMap::from([(vec![1], row)]);
    let port = &interfaces::ports(&rows, &narrow, &Uptime::default())[0].counters;
    assert_eq!((port.width, port.received.bytes, port.sent.bytes), (64, Some(1 << 40), None));
}

fn remote(chassis: &[u8], port_subtype: u64, port: &[u8], description: &str, system: &str) -> Row {
    let cells = [
        Cell::Number(4),
        Cell::Bytes(chassis.to_vec()),
        Cell::Number(port_subtype),
        Cell::Bytes(port.to_vec()),
        text(description),
        text(system),
    ];
    cells.into_iter().map(|cell| Some((cell, Time::ZERO))).collect()
}

#[test]
fn neighbours_are_joined_by_name_address_or_number() {
    let mac = [2, 0, 0, 0, 0, 9];
    let port = |name: &str, more: &[(usize, Cell)]| interface(&[&[(0, text(name))], more].concat());
    let local = |subtype: u64, id: &[u8], description: &str| -> Row {
        [Cell::Number(subtype), Cell::Bytes(id.to_vec()), text(description)]
            .map(|cell| Some((cell, Time::ZERO)))
            .to_vec()
    };
    let mut ports = ports(&[
        (11, port("a", &[])),
        (12, port("b", &[(4, Cell::Bytes(mac.to_vec()))])),
        (13, port("c", &[])),
        (14, port("d", &[])),
        (15, port("e", &[])),
    ]);
    let locals = BTreeMap::from([
        (vec![1], local(5, b"a", "")),
        (vec![2], local(3, &mac, "")),
        (vec![3], local(7, b"13", "")),
        (vec![5], local(5, b"no such port", "")),
    ]);
    let to = |system: &str| remote(&mac, 5, b"p1", "", system);
    let remotes = BTreeMap::from([
        (vec![0, 1, 1], to("one")),
        // again, with a newer time mark
        (vec![900, 1, 1], to("one")),
        (vec![0, 2, 1], remote(&mac, 3, &mac, "eth0", "")),
        (vec![0, 3, 1], remote(&mac, 3, &mac, "", "three")),
        // two systems behind one port
        (vec![0, 14, 1], to("four")),
        (vec![0, 14, 2], to("another")),
        (vec![0, 5, 1], to("five")),
        (vec![0, 99, 1], to("nowhere")),
    ]);
    lldp::join(&mut ports, &locals, &remotes);
    let found: Vec<_> = ports.iter().map(|port| port.counters.neighbour.clone()).collect();
    let neighbour = |system: &str, port: &str| Some(Neighbour { system: system.into(), port: port.into() });
    let address = "02:00:00:00:00:09";
    assert_eq!(found, [neighbour("one", "p1"), neighbour(address, "eth0"), neighbour("three", address), None, None]);
}

#[test]
fn a_mistake_in_a_file_of_credentials_is_located_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.toml");
    let read = |text: &str, mode: u32| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        Access::from_file(&file).map_err(|error| error.to_string())
    };
    let user = "user = \"o\"\nauth_password = \"authentication\"\n";
    assert!(matches!(read("community = \"c\"", 0o600), Ok(Access::Community(c)) if c == "c"));
    assert!(matches!(read(user, 0o600), Ok(Access::User(_))));
    assert!(matches!(
        read(&format!("{user}auth = \"SHA-512\"\nprivacy_password = \"encryption\""), 0o400),
        Ok(Access::User(_))
    ));
    for (text, mode, part) in [
        ("community = \"secret\"", 0o644, "chmod 600"),
        ("", 0o600, ":1:1: the file names neither"),
        ("comunity = \"secret\"", 0o600, "did you mean `community`"),
        ("community = secret", 0o600, ":1:13: this is not TOML"),
        ("community = 7", 0o600, "a text in quotes"),
        ("community = \"\"", 0o600, "1 to 255 bytes"),
        (
            "community = \"secret\"\nuser = \"o\"\nauth_password = \"secretsecret\"",
            0o600,
            ":2:8: `community` and `user` exclude",
        ),
        ("user = \"o\"", 0o600, "lacks `auth_password`"),
        ("user = \"o\"\nauth_password = \"secret\"", 0o600, ":2:17: this has 6 bytes; it has 8 to 255"),
        ("user = \"o\"\nauth = \"MD5\"\nauth_password = \"secretsecret\"", 0o600, ":2:8: `MD5` is not known"),
        ("user = \"o\"\nprivacy = \"AES-128\"\nauth_password = \"secretsecret\"", 0o600, "`privacy` without"),
        ("auth_password = \"secretsecret\"", 0o600, "`auth_password` is of a `user`"),
        ("[community]", 0o600, "a text in quotes"),
    ] {
        let error = read(text, mode).expect_err(text);
        assert!(error.contains(part) && error.contains("access.toml"), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let missing = Access::from_file(&folder.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("No such file"), "{missing}");
    let folder_itself = Access::from_file(folder.path()).unwrap_err().to_string();
    assert!(folder_itself.contains("no file of credentials") || folder_itself.contains("chmod"), "{folder_itself}");
    assert_eq!(format!("{:?}", read(user, 0o600).unwrap()), "User(…)");
}
