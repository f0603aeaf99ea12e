//! What another relay needs to continue a connection: in another process, or on another machine.

use crate::config::Config;
use crate::endpoint::{Endpoint, NO_RTT_MIN, State, TimerKind, bit};
use crate::relay::Relay;
use crate::scoreboard::mark;
use congestion::sock::{TCP_CA_OPEN, ecn};
use congestion::{MinMax, MinMaxSample};
use std::sync::Arc;
use units::Time;

/// Largest flight that is restored, bytes: TCP's largest window (RFC 7323 2.3).
const FLIGHT_MAX: u32 = 1 << 30;
/// Most doublings of the retransmission timeout: more exceed its maximum of two minutes whatever the RTT.
const BACKOFF_MAX: u32 = 16;
/// Smallest segments, bytes: RFC 791's datagrams of 68 bytes hold no less.
const MSS_MIN: u32 = 48;

/// What a [`Relay`] knows of its connection and of the path, without this program's layout of it: versions differ in that. Times are
/// durations, so clocks may differ too.
///
/// An algorithm's private state is not in it. A restored relay begins its algorithm with the window and threshold as they stood,
/// as Linux does when a connection's algorithm is changed (`tcp_reinit_congestion_control`).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Checkpoint {
    /// The first sequence number that is not acknowledged.
    #[prost(uint32, tag = "1")]
    pub una: u32,
    /// The first that was not sent.
    #[prost(uint32, tag = "2")]
    pub nxt: u32,
    /// What the sending end has acknowledged of the other end.
    #[prost(uint32, tag = "3")]
    pub rcv_nxt: u32,
    /// The window that it offers, bytes.
    #[prost(uint32, tag = "4")]
    pub rcv_wnd: u32,
    /// The other end's window, bytes.
    #[prost(uint32, tag = "5")]
    pub window: u32,
    /// Most payload in a segment, bytes.
    #[prost(uint32, tag = "6")]
    pub mss: u32,
    /// Both permit SACK.
    #[prost(bool, tag = "7")]
    pub sack: bool,
    /// Both do ECN.
    #[prost(bool, tag = "8")]
    pub ecn: bool,
    /// The congestion window, segments.
    #[prost(uint32, tag = "9")]
    pub cwnd: u32,
    /// The slow start threshold, segments.
    #[prost(uint32, tag = "10")]
    pub ssthresh: u32,
    /// Eight times the smoothed RTT, µs; 0 before the first sample.
    #[prost(uint32, tag = "11")]
    pub srtt_us: u32,
    /// Four times the mean deviation, µs.
    #[prost(uint32, tag = "12")]
    pub mdev_us: u32,
    /// Four times its smoothed maximum, µs.
    #[prost(uint32, tag = "13")]
    pub rttvar_us: u32,
    /// The minimum RTT, µs; `u32::MAX` before the first sample.
    #[prost(uint32, tag = "14")]
    pub min_rtt_us: u32,
    /// Payload acknowledged since the beginning, bytes.
    #[prost(uint64, tag = "15")]
    pub bytes_acked: u64,
    /// Segments delivered since the beginning.
    #[prost(uint32, tag = "16")]
    pub delivered: u32,
    /// Of these, with an echo of CE.
    #[prost(uint32, tag = "17")]
    pub delivered_ce: u32,
    /// Segments with payload sent since the beginning.
    #[prost(uint32, tag = "18")]
    pub data_segments_sent: u32,
    /// Of these, retransmissions.
    #[prost(uint32, tag = "19")]
    pub retransmits: u32,
    /// Retransmission timeouts.
    #[prost(uint32, tag = "20")]
    pub rtos: u32,
    /// Time left until the next timer of loss detection, µs; `None`: there is none.
    #[prost(uint64, optional, tag = "21")]
    pub timeout_us: Option<u64>,
    /// Timeouts since anything was acknowledged.
    #[prost(uint32, tag = "22")]
    pub backoff: u32,
}

impl Checkpoint {
    /// Bytes in flight.
    pub fn flight(&self) -> u32 {
        self.nxt.wrapping_sub(self.una)
    }

    /// Whether a connection can be in this state.
    pub fn is_sound(&self) -> bool {
        self.flight() <= FLIGHT_MAX && (MSS_MIN..=u32::from(u16::MAX)).contains(&self.mss) && self.cwnd > 0
    }
}

impl Relay {
    /// The state to [`Relay::restore`].
    pub fn checkpoint(&self, now: Time) -> Checkpoint {
        let (end, stats) = (self.endpoint(), self.stats());
        let timer_at = end.busy.work().map(|work| work.timer_at).filter(|_| end.timer != TimerKind::None);
        let sock = &end.sock;
        Checkpoint {
            una: sock.snd_una,
            nxt: sock.snd_nxt,
            rcv_nxt: sock.rcv_nxt,
            rcv_wnd: end.rcv_wnd,
            window: end.snd_wnd,
            mss: sock.mss_cache,
            sack: end.has(bit::SACK),
            ecn: end.has_ecn(),
            cwnd: sock.snd_cwnd,
            ssthresh: sock.snd_ssthresh,
            srtt_us: sock.srtt_us,
            mdev_us: sock.mdev_us,
            rttvar_us: end.rttvar_us,
            min_rtt_us: sock.min_rtt_us(),
            bytes_acked: sock.bytes_acked,
            delivered: sock.delivered,
            delivered_ce: sock.delivered_ce,
            data_segments_sent: stats.data_segments_sent,
            retransmits: stats.retransmits,
            rtos: stats.rtos,
            timeout_us: timer_at.map(|at| at.saturating_sub(now).as_us()),
            backoff: end.backoff.into(),
        }
    }

