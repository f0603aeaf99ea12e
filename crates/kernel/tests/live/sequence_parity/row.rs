//! A hook's call as both sides see it, and the algorithm that records the simulator's.

use congestion::Hook;
use congestion::replay::Call;
use congestion::{AckSample, Algorithm, CongestionOps, RateSample, TcpSock};
use std::cell::{Cell, RefCell};
use std::fmt;
use units::Time;

/// One call, with the socket's columns as the hook found them.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub hook: Hook,
    /// The new state, the event, ECE or not, segments newly acknowledged or delivered.
    pub argument: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// packets_out, sacked_out, lost_out, retrans_out, delivered.
    pub counters: [u32; 5],
    pub state: u8,
    /// For the reader: when, µs of its own clock.
    pub at_us: u64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [out, sacked, lost, retrans, delivered] = self.counters;
        write!(
            f,
            "{:9.3} ms  cwnd {} ssthresh {} out {out} sacked {sacked} lost {lost} retrans {retrans} delivered {delivered} \
             state {}  {:?}({})",
            self.at_us as f64 / 1e3,
            self.cwnd,
            self.ssthresh,
            self.state,
            self.hook,
            self.argument
        )
    }
}

/// Bit of in_ack_event's flags that does not depend on the receiver's window.
const ECE: u32 = congestion::sock::ack_flags::ECE;

/// The kernel's rows, of the hooks that belong to TCP's state machine: the sizes of bursts and buffers are the host's matter.
pub fn of_kernel(calls: &[Call]) -> Vec<Row> {
    let begin = calls.first().map_or(0, |call| call.read.tcp_mstamp);
    calls
        .iter()
        .filter(|call| !matches!(call.hook, Hook::MinTsoSegs | Hook::SndbufExpand))
        .map(|call| row(call, begin))
        .collect()
}

fn row(call: &Call, begin_us: u64) -> Row {
    let argument = match call.hook {
        Hook::SetState | Hook::CwndEvent => call.head.argument as u32,
        Hook::InAckEvent => call.head.argument as u32 & ECE,
        Hook::PktsAcked => call.samples.pkts_acked as u32,
        Hook::CongAvoid => call.head.acked as u32,
        Hook::CongControl => call.samples.acked_sacked as u32,
        _ => 0,
    };
    let read = &call.read;
    Row {
        hook: call.hook,
        argument,
        cwnd: call.before.snd_cwnd as u32,
        ssthresh: call.before.snd_ssthresh as u32,
        counters: [read.packets_out, read.sacked_out, read.lost_out, read.retrans_out, read.delivered]
            .map(|n| n as u32),
        state: read.icsk_ca_state as u8,
        at_us: read.tcp_mstamp - begin_us,
    }
}

thread_local! {
    static ROWS: RefCell<Vec<Row>> = const { RefCell::new(Vec::new()) };
    static INNER: Cell<Option<&'static CongestionOps>> = const { Cell::new(None) };
    static NOW: Cell<Time> = const { Cell::new(Time::ZERO) };
}

/// Sets the time of the following calls.
pub fn enter(now: Time) {
    NOW.set(now);
}

/// Takes the records of this thread's recorder.
pub fn take() -> Vec<Row> {
    ROWS.take()
}

/// `algorithm`, whose calls on this thread are recorded before they are made.
pub fn recorder(algorithm: &'static Algorithm) -> &'static Algorithm {
    let ops = algorithm.ops();
    INNER.set(Some(ops));
    let recording = CongestionOps {
        init: ops.init.and(Some(on_init)),
        release: ops.release.and(Some(on_release)),
        ssthresh: ops.ssthresh.and(Some(on_ssthresh)),
        cong_avoid: ops.cong_avoid.and(Some(on_cong_avoid)),
        set_state: ops.set_state.and(Some(on_set_state)),
        cwnd_event: ops.cwnd_event.and(Some(on_cwnd_event)),
        in_ack_event: ops.in_ack_event.and(Some(on_in_ack_event)),
        pkts_acked: ops.pkts_acked.and(Some(on_pkts_acked)),
        cong_control: ops.cong_control.and(Some(on_cong_control)),
        undo_cwnd: ops.undo_cwnd.and(Some(on_undo_cwnd)),
        ..ops.clone()
    };
    let algorithm = Algorithm::from_ops(Box::leak(Box::new(recording))).expect("the table is complete");
    Box::leak(Box::new(algorithm))
}

fn inner() -> &'static CongestionOps {
    INNER.get().expect("recorder() was called on this thread")
}

fn record(sk: &TcpSock, hook: Hook, argument: u32) {
    let row = Row {
        hook,
        argument,
        cwnd: sk.snd_cwnd,
        ssthresh: sk.snd_ssthresh,
        counters: [sk.packets_out, sk.sacked_out, sk.lost_out, sk.retrans_out, sk.delivered],
        state: sk.icsk_ca_state,
        at_us: NOW.get().as_us(),
    };
    ROWS.with_borrow_mut(|rows| rows.push(row));
}

extern "C" fn on_init(sk: &mut TcpSock) {
    record(sk, Hook::Init, 0);
    inner().init.expect("it is wrapped")(sk);
}

extern "C" fn on_release(sk: &mut TcpSock) {
    record(sk, Hook::Release, 0);
    inner().release.expect("it is wrapped")(sk);
}

extern "C" fn on_ssthresh(sk: &mut TcpSock) -> u32 {
    record(sk, Hook::Ssthresh, 0);
    inner().ssthresh.expect("it is wrapped")(sk)
}

extern "C" fn on_cong_avoid(sk: &mut TcpSock, ack: u32, acked: u32) {
    record(sk, Hook::CongAvoid, acked);
    inner().cong_avoid.expect("it is wrapped")(sk, ack, acked);
}

extern "C" fn on_set_state(sk: &mut TcpSock, state: u8) {
    record(sk, Hook::SetState, state.into());
    inner().set_state.expect("it is wrapped")(sk, state);
}

extern "C" fn on_cwnd_event(sk: &mut TcpSock, event: u32) {
    record(sk, Hook::CwndEvent, event);
    inner().cwnd_event.expect("it is wrapped")(sk, event);
}

extern "C" fn on_in_ack_event(sk: &mut TcpSock, flags: u32) {
    record(sk, Hook::InAckEvent, flags & ECE);
    inner().in_ack_event.expect("it is wrapped")(sk, flags);
}

extern "C" fn on_pkts_acked(sk: &mut TcpSock, sample: &AckSample) {
    record(sk, Hook::PktsAcked, sample.pkts_acked);
    inner().pkts_acked.expect("it is wrapped")(sk, sample);
}

extern "C" fn on_cong_control(sk: &mut TcpSock, ack: u32, flag: i32, rs: &RateSample) {
    record(sk, Hook::CongControl, rs.acked_sacked);
    inner().cong_control.expect("it is wrapped")(sk, ack, flag, rs);
}

extern "C" fn on_undo_cwnd(sk: &mut TcpSock) -> u32 {
    record(sk, Hook::UndoCwnd, 0);
    inner().undo_cwnd.expect("it is wrapped")(sk)
}
