//! How machines join the fleet, stay in it, and leave it: over a real server.

use crate::site::{Raw, Site, now, sealer, subject};
use crate::talk::{SHORT, all_until, name, report, sent};
use bus::{EnrollError, Entry, Hub, NatsBus, NatsHub, NatsStore, Role, Store as _, ask_fleet, enroll, hello};
use fleet::{Command, Identity, Reply, Token, TokenRequest};
use policy::OracleKey;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::until;

const DAY_S: u64 = 86_400;
const WAIT: Duration = Duration::from_secs(20);

fn token(site: &Site, role: Role, hosts: &[&str], uses: Option<u32>) -> String {
    let hosts = hosts.iter().map(|host| (*host).to_string()).collect();
    Token::issue(&site.oracle, &TokenRequest { role, hosts, seconds: 600, uses }, now()).unwrap().text()
}

/// Runs `work` while the Oracle's end answers questions; returns both, and what the Oracle noticed.
fn with_oracle<T>(site: &Site, mut hub: NatsHub, work: impl FnOnce() -> T) -> (T, NatsHub, Vec<String>) {
    let key: OracleKey = bus::files::secret_key(&site.folder("oracle-0").join(fleet::ORACLE_KEY)).unwrap();
    let (done, notices) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let result = std::thread::scope(|scope| {
        let hub = &mut hub;
        let oracle = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if let Some(message) = hub.receive(SHORT).unwrap()
                    && let Some(question) = hello(&message.bytes)
                {
                    hub.answer(&message.reply, &key.answer(7, &[question])).unwrap();
                }
                let noticed = hub.notices();
                notices.lock().unwrap().extend(noticed.iter().map(|one| format!("{}: {}", one.what, one.about)));
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        oracle.join().unwrap();
        result
    });
    let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    (result, hub, notices.into_inner().unwrap())
}

