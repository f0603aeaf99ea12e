//! Replays what the tracing build of an algorithm (`bpf/trace.c`) recorded in the kernel.
//!
//! A [`Call`] holds all that a hook could read, and its effects. [`Call::replay`] sets up a [`TcpSock`] from the first
//! half, runs the native build's hook on it, and compares with the second. [`crate::replay_watch`] looks for calls
//! without a record.

use crate::hook::Hook;
use crate::registry::Algorithm;
use crate::sock::{AckSample, MinMax, MinMaxSample, RateSample, TcpSock};

/// Declares a part of the record: so many words of 64 bits, signed values extended.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($field:ident),* $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each field is documented where it is declared, in bpf/trace.c or cc/include/tcp.h")]
        pub struct $name { $(pub $field: u64),* }

        impl $name {
            /// The words' names, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            fn read(words: &mut impl Iterator<Item = u64>) -> Option<$name> {
                Some($name { $($field: words.next()?),* })
            }

            /// The words, in order.
            pub fn words(&self) -> [u64; $name::NAMES.len()] {
                [$(self.$field),*]
            }
        }
    };
}

words! {
    /// The call, its socket, its scalar argument and its result.
    Head { hook, socket, number, argument, acked, value }
}

words! {
    /// What a hook may write, beside the private state.
    Written {
        snd_cwnd, snd_cwnd_cnt, snd_cwnd_stamp, snd_ssthresh, app_limited, ecn_flags, icsk_ack_pending, sk_pacing_rate,
        sk_pacing_status,
    }
}

words! {
    /// What a hook may only read.
    ReadOnly {
        sk_max_pacing_rate, sk_gso_max_size, sk_pacing_shift, icsk_ca_state, icsk_retransmits, snd_cwnd_clamp, snd_una,
        snd_nxt, rcv_nxt, mss_cache, packets_out, sacked_out, lost_out, retrans_out, delivered, delivered_ce, lost,
        max_packets_out, cwnd_usage_seq, srtt_us, mdev_us, rtt_min_t0, rtt_min_v0, rtt_min_t1, rtt_min_v1, rtt_min_t2,
        rtt_min_v2, tcp_mstamp, delivered_mstamp, first_tx_mstamp, tcp_clock_cache, tcp_wstamp_ns, prior_cwnd,
        prior_ssthresh, high_seq, undo_marker, undo_retrans, rate_delivered, rate_interval_us, lsndtime, advmss,
        is_cwnd_limited, bytes_acked, bytes_sent,
    }
}

words! {
    /// The samples that pkts_acked and cong_control are called with.
    Samples {
        pkts_acked, ack_rtt_us, ack_in_flight, prior_mstamp, prior_delivered, prior_delivered_ce, delivered, delivered_ce,
        interval_us, snd_interval_us, rcv_interval_us, rtt_us, losses, acked_sacked, prior_in_flight, last_end_seq,
        is_app_limited, is_retrans, is_ack_delayed,
    }
}

words! {
    /// Calls of the host's services, and their results.
    Services { draws, random, acks, ack_seq, ack_ecn_flags, ack_cleared }
}

/// `icsk_ca_priv`.
type Private = [u64; 13];

/// `TRACE_STATE`: the number after the hooks'.
const STATE: u64 = Hook::ALL.len() as u64;

/// Why bytes are not a record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Neither a call nor a change of state has this length.
    #[error("a record of {0} bytes; a call has {CALL_BYTES}, a change of state {HEAD_BYTES}")]
    Length(usize),
    /// No hook has this number.
    #[error("a record of hook {0}, which does not exist")]
    Hook(u64),
}

const HEAD_BYTES: usize = 8 * Head::NAMES.len();
const WRITTEN_WORDS: usize = 13 + Written::NAMES.len();
const CALL_BYTES: usize =
    HEAD_BYTES + 8 * (2 * WRITTEN_WORDS + ReadOnly::NAMES.len() + Samples::NAMES.len() + Services::NAMES.len());

