//! ECN between two enforcers, for hosts that know none.

use super::{C, MSS, S, data};
use crate::rig::{CLIENT_ISS, Rig, SERVER_ISS, STACK, Stack, config, rig, segment};
use enforcer::{Checkpoint, Enforcer, Limits, Rule, Treatment};
use std::sync::Arc;
use tcp::{Config, Ecn, Segment, flags};
use units::Time;

const ECN: u8 = flags::ECE | flags::CWR;

/// The servers' enforcer, which runs DCTCP, and the clients'.
struct Pair {
    servers: Rig,
    clients: Rig,
}

fn echo_rule() -> Rule {
    Rule { treatment: Treatment::Echo, ..Rule::all(&config("dctcp")) }
}

fn pair() -> Pair {
    let mut clients = rig("dctcp", Limits::default(), STACK);
    clients.replace(Enforcer::new(Limits::default(), vec![echo_rule()], 7));
    Pair { servers: rig("dctcp", Limits::default(), STACK), clients }
}

impl Pair {
    /// The client sends; what the servers' enforcer receives, and the server.
    fn client(&mut self, segment: Segment) -> (Segment, Option<Segment>) {
        let between = self.clients.client(0, segment).expect("an echo drops nothing");
        (between, self.servers.client(0, between))
    }

    /// The server sends, and a queue marks what it may if `marks`; what leaves its enforcer, and what the client gets.
    fn server(&mut self, segment: Segment, marks: bool) -> (Vec<Segment>, Vec<Segment>) {
        let between = self.servers.server(0, segment);
        let marked =
            |one: &Segment| Segment { ecn: if marks && one.ecn != Ecn::NotEct { Ecn::Ce } else { one.ecn }, ..*one };
        let got = between.iter().flat_map(|one| self.clients.server(0, marked(one))).collect();
        (between, got)
    }

    /// A download's handshake.
    fn open(&mut self) {
        let syn = self.servers.syn(CLIENT_ISS);
        self.client(syn);
        let answer = self.servers.answer();
        self.server(answer, false);
        self.wait();
        self.client(segment(C, S, 0));
        assert_eq!((self.servers.enforcer.flows(), self.clients.enforcer.echoes()), (1, 1));
    }

    fn wait(&mut self) {
        self.servers.wait(Time::from_ms(10));
        self.clients.wait(Time::from_ms(10));
    }
}

#[test]
fn a_client_opens_and_no_host_has_ecn() {
    let mut pair = pair();
    let syn = pair.servers.syn(CLIENT_ISS);
    let asks = Segment { flags: flags::SYN | ECN, ecn: Ecn::Ect0, ..syn };
    // the server may accept it itself, if it is a DCTCP host
    assert_eq!(pair.client(syn), (asks, Some(asks)));
    let answer = pair.servers.answer();
    let accepts = Segment { flags: answer.flags | flags::ECE, ..answer };
    assert_eq!(pair.server(answer, false), (vec![accepts], vec![answer]), "the client sees the server's answer");
    pair.wait();
    let ack = segment(C, S, 0);
    assert_eq!(pair.client(ack).0, ack);
    let marked = Segment { ecn: Ecn::Ect0, ..data(0) };
    assert_eq!(pair.server(data(0), true), (vec![marked], vec![data(0)]), "the client sees no mark");
    pair.wait();
    let ack = segment(C, S + MSS, 0);
    let (between, seen) = pair.client(ack);
    assert_eq!(between, Segment { flags: flags::ACK | flags::ECE, ..ack });
    assert_eq!(seen.map(|seen| seen.flags), Some(flags::ACK), "the server sees no echo");
    let record = pair.servers.enforcer.open_records(pair.servers.now).next().expect("it is enforced");
    assert_eq!((record.delivered_ce, record.algorithm.as_str()), (1, "dctcp"));
    let counters = pair.clients.enforcer.counters();
    assert_eq!((counters.ecn_agreed, counters.marks_taken, counters.marks_echoed), (1, 1, 1));
    // the window was reduced, which only the other enforcer hears
    let (between, got) = pair.server(data(1), false);
    assert!(between[0].flags & flags::CWR != 0 && got[0].flags & flags::CWR == 0, "{between:?}, {got:?}");
}