#[test]
fn a_token_makes_a_machine_a_member() {
    let Some(site) = Site::new() else { return };
    let token = token(&site, Role::Agent, &["h1", "h2"], Some(1));
    let at = |name: &str| site.folder("machines").join(name);
    let attempt = |name: &str, folder: &str| enroll(&token, name, &at(folder), WAIT);
    let (outcome, mut hub, noticed) = with_oracle(&site, site.hub(), || {
        let refused = attempt("h9", "h1").unwrap_err();
        assert!(matches!(refused, EnrollError::Refused(_)) && refused.is_input(), "{refused}");
        assert!(!at("h1").exists(), "nothing is left");
        let identity = attempt("h1", "h1").unwrap();
        let used = attempt("h2", "h2").unwrap_err();
        assert!(used.to_string().contains("used 1 times") && used.is_input(), "{used}");
        let there = attempt("h1", "h1").unwrap_err();
        assert!(there.to_string().contains("this machine has an identity"), "{there}");
        identity
    });
    assert_eq!(outcome.card.user.key, Identity::load(&at("h1")).unwrap().card.user.key);
    assert_eq!(noticed.iter().filter(|line| line.as_str() == "enrolled: agent h1").count(), 1, "{noticed:?}");
    assert!(noticed.iter().any(|line| line.starts_with("refused: ") && line.contains("used 1 times")), "{noticed:?}");
    let mut agent = NatsBus::join(&at("h1")).unwrap();
    bus::Bus::heard(&mut agent, 7);
    assert_eq!(name(&sent(&mut agent, &mut hub, &report("h1"))), "h1");
    // everything of the identity is the owner's alone
    for file in fs::read_dir(at("h1")).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn an_oracle_answers_newcomers_in_the_inbox_of_their_token_alone() {
    let Some(site) = Site::new() else { return };
    let text = token(&site, Role::Agent, &["h1"], Some(1));
    let token = Token::parse(&text, now()).unwrap();
    let (own, other) = (fleet::rights::inbox(token.seed.public()), site.identity("h2", Role::Agent, &[]));
    let request = fleet::request(&token, &other.seed, "h1").unwrap();
    let mut store = NatsStore::open(&site.folder("oracle-0")).unwrap();
    assert_eq!(store.put("lease", b"held", None).unwrap(), Some(1));
    let ((), mut hub, noticed) = with_oracle(&site, site.hub(), || {
        let holder = Identity { card: token.ticket.clone(), seed: token.seed.clone(), ..site.oracle.identity.clone() };
        let raw = Raw::connect(&site, &holder);
        let elsewhere = [
            "$KV.opentcp-oracle.lease".to_string(),
            format!("$KV.opentcp-members.{}", site.oracle.first_members[0].user.key),
            fleet::rights::CUE.to_string(),
            fleet::rights::inbox(other.seed.public()) + ".a",
        ];
        for subject in &elsewhere {
            // neither what nobody has signed, nor what is in order
            raw.ask(fleet::rights::ENROLL, subject, b"x");
            raw.ask(fleet::rights::ENROLL, subject, &request);
        }
        // the requests before are handled by now, and the token's one use is still free
        assert!(!raw.is_answered(fleet::rights::ENROLL, &format!("{own}.a"), b"x", Duration::from_millis(300)));
        assert_eq!(enroll(&text, "h1", &site.folder("machines/h1"), WAIT).unwrap().card.member().name, "h1");
    });
    assert_eq!(store.get("lease").unwrap(), Some(Entry { value: b"held".to_vec(), revision: 1 }));
    assert!(noticed.iter().any(|line| line.contains("elsewhere")), "{noticed:?}");
    let mut operator = NatsBus::join(&site.folder("operator")).unwrap();
    bus::Bus::heard(&mut operator, 7);
    sent(&mut operator, &mut hub, &[bus::kind::REQUEST, b"{}"].concat());
}

#[test]
fn an_entry_of_the_register_that_is_damaged_is_put_right() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let member = site.identity("h1", Role::Agent, &[]);
    hub.enter(&member.card).unwrap();
    let operator = &site.oracle.first_members[0];
    let raw = Raw::connect(&site, &site.oracle.identity);
    let damage = |key: &fleet::Nkey| raw.publish(&format!("$KV.opentcp-members.{key}"), b"opentcp enrolled\0{}");
    let unknown = site.identity("h3", Role::Agent, &[]).card.user.key;
    for key in [&member.card.user.key, &operator.user.key, &unknown] {
        damage(key);
    }
    let mut noticed = Vec::new();
    until("two are put right and one is ignored", || {
        assert_eq!(hub.receive(SHORT).unwrap(), None);
        noticed.extend(hub.notices().into_iter().map(|notice| notice.what));
        noticed.len() >= 3
    });
    noticed.sort_unstable();
    assert_eq!(noticed, ["damaged", "repaired", "repaired"]);
    // an Oracle that begins now finds them, but for what is damaged while no Oracle is there
    drop(hub);
    damage(&operator.user.key);
    let mut hub = site.hub();
    all_until(&mut hub, "both are known", |hub, _| hub.counts().peers == 2);
    let mut agent = NatsBus::join(&site.saved(&member)).unwrap();
    bus::Bus::heard(&mut agent, 7);
    assert_eq!(name(&sent(&mut agent, &mut hub, &report("h1"))), "h1");
}

#[test]
fn machines_enrol_at_the_same_time_with_one_token() {
    const MACHINES: usize = 16;
    let Some(site) = Site::new() else { return };
    let hub = site.hub();
    let token = token(&site, Role::Agent, &[], None);
    let ((), hub, _) = with_oracle(&site, hub, || {
        std::thread::scope(|scope| {
            for i in 0..MACHINES {
                let (token, name) = (&token, format!("h{i}"));
                let folder = site.folder("machines").join(&name);
                scope.spawn(move || assert_eq!(enroll(token, &name, &folder, WAIT).unwrap().card.member().name, name));
            }
        });
    });
    assert_eq!(hub.counts().peers, 1 + MACHINES, "they and the operator");
}

#[test]
fn without_an_oracle_or_a_server_nothing_is_enrolled() {
    let Some(mut site) = Site::new() else { return };
    let (token, folder) = (token(&site, Role::Agent, &[], None), site.folder("machines/h1"));
    let short = Duration::from_secs(1);
    // a busy machine's server may not be connected in so short a time
    until("no Oracle has answered", || {
        let why = enroll(&token, "h1", &folder, short).unwrap_err();
        assert!(!why.is_input(), "{why}");
        why.to_string().contains("no Oracle has answered")
    });
    site.server.kill();
    let why = enroll(&token, "h1", &folder, short).unwrap_err();
    assert!(why.to_string().contains("no server of the fleet can be reached") && !why.is_input(), "{why}");
    let why = enroll(&token[..100], "h1", &folder, short).unwrap_err();
    assert!(why.to_string().contains("cut or changed") && why.is_input(), "{why}");
    assert!(!folder.exists());
}

