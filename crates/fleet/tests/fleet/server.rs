//! What a real server allows each role.

use crate::common::{Made, Nats, now};
use async_nats::jetstream::{self, kv};
use fleet::rights::{self, ENROLL, MEMBERS_BUCKET, ORACLE_BUCKET};
use fleet::{Identity, Member, Nkey, NkeyKind, Role, SecretNkey, Token, TokenRequest, User};
use std::time::Duration;

/// Runs what a test says on one thread.
fn run<T>(what: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
}

/// A member of this role, signed by the account.
fn identity(made: &Made, role: Role, name: &str) -> Identity {
    let oracle = made.oracle();
    let seed = SecretNkey::generate(NkeyKind::User).unwrap();
    let hosts = if role == Role::Enforcer { vec!["h1".to_string()] } else { Vec::new() };
    let member = Member { name: name.to_string(), role, hosts };
    let user = User::member(seed.public().clone(), member, now(), now() + 600);
    let card = user.issue(&oracle.identity.fleet.account, &oracle.signing);
    Identity { card, seed, ..oracle.identity }
}

#[test]
fn an_oracle_keeps_its_two_buckets_and_no_other_stream() {
    let made = Made::new();
    let Some(nats) = Nats::start(&made) else { return };
    run(async {
        let oracle = nats.join(&made.oracle().identity).await;
        let mut js = jetstream::new(oracle.client.clone());
        for bucket in [MEMBERS_BUCKET, ORACLE_BUCKET] {
            let config = kv::Config {
                bucket: bucket.to_string(),
                history: 1,
                limit_markers: Some(Duration::from_secs(60)),
                ..kv::Config::default()
            };
            let store = js.create_key_value(config).await.unwrap();
            let store = js.get_key_value(bucket).await.unwrap_or(store);
            let revision = store.create("a", "1".into()).await.unwrap();
            let revision = store.update("a", "2".into(), revision).await.unwrap();
            assert!(store.update("a", "3".into(), revision - 1).await.is_err(), "of an old revision");
            store.create_with_ttl("lease", "me".into(), Duration::from_secs(1)).await.unwrap();
            store.put("b", "3".into()).await.unwrap();
            assert_eq!(store.get("a").await.unwrap().unwrap(), "2");
            let entry = store.entry("b").await.unwrap().unwrap();
            assert_eq!(entry.value, "3");
            let mut all = store.watch_with_history(">").await.unwrap();
            let mut seen = Vec::new();
            while seen.len() < 3 {
                use futures_util::StreamExt as _;
                seen.push(all.next().await.unwrap().unwrap().key);
            }
            seen.sort();
            assert_eq!(seen, ["a", "b", "lease"]);
            drop(all);
            store.delete("b").await.unwrap();
            store.purge("a").await.unwrap();
        }
        assert_eq!(oracle.refusals().await, Vec::<String>::new());
        // what is not permitted is not answered
        js.set_timeout(Duration::from_secs(2));
        let other = kv::Config { bucket: "other".to_string(), ..kv::Config::default() };
        assert!(js.create_key_value(other).await.is_err(), "a third bucket");
        assert!(js.delete_stream(format!("KV_{MEMBERS_BUCKET}")).await.is_err(), "the deletion of a bucket");
        let refused = oracle.refusals_until(|all| all.len() >= 2).await;
        assert_eq!(refused.len(), 2, "{refused:?}");
    });
}

#[test]
fn each_role_may_use_its_own_subjects_and_no_others() {
    let made = Made::new();
    let Some(nats) = Nats::start(&made) else { return };
    run(async {
        let other = SecretNkey::generate(NkeyKind::User).unwrap().public().clone();
        for role in Role::ENROLLED {
            let identity = identity(&made, role, "h1");
            let member = nats.join(&identity).await;
            let own = identity.seed.public();
            let (publish, subscribe) = allowed(role, own);
            for subject in &publish {
                member.client.publish(subject.clone(), "x".into()).await.unwrap();
            }
            for subject in &subscribe {
                member.client.subscribe(subject.clone()).await.unwrap();
            }
            assert_eq!(member.refusals().await, Vec::<String>::new(), "{role}");
            let mut expected = Vec::new();
            for subject in every(own, &other) {
                if !publish.contains(&subject) && !subject.contains(['*', '>']) {
                    member.client.publish(subject.clone(), "x".into()).await.unwrap();
                    expected.push(format!("Publish to \"{subject}\""));
                }
                if !subscribe.contains(&subject) {
                    member.client.subscribe(subject.clone()).await.unwrap();
                    expected.push(format!("Subscription to \"{subject}\""));
                }
            }
            let refused = member.refusals_until(|all| all.len() >= expected.len()).await;
            assert_eq!(violations(&refused), sorted(expected), "{role}");
        }
    });
}