#[test]
fn a_server_opens_and_no_host_has_ecn() {
    let mut pair = pair();
    let syn = pair.servers.syn(SERVER_ISS);
    let asks = Segment { flags: flags::SYN | ECN, ecn: Ecn::Ect0, ..syn };
    assert_eq!(pair.server(syn, false), (vec![asks], vec![asks]));
    let answer = Segment { ack: S, flags: flags::SYN | flags::ACK, ..pair.servers.syn(CLIENT_ISS) };
    let accepts = Segment { flags: answer.flags | flags::ECE, ..answer };
    assert_eq!(pair.client(answer), (accepts, Some(answer)));
    // again: the first was lost
    assert_eq!(pair.client(answer), (accepts, Some(answer)));
    pair.server(segment(S, C, 0), false);
    let (between, got) = pair.server(data(0), true);
    assert_eq!((between[0].ecn, got[0].ecn), (Ecn::Ect0, Ecn::NotEct));
    assert_eq!((pair.servers.enforcer.flows(), pair.clients.enforcer.echoes()), (1, 1));
}

#[test]
fn a_syn_that_is_repeated_does_not_ask() {
    let mut pair = pair();
    let syn = pair.servers.syn(CLIENT_ISS);
    assert_ne!(pair.client(syn).0, syn);
    assert_eq!(pair.client(syn).0, syn, "the path may drop those that ask");
    // a host that repeats it so would echo nothing
    let answer = pair.servers.answer();
    assert_eq!(pair.server(answer, false), (vec![answer], vec![answer]));
    pair.client(segment(C, S, 0));
    assert_eq!(pair.server(data(0), false).0[0].ecn, Ecn::NotEct);
}

#[test]
fn marks_on_what_a_client_with_dctcp_sends_are_echoed() {
    let mut servers = rig("dctcp", Limits::default(), STACK);
    let syn = Segment { flags: flags::SYN | ECN, ecn: Ecn::Ect0, ..servers.syn(CLIENT_ISS) };
    assert_eq!(servers.client(0, syn), Some(syn));
    let answer = servers.answer();
    assert_eq!(servers.server(0, answer)[0].flags, answer.flags | flags::ECE);
    servers.wait(Time::from_ms(10));
    servers.client(0, segment(C, S, 0));
    let upload = |n: u32, ecn| Segment { ecn, ..segment(C + n * MSS, S, MSS as u16) };
    let acked = |rig: &mut Rig, n: u32| rig.server(0, segment(S, C + n * MSS, 0))[0].flags & flags::ECE != 0;
    assert_eq!(servers.client(0, upload(0, Ecn::Ect0)).map(|seen| seen.ecn), Some(Ecn::Ect0));
    assert!(!acked(&mut servers, 1));
    let seen = servers.client(0, upload(1, Ecn::Ce)).map(|seen| seen.ecn);
    assert_eq!(seen, Some(Ecn::NotEct), "the server knows no ECN");
    assert!(acked(&mut servers, 2));
    servers.client(0, upload(2, Ecn::Ect0));
    assert!(!acked(&mut servers, 3), "one segment was marked");
}

#[test]
fn a_new_connection_of_the_same_ends_is_another() {
    let mut pair = pair();
    pair.open();
    let fin = |segment| Segment { flags: flags::ACK | flags::FIN, ..segment };
    pair.clients.server(0, fin(segment(S, C, 0)));
    pair.clients.client(0, fin(segment(C, S + 1, 0)));
    // it has ECN itself
    let far = CLIENT_ISS.wrapping_add(1 << 30);
    let syn = Segment { flags: flags::SYN | ECN, ecn: Ecn::Ect0, ..pair.clients.syn(far) };
    assert_eq!(pair.clients.client(0, syn), Some(syn));
    let answer = pair.clients.answer();
    let answer = Segment {
        seq: SERVER_ISS.wrapping_add(1 << 30),
        ack: far.wrapping_add(1),
        flags: answer.flags | flags::ECE,
        ..answer
    };
    assert_eq!(pair.clients.server(0, answer), [answer]);
    assert_eq!(pair.clients.enforcer.echoes(), 0);
    let marked = Segment { ecn: Ecn::Ce, seq: answer.seq.wrapping_add(1), ack: answer.ack, ..data(0) };
    assert_eq!(pair.clients.server(0, marked), [marked]);
}