#[test]
fn who_is_revoked_is_cut_off_and_stays_so() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let [one, other] = ["h1", "h2"].map(|name| site.identity(name, Role::Agent, &[]));
    hub.enter(&one.card).unwrap();
    hub.enter(&other.card).unwrap();
    let raw = Raw::connect(&site, &one);
    assert!(raw.is_connected());
    let mut operator = NatsBus::join(&site.folder("operator")).unwrap();
    let ((), mut hub, noticed) = with_oracle(&site, hub, || {
        let Reply::Members { members, more: None } =
            ask_fleet(&mut operator, &Command::List { after: None }, WAIT).unwrap()
        else {
            panic!("a list")
        };
        let mut names: Vec<&str> = members.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["h1", "h2", "operator"], "and the one that was there from the start");
        let revoke = Command::Revoke { name: "h1".into(), role: None };
        let Reply::Revoked(line) = ask_fleet(&mut operator, &revoke, WAIT).unwrap() else { panic!("it is revoked") };
        assert_eq!((line.name.as_str(), line.revoked), ("h1", true));
        until("the server cuts it off", || !raw.is_connected());
        // the command may be repeated, as its first half may have been lost
        assert!(matches!(ask_fleet(&mut operator, &revoke, WAIT).unwrap(), Reply::Revoked(_)));
        let unknown = Command::Revoke { name: "h9".into(), role: None };
        assert!(matches!(ask_fleet(&mut operator, &unknown, WAIT).unwrap(), Reply::Refused(_)));
    });
    assert_eq!(
        noticed.iter().filter(|line| line.as_str() == "revoked: agent h1, by operator").count(),
        2,
        "{noticed:?}"
    );
    // it cannot come back, and its old entry in the register does not make it a member
    let mut agent = NatsBus::join(&site.saved(&one)).unwrap();
    until("it is refused", || {
        let _ = bus::Bus::receive(&mut agent, SHORT);
        bus::Bus::trouble(&agent).is_some_and(|why| why.contains("authorization"))
    });
    assert!(hub.enter(&one.card).unwrap_err().contains("revoked"));
    assert_eq!(hub.counts().peers, 2);
    // nor at another Oracle
    let mut second = NatsHub::listen(&site.folder("oracle-1")).unwrap();
    until("the other Oracle knows the members", || {
        let _ = second.receive(SHORT).unwrap();
        second.counts().peers == 2
    });
    // the other host is not affected
    let mut agent = NatsBus::join(&site.saved(&other)).unwrap();
    bus::Bus::heard(&mut agent, 7);
    assert_eq!(name(&sent(&mut agent, &mut hub, &report("h2"))), "h2");
}