/// The names of a call's words, in order; `icsk_ca_priv` stands for 13 words.
pub fn layout() -> Vec<&'static str> {
    let written = || ["icsk_ca_priv"].iter().chain(Written::NAMES);
    let parts = Head::NAMES.iter().chain(written()).chain(written()).chain(ReadOnly::NAMES);
    parts.chain(Samples::NAMES).chain(Services::NAMES).copied().collect()
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A hook was called.
    Call(Box<Call>),
    /// The kernel is about to change a socket's congestion state, and to call set_state if there is one.
    State {
        /// The socket, by its address.
        socket: u64,
        /// Of this socket's records.
        number: u64,
        /// `TCP_CA_*`.
        old: u8,
        /// `TCP_CA_*`.
        new: u8,
    },
}

/// A recorded call of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which hook.
    pub hook: Hook,
    /// Of which socket, and so on.
    pub head: Head,
    /// What the hook may only read.
    pub read: ReadOnly,
    /// What it may write, as it found it.
    pub before: Written,
    /// The sample that pkts_acked or cong_control was called with.
    pub samples: Samples,
    services: Services,
    private_before: Private,
    private_after: Private,
    after: Written,
}

/// A value in which the native build differs from the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// The kernel's value.
    pub kernel: u64,
    /// The native build's value.
    pub native: u64,
}

impl Difference {
    /// Bytes that differ.
    pub fn bytes(&self) -> usize {
        (self.kernel ^ self.native).to_le_bytes().iter().filter(|&&byte| byte != 0).count()
    }
}

impl Event {
    /// Reads a record.
    ///
    /// # Errors
    /// The bytes are not from this program's `bpf/trace.c`.
    pub fn parse(bytes: &[u8]) -> Result<Event, RecordError> {
        if bytes.len() != HEAD_BYTES && bytes.len() != CALL_BYTES {
            return Err(RecordError::Length(bytes.len()));
        }
        let (chunks, _) = bytes.as_chunks::<8>();
        let mut words = chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk));
        let head = Head::read(&mut words).expect("the length was checked");
        if bytes.len() == HEAD_BYTES && head.hook == STATE {
            let Head { socket, number, value, argument, .. } = head;
            return Ok(Event::State { socket, number, old: value as u8, new: argument as u8 });
        }
        let hook = Hook::ALL.get(head.hook as usize).filter(|_| bytes.len() == CALL_BYTES);
        let hook = *hook.ok_or(RecordError::Hook(head.hook))?;
        Ok(Event::Call(Box::new(Call::read(hook, head, &mut words).expect("the length was checked"))))
    }
}

impl Call {
    fn read(hook: Hook, head: Head, words: &mut impl Iterator<Item = u64>) -> Option<Call> {
        let private_before = private(words)?;
        let before = Written::read(words)?;
        let private_after = private(words)?;
        let after = Written::read(words)?;
        let (read, samples, services) = (ReadOnly::read(words)?, Samples::read(words)?, Services::read(words)?);
        Some(Call { hook, head, read, before, samples, services, private_before, private_after, after })
    }

    /// A call of which every word is 0.
    #[cfg(test)]
    pub(crate) fn blank(hook: Hook) -> Call {
        Call::read(hook, Head::default(), &mut std::iter::repeat(0)).expect("the words do not end")
    }

    /// Segments newly delivered by the ACK, of cong_avoid and cong_control.
    pub fn acked(&self) -> Option<u64> {
        match self.hook {
            Hook::CongAvoid => Some(self.head.acked),
            Hook::CongControl => Some(self.samples.acked_sacked),
            _ => None,
        }
    }