#[test]
fn who_answers_newcomers_reaches_inboxes_and_nothing_else() {
    let made = Made::new();
    let Some(nats) = Nats::start(&made) else { return };
    run(async {
        let seed = SecretNkey::generate(NkeyKind::User).unwrap();
        let card = made.oracle().registrar(seed.public(), now());
        let registrar = nats.join(&Identity { card, seed: seed.clone(), ..made.oracle().identity }).await;
        registrar.client.queue_subscribe(ENROLL, "oracles".into()).await.unwrap();
        registrar.client.publish(format!("{}.a", rights::inbox(seed.public())), "x".into()).await.unwrap();
        assert_eq!(registrar.refusals().await, Vec::<String>::new());
        let mut expected = Vec::new();
        let buckets = [MEMBERS_BUCKET, ORACLE_BUCKET].map(|bucket| format!("$KV.{bucket}.lease"));
        let others = ["opentcp.cue", "opentcp.to.a", "opentcp.request.a", ENROLL, "$JS.API.INFO"].map(str::to_string);
        for subject in others.into_iter().chain(buckets) {
            registrar.client.publish(subject.clone(), "x".into()).await.unwrap();
            expected.push(format!("Publish to \"{subject}\""));
        }
        let refused = registrar.refusals_until(|all| all.len() >= expected.len()).await;
        assert_eq!(violations(&refused), sorted(expected));
    });
}

