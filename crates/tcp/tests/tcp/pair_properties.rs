//! Two endpoints over a wire that loses, reorders, duplicates and marks: whatever the switches, every byte arrives once
//! and in order, both ends close, and no count of segments contradicts another.

use crate::wire::Pair;
use congestion::{Algorithm, TcpSock};
use proptest::prelude::*;
use std::sync::Arc;
use tcp::{Config, DelayedAck, Ecn, EcnMode, Endpoint, PacingMode, Segment, State};
use testkit::Random;
use units::Time;

/// The faults stop after so many segments, so that a run ends.
const FAULTY_SEGMENTS: u64 = 3000;
/// Without SACK a lost ACK of a retransmission makes the next timestamp sample as long as the back-off before it (as in
/// Linux): a few such losses give timeouts of two minutes, each of which may be lost again while the faults last.
const LONGEST: Time = Time::from_secs(100_000);
const STEPS_MAX: u64 = 3_000_000;

/// True in `permille` of 1000 cases.
fn happens(random: &mut Random, permille: u64) -> bool {
    random.below(1000) < permille
}

/// How bad the wire is, in cases of 1000 segments.
#[derive(Clone, Debug)]
struct Faults {
    seed: u64,
    loss: u64,
    reorder: u64,
    duplicate: u64,
    mark: u64,
    delay: Time,
}

#[derive(Clone, Debug)]
struct Case {
    config: Config,
    faults: Faults,
    bytes: [u64; 2],
    iss: [u32; 2],
    /// The active end writes and closes without waiting for the handshake.
    early: bool,
}

fn wire(faults: &Faults) -> impl FnMut(Time, usize, &Segment) -> Vec<(Time, Segment)> + use<> {
    let mut random = Random(faults.seed);
    let faults = faults.clone();
    let mut count = 0;
    move |now, _from, segment| {
        count += 1;
        let mut segment = *segment;
        let arrival = now + faults.delay;
        if count > FAULTY_SEGMENTS {
            return vec![(arrival, segment)];
        }
        if happens(&mut random, faults.loss) {
            return Vec::new();
        }
        if segment.ecn != Ecn::NotEct && happens(&mut random, faults.mark) {
            segment.ecn = Ecn::Ce;
        }
        let late = |random: &mut Random| Time::from_us(random.below(5_000));
        let arrival = if happens(&mut random, faults.reorder) { arrival + late(&mut random) } else { arrival };
        let mut copies = vec![(arrival, segment)];
        if happens(&mut random, faults.duplicate) {
            copies.push((arrival + late(&mut random), segment));
        }
        copies
    }
}

fn counts_agree(sock: &TcpSock) -> Result<(), TestCaseError> {
    // sums in u64: an underflow of one count must not be hidden by an overflow of the sum
    let left_out = sock.sacked_out as u64 + sock.lost_out as u64;
    prop_assert!(sock.packets_out as u64 >= left_out, "{} out, {left_out} left", sock.packets_out);
    prop_assert!(sock.retrans_out <= sock.packets_out);
    prop_assert!(sock.packets_in_flight() <= 2 * sock.packets_out);
    prop_assert!(sock.snd_cwnd >= 1);
    prop_assert!(sock.snd_ssthresh >= 2);
    prop_assert!(sock.packets_out > 0 || sock.snd_una == sock.snd_nxt || sock.retrans_out == 0);
    Ok(())
}

/// What a run leaves behind; equal runs leave equal ones.
#[derive(Debug, PartialEq)]
struct Outcome {
    end: Time,
    steps: u64,
    trace: u64,
}

fn transfer(case: &Case) -> Result<Outcome, TestCaseError> {
    let config = Arc::new(case.config.clone());
    let ends = [Endpoint::connect(&config, case.iss[0], 3), Endpoint::listen(&config, case.iss[1], 5)];
    let mut pair = Pair::new(ends, Time::ZERO, wire(&case.faults), |_, _| ());
    let mut written = [0; 2];
    let mut received = [0; 2];
    let mut closed = [false; 2];
    let mut open = [case.early, false];
    let mut steps = 0;
    let mut trace = 0_u64;
    loop {
        for end in 0..2 {
            let missing = case.bytes[end] - written[end];
            open[end] |= !matches!(pair.ends[end].state(), State::Listen | State::SynSent | State::SynReceived);
            if missing > 0 && open[end] {
                written[end] += pair.act(end, |endpoint, now| endpoint.write(now, missing));
            }
            if !closed[end] && written[end] == case.bytes[end] && open[end] {
                pair.act(end, Endpoint::close);
                closed[end] = true;
            }
            counts_agree(pair.ends[end].sock())?;
            let now_received = pair.ends[end].received();
            prop_assert!(now_received >= received[end], "received bytes are taken back");
            prop_assert!(now_received <= written[1 - end], "more arrives than was written");
            prop_assert!(pair.ends[end].acked() <= written[end], "more is acknowledged than was written");
            received[end] = now_received;
            trace = trace.rotate_left(7) ^ (pair.now.as_ps() + now_received * 3 + pair.ends[end].acked());
        }
        if pair.ends[0].is_closed() && pair.ends[1].is_closed() {
            break;
        }
        steps += 1;
        prop_assert!(steps < STEPS_MAX, "no end after {} of simulated time", pair.now);
        prop_assert!(pair.now < LONGEST, "no end: {:?} of {:?} received", received, written);
        prop_assert!(pair.step(), "nothing more happens: {received:?} of {written:?} received, closed {closed:?}");
    }
    prop_assert_eq!(received[1], case.bytes[0]);
    prop_assert_eq!(received[0], case.bytes[1]);
    prop_assert_eq!(pair.ends[0].acked(), case.bytes[0]);
    prop_assert_eq!(pair.ends[1].acked(), case.bytes[1]);
    Ok(Outcome { end: pair.now, steps, trace })
}

