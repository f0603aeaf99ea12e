//! From a token to a member, and what is refused on the way.

use crate::common::{Made, now};
use fleet::{
    AnswerError, Authority, Entry, Member, Nkey, NkeyKind, NotMember, OracleIdentity, Outcome, RENEW, RENEWED, Refusal,
    Registry, Role, SecretNkey, Token, TokenRequest, UnixTime, User,
};

const DAY_S: u64 = 86_400;

/// An Oracle, and the members that it knows.
pub struct Court {
    pub made: Made,
    pub oracle: OracleIdentity,
    pub registry: Registry,
    pub now: UnixTime,
}

impl Court {
    pub fn new() -> Court {
        let made = Made::with(1);
        let oracle = made.oracle();
        Court { made, oracle, registry: Registry::default(), now: now() }
    }

    pub fn token(&self, role: Role, hosts: &[&str]) -> Token {
        self.limited(role, hosts, None)
    }

    pub fn limited(&self, role: Role, hosts: &[&str], uses: Option<u32>) -> Token {
        let hosts = hosts.iter().map(|host| (*host).to_string()).collect();
        let token = Token::issue(&self.oracle, &TokenRequest { role, hosts, seconds: 3600, uses }, self.now).unwrap();
        Token::parse(&token.text(), self.now).unwrap()
    }

    pub fn answer(&self, request: &[u8]) -> Outcome {
        Authority { oracle: &self.oracle }.enroll(&self.registry, request, self.now)
    }

    fn keep(&mut self, outcome: &Outcome) {
        if let Some((key, value)) = &outcome.record {
            self.registry.put(key, value.as_bytes(), &self.oracle.identity.fleet).unwrap();
        }
    }

    pub fn enroll(&mut self, token: &Token, machine: &SecretNkey, name: &str) -> Result<Member, Refusal> {
        let outcome = self.answer(&fleet::request(token, machine, name)?);
        self.keep(&outcome);
        let identity = fleet::enrolled(token, machine, name, &outcome.answer, self.now);
        match &outcome.result {
            Ok(member) => assert_eq!(identity.unwrap().card.member(), member),
            Err(refusal) => assert_eq!(identity.unwrap_err(), AnswerError::Refused(refusal.clone())),
        }
        outcome.result
    }

    fn revoke_token(&mut self, token: &Token) -> Result<(), Refusal> {
        let (key, value) = Authority { oracle: &self.oracle }.revoke_token(&token.ticket.jwt, self.now)?;
        self.registry.put(key.as_str(), value.as_bytes(), &self.oracle.identity.fleet).unwrap();
        Ok(())
    }

    fn revoke(&mut self, key: &Nkey) {
        let (key, value) = Authority { oracle: &self.oracle }.revoke(&self.registry, key, self.now).unwrap();
        self.registry.put(&key, value.as_bytes(), &self.oracle.identity.fleet).unwrap();
    }
}

pub fn machine() -> SecretNkey {
    SecretNkey::generate(NkeyKind::User).unwrap()
}

#[test]
fn who_has_signed_a_request_with_its_token_and_nobody_else_has_asked() {
    let mut court = Court::new();
    let (token, own) = (court.limited(Role::Agent, &["h1"], Some(1)), machine());
    let request = fleet::request(&token, &own, "h1").unwrap();
    let asker = |court: &Court, request: &[u8]| court.answer(request).asker;
    assert_eq!(asker(&court, &request).as_ref(), Some(token.seed.public()));
    // by the last byte the token's signature is another's
    let mut forged = request.clone();
    *forged.last_mut().unwrap() ^= 1;
    for none in [&b"x"[..], b"", &request[..request.len() - 1], &request[1..], &forged] {
        assert_eq!(asker(&court, none), None);
    }
    // who is refused learns why: the token is used up, then expired
    court.enroll(&token, &own, "h1").unwrap();
    assert!(matches!(court.enroll(&token, &machine(), "h1"), Err(Refusal::Taken { .. } | Refusal::Used(1))));
    court.now += 4000;
    assert!(matches!(court.answer(&request).result, Err(Refusal::Ticket(_))));
    assert_eq!(asker(&court, &request).as_ref(), Some(token.seed.public()));
    let (inbox, other) = (fleet::rights::inbox(token.seed.public()), fleet::rights::inbox(own.public()));
    for (subject, is_own) in [
        (format!("{inbox}.a"), true),
        (format!("{inbox}.a.b"), true),
        (format!("{inbox}x.a"), false),
        (format!("{inbox}."), false),
        (inbox.clone(), false),
        (format!("{other}.a"), false),
        ("$KV.opentcp-oracle.lease".to_string(), false),
    ] {
        assert_eq!(fleet::rights::is_in_inbox(token.seed.public(), &subject), is_own, "{subject}");
    }
}