    /// Calls the native build's hook with the state recorded before the call, and compares its effects with what was
    /// recorded after it: the private state, every field that a hook may write, its result, the random numbers drawn
    /// and the ACKs requested; and that it changes nothing that it may only read. Returns the differences.
    pub fn replay(&self, algorithm: &Algorithm) -> Vec<Difference> {
        let mut sock = self.socket();
        sock.icsk_ca_ops = Some(algorithm.ops());
        let seed = seed_for(self.services.random as u32);
        sock.cc_random_state = seed;
        let Some(value) = self.run(algorithm, &mut sock) else {
            return vec![Difference { field: format!("{:?}", self.hook), kernel: 1, native: 0 }];
        };
        let mut found = Vec::new();
        let mut compare = |field: &str, kernel: u64, native: u64| {
            if kernel != native {
                found.push(Difference { field: field.to_string(), kernel, native });
            }
        };
        for (i, (kernel, native)) in self.private_after.iter().zip(sock.icsk_ca_priv).enumerate() {
            compare(&format!("icsk_ca_priv[{i}]"), *kernel, native);
        }
        // The kernel's send_ack clears the pending ACK at once, the native host after the hook has returned.
        let mut native = Written::of(&sock);
        let cleared = if self.services.acks > 0 { self.services.ack_cleared } else { 0 };
        native.icsk_ack_pending = (native.icsk_ack_pending & !cleared) | (self.after.icsk_ack_pending & cleared);
        for ((name, kernel), native) in Written::NAMES.iter().zip(self.after.words()).zip(native.words()) {
            compare(name, kernel, native);
        }
        for ((name, kernel), native) in ReadOnly::NAMES.iter().zip(self.read.words()).zip(ReadOnly::of(&sock).words()) {
            compare(name, kernel, native);
        }
        compare("the answer", self.head.value, u64::from(value));
        // One draw steps the stream once, and that from the seed that gives the recorded number.
        let drawn = match self.services.draws {
            0 => seed,
            _ => step(seed),
        };
        compare("random draws", u64::from(self.services.draws > 1), 0);
        compare("random stream", u64::from(drawn), u64::from(sock.cc_random_state));
        compare("ACKs sent", self.services.acks, u64::from(sock.cc_ack_wanted));
        if self.services.acks > 0 {
            compare("the ACK's number", self.services.ack_seq, u64::from(sock.cc_ack_seq));
            compare("the ACK's ecn_flags", self.services.ack_ecn_flags, u64::from(sock.cc_ack_ecn_flags));
        }
        found
    }

    /// Calls the hook; returns its result, 0 if it has none. None: the algorithm has no such hook.
    fn run(&self, algorithm: &Algorithm, sock: &mut TcpSock) -> Option<u32> {
        let (ops, head) = (algorithm.ops(), &self.head);
        let argument = head.argument as u32;
        match self.hook {
            // the state is as the kernel left it, zeroed or not
            Hook::Init => ops.init?(sock),
            Hook::Release => ops.release?(sock),
            Hook::CongAvoid => ops.cong_avoid?(sock, argument, head.acked as u32),
            Hook::SetState => ops.set_state?(sock, head.argument as u8),
            Hook::CwndEvent => ops.cwnd_event?(sock, argument),
            Hook::InAckEvent => ops.in_ack_event?(sock, argument),
            Hook::PktsAcked => ops.pkts_acked?(sock, &self.samples.ack()),
            Hook::CongControl => ops.cong_control?(sock, argument, 0, &self.samples.rate()),
            Hook::Ssthresh => return Some(ops.ssthresh?(sock)),
            Hook::UndoCwnd => return Some(ops.undo_cwnd?(sock)),
            Hook::MinTsoSegs => return Some(ops.min_tso_segs?(sock)),
            Hook::SndbufExpand => return Some(ops.sndbuf_expand?(sock)),
        }
        Some(0)
    }

    /// The socket as the hook found it.
    fn socket(&self) -> TcpSock {
        let (w, r) = (&self.before, &self.read);
        let mut sock = TcpSock { icsk_ca_priv: self.private_before, ..r.socket() };
        sock.snd_cwnd = w.snd_cwnd as u32;
        sock.snd_cwnd_cnt = w.snd_cwnd_cnt as u32;
        sock.snd_cwnd_stamp = w.snd_cwnd_stamp as u32;
        sock.snd_ssthresh = w.snd_ssthresh as u32;
        sock.app_limited = w.app_limited as u32;
        sock.ecn_flags = w.ecn_flags as u8;
        sock.icsk_ack_pending = w.icsk_ack_pending as u8;
        sock.sk_pacing_rate = w.sk_pacing_rate;
        sock.sk_pacing_status = w.sk_pacing_status as u32;
        sock
    }
}