#[test]
fn packets_that_cannot_be_the_senders_are_owed_nothing() {
    let mut pair = pair();
    pair.open();
    pair.client(segment(C, S, 0));
    for n in 0..100 {
        let spoofed = Segment { ecn: Ecn::Ce, ..segment(S.wrapping_add((1 << 30) + n * MSS), C, MSS as u16) };
        assert_eq!(pair.clients.server(0, spoofed)[0].ecn, Ecn::NotEct);
        let fin = Segment { flags: flags::ACK | flags::FIN, ..spoofed };
        pair.clients.server(0, fin);
        pair.clients.client(0, Segment { flags: flags::RST, ..segment(C, 0, 0) });
    }
    pair.server(data(0), false);
    assert_eq!(pair.client(segment(C, S + MSS, 0)).0.flags, flags::ACK);
    pair.clients.now += Time::from_secs(20);
    (1..40).for_each(|n| drop(pair.clients.server(n, segment(S, C, 0))));
    assert_eq!(pair.clients.enforcer.echoes(), 1, "it has not ended");
}

#[test]
fn one_enforcer_alone_sends_nothing_as_ecn_capable() {
    // the servers' alone: nobody asks
    let mut servers = rig("dctcp", Limits::default(), STACK);
    servers.open(0);
    assert_eq!(servers.server(0, data(0)), [data(0)]);
    // it asks for a server that opens, and the client does not accept
    let syn = servers.syn(SERVER_ISS);
    assert_eq!(servers.server(1, syn)[0].flags, flags::SYN | ECN);
    let answer = Segment { ack: S, flags: flags::SYN | flags::ACK, ..servers.syn(CLIENT_ISS) };
    assert_eq!(servers.client(1, answer), Some(answer));
    servers.server(1, segment(S, C, 0));
    assert_eq!(servers.server(1, data(0)), [data(0)]);
    // the clients' alone: it asks, and no server accepts
    let mut clients = pair().clients;
    assert_eq!(clients.client(0, clients.syn(CLIENT_ISS)).map(|syn| syn.flags), Some(flags::SYN | ECN));
    let answer = clients.answer();
    assert_eq!(clients.server(0, answer), [answer]);
    clients.client(0, segment(C, S, 0));
    let marked = Segment { ecn: Ecn::Ce, ..data(0) };
    assert_eq!(clients.server(0, marked), [marked]);
    assert_eq!(clients.enforcer.echoes(), 0);
}

#[test]
fn hosts_that_have_ecn_keep_it() {
    let mut pair = pair();
    pair.servers.stack = Stack { ecn: true, ..STACK };
    let syn = pair.servers.syn(CLIENT_ISS);
    assert_eq!(pair.client(syn), (syn, Some(syn)), "it asks itself");
    let answer = pair.servers.answer();
    assert_eq!(pair.server(answer, false), (vec![answer], vec![answer]));
    pair.client(segment(C, S, 0));
    let able = Segment { ecn: Ecn::Ect0, ..data(0) };
    let marked = Segment { ecn: Ecn::Ce, ..data(0) };
    assert_eq!(pair.server(able, true), (vec![able], vec![marked]));
    assert_eq!(pair.clients.enforcer.echoes(), 0);
    // one that asks as DCTCP does not: whoever answers it would have to echo until CWR
    let plain = self::pair().clients.server(1, Segment { flags: flags::SYN | ECN, ..pair.servers.syn(SERVER_ISS) });
    assert_eq!(plain[0].flags, flags::SYN | ECN);
}

/// Segments between the clients' enforcer and the client, on their way there or as ACKs.
const BEHIND: u32 = 40;