#[test]
fn an_entry_that_is_known_can_be_written_anew() {
    let mut court = Court::new();
    let (token, own) = (court.token(Role::Enforcer, &["h1", "h2"]), machine());
    court.enroll(&token, &own, "e1").unwrap();
    let key = own.public().clone();
    let entry = court.registry.entry(&key).cloned();
    let text = |court: &Court| Authority { oracle: &court.oracle }.known_text(&court.registry, &key);
    let written = text(&court).unwrap();
    let put = |court: &mut Court, text: &str| {
        court.registry.put(key.as_str(), text.as_bytes(), &court.oracle.identity.fleet).unwrap();
    };
    put(&mut court, &written);
    assert_eq!(court.registry.entry(&key).cloned(), entry, "the same member, ticket and term");
    court.revoke(&key);
    let (entry, revoked) = (court.registry.entry(&key).cloned(), text(&court).unwrap());
    put(&mut court, &revoked);
    assert_eq!(court.registry.entry(&key).cloned(), entry);
    assert_eq!(Authority { oracle: &court.oracle }.known_text(&court.registry, machine().public()), None);
}

#[test]
fn each_role_enrols_and_is_then_known() {
    let mut court = Court::new();
    for role in Role::ENROLLED {
        let hosts: &[&str] = if role == Role::Enforcer { &["h8", "h9"] } else { &[] };
        let (token, machine) = (court.token(role, hosts), machine());
        let member = court.enroll(&token, &machine, "h1").unwrap();
        assert_eq!((member.name.as_str(), member.role), ("h1", role));
        assert_eq!(member.hosts, hosts);
        let known = court.registry.member(machine.public(), court.now).unwrap();
        assert_eq!(*known.member, member);
        assert_eq!(known.expires, court.now + 90 * DAY_S);
    }
    assert_eq!(court.registry.len(), 4);
    assert_eq!(court.registry.member(machine().public(), court.now), Err(NotMember::Unknown));
}

#[test]
fn a_name_has_one_machine_until_it_is_revoked_or_expired() {
    let mut court = Court::new();
    let token = court.token(Role::Agent, &[]);
    let (first, second, third) = (machine(), machine(), machine());
    court.enroll(&token, &first, "h1").unwrap();
    let refusal = court.enroll(&token, &second, "h1").unwrap_err();
    assert!(matches!(&refusal, Refusal::Taken { key, .. } if key == first.public().as_str()));
    assert!(refusal.to_string().contains("opentcp fleet revoke h1"), "{refusal}");
    // the same machine may repeat it: its answer was lost
    court.enroll(&token, &first, "h1").unwrap();
    let other = court.enroll(&token, &first, "h2").unwrap_err();
    assert!(matches!(other, Refusal::Other { .. }), "{other}");
    court.revoke(first.public());
    assert_eq!(court.registry.member(first.public(), court.now), Err(NotMember::Revoked));
    assert_eq!(court.enroll(&token, &first, "h1").unwrap_err(), Refusal::Revoked);
    court.enroll(&token, &second, "h1").unwrap();
    court.now += 91 * DAY_S;
    assert_eq!(court.registry.member(second.public(), court.now), Err(NotMember::Expired));
    let token = court.token(Role::Agent, &[]);
    court.enroll(&token, &third, "h1").unwrap();
    // the entry that has left its name does not take the new one's with it
    court.registry.remove(second.public().as_str());
    assert!(matches!(court.enroll(&token, &second, "h1"), Err(Refusal::Taken { .. })));
}

