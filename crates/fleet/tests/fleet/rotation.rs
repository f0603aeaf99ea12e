//! Replacing the Oracle's CUE key.

use crate::common::Made;
use crate::enrolment::{Court, machine};
use fleet::{Authority, KeyRing, OracleIdentity, Role, Rotation, Statement, rotate};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn machines_follow_each_change_also_those_that_missed_some() {
    let made = Made::with(2);
    let mut always = made.oracle().identity.oracle;
    let mut seldom = always.clone();
    let first = always.keys()[0];
    let mut foreign = Made::with(1).oracle().identity.oracle;
    for round in 0..3 {
        let begun = rotate(&made.path(), Rotation::Begin).unwrap();
        assert_eq!(begun.folders.len(), 2);
        assert_eq!(begun.ring.keys().len(), 2);
        assert_eq!(fleet::Identity::load(&made.join("operator")).unwrap().oracle, begun.ring);
        let statements = made.oracle().statements;
        assert!(always.take(&statements), "round {round}");
        assert_eq!(always, begun.ring);
        assert!(!always.take(&statements), "once");
        let finished = rotate(&made.path(), Rotation::Finish).unwrap();
        assert_eq!(finished.ring.keys().len(), 1);
        assert_eq!(finished.ring.keys()[0], begun.ring.keys()[1], "the second key remains");
        // statements that are recorded change nothing
        let old = statements;
        let statements = made.oracle().statements;
        assert!(always.take(&statements) && !always.take(&old));
    }
    assert_ne!(always.keys()[0], first);
    let statements = made.oracle().statements;
    assert!(seldom.take(&statements));
    assert_eq!(seldom, always, "six changes at once");
    assert!(!foreign.take(&statements), "another fleet's keys sign nothing here");
    for number in 0..2 {
        let folder = made.join(&format!("oracle-{number}"));
        assert_eq!(OracleIdentity::load(&folder).unwrap().identity.oracle, always);
        let secret = fs::read_to_string(folder.join("oracle.key")).unwrap();
        assert_eq!(secret, fs::read_to_string(made.join("oracle-0/oracle.key")).unwrap());
        assert!(!folder.join("oracle.key.next").exists());
    }
    assert_eq!(KeyRing::parse(&always.text()).unwrap(), always);
    assert_eq!(always.text().lines().count(), 2, "the number of changes, and a key");
}

#[test]
fn a_step_that_was_interrupted_is_completed() {
    let made = Made::with(2);
    let place = |number: u8, name: &str| made.join(&format!("oracle-{number}")).join(name);
    let saved: Vec<Vec<u8>> =
        ["oracle.key", "oracle.keys", "oracle.pub"].map(|name| fs::read(place(1, name)).unwrap()).to_vec();
    let begun = rotate(&made.path(), Rotation::Begin).unwrap();
    // as if only the first folder had been written, and of the second one file
    for (name, bytes) in ["oracle.key", "oracle.keys", "oracle.pub"].into_iter().zip(&saved) {
        fs::write(place(1, name), bytes).unwrap();
    }
    let completed = rotate(&made.path(), Rotation::Begin).unwrap();
    assert!(completed.completed);
    assert_eq!(completed.ring, begun.ring);
    for name in ["oracle.key", "oracle.key.next", "oracle.keys", "oracle.pub"] {
        assert_eq!(fs::read(place(0, name)).unwrap(), fs::read(place(1, name)).unwrap(), "{name}");
    }
    let error = rotate(&made.path(), Rotation::Begin).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("--finish"), "{error}");
    // the next key alone: what a beginning leaves that is interrupted at once
    let alone = Made::with(1);
    let next = "42".repeat(32);
    fs::write(alone.join("oracle-0/oracle.key.next"), &next).unwrap();
    fs::set_permissions(alone.join("oracle-0/oracle.key.next"), fs::Permissions::from_mode(0o600)).unwrap();
    rotate(&alone.path(), Rotation::Begin).unwrap();
    rotate(&alone.path(), Rotation::Finish).unwrap();
    assert_eq!(fs::read_to_string(alone.join("oracle-0/oracle.key")).unwrap().trim(), next);
    let error = rotate(&alone.path(), Rotation::Finish).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("no rotation to finish"), "{error}");
}

#[test]
fn statements_reach_a_member_with_its_renewal_and_a_machine_with_its_enrolment() {
    let mut court = Court::new();
    let old_token = court.token(Role::Agent, &[]);
    let own = machine();
    let outcome = court.answer(&fleet::request(&old_token, &own, "h1").unwrap());
    let (key, value) = outcome.record.unwrap();
    court.registry.put(&key, value.as_bytes(), &court.oracle.identity.fleet).unwrap();
    let mut identity = fleet::enrolled(&old_token, &own, "h1", &outcome.answer, court.now).unwrap();
    let folder = court.made.join("h1");
    identity.save(&folder).unwrap();
    let ring = rotate(&court.made.path(), Rotation::Begin).unwrap().ring;
    court.oracle = court.made.oracle();
    let answer = Authority { oracle: &court.oracle }.renew(&court.registry, own.public(), court.now).answer;
    let renewed = identity.renewed(&answer, court.now).unwrap().unwrap();
    assert_eq!(renewed.oracle.as_ref(), Some(&ring));
    identity.store_keys(&folder, renewed.oracle.unwrap()).unwrap();
    assert_eq!(fleet::Identity::load(&folder).unwrap().oracle, ring);
    assert_eq!(identity.renewed(&answer, court.now).unwrap().unwrap().oracle, None, "nothing new");
    // a token made before the rotation
    let other = machine();
    let answer = court.answer(&fleet::request(&old_token, &other, "h2").unwrap()).answer;
    assert_eq!(fleet::enrolled(&old_token, &other, "h2", &answer, court.now).unwrap().oracle, ring);
}

#[test]
fn a_statement_is_read_as_written_and_every_bit_of_it_counts() {
    let made = Made::with(1);
    let before = made.oracle().identity.oracle;
    let ring = rotate(&made.path(), Rotation::Begin).unwrap().ring;
    let statement = made.oracle().statements.remove(0);
    let line = statement.text();
    assert_eq!(Statement::parse(&line).unwrap(), statement);
    assert_eq!(statement.ring(), &ring);
    let letters = line.as_bytes();
    assert!(before.clone().take(&[statement]));
    for at in 0..line.len() {
        let mut changed = letters.to_vec();
        changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
        for text in [std::str::from_utf8(&changed).unwrap(), &line[..at]] {
            if let Ok(other) = Statement::parse(text) {
                assert!(!before.clone().take(&[other]), "letter {at}");
            }
        }
    }
}
