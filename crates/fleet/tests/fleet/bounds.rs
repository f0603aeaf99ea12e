//! Whatever bytes come from outside, nothing panics, and nothing that the account did not sign is accepted.

use crate::enrolment::{Court, machine};
use fleet::{
    AccountJwt, Authority, Card, HOSTS_MAX, Identity, KeyRing, Nkey, NkeyKind, Role, SecretNkey, Server, Statement,
    Token,
};
use proptest::prelude::*;
use std::sync::LazyLock;

struct Known {
    court: Court,
    token: Token,
    line: String,
    request: Vec<u8>,
    answer: Vec<u8>,
    identity: Identity,
    account: String,
}

/// Making a fleet takes a while: once for all cases.
static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let court = Court::new();
    let (token, own) = (court.token(Role::Agent, &["h1"]), machine());
    let request = fleet::request(&token, &own, "h1").unwrap();
    let answer = court.answer(&request).answer;
    let identity = fleet::enrolled(&token, &own, "h1", &answer, court.now).unwrap();
    let name = format!("nats/jwt/{}.jwt", identity.fleet.account);
    let account = std::fs::read_to_string(court.made.join(&name)).unwrap();
    Known { line: token.text(), court, token, request, answer, identity, account }
});

fn every_reader(bytes: &[u8]) {
    let known = &*KNOWN;
    let (court, fleet) = (&known.court, &known.identity.fleet);
    let text = String::from_utf8_lossy(bytes);
    assert!(court.answer(bytes).record.is_none() || bytes == known.request);
    assert!(Card::verify(&text, &fleet.account, &fleet.signing, court.now).is_err());
    assert!(Token::parse(&text, court.now).is_err());
    assert!(AccountJwt::read(&text, &fleet.account, &[court.oracle.operator.public().clone()]).is_err());
    let _ = fleet::enrolled(&known.token, &known.identity.seed, "h1", bytes, court.now);
    if let Some(Ok(renewed)) = known.identity.renewed(bytes, court.now) {
        assert_eq!(renewed.oracle, None);
    }
    let mut registry = fleet::Registry::default();
    assert!(registry.put(known.identity.seed.public().as_str(), bytes, fleet).is_err());
    assert!(registry.put(&text, known.identity.card.jwt.as_bytes(), fleet).is_err());
    let _ = (Nkey::parse(&text, NkeyKind::User), SecretNkey::from_seed(&text, NkeyKind::User));
    let _ = (Statement::parse(&text), Statement::parse_all(&text), KeyRing::parse(&text), text.parse::<Server>());
    let _ = serde_json::from_slice::<fleet::Command>(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        every_reader(&bytes);
    }

    #[test]
    fn random_letters_are_refused(text in "[A-Za-z0-9._:\\[\\]-]{0,200}") {
        every_reader(text.as_bytes());
        every_reader(format!("opentcp-token-1-{text}").as_bytes());
        every_reader(format!("revoked.{text}").as_bytes());
        every_reader(format!("opentcp renewed\0{text}").as_bytes());
    }

    #[test]
    fn what_was_valid_and_is_changed_is_refused(which in 0..5_usize, at in any::<prop::sample::Index>(), bit in 0..8_u8, cut in any::<bool>()) {
        let known = &*KNOWN;
        let mut bytes = match which {
            0 => known.line.clone().into_bytes(),
            1 => known.request.clone(),
            2 => known.identity.card.jwt.clone().into_bytes(),
            3 => known.account.clone().into_bytes(),
            _ => known.answer.clone(),
        };
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        every_reader(&bytes);
    }
}

#[test]
fn what_is_valid_is_accepted() {
    let known = &*KNOWN;
    let (court, fleet) = (&known.court, &known.identity.fleet);
    assert!(court.answer(&known.request).record.is_some());
    assert!(Token::parse(&known.line, court.now).is_ok());
    assert!(Card::verify(&known.identity.card.jwt, &fleet.account, &fleet.signing, court.now).is_ok());
    assert!(AccountJwt::read(&known.account, &fleet.account, &[court.oracle.operator.public().clone()]).is_ok());
}

#[test]
fn the_largest_enforcers_login_fits_into_the_servers_line() {
    let court = Court::new();
    // as many bytes of names as may be
    let hosts: Vec<String> = (0..HOSTS_MAX).map(|number| format!("host-{number:03}.rack-000.site")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let token = court.token(Role::Enforcer, &hosts);
    assert!(token.text().len() < fleet::TOKEN_MAX);
    let request = fleet::request(&token, &machine(), "e1").unwrap();
    assert!(request.len() <= fleet::REQUEST_MAX, "{}", request.len());
    let outcome = court.answer(&request);
    assert!(outcome.answer.len() <= fleet::ANSWER_MAX);
    let (_, jwt) = outcome.record.unwrap();
    assert!(jwt.len() <= fleet::JWT_MAX, "{}", jwt.len());
    if let Some(nats) = crate::common::Nats::start(&court.made) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let inbox = fleet::rights::inbox(token.seed.public());
            nats.connect(&token.creds(), &inbox).await.unwrap();
        });
    }
}

#[test]
fn a_list_of_revocations_is_bounded_and_forgets_what_has_expired() {
    let known = &*KNOWN;
    let (court, fleet) = (&known.court, &known.identity.fleet);
    let operators = [court.oracle.operator.public().clone()];
    let mut text = known.account.clone();
    let keys: Vec<SecretNkey> = (0..=fleet::REVOCATIONS_MAX).map(|_| machine()).collect();
    let mut jwt = AccountJwt::read(&text, &fleet.account, &operators).unwrap();
    for (key, at) in keys.iter().zip(0..) {
        let revoked = jwt.revoke(key.public(), &court.oracle.operator, court.now + at, 10_000);
        if at < fleet::REVOCATIONS_MAX as u64 {
            text = revoked.unwrap();
        } else {
            assert_eq!(revoked, Err(fleet::RevokeError::Full));
        }
    }
    assert!(text.len() < 60 * 1024, "{}", text.len());
    let mut read = AccountJwt::read(&text, &fleet.account, &operators).unwrap();
    assert_eq!(read.revoked(keys[0].public()), Some(court.now));
    read.revoke(keys[0].public(), &court.oracle.operator, court.now + 20_000, 10_000).unwrap();
    assert_eq!(read.revoked(keys[1].public()), None);
    assert_eq!(read.revoked(keys[0].public()), Some(court.now + 20_000));
    let authority = Authority { oracle: &court.oracle };
    assert!(authority.revoke(&court.registry, keys[0].public(), court.now).is_err(), "not a member");
}