fn switches() -> impl Strategy<Value = Config> {
    let bits = any::<u16>();
    let sizes = (1_u32..=20, prop_oneof![Just(576_u32), Just(1500), Just(9000)], 1_u32..=4, 1_u64..=200);
    let buffers = (20_000_u32..400_000, 20_000_u32..400_000);
    let modes = (0..4_u8, 0..3_u8);
    (bits, sizes, buffers, modes).prop_map(|(bits, (initial_cwnd, mtu, ack_segments, ack_ms), buffers, modes)| {
        let bit = |n: u32| bits >> n & 1 == 1;
        let names = Algorithm::builtins();
        let algorithm = &names[bits as usize % names.len()];
        Config {
            initial_cwnd,
            mtu,
            rto_min: if bit(0) { Time::from_ms(200) } else { Time::from_ms(2) },
            sack: bit(1),
            timestamps: bit(2),
            window_scaling: bit(3),
            delayed_ack: DelayedAck {
                segments: ack_segments,
                timeout: Time::from_ms(ack_ms),
                timeout_max: Time::from_ms(200),
                quickack: bit(4),
            },
            rack: bit(5),
            tlp: bit(6),
            prr: bit(7),
            frto: bit(8),
            slow_start_after_idle: bit(9),
            limit_output: bit(10),
            ecn: [EcnMode::Auto, EcnMode::Off, EcnMode::On, EcnMode::Accurate][modes.0 as usize],
            pacing: [PacingMode::Auto, PacingMode::Off, PacingMode::On][modes.1 as usize],
            send_buffer: buffers.0,
            receive_buffer: buffers.1,
            ..Config::linux(algorithm)
        }
    })
}

fn cases() -> impl Strategy<Value = Case> {
    let faults = (any::<u64>(), 0..150_u64, 0..150_u64, 0..60_u64, 0..200_u64, 10_u64..30_000).prop_map(
        |(seed, loss, reorder, duplicate, mark, delay_us)| Faults {
            seed,
            loss,
            reorder,
            duplicate,
            mark,
            delay: Time::from_us(delay_us),
        },
    );
    // near the wrap as often as not
    let iss = prop_oneof![any::<u32>(), (u32::MAX - 100_000)..=u32::MAX];
    let bytes = (0..600_000_u64, prop_oneof![Just(0_u64), 1..200_000_u64]);
    (switches(), faults, bytes, (iss.clone(), iss), any::<bool>()).prop_map(|(config, faults, bytes, iss, early)| {
        Case { config, faults, bytes: [bytes.0, bytes.1], iss: [iss.0, iss.1], early }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_both_ends_close(case in cases()) {
        transfer(&case)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_run(case in cases()) {
        prop_assert_eq!(transfer(&case)?, transfer(&case)?);
    }
}

/// Bytes that end 0 sends to end 1 over a clean wire of 5 ms each way; returns the pair.
fn clean_transfer(config: Config, iss: u32, bytes: u64) -> [Endpoint; 2] {
    let config = Arc::new(config);
    let ends = [Endpoint::connect(&config, iss, 3), Endpoint::listen(&config, 2, 5)];
    let clean = |now: Time, _from: usize, segment: &Segment| vec![(now + Time::from_ms(5), *segment)];
    let mut pair = Pair::new(ends, Time::ZERO, clean, |_, _| ());
    pair.act(0, |endpoint, now| endpoint.write_all(now, bytes));
    while pair.ends[0].acked() < bytes {
        assert!(pair.step(), "the transfer stops at {} bytes", pair.ends[0].acked());
    }
    assert_eq!(pair.ends[1].received(), bytes);
    pair.ends
}

fn newreno() -> Config {
    Config::linux(Algorithm::named("newreno").expect("newreno is built in"))
}

#[test]
fn a_clean_wire_needs_no_retransmission() {
    let [sender, _] = clean_transfer(newreno(), 1, 20_000_000);
    let stats = sender.stats();
    assert_eq!((stats.retransmits, stats.rtos, stats.tlp_probes), (0, 0, 0));
    assert_eq!(stats.data_segments_sent as u64, 20_000_000_u64.div_ceil(1448));
}

#[test]
fn more_than_the_sequence_space_is_carried() {
    let jumbo = Config { mtu: 9000, ..newreno() };
    let [sender, _] = clean_transfer(jumbo, u32::MAX - 70_000, 5 << 30);
    assert_eq!(sender.stats().retransmits, 0);
}