fn private(words: &mut impl Iterator<Item = u64>) -> Option<Private> {
    let mut state = [0; 13];
    for word in &mut state {
        *word = words.next()?;
    }
    Some(state)
}

impl Written {
    fn of(sock: &TcpSock) -> Written {
        Written {
            snd_cwnd: sock.snd_cwnd.into(),
            snd_cwnd_cnt: sock.snd_cwnd_cnt.into(),
            snd_cwnd_stamp: sock.snd_cwnd_stamp.into(),
            snd_ssthresh: sock.snd_ssthresh.into(),
            app_limited: sock.app_limited.into(),
            ecn_flags: sock.ecn_flags.into(),
            icsk_ack_pending: sock.icsk_ack_pending.into(),
            sk_pacing_rate: sock.sk_pacing_rate,
            sk_pacing_status: sock.sk_pacing_status.into(),
        }
    }
}

impl ReadOnly {
    fn socket(&self) -> TcpSock {
        let sample = |t: u64, v: u64| MinMaxSample { t: t as u32, v: v as u32 };
        TcpSock {
            sk_max_pacing_rate: self.sk_max_pacing_rate,
            sk_gso_max_size: self.sk_gso_max_size as u32,
            sk_pacing_shift: self.sk_pacing_shift as u8,
            icsk_ca_state: self.icsk_ca_state as u8,
            icsk_retransmits: self.icsk_retransmits as u8,
            snd_cwnd_clamp: self.snd_cwnd_clamp as u32,
            snd_una: self.snd_una as u32,
            snd_nxt: self.snd_nxt as u32,
            rcv_nxt: self.rcv_nxt as u32,
            mss_cache: self.mss_cache as u32,
            packets_out: self.packets_out as u32,
            sacked_out: self.sacked_out as u32,
            lost_out: self.lost_out as u32,
            retrans_out: self.retrans_out as u32,
            delivered: self.delivered as u32,
            delivered_ce: self.delivered_ce as u32,
            lost: self.lost as u32,
            max_packets_out: self.max_packets_out as u32,
            cwnd_usage_seq: self.cwnd_usage_seq as u32,
            srtt_us: self.srtt_us as u32,
            mdev_us: self.mdev_us as u32,
            rtt_min: MinMax {
                s: [
                    sample(self.rtt_min_t0, self.rtt_min_v0),
                    sample(self.rtt_min_t1, self.rtt_min_v1),
                    sample(self.rtt_min_t2, self.rtt_min_v2),
                ],
            },
            tcp_mstamp: self.tcp_mstamp,
            delivered_mstamp: self.delivered_mstamp,
            first_tx_mstamp: self.first_tx_mstamp,
            tcp_clock_cache: self.tcp_clock_cache,
            tcp_wstamp_ns: self.tcp_wstamp_ns,
            prior_cwnd: self.prior_cwnd as u32,
            prior_ssthresh: self.prior_ssthresh as u32,
            high_seq: self.high_seq as u32,
            undo_marker: self.undo_marker as u32,
            undo_retrans: self.undo_retrans as i32,
            rate_delivered: self.rate_delivered as u32,
            rate_interval_us: self.rate_interval_us as u32,
            lsndtime: self.lsndtime as u32,
            advmss: self.advmss as u16,
            is_cwnd_limited: self.is_cwnd_limited as u8,
            bytes_acked: self.bytes_acked,
            bytes_sent: self.bytes_sent,
            ..TcpSock::default()
        }
    }