#[test]
fn a_revoked_token_is_refused_by_the_server_and_by_the_oracle() {
    let Some(site) = Site::new() else { return };
    let hub = site.hub();
    let text = token(&site, Role::Agent, &[], None);
    let token = Token::parse(&text, now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut operator = NatsBus::join(&site.folder("operator")).unwrap();
    let ((), hub, noticed) = with_oracle(&site, hub, || {
        enroll(&text, "h1", &folder.path().join("h1"), WAIT).unwrap();
        let revoke = Command::RevokeToken { ticket: token.ticket.jwt.clone() };
        for _ in 0..2 {
            let Reply::Revoked(line) = ask_fleet(&mut operator, &revoke, WAIT).unwrap() else { panic!("revoked") };
            assert_eq!((line.name.as_str(), line.role), ("token", Role::Agent));
        }
        let why = enroll(&text, "h2", &folder.path().join("h2"), SHORT * 50).unwrap_err();
        assert!(why.to_string().to_lowercase().contains("authorization"), "{why}");
    });
    assert!(noticed.iter().any(|line| line == "revoked: a token for the role agent, by operator"), "{noticed:?}");
    assert_eq!(hub.counts().peers, 2, "the member and the operator stay");
}

#[test]
fn an_agent_may_not_ask_what_an_operator_may() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let identity = site.identity("h1", Role::Agent, &[]);
    hub.enter(&identity.card).unwrap();
    let raw = Raw::connect(&site, &identity);
    let command = [bus::kind::FLEET, br#"{"revoke": {"name": "h1"}}"#].concat();
    raw.publish(&subject(&identity), &sealer(&identity, 1).seal(Some(7), &command));
    let taken = all_until(&mut hub, "it is counted", |hub, _| hub.counts().rejected.role > 0);
    assert_eq!((taken, hub.counts().rejected.role), (Vec::new(), 1));
    until("the register has come: it and the operator are known", || {
        let _ = hub.receive(SHORT).unwrap();
        hub.counts().peers == 2
    });
}

#[test]
fn an_identity_is_renewed_before_it_ends() {
    let Some(site) = Site::new() else { return };
    let mut hub = site.hub();
    let identity = site.identity_that_is_due("h1", Role::Agent);
    hub.enter(&identity.card).unwrap();
    let folder = site.saved(&identity);
    let mut agent = NatsBus::join(&folder).unwrap();
    until("it is renewed", || {
        let _ = hub.receive(SHORT).unwrap();
        let _ = bus::Bus::receive(&mut agent, SHORT).unwrap();
        Identity::load(&folder).unwrap().card.user.expires > now() + 80 * DAY_S
    });
    assert!(hub.notices().iter().any(|one| (one.what, one.about.as_str()) == ("renewed", "agent h1")));
    // the next connection is with the new JWT; the old one is still good for this one
    assert!(bus::Bus::is_connected(&agent));
    let mut again = NatsBus::join(&folder).unwrap();
    bus::Bus::heard(&mut again, 7);
    assert_eq!(name(&sent(&mut again, &mut hub, &report("h1"))), "h1");
}

#[test]
fn an_operators_identity_and_the_oracles_keys_are_renewed_with_a_command() {
    let Some(site) = Site::new() else { return };
    let identity = site.identity_that_is_due("alice", Role::Operator);
    let folder = site.saved(&identity);
    let fleet = site.folder("oracle-0").parent().unwrap().to_path_buf();
    fleet::rotate(&fleet, fleet::Rotation::Begin).unwrap();
    let mut hub = site.hub();
    hub.enter(&identity.card).unwrap();
    let mut operator = NatsBus::join(&folder).unwrap();
    with_oracle(&site, hub, || {
        let reply = ask_fleet(&mut operator, &Command::List { after: None }, WAIT).unwrap();
        assert!(matches!(reply, Reply::Members { .. }), "{reply:?}");
    });
    let renewed = Identity::load(&folder).unwrap();
    assert!(renewed.card.user.expires > now() + 80 * DAY_S);
    let keys = |identity: &Identity| policy::PublicKeys::parse(&identity.oracle.text()).unwrap().keys().len();
    assert_eq!((keys(&identity), keys(&renewed)), (1, 2));
}

#[test]
fn what_oracles_share_is_put_by_one_of_them_at_a_time() {
    let Some(mut site) = Site::new() else { return };
    let mut stores = ["oracle-0", "oracle-1"].map(|name| NatsStore::open(&site.folder(name)).unwrap());
    let [one, other] = &mut stores;
    assert!(one.get("lease").unwrap().is_none());
    let first = one.put("lease", b"one", None).unwrap().unwrap();
    assert!(other.put("lease", b"other", None).unwrap().is_none(), "there is one");
    assert_eq!(other.get("lease").unwrap().unwrap(), Entry { value: b"one".to_vec(), revision: first });
    let second = other.put("lease", b"other", Some(first)).unwrap().unwrap();
    assert!(second > first);
    assert!(one.put("lease", b"one", Some(first)).unwrap().is_none(), "it has changed since");
    assert!(one.put("long", &vec![0; bus::STORED_MAX + 1], None).is_err());
    assert!(one.put("long", &vec![0; bus::STORED_MAX], None).unwrap().is_some());
    site.server.kill();
    until("it is away", || one.get("lease").is_err());
    site.server.again();
    until("it is back", || one.get("lease").is_ok());
    assert_eq!(one.get("lease").unwrap().unwrap(), Entry { value: b"other".to_vec(), revision: second }, "it was kept");
}
