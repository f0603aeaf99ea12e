//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation): each segment remembers how much had been
//! delivered when it was sent; its acknowledgment turns that into an amount and an interval.

use crate::scoreboard::{Record, mark};
use crate::seq::after;
use congestion::{RateSample, TcpSock};

/// The µs clock value, not after now, whose low 32 bits these are.
#[inline]
pub(crate) fn full_us(now_us: u64, low: u32) -> u64 {
    now_us.wrapping_sub((now_us as u32).wrapping_sub(low) as u64)
}

/// Was a segment sent at `t1`, ending at `end1`, sent after the one at `t2`?
#[inline]
pub(crate) fn sent_after(t1: u32, t2: u32, end1: u32, end2: u32) -> bool {
    after(t1, t2) || (t1 == t2 && after(end1, end2))
}

/// The record of a segment that is sent now, for the first time.
#[inline]
pub(crate) fn first_record(sock: &mut TcpSock, seq: u32, len: u16, marks: u8) -> Record {
    if sock.packets_out == 0 {
        sock.first_tx_mstamp = sock.tcp_mstamp;
        sock.delivered_mstamp = sock.tcp_mstamp;
    }
    record_amid(sock, seq, len, marks)
}

/// The same while something is in flight.
#[inline]
pub(crate) fn record_amid(sock: &TcpSock, seq: u32, len: u16, marks: u8) -> Record {
    Record {
        seq,
        sent_us: sock.tcp_mstamp as u32,
        first_tx_us: sock.first_tx_mstamp as u32,
        delivered_us: sock.delivered_mstamp as u32,
        delivered: sock.delivered,
        delivered_ce: sock.delivered_ce,
        len,
        flags: marks | if sock.app_limited != 0 { mark::APP_LIMITED } else { 0 },
    }
}

/// A segment is retransmitted now: its record drops the first transmission. A tail-loss probe may repeat one that was SACKed: that stays so, with
/// the run that it knows of, and gives no second sample, which Linux takes.
pub(crate) fn on_sent(sock: &mut TcpSock, record: &mut Record) {
    let before = *record;
    let sacked = before.is(mark::SACKED);
    let dropped = if sacked { mark::APP_LIMITED } else { mark::APP_LIMITED | mark::SAMPLED };
    *record = first_record(sock, before.seq, before.len, before.flags & !dropped);
    if sacked {
        record.first_tx_us = before.first_tx_us;
    }
}

/// A segment was delivered: the sample is that of the one sent last.
#[inline]
pub(crate) fn on_delivered(sock: &mut TcpSock, record: &Record, rs: &mut RateSample) {
    if record.is(mark::SAMPLED) {
        return;
    }
    let newest = || sent_after(record.sent_us, sock.first_tx_mstamp as u32, record.end_seq(), rs.last_end_seq);
    if rs.prior_delivered == 0 || newest() {
        rs.prior_delivered = record.delivered;
        rs.prior_delivered_ce = record.delivered_ce;
        rs.prior_mstamp = full_us(sock.tcp_mstamp, record.delivered_us);
        rs.is_app_limited = record.is(mark::APP_LIMITED);
        rs.is_retrans = record.is(mark::RETRANS | mark::EVER_RETRANS);
        rs.last_end_seq = record.end_seq();
        sock.first_tx_mstamp = full_us(sock.tcp_mstamp, record.sent_us);
        // the send phase
        rs.interval_us = record.sent_us.wrapping_sub(record.first_tx_us) as i64;
    }
}