    fn of(sock: &TcpSock) -> ReadOnly {
        let [best, second, third] = sock.rtt_min.s;
        ReadOnly {
            sk_max_pacing_rate: sock.sk_max_pacing_rate,
            sk_gso_max_size: sock.sk_gso_max_size.into(),
            sk_pacing_shift: sock.sk_pacing_shift.into(),
            icsk_ca_state: sock.icsk_ca_state.into(),
            icsk_retransmits: sock.icsk_retransmits.into(),
            snd_cwnd_clamp: sock.snd_cwnd_clamp.into(),
            snd_una: sock.snd_una.into(),
            snd_nxt: sock.snd_nxt.into(),
            rcv_nxt: sock.rcv_nxt.into(),
            mss_cache: sock.mss_cache.into(),
            packets_out: sock.packets_out.into(),
            sacked_out: sock.sacked_out.into(),
            lost_out: sock.lost_out.into(),
            retrans_out: sock.retrans_out.into(),
            delivered: sock.delivered.into(),
            delivered_ce: sock.delivered_ce.into(),
            lost: sock.lost.into(),
            max_packets_out: sock.max_packets_out.into(),
            cwnd_usage_seq: sock.cwnd_usage_seq.into(),
            srtt_us: sock.srtt_us.into(),
            mdev_us: sock.mdev_us.into(),
            rtt_min_t0: best.t.into(),
            rtt_min_v0: best.v.into(),
            rtt_min_t1: second.t.into(),
            rtt_min_v1: second.v.into(),
            rtt_min_t2: third.t.into(),
            rtt_min_v2: third.v.into(),
            tcp_mstamp: sock.tcp_mstamp,
            delivered_mstamp: sock.delivered_mstamp,
            first_tx_mstamp: sock.first_tx_mstamp,
            tcp_clock_cache: sock.tcp_clock_cache,
            tcp_wstamp_ns: sock.tcp_wstamp_ns,
            prior_cwnd: sock.prior_cwnd.into(),
            prior_ssthresh: sock.prior_ssthresh.into(),
            high_seq: sock.high_seq.into(),
            undo_marker: sock.undo_marker.into(),
            undo_retrans: i64::from(sock.undo_retrans) as u64,
            rate_delivered: sock.rate_delivered.into(),
            rate_interval_us: sock.rate_interval_us.into(),
            lsndtime: sock.lsndtime.into(),
            advmss: sock.advmss.into(),
            is_cwnd_limited: sock.is_cwnd_limited.into(),
            bytes_acked: sock.bytes_acked,
            bytes_sent: sock.bytes_sent,
        }
    }
}

impl Samples {
    fn ack(&self) -> AckSample {
        AckSample {
            pkts_acked: self.pkts_acked as u32,
            rtt_us: self.ack_rtt_us as i32,
            in_flight: self.ack_in_flight as u32,
        }
    }

    fn rate(&self) -> RateSample {
        RateSample {
            prior_mstamp: self.prior_mstamp,
            prior_delivered: self.prior_delivered as u32,
            prior_delivered_ce: self.prior_delivered_ce as u32,
            delivered: self.delivered as i32,
            delivered_ce: self.delivered_ce as i32,
            interval_us: self.interval_us as i64,
            snd_interval_us: self.snd_interval_us as u32,
            rcv_interval_us: self.rcv_interval_us as u32,
            rtt_us: self.rtt_us as i64,
            losses: self.losses as i32,
            acked_sacked: self.acked_sacked as u32,
            prior_in_flight: self.prior_in_flight as u32,
            last_end_seq: self.last_end_seq as u32,
            is_app_limited: self.is_app_limited != 0,
            is_retrans: self.is_retrans != 0,
            is_ack_delayed: self.is_ack_delayed != 0,
            cc_pad: [0; 5],
        }
    }
}

// ---- cc_random_u32's stream, backwards: the state from which the next draw gives a recorded number ----

/// One step of the stream of `cc_random_u32` (`cc/include/tcp.h`).
fn step(mut x: u32) -> u32 {
    x ^= x << 13;
    x ^= x >> 17;
    x ^ (x << 5)
}

/// What the state after the step is multiplied by to give the number drawn, modulo 2^32.
const MULTIPLIER: u32 = 0x9e37_79b1;