#[test]
fn a_host_has_one_reporter() {
    let mut court = Court::new();
    let token = court.token(Role::Enforcer, &["h1", "h2"]);
    let enforcer = machine();
    court.enroll(&token, &enforcer, "e1").unwrap();
    let agent = court.token(Role::Agent, &[]);
    let refusal = court.enroll(&agent, &machine(), "h2").unwrap_err();
    assert!(refusal.to_string().contains("the enforcer e1 reports for the host h2 already"), "{refusal}");
    court.enroll(&agent, &machine(), "h3").unwrap();
    let wide = court.token(Role::Enforcer, &["h9", "h3"]);
    let refusal = court.enroll(&wide, &machine(), "e2").unwrap_err();
    assert!(refusal.to_string().contains("the agent h3 reports for the host h3 already"), "{refusal}");
    // a collector reports for no host
    let collector = court.token(Role::Collector, &[]);
    court.enroll(&collector, &machine(), "h1").unwrap();
    court.revoke(enforcer.public());
    court.enroll(&agent, &machine(), "h2").unwrap();
}

#[test]
fn a_token_gives_its_own_names_and_as_often_as_it_says() {
    let mut court = Court::new();
    let token = court.token(Role::Agent, &["h1", "h2"]);
    assert!(matches!(fleet::request(&token, &machine(), "h3"), Err(Refusal::NotAllowed { .. })), "before it is sent");
    court.enroll(&token, &machine(), "h2").unwrap();
    let twice = court.limited(Role::Agent, &[], Some(2));
    let (a, b) = (machine(), machine());
    court.enroll(&twice, &a, "a").unwrap();
    court.enroll(&twice, &b, "b").unwrap();
    court.enroll(&twice, &a, "a").unwrap();
    let refusal = court.enroll(&twice, &machine(), "c").unwrap_err();
    assert_eq!(refusal, Refusal::Used(2));
    court.revoke(a.public());
    assert_eq!(court.enroll(&twice, &machine(), "c").unwrap_err(), Refusal::Used(2), "a revoked member used it, too");
    court.now += 3601;
    let late = court.answer(&fleet::request(&twice, &machine(), "d").unwrap());
    assert_eq!(
        late.result.unwrap_err().to_string(),
        "the token is expired 1 s ago; make a new one (`opentcp fleet token`)"
    );
}

#[test]
fn who_sees_a_request_can_do_nothing_with_it() {
    let mut court = Court::new();
    let token = court.token(Role::Agent, &[]);
    let (own, thief) = (machine(), machine());
    let request = fleet::request(&token, &own, "h1").unwrap();
    // another key in place of the machine's
    let text = String::from_utf8_lossy(&request).into_owned();
    assert!(text.contains(own.public().as_str()));
    let stolen: Vec<u8> = {
        let at = request.windows(56).position(|part| part == own.public().as_str().as_bytes()).unwrap();
        let mut bytes = request.clone();
        bytes[at..at + 56].copy_from_slice(thief.public().as_str().as_bytes());
        bytes
    };
    assert!(matches!(court.answer(&stolen).result, Err(Refusal::Proof(_))));
    // and signed by that key, but not by the token's, which the thief lacks
    let mut signed = stolen[..stolen.len() - 128].to_vec();
    signed.extend(thief.sign(&signed.clone()));
    signed.extend(thief.sign(&signed.clone()));
    assert_eq!(court.answer(&signed).result.unwrap_err(), Refusal::Proof("the token's key".to_string()));
    // with the token, but without the machine's key
    let mut signed = request[..request.len() - 128].to_vec();
    signed.extend(thief.sign(&signed.clone()));
    signed.extend(token.seed.sign(&signed.clone()));
    assert_eq!(court.answer(&signed).result.unwrap_err(), Refusal::Proof("the machine's key".to_string()));
    // the same request, recorded: the same member
    court.enroll(&token, &own, "h1").unwrap();
    assert!(court.answer(&request).result.is_ok());
    court.revoke(own.public());
    assert_eq!(court.answer(&request).result, Err(Refusal::Revoked));
    // every bit counts
    for at in 0..request.len() {
        let mut bytes = request.clone();
        bytes[at] ^= 1;
        assert!(court.answer(&bytes).result.is_err(), "byte {at}");
        assert_eq!(court.answer(&request[..at]).record, None);
    }
}

