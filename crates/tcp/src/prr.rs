//! Proportional rate reduction (RFC 9937): during a reduction the window follows what is delivered.

use crate::ack::found;
use crate::endpoint::Endpoint;

/// What the reduction has to go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    /// The window aimed at, segments.
    pub ssthresh: u32,
    /// The window that it started from, segments.
    pub prior_cwnd: u32,
    pub in_flight: u32,
    /// Segments delivered and sent since it started.
    pub prr_delivered: u32,
    pub prr_out: u32,
    /// Segments that this ACK delivered.
    pub newly_delivered: u32,
    /// It acknowledged data cumulatively, and nothing was marked lost by it.
    pub good_ack: bool,
}

/// How many segments may be sent now:
///
///   above ssthresh   ⌈ssthresh · delivered / prior_cwnd⌉ − sent                              proportionally
///   below            min(ssthresh − in_flight, max(delivered − sent, newly_delivered) [+ 1])  slow start, bounded
pub(crate) fn send_count(r: &Reduction) -> u32 {
    let count = if r.in_flight > r.ssthresh {
        let share = (r.ssthresh as u64 * r.prr_delivered as u64).div_ceil(r.prior_cwnd.max(1) as u64);
        share as i64 - r.prr_out as i64
    } else {
        let room = (r.ssthresh - r.in_flight) as i64;
        let count = (r.prr_delivered as i64 - r.prr_out as i64).max(r.newly_delivered as i64);
        (count + r.good_ack as i64).min(room)
    };
    // a fast retransmission is always due when recovery begins
    count.max((r.prr_out == 0) as i64) as u32
}

impl Endpoint {
    /// The window while it is being reduced.
    pub(crate) fn reduce_window(&mut self, newly_delivered: u32, newly_lost: u32, flags: u32) {
        if newly_delivered == 0 {
            return;
        }
        let in_flight = self.sock.packets_in_flight();
        let (ssthresh, prior_cwnd) = (self.sock.snd_ssthresh, self.sock.prior_cwnd);
        let rare = self.rare_mut();
        rare.prr_delivered += newly_delivered;
        let reduction = Reduction {
            ssthresh,
            prior_cwnd,
            in_flight,
            prr_delivered: rare.prr_delivered,
            prr_out: rare.prr_out,
            newly_delivered,
            good_ack: flags & found::UNA_ADVANCED != 0 && newly_lost == 0,
        };
        self.sock.snd_cwnd = in_flight + send_count(&reduction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_falls_proportionally_and_never_stalls_the_first_retransmission() {
        let r = Reduction {
            ssthresh: 12,
            prior_cwnd: 24,
            in_flight: 22,
            prr_delivered: 1,
            prr_out: 0,
            newly_delivered: 1,
            good_ack: false,
        };
        assert_eq!(send_count(&r), 1, "ceil(12/24) - 0");
        assert_eq!(send_count(&Reduction { prr_delivered: 2, prr_out: 1, ..r }), 0, "ceil(24/24) - 1");
        assert_eq!(send_count(&Reduction { prr_delivered: 3, prr_out: 1, in_flight: 21, ..r }), 1, "ceil(36/24) - 1");
    }

    #[test]
    fn below_ssthresh_it_grows_back_as_slow_start_would() {
        let r = Reduction {
            ssthresh: 12,
            prior_cwnd: 24,
            in_flight: 6,
            prr_delivered: 20,
            prr_out: 15,
            newly_delivered: 2,
            good_ack: false,
        };
        assert_eq!(send_count(&r), 5);
        assert_eq!(send_count(&Reduction { good_ack: true, ..r }), 6);
        assert_eq!(send_count(&Reduction { prr_delivered: 40, ..r }), 6, "bounded by ssthresh - in flight");
    }
}