/// Its inverse: an odd m is its own inverse modulo 8, and each m' = m' (2 − m m') doubles the bits that are right.
const INVERSE: u32 = {
    let mut inverse = MULTIPLIER;
    let mut bits = 3;
    while bits < 32 {
        inverse = inverse.wrapping_mul(2_u32.wrapping_sub(MULTIPLIER.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
};

/// The state before a step that draws `number`.
fn seed_for(number: u32) -> u32 {
    let x = number.wrapping_mul(INVERSE);
    let x = undo_left(x, 5);
    let x = undo_right(x, 17);
    undo_left(x, 13)
}

/// The y with y ^ y << by = x: from the low bits up, `by` at a time.
fn undo_left(x: u32, by: u32) -> u32 {
    (0..=32 / by).fold(x, |y, _| x ^ (y << by))
}

/// The y with y ^ y >> by = x, for by of at least 16: the high half is x's own.
fn undo_right(x: u32, by: u32) -> u32 {
    x ^ (x >> by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_for_a_recorded_number_draws_that_number() {
        for number in [0, 1, 2, 0x8000_0000, 0xffff_ffff, 0x1234_5678, MULTIPLIER] {
            assert_eq!(step(seed_for(number)).wrapping_mul(MULTIPLIER), number, "{number:#x}");
        }
        assert_eq!(INVERSE.wrapping_mul(MULTIPLIER), 1);
    }

    /// A record of newreno's cong_avoid in slow start: cwnd 10, ssthresh infinite, 3 segments delivered, so cwnd 13.
    fn record() -> Vec<u64> {
        let mut words = vec![0; CALL_BYTES / 8];
        let names: Vec<&str> = layout();
        let mut set = |name: &str, nth: usize, value: u64| {
            let at = names.iter().enumerate().filter(|(_, n)| **n == name).nth(nth).expect("a word's name").0;
            let private_words = names[..at].iter().filter(|n| **n == "icsk_ca_priv").count() * 12;
            words[at + private_words] = value;
        };
        set("hook", 0, Hook::CongAvoid as u64);
        set("acked", 0, 3);
        set("is_cwnd_limited", 0, 1);
        set("snd_cwnd_clamp", 0, 1000);
        for (nth, cwnd) in [(0, 10), (1, 13)] {
            set("snd_cwnd", nth, cwnd);
            set("snd_ssthresh", nth, u64::from(crate::sock::TCP_INFINITE_SSTHRESH));
        }
        words
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn differences(words: &[u64]) -> Vec<Difference> {
        let Ok(Event::Call(call)) = Event::parse(&bytes(words)) else { panic!("a call's record") };
        call.replay(Algorithm::named("newreno").expect("it is built in"))
    }

    #[test]
    fn a_true_record_replays_without_a_difference() {
        assert_eq!(differences(&record()), []);
    }

    #[test]
    fn each_word_that_was_recorded_after_the_call_is_compared() {
        let words = record();
        let after = HEAD_BYTES / 8 + WRITTEN_WORDS;
        for word in after..after + WRITTEN_WORDS {
            let mut changed = words.clone();
            changed[word] ^= 1;
            let found = differences(&changed);
            assert_eq!(found.len(), 1, "word {word}: {found:?}");
            assert_eq!(found[0].bytes(), 1);
        }
    }

    #[test]
    fn another_result_and_an_extra_draw_or_ack_are_differences() {
        let call = CALL_BYTES / 8;
        let services = call - Services::NAMES.len();
        let value = Head::NAMES.iter().position(|name| *name == "value").expect("a word's name");
        for word in [value, services, services + 2] {
            let mut changed = record();
            changed[word] = 1;
            // a draw that gave 0 comes from state 0, which draws nothing else: this one gave 7
            changed[services + 1] = 7;
            assert!(!differences(&changed).is_empty(), "word {word}");
        }
    }

    #[test]
    fn bytes_that_are_not_a_record_are_refused() {
        assert_eq!(Event::parse(&[0; 7]), Err(RecordError::Length(7)));
        let mut words = record();
        words[0] = 99;
        assert_eq!(Event::parse(&bytes(&words)), Err(RecordError::Hook(99)));
        words[0] = STATE;
        assert_eq!(Event::parse(&bytes(&words)), Err(RecordError::Hook(STATE)));
    }
}