/// All that this ACK delivered is accounted: completes the sample.
#[inline]
pub(crate) fn generate(sock: &mut TcpSock, rs: &mut RateSample, delivered: u32, lost: u32, reneged: bool) {
    if sock.app_limited != 0 && after(sock.delivered, sock.app_limited) {
        sock.app_limited = 0;
    }
    if delivered != 0 {
        sock.delivered_mstamp = sock.tcp_mstamp;
    }
    rs.acked_sacked = delivered;
    rs.losses = lost as i32;
    if rs.prior_mstamp == 0 || reneged {
        rs.delivered = -1;
        rs.interval_us = -1;
        return;
    }
    rs.delivered = sock.delivered.wrapping_sub(rs.prior_delivered) as i32;
    rs.delivered_ce = sock.delivered_ce.wrapping_sub(rs.prior_delivered_ce) as i32;
    let snd_us = rs.interval_us;
    let rcv_us = sock.tcp_mstamp.wrapping_sub(rs.prior_mstamp) as i64;
    rs.snd_interval_us = snd_us as u32;
    rs.rcv_interval_us = rcv_us as u32;
    // ACKs may come compressed, sends may be bursty: the longer phase gives the true rate
    rs.interval_us = snd_us.max(rcv_us);
    if rs.interval_us < sock.min_rtt_us() as i64 {
        rs.interval_us = -1;
        return;
    }
    let faster =
        || rs.delivered as u64 * sock.rate_interval_us as u64 >= sock.rate_delivered as u64 * rs.interval_us as u64;
    if !rs.is_app_limited || faster() {
        sock.rate_delivered = rs.delivered as u32;
        sock.rate_interval_us = rs.interval_us as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_both_phases_is_the_interval() {
        let mut sock = TcpSock { delivered: 1, tcp_mstamp: 1_000, ..TcpSock::default() };
        let first = first_record(&mut sock, 0, 100, 0);
        sock.packets_out = 1;
        sock.tcp_mstamp = 6_000;
        let second = first_record(&mut sock, 100, 100, 0);
        sock.tcp_mstamp = 21_000;
        sock.delivered = 3;
        sock.rtt_min = congestion::MinMax { s: [congestion::MinMaxSample { t: 0, v: 15_000 }; 3] };
        let mut rs = RateSample { interval_us: 0, delivered: 0, ..RateSample::default() };
        on_delivered(&mut sock, &first, &mut rs);
        on_delivered(&mut sock, &second, &mut rs);
        generate(&mut sock, &mut rs, 2, 0, false);
        // sent over 5 ms, acknowledged over 20 ms: 2 segments in 20 ms
        assert_eq!((rs.delivered, rs.interval_us, rs.snd_interval_us, rs.rcv_interval_us), (2, 20_000, 5_000, 20_000));
        assert_eq!((sock.rate_delivered, sock.rate_interval_us), (2, 20_000));
        assert_eq!(sock.first_tx_mstamp, 6_000);
    }

    #[test]
    fn a_sacked_segment_that_a_probe_repeats_keeps_its_run_and_gives_no_second_sample() {
        let mut sock = TcpSock { packets_out: 2, first_tx_mstamp: 4_000, tcp_mstamp: 5_000, ..TcpSock::default() };
        let flags = mark::SACKED | mark::SAMPLED;
        let mut record = Record { seq: 100, len: 100, flags, first_tx_us: 1, sent_us: 1_000, ..Record::default() };
        on_sent(&mut sock, &mut record);
        // a run of 4000 records would hide from the search for losses whatever is sent next
        assert_eq!((record.first_tx_us, record.sent_us, record.flags), (1, 5_000, flags));
        record.flags = mark::SAMPLED;
        on_sent(&mut sock, &mut record);
        assert_eq!((record.first_tx_us, record.flags), (4_000, 0));
    }

    #[test]
    fn an_interval_below_the_minimum_rtt_is_no_sample() {
        let mut sock = TcpSock { delivered: 5, tcp_mstamp: 2_000, ..TcpSock::default() };
        sock.rtt_min.s[0].v = 1_500;
        let mut rs = RateSample { prior_mstamp: 1_000, prior_delivered: 4, interval_us: 0, ..RateSample::default() };
        generate(&mut sock, &mut rs, 1, 0, false);
        assert_eq!(rs.interval_us, -1);
    }
}