#[test]
fn an_answer_is_for_the_one_who_asked() {
    let court = Court::new();
    let token = court.token(Role::Agent, &[]);
    let (own, other) = (machine(), machine());
    let answer = court.answer(&fleet::request(&token, &own, "h1").unwrap()).answer;
    let taken = |machine: &SecretNkey, name: &str| fleet::enrolled(&token, machine, name, &answer, court.now);
    assert!(taken(&own, "h1").is_ok());
    assert_eq!(taken(&other, "h1").unwrap_err(), AnswerError::Other("key"));
    assert_eq!(taken(&own, "h2").unwrap_err(), AnswerError::Other("name"));
    let foreign = Court::new();
    let theirs = foreign.token(Role::Agent, &[]);
    let forged = foreign.answer(&fleet::request(&theirs, &own, "h1").unwrap()).answer;
    assert!(matches!(fleet::enrolled(&token, &own, "h1", &forged, court.now), Err(AnswerError::Jwt(_))));
    // another fleet's token
    assert!(matches!(court.answer(&fleet::request(&theirs, &own, "h1").unwrap()).result, Err(Refusal::Ticket(_))));
    // a member's JWT is no ticket
    let mut posing = token.clone();
    posing.seed = machine();
    let member = Member { name: "h1".into(), role: Role::Agent, hosts: Vec::new() };
    let user = User::member(posing.seed.public().clone(), member, court.now, court.now + 9);
    posing.ticket = user.issue(&token.fleet.account, &court.oracle.signing);
    let refusal = court.answer(&fleet::request(&posing, &own, "h1").unwrap()).result.unwrap_err();
    assert!(refusal.to_string().contains("the JWT of a member"), "{refusal}");
}

#[test]
fn a_member_renews_when_half_its_time_is_over() {
    let mut court = Court::new();
    let (token, own) = (court.token(Role::Enforcer, &["h1"]), machine());
    let outcome = court.answer(&fleet::request(&token, &own, "e1").unwrap());
    court.keep(&outcome);
    let mut identity = fleet::enrolled(&token, &own, "e1", &outcome.answer, court.now).unwrap();
    let folder = court.made.join("e1");
    identity.save(&folder).unwrap();
    assert!(RENEW.starts_with(b"opentcp ") && !RENEWED.starts_with(RENEW));
    let renew = |court: &Court| Authority { oracle: &court.oracle }.renew(&court.registry, own.public(), court.now);
    let early = renew(&court);
    assert_eq!(early.record, None, "it is not due");
    let answer = identity.renewed(&early.answer, court.now).unwrap().unwrap();
    assert_eq!((answer.card, answer.oracle), (None, None));
    assert_eq!(identity.renewed(b"opentcp cue\0", court.now), None, "something else");
    court.now += 46 * DAY_S;
    assert!(identity.card.is_due(court.now));
    let outcome = renew(&court);
    court.keep(&outcome);
    let card = identity.renewed(&outcome.answer, court.now).unwrap().unwrap().card.unwrap();
    assert_eq!(card.user.expires, court.now + 90 * DAY_S);
    assert_eq!(card.member(), identity.card.member());
    assert_eq!(card.user.ticket, identity.card.user.ticket);
    identity.store_card(&folder, card.clone()).unwrap();
    assert_eq!(fleet::Identity::load(&folder).unwrap().card, card);
    let replayed = identity.renewed(&outcome.answer, court.now).unwrap().unwrap();
    assert_eq!(replayed.card, None, "a recorded answer is not newer");
    court.revoke(own.public());
    let refused = renew(&court);
    assert_eq!(refused.record, None);
    let error = identity.renewed(&refused.answer, court.now).unwrap().unwrap_err().to_string();
    assert!(error.contains("this machine is revoked"), "{error}");
}