    /// The connection of a checkpoint, with all in flight in pieces of the lengths `sent`: to this relay they have just left.
    /// They give no samples of RTT or rate. Its loss detection learns by the next acknowledgments what is missing. `None`: no
    /// connection can be in that state. `seed` starts the algorithm's random stream.
    pub fn restore(
        now: Time,
        config: &Arc<Config>,
        from: &Checkpoint,
        sent: impl Iterator<Item = u32>,
        seed: u32,
    ) -> Option<Relay> {
        if !from.is_sound() {
            return None;
        }
        let mut end = Endpoint::new(config, from.una, seed, State::SynReceived);
        end.refresh_clock(now);
        end.bits = if from.sack { bit::SACK } else { 0 };
        end.rcv_wup = from.rcv_nxt;
        end.rcv_wnd = from.rcv_wnd;
        end.snd_wnd = from.window;
        end.rcv_mss = 1;
        end.rttvar_us = from.rttvar_us;
        end.mdev_max_us = from.rttvar_us;
        let now_ms = end.now_ms();
        let sock = &mut end.sock;
        sock.ecn_flags = if from.ecn { ecn::OK } else { 0 };
        sock.mss_cache = from.mss;
        sock.rcv_nxt = from.rcv_nxt;
        sock.snd_ssthresh = from.ssthresh;
        (sock.srtt_us, sock.mdev_us) = (from.srtt_us, from.mdev_us);
        sock.rtt_min = match from.min_rtt_us {
            u32::MAX => NO_RTT_MIN,
            us => MinMax { s: [MinMaxSample { t: now_ms, v: us }; 3] },
        };
        sock.bytes_acked = from.bytes_acked;
        (sock.delivered, sock.delivered_ce) = (from.delivered, from.delivered_ce);
        sock.ca_set_state(TCP_CA_OPEN);
        end.establish_with(now, from.cwnd);
        let mut relay = Relay::of(end);
        relay.endpoint_mut().backoff = from.backoff.min(BACKOFF_MAX) as u8;
        relay.put_in_flight(now, from.flight(), sent)?;
        let end = relay.endpoint_mut();
        if let (Some(us), Some(work)) = (from.timeout_us, end.busy.work_mut()) {
            // what is lost must not wait for a whole timeout more
            work.timer_at = work.timer_at.min(now + Time::from_us(us));
        }
        end.data_segments_sent = from.data_segments_sent;
        end.received = u64::from(from.retransmits) << 32 | u64::from(from.rtos);
        Some(relay)
    }

    /// A relay with these settings in another state, with nothing in flight. `None`: no connection can be in that state.
    pub fn restored(&self, now: Time, from: &Checkpoint) -> Option<Relay> {
        let end = self.endpoint();
        Relay::restore(now, &end.config, from, std::iter::empty(), end.sock.cc_random_state)
    }

    /// The same as [`Relay::note_receiver`], however far it is from what was noted before.
    pub fn note_receiver_anew(&mut self, rcv_nxt: u32, window: u32) {
        let end = self.endpoint_mut();
        end.sock.rcv_nxt = rcv_nxt;
        end.rcv_wup = rcv_nxt;
        end.rcv_wnd = window;
    }