/// What the server did not permit, according to its refusals.
fn violations(refusals: &[String]) -> Vec<String> {
    let words = "permissions violation for ";
    let after = |text: &String| {
        let at = text.to_lowercase().find(words);
        at.map_or_else(|| text.clone(), |at| text[at + words.len()..].to_string())
    };
    sorted(refusals.iter().map(after).collect())
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

/// What the design allows: what the member publishes to, and what it subscribes to.
fn allowed(role: Role, own: &Nkey) -> (Vec<String>, Vec<String>) {
    let hears = vec!["opentcp.cue".to_string(), format!("opentcp.to.{own}")];
    match role {
        Role::Agent | Role::Enforcer => (vec![format!("opentcp.report.{own}")], hears),
        Role::Collector => (vec![format!("opentcp.collect.{own}")], hears),
        Role::Operator => (vec![format!("opentcp.request.{own}")], hears),
        Role::Oracle => unreachable!("no token gives it"),
    }
}

/// What somebody might try.
fn every(own: &Nkey, other: &Nkey) -> Vec<String> {
    let mut subjects = Vec::new();
    for key in [own, other] {
        for word in ["to", "report", "collect", "request"] {
            subjects.push(format!("opentcp.{word}.{key}"));
        }
        subjects.push(format!("_INBOX.{key}.a"));
    }
    let fixed = [
        "opentcp.cue",
        "opentcp.>",
        "opentcp.*.*",
        ">",
        ENROLL,
        "_INBOX.>",
        "$SYS.REQ.CLAIMS.UPDATE",
        "$SYS.>",
        "$JS.API.STREAM.DELETE.KV_opentcp-members",
        "$JS.API.STREAM.INFO.KV_opentcp-members",
        "$JS.API.INFO",
        "$KV.opentcp-members.a",
        "$KV.opentcp-oracle.lease",
    ];
    subjects.extend(fixed.map(str::to_string));
    subjects
}

#[test]
fn a_token_may_only_ask_to_be_enrolled() {
    let made = Made::new();
    let Some(nats) = Nats::start(&made) else { return };
    run(async {
        let request = TokenRequest { role: Role::Agent, hosts: Vec::new(), seconds: 60, uses: None };
        let token = Token::issue(&made.oracle(), &request, now()).unwrap();
        let token = Token::parse(&token.text(), now()).unwrap();
        let oracle = nats.join(&made.oracle().identity).await;
        let mut asked = oracle.client.subscribe(ENROLL).await.unwrap();
        oracle.client.flush().await.unwrap();
        let inbox = rights::inbox(token.seed.public());
        let guest = nats.connect(&token.creds(), &inbox).await.unwrap();
        let answer = {
            use futures_util::StreamExt as _;
            let ask = guest.client.request(ENROLL, "please".into());
            let reply = async {
                let message = asked.next().await.unwrap();
                let to = message.reply.unwrap();
                oracle.client.publish(to.clone(), "yes".into()).await.unwrap();
                // a second answer is one too many
                oracle.client.publish(to, "and no".into()).await.unwrap();
            };
            tokio::join!(ask, reply).0.unwrap()
        };
        assert_eq!(answer.payload, "yes");
        assert_eq!(oracle.refusals_until(|all| !all.is_empty()).await.len(), 1);
        let own = token.seed.public();
        let mut expected = Vec::new();
        for subject in every(own, own).into_iter().filter(|subject| subject != ENROLL) {
            if !subject.contains(['*', '>']) {
                guest.client.publish(subject.clone(), "x".into()).await.unwrap();
                expected.push(format!("Publish to \"{subject}\""));
            }
            if !subject.starts_with(&inbox) {
                guest.client.subscribe(subject.clone()).await.unwrap();
                expected.push(format!("Subscription to \"{subject}\""));
            }
        }
        guest.client.subscribe(ENROLL).await.unwrap();
        expected.push(format!("Subscription to \"{ENROLL}\""));
        let refused = guest.refusals_until(|all| all.len() >= expected.len()).await;
        assert_eq!(violations(&refused), sorted(expected));
    });
}

#[test]
fn a_revoked_member_is_disconnected_and_does_not_return() {
    let made = Made::new();
    let Some(nats) = Nats::start(&made) else { return };
    run(async {
        let (bad, good) = (identity(&made, Role::Agent, "h1"), identity(&made, Role::Agent, "h2"));
        let (one, two) = (nats.join(&bad).await, nats.join(&good).await);
        let oracle = made.oracle();
        let inbox = rights::inbox(&oracle.system_key);
        let system = nats.connect(&oracle.system, &inbox).await.unwrap();
        let account = &oracle.identity.fleet.account;
        let current = system.client.request(rights::lookup(account), "".into()).await.unwrap();
        let current = String::from_utf8(current.payload.to_vec()).unwrap();
        let operators = [oracle.operator.public().clone()];
        let mut jwt = fleet::AccountJwt::read(&current, account, &operators).unwrap();
        assert_eq!(jwt.revoked(bad.seed.public()), None);
        let new = jwt.revoke(bad.seed.public(), &oracle.operator, now(), 86_400).unwrap();
        let answer = system.client.request(rights::UPDATE, new.into()).await.unwrap();
        let answer = String::from_utf8_lossy(&answer.payload).into_owned();
        assert!(answer.contains("\"code\":200"), "{answer}");
        let is_cut_off = |all: &[String]| all.iter().any(|said| said.contains("disconnected"));
        let refused = one.refusals_until(is_cut_off).await;
        assert!(is_cut_off(&refused), "{refused:?}");
        assert_eq!(two.refusals().await, Vec::<String>::new(), "the other member stays");
        let again = nats.connect(&bad.creds(), "_INBOX.x").await;
        assert!(again.err().unwrap().contains("AuthorizationViolation"));
        // the server has it on disk, too
        let current = system.client.request(rights::lookup(account), "".into()).await.unwrap();
        let current = String::from_utf8(current.payload.to_vec()).unwrap();
        let jwt = fleet::AccountJwt::read(&current, account, &operators).unwrap();
        assert!(jwt.revoked(bad.seed.public()).is_some());
    });
}
