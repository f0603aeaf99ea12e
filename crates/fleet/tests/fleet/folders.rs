//! What `init` writes, and what an identity folder must be.

use crate::common::{Made, modes, now};
use fleet::{Init, OracleIdentity, Role};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_fleet_has_its_folders_and_only_their_owner_may_look() {
    let made = Made::with(3);
    let mut names: Vec<String> =
        fs::read_dir(made.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["keys", "nats", "operator", "oracle-0", "oracle-1", "oracle-2"]);
    for (path, mode) in modes(&made.path()) {
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    let oracles: Vec<OracleIdentity> =
        (0..3).map(|number| OracleIdentity::load(&made.join(&format!("oracle-{number}"))).unwrap()).collect();
    assert_eq!(oracles.iter().map(|one| one.number).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(oracles[0].identity.oracle, oracles[2].identity.oracle, "one CUE key for all");
    assert_ne!(oracles[0].identity.seed.public(), oracles[2].identity.seed.public());
    let operator = fleet::Identity::load(&made.join("operator")).unwrap();
    assert_eq!(operator.card.member().role, Role::Operator);
    assert_eq!(oracles[1].first_members, std::slice::from_ref(&operator.card));
    assert_eq!(operator.fleet.servers, ["tls://127.0.0.1:4222", "tls://localhost:4222"]);
    assert!(operator.check(&made.join("operator"), now()).is_ok());
    let late = operator.check(&made.join("operator"), now() + 91 * 86_400).unwrap_err().to_string();
    assert!(late.contains("expired 1 days ago") && late.contains("fleet token"), "{late}");
}

#[test]
fn what_the_server_has_signs_nothing() {
    let made = Made::with(1);
    let read = |name: &str| fs::read_to_string(made.join(name)).unwrap();
    let secrets = [
        read("keys/operator.seed"),
        read("keys/account.seed"),
        read("keys/system.seed"),
        read("keys/system-signing.seed"),
        read("keys/ca.key"),
        read("oracle-0/oracle.key"),
        read("oracle-0/account.seed"),
        read("oracle-0/operator.seed"),
    ];
    let mut texts = Vec::new();
    for (path, _) in modes(&made.join("nats")).iter().filter(|(path, _)| path.is_file()) {
        texts.push(fs::read_to_string(path).unwrap());
    }
    assert_eq!(texts.len(), 6, "configuration, authority, certificate, its key, two accounts");
    for secret in &secrets {
        assert!(texts.iter().all(|text| !text.contains(secret.trim())));
    }
    // what an Oracle has: the signing keys, not the account's and the operator's own
    for (path, _) in modes(&made.join("oracle-0")).iter().filter(|(path, _)| path.is_file()) {
        let text = fs::read_to_string(path).unwrap();
        assert!(secrets[..5].iter().all(|secret| !text.contains(secret.trim())), "{}", path.display());
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_is_left_of_a_failure() {
    let made = Made::with(1);
    let before = fs::read(made.join("oracle-0/oracle.key")).unwrap();
    let servers = vec!["a".parse().unwrap()];
    let init = Init { servers, oracles: 1, certificate_days: 1, now: now() };
    let error = fleet::init(&made.path(), &init).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("is not overwritten"), "{error}");
    assert_eq!(fs::read(made.join("oracle-0/oracle.key")).unwrap(), before);
    let parent = made.path().parent().unwrap().to_path_buf();
    assert_eq!(fs::read_dir(&parent).unwrap().count(), 1);
    // an empty folder may be filled; a file may not
    fs::create_dir(parent.join("empty")).unwrap();
    fleet::init(&parent.join("empty"), &init).unwrap();
    fs::write(parent.join("file"), "x").unwrap();
    assert!(fleet::init(&parent.join("file"), &init).unwrap_err().is_input());
    assert_eq!(fs::read_to_string(parent.join("file")).unwrap(), "x");
    assert_eq!(fs::read_dir(&parent).unwrap().count(), 3);
    // folders above it are made, but not in place of a file
    fleet::init(&parent.join("a/b/fleet"), &init).unwrap();
    assert!(fleet::init(&parent.join("file/fleet"), &init).is_err());
}

#[test]
fn an_identity_is_saved_whole_and_loaded_as_it_was() {
    let made = Made::with(1);
    let identity = fleet::Identity::load(&made.join("operator")).unwrap();
    let copy = made.join("copies/one");
    identity.save(&copy).unwrap();
    let loaded = fleet::Identity::load(&copy).unwrap();
    assert_eq!((&loaded.card, &loaded.fleet, &loaded.oracle), (&identity.card, &identity.fleet, &identity.oracle));
    assert_eq!(loaded.seed.seed(), identity.seed.seed());
    let error = identity.save(&copy).unwrap_err().to_string();
    assert!(error.contains("this machine has an identity"), "{error}");
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o700);
}