    /// All that another relay has sent is in flight. `None`: the pieces are not as long as the flight.
    fn put_in_flight(&mut self, now: Time, mut flight: u32, sent: impl Iterator<Item = u32>) -> Option<()> {
        for len in sent {
            flight = flight.checked_sub(len)?;
            self.write(now, len, false);
            self.enter(now, len, u32::MAX);
        }
        if flight > 0 {
            return None;
        }
        let end = self.endpoint_mut();
        end.bits &= !bit::SENT;
        // it was paced when it left
        (end.burst_left, end.sock.tcp_wstamp_ns) = (0, end.sock.tcp_clock_cache);
        for index in 0..end.sock.packets_out {
            end.busy.at_mut(index).flags |= mark::APP_LIMITED | mark::EVER_RETRANS;
        }
        if end.sock.packets_out > 0 {
            end.sock.app_limited = end.sock.delivered.wrapping_add(end.sock.packets_out).max(1);
            end.timer = TimerKind::Retransmit;
            end.rearm_rto(now);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::tests::{self, LEN};
    use crate::relay::{Next, Opening};
    use crate::segment::{SackBlock, Segment, flags};
    use congestion::Algorithm;

    /// Sequence numbers wrap soon.
    const OPENING: Opening = Opening { una: u32::MAX - 2500, rcv_nxt: 7, ..tests::OPENING };

    fn seq(n: u32) -> u32 {
        OPENING.una.wrapping_add(n * LEN)
    }

    fn ack(upto: u32) -> Segment {
        Segment { ack: seq(upto), seq: 7, flags: flags::ACK, window: 1 << 20, ..Segment::default() }
    }

    fn config(name: &str) -> Arc<Config> {
        let config = Config::linux(Algorithm::named(name).expect("built in"));
        Arc::new(Config { send_buffer: u32::MAX, ..config })
    }

    /// Sends as many pieces as may leave, of `left`.
    fn send(relay: &mut Relay, now: Time, left: &mut u32) -> u32 {
        let mut sent = 0;
        while let Some(leave) = relay.poll_transmit(now, Next { len: LEN.min(*left), urgent: false }) {
            assert_eq!(leave.len, LEN);
            *left -= if leave.fresh { LEN } else { 0 };
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_restored_connection_goes_on_where_it_was() {
        for algorithm in Algorithm::builtins() {
            let config = config(algorithm.name());
            let mut now = Time::from_secs(1);
            let mut relay = Relay::new(now, &config, &OPENING);
            let mut left = 1000 * LEN;
            relay.write(now, left, false);
            let mut acked = 0;
            for _ in 0..3 {
                now += Time::from_ms(1);
                send(&mut relay, now, &mut left);
                now += Time::from_ms(20);
                acked += relay.sock().packets_out / 2;
                relay.on_ack(now, &ack(acked));
            }
            let before = relay.checkpoint(now);
            let flight = relay.sock().packets_out;
            assert!(flight > 0 && before.flight() == flight * LEN, "{}", algorithm.name());

            let pieces = std::iter::repeat_n(LEN, flight as usize);
            let mut next = Relay::restore(now, &config, &before, pieces, 9).expect("it is sound");
            assert_eq!(next.checkpoint(now), before, "{}", algorithm.name());
            next.write(now, left, false);
            assert!(next.poll_timeout() < now + Time::from_secs(2), "the flight has a timeout");
            // the rest arrives, and gives no samples
            now += Time::from_ms(1);
            acked += flight;
            next.on_ack(now, &ack(acked));
            assert_eq!(next.sock().min_rtt_us(), before.min_rtt_us, "{}", algorithm.name());
            assert_eq!(next.sock().packets_out, 0);
            assert!(send(&mut next, now, &mut left) > 0, "{}", algorithm.name());
        }
    }

    #[test]
    fn what_was_lost_before_is_found_by_the_next_acknowledgments() {
        let config = config("cubic");
        let mut now = Time::from_secs(1);
        let mut relay = Relay::new(now, &config, &OPENING);
        let mut left = 10 * LEN;
        relay.write(now, left, false);
        assert_eq!(send(&mut relay, now, &mut left), 10);
        let pieces = std::iter::repeat_n(LEN, 10);
        let mut next = Relay::restore(now, &config, &relay.checkpoint(now), pieces, 9).expect("it is sound");
        now += Time::from_ms(20);
        let sack = [SackBlock { start: seq(1), end: seq(10) }, SackBlock::default(), SackBlock::default()];
        let mut lacks_first = ack(0);
        lacks_first.sack_count = 1;
        lacks_first.sack[..3].copy_from_slice(&sack);
        next.on_ack(now, &lacks_first);
        let leave = next.poll_transmit(now, Next { len: 0, urgent: false }).or_else(|| {
            now = next.poll_timeout();
            next.on_timer(now);
            next.poll_transmit(now, Next { len: 0, urgent: false })
        });
        assert_eq!(leave.map(|leave| (leave.seq, leave.fresh)), Some((seq(0), false)));
    }

    #[test]
    fn a_state_that_cannot_be_is_refused() {
        let config = config("cubic");
        let now = Time::from_secs(1);
        let sound = Relay::new(now, &config, &OPENING).checkpoint(now);
        let restored =
            |from: Checkpoint, sent: &[u32]| Relay::restore(now, &config, &from, sent.iter().copied(), 1).is_some();
        assert!(restored(sound.clone(), &[]));
        assert!(!restored(Checkpoint { mss: 0, ..sound.clone() }, &[]));
        assert!(!restored(Checkpoint { cwnd: 0, ..sound.clone() }, &[]));
        assert!(!restored(Checkpoint { nxt: sound.una.wrapping_sub(1), ..sound.clone() }, &[]));
        assert!(!restored(Checkpoint { nxt: sound.una.wrapping_add(LEN), ..sound.clone() }, &[]));
        assert!(!restored(Checkpoint { nxt: sound.una.wrapping_add(LEN), ..sound.clone() }, &[LEN, 1]));
        assert!(restored(Checkpoint { nxt: sound.una.wrapping_add(LEN), ..sound.clone() }, &[LEN - 1, 1]));
    }
}