#[test]
fn echoes_stand_for_as_many_bytes_as_were_marked() {
    let mut pair = pair();
    pair.open();
    let mut random = testkit::Random(3);
    let (mut marked, mut echoed, mut acked) = (0, 0, 0);
    for n in 0..20_000 {
        // none to nine of ten, and back
        let is_marked = random.below(10) < u64::from(n / 1000 % 10);
        marked += u32::from(is_marked);
        pair.clients.server(0, Segment { ecn: if is_marked { Ecn::Ce } else { Ecn::Ect0 }, ..data(n) });
        // a client acknowledges one to four segments
        while acked + BEHIND + 4 <= n {
            let more = 1 + random.below(4) as u32;
            let ack = pair.clients.client(0, segment(C, S + (acked + more) * MSS, 0)).expect("it passes");
            acked += more;
            echoed += if ack.flags & flags::ECE != 0 { more } else { 0 };
        }
        if n % 1000 == 999 {
            assert!(marked.abs_diff(echoed) <= BEHIND, "{marked} of {n} segments were marked and {echoed} echoed");
        }
    }
    println!("{marked} of 20,000 segments were marked and {echoed} echoed");
    assert!(marked > 8000, "{marked}");
}

#[test]
fn duplicate_acks_echo_a_segment_each() {
    let mut pair = pair();
    pair.open();
    pair.clients.server(0, data(0));
    // the next is lost, and two of the eight behind it are marked
    for n in 2..10 {
        pair.clients.server(0, Segment { ecn: if n < 4 { Ecn::Ce } else { Ecn::Ect0 }, ..data(n) });
    }
    let mut echo = |ack: Segment| pair.clients.client(0, ack).expect("it passes").flags & flags::ECE != 0;
    let duplicate = |n: u32| {
        let mut ack = Segment { sack_count: 1, ..segment(C, S + MSS, 0) };
        ack.sack[0] = tcp::SackBlock { start: S + 2 * MSS, end: S + n * MSS };
        ack
    };
    let echoes = (3..=10).filter(|n| echo(duplicate(*n))).count();
    assert!((1..=2).contains(&echoes), "{echoes}");
    pair.clients.server(0, data(1));
    // of what it acknowledges the sender knew all but a segment
    let ack = pair.clients.client(0, segment(C, S + 10 * MSS, 0)).expect("it passes");
    assert_eq!(ack.flags, flags::ACK);
    pair.clients.server(0, Segment { ecn: Ecn::Ce, ..data(10) });
    let ack = pair.clients.client(0, segment(C, S + 11 * MSS, 0)).expect("it passes");
    assert_eq!(ack.flags, flags::ACK | flags::ECE, "nothing was echoed ahead");
}

#[test]
fn losses_without_marks_end_it() {
    let mut pair = pair();
    let wide = Config { initial_cwnd: 80, ..Config::clone(&config("dctcp")) };
    pair.servers.replace(Enforcer::new(Limits::default(), vec![Rule::all(&Arc::new(wide))], 1));
    pair.open();
    let lose = |pair: &mut Pair, from: u32| {
        let sent: Vec<Segment> = (from..from + 8).flat_map(|n| pair.server(data(n), false).0).collect();
        pair.wait();
        // the first is lost
        for n in 1..8 {
            let first = S + (from + 1) * MSS;
            let block = tcp::SackBlock { start: first, end: first + n * MSS };
            let mut ack = Segment { sack_count: 1, ..segment(C, S + from * MSS, 0) };
            ack.sack[0] = block;
            pair.client(ack);
        }
        pair.servers.leaves();
        pair.client(segment(C, S + (from + 8) * MSS, 0));
        pair.wait();
        sent
    };
    pair.server(data(0), true);
    pair.wait();
    pair.client(segment(C, S + MSS, 0));
    let sent = lose(&mut pair, 1);
    assert!(sent.iter().all(|one| one.ecn == Ecn::Ect0), "{sent:?}");
    assert_eq!(pair.servers.enforcer.counters().ecn_stopped, 0, "a mark came before");
    let sent = lose(&mut pair, 9);
    assert!(sent.iter().all(|one| one.ecn == Ecn::Ect0), "{sent:?}");
    assert_eq!(pair.servers.enforcer.counters().ecn_stopped, 1, "no mark came since the last loss");
    assert_eq!(pair.server(data(17), false).0[0].ecn, Ecn::NotEct);
}

