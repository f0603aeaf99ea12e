//! Every mistake is answered with where it is, what is wrong, and what to do.

use crate::common::{Made, now};
use crate::enrolment::{Court, machine};
use fleet::{Card, Identity, Init, Member, OracleIdentity, Role, Server, Token, TokenRequest, User};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn wrong_tokens() {
    let court = Court::new();
    let token = court.token(Role::Agent, &["h1"]);
    let line = token.text();
    let mut swapped = line.clone().into_bytes();
    swapped.swap(200, 201);
    let swapped = String::from_utf8(swapped).unwrap();
    let foreign = Court::new();
    let mut mixed = token.clone();
    mixed.ticket = foreign.token(Role::Agent, &[]).ticket;
    let mut other_seed = token.clone();
    other_seed.seed = machine();
    let mut member = token.clone();
    let plain = Member { name: "h1".into(), role: Role::Agent, hosts: Vec::new() };
    let user = User::member(token.seed.public().clone(), plain, court.now, court.now + 99);
    member.ticket = user.issue(&token.fleet.account, &court.oracle.signing);
    let mut no_tls = token.clone();
    no_tls.fleet.servers = vec!["nats://a:1".into()];
    let mut no_server = token.clone();
    no_server.fleet.servers.clear();
    let mut port = token.clone();
    port.fleet.servers = vec!["tls://a:99999".into()];
    let mut no_ca = token.clone();
    no_ca.fleet.ca = "nothing".into();
    let cases = [
        (String::new(), "a token begins with `opentcp-token-1-`"),
        ("hello".into(), "a token begins with"),
        (line[16..].to_string(), "a token begins with"),
        (line[..line.len() - 5].to_string(), "cut or changed: copy the whole line"),
        (format!("{line}AAAA"), "cut or changed"),
        (swapped, "cut or changed"),
        ("opentcp-token-1-".into(), "cut or changed"),
        ("opentcp-token-1-!!!!".into(), "cut or changed"),
        ("x".repeat(40_000), "at most 32768"),
        (mixed.text(), "forged, changed, or of another fleet"),
        (other_seed.text(), "seed is another key's than its ticket"),
        (member.text(), "ticket is a member's JWT"),
        (no_tls.text(), "does not begin with tls://"),
        (no_server.text(), "`servers` has 0 entries"),
        (port.text(), "\"99999\" is no port"),
        (no_ca.text(), "certificate is not base64"),
    ];
    for (text, words) in cases {
        let error = Token::parse(&text, court.now).unwrap_err().to_string();
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
    let late = Token::parse(&line, court.now + 3600).unwrap_err().to_string();
    assert!(late.contains("expired 0 s ago; make a new token"), "{late}");
    // white space that a terminal or a mail adds
    let broken = format!("  {}\n {}\r\n", &line[..100], &line[100..]);
    assert_eq!(Token::parse(&broken, court.now).unwrap().ticket, token.ticket);
}

#[test]
fn wrong_requests_for_tokens() {
    let court = Court::new();
    let ask = |role, hosts: &[&str], seconds, uses| {
        let hosts = hosts.iter().map(|host| (*host).to_string()).collect();
        Token::issue(&court.oracle, &TokenRequest { role, hosts, seconds, uses }, court.now).unwrap_err().to_string()
    };
    let long = "x".repeat(300);
    let many: Vec<String> = (0..257).map(|number| format!("h{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases = [
        (ask(Role::Agent, &[""], 60, None), "--host: the name is empty"),
        (ask(Role::Agent, &["a b"], 60, None), "\"a b\" has a character other than letters"),
        (ask(Role::Agent, &["h1", "h1"], 60, None), "\"h1\" is named twice"),
        (ask(Role::Agent, &[&long], 60, None), "300 bytes; at most 253"),
        (ask(Role::Agent, &many, 60, None), "257 hosts"),
        (ask(Role::Enforcer, &[], 60, None), "an enforcer's token names the hosts"),
        (ask(Role::Oracle, &[], 60, None), "opentcp fleet init --oracles"),
        (ask(Role::Agent, &[], 0, None), "--for: 0 s; a token is valid for 1 s to 604800 s"),
        (ask(Role::Agent, &[], 604_801, None), "--for: 604801 s"),
        (ask(Role::Agent, &[], 60, Some(0)), "--uses: 0; a token may be used 1 to 65536 times"),
        (ask(Role::Agent, &[], 60, Some(65_537)), "--uses: 65537"),
    ];
    for (error, words) in cases {
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
}

#[test]
fn wrong_names_in_requests_of_enrolment() {
    let court = Court::new();
    let token = court.token(Role::Agent, &["h1", "h2"]);
    for (name, words) in [
        ("", "the name is empty"),
        ("h 1", "character"),
        ("h3", "does not allow the name h3, but: h1, h2"),
        ("h1\n", "character"),
    ] {
        let error = fleet::request(&token, &machine(), name).unwrap_err().to_string();
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
}

#[test]
fn wrong_servers_and_fleets() {
    for (text, words) in [
        ("", "the name is empty"),
        (":4222", "the name is empty"),
        ("a:0", "\"0\" is no port: a number from 1 to 65535"),
        ("a:65536", "no port"),
        ("a:b:c", "\"b:c\" is no port"),
        ("[::1", "`[` without `]`"),
        ("[::1]x", "no port"),
        ("a/b", "character other than"),
        ("nats://a", "\"//a\" is no port"),
    ] {
        let error = text.parse::<Server>().unwrap_err();
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
    for (text, url) in [
        ("nats.example", "tls://nats.example:4222"),
        ("10.0.0.1:5000", "tls://10.0.0.1:5000"),
        ("::1", "tls://[::1]:4222"),
        ("[::1]", "tls://[::1]:4222"),
        ("[2001:db8::1]:1", "tls://[2001:db8::1]:1"),
    ] {
        let server: Server = text.parse().unwrap();
        assert_eq!(server.url(), url);
        assert_eq!(server.to_string().parse::<Server>().unwrap(), server);
    }
    let folder = tempfile::tempdir().unwrap();
    let ask = |servers: &[&str], oracles, certificate_days| {
        let servers = servers.iter().map(|one| one.parse().unwrap()).collect();
        let init = Init { servers, oracles, certificate_days, now: now() };
        let error = fleet::init(&folder.path().join("fleet"), &init).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    let many: Vec<String> = (0..17).map(|number| format!("s{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (error, words) in [
        (ask(&[], 1, 1), "0 servers: name from 1 to 16 with --server"),
        (ask(&many, 1, 1), "17 servers"),
        (ask(&["a", "a:4222"], 1, 1), "the server a:4222 is named twice"),
        (ask(&["a"], 0, 1), "0 Oracles: from 1 to 256"),
        (ask(&["a"], 257, 1), "257 Oracles"),
        (ask(&["a"], 1, 0), "0 days"),
        (ask(&["a"], 1, 3651), "3651 days: a certificate is valid for 1 to 3650 days"),
    ] {
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

/// A copy of the operator's folder with something changed, and what is said of it.
fn changed(made: &Made, from: &str, change: impl FnOnce(&Path)) -> String {
    let copy = made.path().with_file_name("copy");
    let _ = fs::remove_dir_all(&copy);
    let copied = std::process::Command::new("cp").arg("-a").arg(made.join(from)).arg(&copy).status().unwrap();
    assert!(copied.success());
    change(&copy);
    let error = if from == "operator" {
        Identity::load(&copy).map(drop).unwrap_err()
    } else {
        OracleIdentity::load(&copy).map(drop).unwrap_err()
    };
    error.to_string()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    mode(path, 0o600);
}

#[test]
fn wrong_identity_folders() {
    let made = Made::with(1);
    let stranger = Made::with(1);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let swap = |name: &'static str, old: &'static str, new: &'static str| {
        move |at: &Path| {
            let path = at.join(name);
            let text = read(&path);
            assert!(text.contains(old), "{old}");
            write(&path, &text.replacen(old, new, 1));
        }
    };
    let foreign = |name: &'static str| {
        let theirs = read(&stranger.join("operator").join(name));
        move |at: &Path| write(&at.join(name), &theirs)
    };
    let wrong = |change: &dyn Fn(&Path)| changed(&made, "operator", change);
    let cases = [
        (wrong(&|at| mode(at, 0o755)), "copy: other users can look into this folder", "chmod 700"),
        (wrong(&|at| mode(&at.join("creds"), 0o640)), "creds: other users can read or change it", "chmod 600"),
        (wrong(&|at| mode(&at.join("oracle.pub"), 0o622)), "oracle.pub: other users can change it", "chmod 600"),
        (wrong(&|at| fs::remove_file(at.join("creds")).unwrap()), "creds: No such file", ""),
        (wrong(&|at| fs::remove_file(at.join("ca.pem")).unwrap()), "ca.pem: No such file", ""),
        (wrong(&|at| fs::remove_dir_all(at).unwrap()), "copy: No such file", ""),
        (wrong(&|at| write(&at.join("creds"), "")), "creds: it has no part `NATS USER JWT`", "opentcp enroll"),
        (wrong(&swap("creds", "USER NKEY SEED", "X")), "creds: it has no part `USER NKEY SEED`", ""),
        (wrong(&swap("creds", "\nSU", "\nSA")), "creds: its seed is", "nkey"),
        (wrong(&foreign("creds")), "creds: not signed by this fleet's account", "another fleet"),
        (wrong(&|at| write(&at.join("fleet.json"), "{")), "fleet.json: EOF", "line 1"),
        (wrong(&swap("fleet.json", "\"name\"", "\"nmae\"")), "fleet.json: unknown field `nmae`", "line"),
        (wrong(&swap("fleet.json", "\"operator\"", "\"boss\"")), "fleet.json: it names operator boss", "creds"),
        (wrong(&swap("fleet.json", "tls://", "http://")), "fleet.json: `servers`", "tls://"),
        (wrong(&swap("fleet.json", "\"A", "\"B")), "fleet.json: `", "nkey"),
        (wrong(&|at| write(&at.join("ca.pem"), "x")), "ca.pem beside it holds no certificate", ""),
        (wrong(&|at| write(&at.join("oracle.pub"), "")), "oracle.pub: 0 keys", "one, or two"),
        (wrong(&|at| write(&at.join("oracle.pub"), "zz\n")), "oracle.pub: line 1 is not", "64 hexadecimal"),
        (wrong(&|at| write(&at.join("oracle.pub"), &"ab".repeat(40_000))), "oracle.pub: longer than 65536 bytes", ""),
    ];
    for (error, place, words) in cases {
        assert!(error.contains(place) && error.contains(words), "expected {place:?} and {words:?} in {error:?}");
        assert_eq!(error.lines().count(), 1, "{error:?}");
    }
}

#[test]
fn wrong_oracle_folders() {
    let made = Made::with(1);
    let stranger = Made::with(1);
    let theirs = |name: &str| fs::read_to_string(stranger.join("oracle-0").join(name)).unwrap();
    let wrong = |change: &dyn Fn(&Path)| changed(&made, "oracle-0", change);
    let operator = OracleIdentity::load(&made.join("operator")).unwrap_err().to_string();
    let cases = [
        (operator, "operator/fleet.json: it is the identity of an operator operator, not of an Oracle"),
        (wrong(&|at| write(&at.join("account.seed"), &theirs("account.seed"))), "account.seed: it is not one of the"),
        (wrong(&|at| write(&at.join("account.seed"), "SA")), "account.seed: not an nkey"),
        (
            wrong(&|at| write(&at.join("account.seed"), &theirs("operator.seed"))),
            "account.seed: not an account's (A…) key",
        ),
        (wrong(&|at| mode(&at.join("operator.seed"), 0o604)), "operator.seed: other users can read or change it"),
        (wrong(&|at| write(&at.join("system.creds"), "x")), "system.creds: it has no part `USER NKEY SEED`"),
        (wrong(&|at| write(&at.join("oracle.keys"), "x y\n")), "oracle.keys: not a statement of keys"),
        (wrong(&|at| write(&at.join("first-members"), &theirs("first-members"))), "first-members: not signed by this"),
    ];
    for (error, words) in cases {
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
}

#[test]
fn wrong_jwts() {
    let court = Court::new();
    let fleet = &court.oracle.identity.fleet;
    let jwt = &court.oracle.identity.card.jwt;
    let parts: Vec<&str> = jwt.split('.').collect();
    let other = Court::new();
    let none = data_encoding::BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"none"}"#);
    let cases = [
        (String::new(), "it has no signature"),
        ("a.b".into(), "it has no claims"),
        (format!("*.{}.{}", parts[1], parts[2]), "its header is not base64url"),
        (format!("e30.{}.{}", parts[1], parts[2]), "its header is not a JWT's"),
        (format!("{none}.{}.", parts[1]), "another algorithm than ed25519-nkey"),
        (format!("{}.{}.", parts[0], parts[1]), "forged, changed, or of another fleet"),
        (format!("{}.{}.{}x", parts[0], parts[1], parts[2]), "its signature is not base64url"),
        (format!("{}.e30.{}", parts[0], parts[2]), "forged"),
        (other.oracle.identity.card.jwt.clone(), "of another fleet"),
        ("x".repeat(20_000), "20000 bytes; at most 14336"),
    ];
    for (text, words) in cases {
        let error = Card::verify(&text, &fleet.account, &fleet.signing, court.now).unwrap_err().to_string();
        assert!(error.contains(words), "expected {words:?} in {error:?}");
    }
    let sure = Card::verify(jwt, &fleet.account, &fleet.signing, court.now).unwrap();
    assert_eq!(sure.user.number, Some(0));
    let late = Card::verify(jwt, &fleet.account, &fleet.signing, sure.user.expires + 5).unwrap_err();
    assert_eq!(late.to_string(), "expired 5 s ago");
    let elsewhere = &other.oracle.identity.fleet.account;
    let error = Card::verify(jwt, elsewhere, &fleet.signing, court.now).unwrap_err().to_string();
    assert!(error.contains("its account is wrong"), "{error}");
}