#[test]
fn the_register_takes_what_the_account_signed_and_nothing_else() {
    let mut court = Court::new();
    let fleet = court.oracle.identity.fleet.clone();
    let (token, own, other) = (court.token(Role::Agent, &[]), machine(), machine());
    let (key, value) = court.answer(&fleet::request(&token, &own, "h1").unwrap()).record.unwrap();
    let mut put =
        |key: &str, value: &str| court.registry.put(key, value.as_bytes(), &fleet).map_err(|error| error.to_string());
    let error = put(other.public().as_str(), &value).unwrap_err();
    assert!(error.contains("another key"), "{error}");
    assert!(put("U123", &value).unwrap_err().contains("not an nkey"));
    assert!(put(&key, "nonsense").unwrap_err().contains("no signature"));
    assert!(put(&key, &token.ticket.jwt).unwrap_err().contains("another key"));
    assert!(put(token.seed.public().as_str(), &token.ticket.jwt).unwrap_err().contains("not a member's"));
    let oracle = &court.oracle.identity.card;
    assert!(put(oracle.user.key.as_str(), &oracle.jwt).unwrap_err().contains("not a member's"));
    for revoked in ["revoked.", "revoked.x", "revoked.e30.e30", "revoked.*.*"] {
        assert!(put(&key, revoked).unwrap_err().contains("revocation"), "{revoked}");
    }
    let mut forged = value.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'Q' } else { 'A' });
    assert!(put(&key, &forged).is_err());
    put(&key, &value).unwrap();
    assert!(court.registry.put(&key, &[0xff, 0xfe], &fleet).is_err());
    assert_eq!(court.registry.len(), 1, "what was known remains");
    assert!(matches!(court.registry.entry(own.public()), Some(Entry::Member(_))));
    // old entries are named, to be deleted
    assert!(court.registry.stale(court.now + 179 * DAY_S).is_empty());
    assert_eq!(court.registry.stale(court.now + 181 * DAY_S), [own.public().clone()]);
}

#[test]
fn operators_see_members_by_pages_and_revoke_by_name() {
    let mut court = Court::new();
    let token = court.token(Role::Agent, &[]);
    for number in 0..150 {
        court.enroll(&token, &machine(), &format!("h{number}")).unwrap();
    }
    let collector = court.token(Role::Collector, &[]);
    court.enroll(&collector, &machine(), "h7").unwrap();
    let (mut after, mut names, mut pages) = (None, Vec::new(), 0);
    loop {
        let fleet::Reply::Members { members, more } = fleet::page(&court.registry, after.as_deref()) else { panic!() };
        assert!(serde_json::to_vec(&members).unwrap().len() < 60_000);
        names.extend(members.into_iter().map(|one| one.name));
        pages += 1;
        let Some(more) = more else { break };
        after = Some(more);
    }
    assert_eq!((names.len(), pages), (151, 3));
    assert!(matches!(fleet::page(&court.registry, Some("x")), fleet::Reply::Refused(_)));
    let find = |court: &Court, name: &str, role| fleet::find(&court.registry, name, role);
    assert!(find(&court, "h7", None).unwrap_err().contains("say which with --role"));
    let (key, line) = find(&court, "h7", Some(Role::Agent)).unwrap();
    assert_eq!(find(&court, key.as_str(), None).unwrap(), (key.clone(), line));
    court.revoke(&key);
    assert!(find(&court, "h7", Some(Role::Agent)).unwrap_err().contains("revoked already"));
    assert!(find(&court, "h7", None).is_ok(), "the collector is left");
    assert!(find(&court, "nobody", None).unwrap_err().contains("opentcp fleet list"));
    let text = serde_json::to_string(&fleet::Command::Revoke { name: "h1".into(), role: Some(Role::Agent) }).unwrap();
    assert_eq!(text, r#"{"revoke":{"name":"h1","role":"agent"}}"#);
}

#[test]
fn nobody_joins_with_a_revoked_token_and_who_has_joined_stays() {
    let mut court = Court::new();
    let [one, other] = [(); 2].map(|()| SecretNkey::generate(NkeyKind::User).unwrap());
    let token = court.limited(Role::Agent, &[], Some(3));
    court.enroll(&token, &one, "h1").unwrap();
    court.revoke_token(&token).unwrap();
    let refused = court.enroll(&token, &other, "h2").unwrap_err();
    assert!(refused.to_string().contains("the token is revoked"), "{refused}");
    assert!(court.registry.member(one.public(), court.now).is_ok());
    // another token is not concerned, nor is a member's JWT a ticket
    let next = court.token(Role::Agent, &[]);
    court.enroll(&next, &other, "h2").unwrap();
    let Some(Entry::Member(_)) = court.registry.entry(other.public()) else { panic!("it is enrolled") };
    let jwt = Authority { oracle: &court.oracle }.known_text(&court.registry, other.public()).unwrap();
    let refused = Authority { oracle: &court.oracle }.revoke_token(&jwt, court.now).unwrap_err();
    assert!(refused.to_string().contains("the JWT of a member"), "{refused}");
    // of another fleet
    let stranger = Court::new().token(Role::Agent, &[]);
    assert!(court.revoke_token(&stranger).is_err());
}