#[test]
fn other_enforcers_take_over() {
    let mut pair = pair();
    pair.open();
    let (now, none) = (pair.servers.now, |_: &_| Vec::new());
    let take = |rig: &mut Rig, mut to: Enforcer<_>| {
        let flows: Vec<Checkpoint> = rig.enforcer.checkpoints(now, none).collect();
        assert_eq!(flows.len(), 1);
        assert!(to.restore(now, &flows[0], |_| None));
        rig.replace(to);
    };
    take(&mut pair.servers, Enforcer::new(Limits::default(), vec![Rule::all(&config("dctcp"))], 8));
    take(&mut pair.clients, Enforcer::new(Limits::default(), vec![echo_rule()], 9));
    let (between, got) = pair.server(data(0), true);
    assert_eq!((between[0].ecn, got[0].ecn), (Ecn::Ect0, Ecn::NotEct));
    assert_eq!(pair.client(segment(C, S + MSS, 0)).0.flags, flags::ACK | flags::ECE);
}

#[test]
fn a_standby_echoes_when_packets_come_to_it() {
    let mut pair = pair();
    pair.clients.enforcer.begin_reports();
    pair.open();
    let now = pair.clients.now;
    let mut standby = Enforcer::new(Limits::default(), vec![echo_rule()], 10);
    while let Some(flow) = pair.clients.enforcer.poll_changed(now) {
        standby.mirror(now, flow);
    }
    assert_eq!(standby.mirrored(), 1);
    pair.clients.replace(standby);
    assert_eq!(pair.server(data(0), true).1[0].ecn, Ecn::NotEct);
    assert_eq!(pair.client(segment(C, S + MSS, 0)).0.flags, flags::ACK | flags::ECE);
    assert_eq!(pair.clients.enforcer.counters().flows_promoted, 1);
}

#[test]
fn an_echo_ends_with_its_flow() {
    let mut pair = pair();
    pair.open();
    let fin = Segment { flags: flags::ACK | flags::FIN, ..segment(S, C, 0) };
    pair.clients.server(0, fin);
    pair.clients.client(0, Segment { flags: flags::ACK | flags::FIN, ..segment(C, S + 1, 0) });
    pair.clients.server(0, segment(S + 1, C + 1, 0));
    assert_eq!(pair.clients.enforcer.echoes(), 1, "retransmissions may come");
    pair.clients.now += Time::from_secs(20);
    for n in 1..40 {
        pair.clients.server(n, segment(S, C, 0));
    }
    assert_eq!(pair.clients.enforcer.echoes(), 0);
}

#[test]
fn a_share_of_the_data_of_hosts_with_ecn_is_marked() {
    let mut rig = rig("dctcp", Limits::default(), STACK);
    let rule = Rule { treatment: Treatment::Mark(0.05), ..echo_rule() };
    rig.replace(Enforcer::new(Limits::default(), vec![rule], 11));
    let (syn, answer) = (Segment { flags: flags::SYN | ECN, ..rig.syn(CLIENT_ISS) }, rig.answer());
    assert_eq!(rig.client(0, syn), Some(syn));
    assert_eq!(rig.server(0, answer), [answer]);
    let able = |n| Segment { ecn: Ecn::Ect0, ..data(n) };
    let marked = (0..100_000).filter(|n| rig.server(0, able(*n))[0] != able(*n)).count();
    println!("{marked} of 100,000 are marked");
    // five standard deviations: 5 sqrt(100,000 · 0.05 · 0.95) = 345
    assert!((4_655..=5_345).contains(&marked), "{marked}");
    assert_eq!(rig.enforcer.counters().marked, marked as u64);
    assert!((0..1000).all(|n| rig.server(0, data(n)) == [data(n)]), "hosts without ECN would not understand it");
    let bare = Segment { ecn: Ecn::Ect0, ..segment(S, C, 0) };
    assert!((0..1000).all(|_| rig.server(0, bare) == [bare]), "an ACK carries no data");
    assert_eq!(rig.enforcer.flows(), 0);
}
