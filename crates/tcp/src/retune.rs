//! Other settings for a connection that is open, as an agent's program gives them to a Linux socket.

use crate::config::Config;
use crate::endpoint::{Endpoint, bit};
use congestion::sock::{SK_PACING_NEEDED, ack_pending, ecn};
use std::sync::Arc;
use units::Time;

impl Endpoint {
    /// From now on `config` applies. What the handshake negotiated stays, and pacing that has begun does not end. Do not set an
    /// algorithm that needs ECN on a connection without: call [`Endpoint::has_ecn`] before.
    pub fn retune(&mut self, now: Time, config: &Arc<Config>) {
        let old = std::mem::replace(&mut self.config, Arc::clone(config));
        let offers = |config: &Config| (config.receive_buffer, config.window_clamp);
        if offers(&old) != offers(config) {
            self.offer_anew(old.window_clamp == 0 || config.window_clamp == 0);
        }
        let sock = &mut self.sock;
        sock.snd_cwnd_clamp = config.cwnd_clamp;
        sock.sk_max_pacing_rate = config.max_pacing_rate;
        sock.sk_pacing_rate = sock.sk_pacing_rate.min(config.max_pacing_rate);
        if config.paces() && sock.sk_pacing_status == 0 {
            sock.sk_pacing_status = SK_PACING_NEEDED;
        }
        if !std::ptr::eq(old.algorithm, config.algorithm) {
            self.set_algorithm(now, config.algorithm);
        }
    }

    /// The next ACK announces another window. One that was nearly used up is announced at once: its sender may wait for it, as Linux's
    /// receiver announces a window that has at least doubled. So is one that is withdrawn, or was.
    fn offer_anew(&mut self, withdrawn: bool) {
        self.bits |= bit::NARROW;
        if !self.is_established() {
            return;
        }
        let left = self.window_right().wrapping_sub(self.sock.rcv_nxt);
        let (window, mss) = (self.free_window(), self.sock.mss_cache);
        // less than a segment left makes the sender wait for its timer
        if withdrawn || left <= window / 2 || (left < mss && window >= mss) {
            self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::NOW;
        }
    }

    /// Bytes that the peer may send by the last window, those on their way included.
    pub fn offered(&self) -> u32 {
        self.window_right().wrapping_sub(self.sock.rcv_nxt)
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Both ends agreed on ECN.
    pub fn has_ecn(&self) -> bool {
        self.sock.ecn_flags & ecn::OK != 0
    }
}
