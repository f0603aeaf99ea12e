//! The functions of `cc/include/tcp.h` that algorithms in other languages than C need: C's own, so that there is one of each.

use crate::sock::TcpSock;

unsafe extern "C" {
    safe fn cc_slow_start(sock: &mut TcpSock, acked: u32) -> u32;
    safe fn cc_cong_avoid_ai(sock: &mut TcpSock, w: u32, acked: u32);
    safe fn cc_is_cwnd_limited(sock: &TcpSock) -> bool;
    safe fn cc_reno_ssthresh(sock: &TcpSock) -> u32;
    safe fn cc_reno_cong_avoid(sock: &mut TcpSock, acked: u32);
    safe fn cc_reno_undo_cwnd(sock: &TcpSock) -> u32;
    safe fn cc_random(sock: &mut TcpSock) -> u32;
    safe fn cc_send_ack_at(sock: &mut TcpSock, rcv_nxt: u32);
}

impl TcpSock {
    /// `tcp_slow_start`: grows by one segment for each acknowledged, up to ssthresh; the acknowledged segments left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        cc_slow_start(self, acked)
    }

    /// `tcp_cong_avoid_ai`: grows by one segment for `w` segments acknowledged.
    pub fn cong_avoid_ai(&mut self, w: u32, acked: u32) {
        cc_cong_avoid_ai(self, w, acked);
    }

    /// `tcp_is_cwnd_limited`: did the window, not the application, limit what was sent?
    pub fn is_window_limited(&self) -> bool {
        cc_is_cwnd_limited(self)
    }

    /// `tcp_reno_ssthresh`: half of the window, at least two segments.
    pub fn reno_ssthresh(&self) -> u32 {
        cc_reno_ssthresh(self)
    }

    /// `tcp_reno_cong_avoid`: slow start, then one segment a round trip.
    pub fn reno_cong_avoid(&mut self, acked: u32) {
        cc_reno_cong_avoid(self, acked);
    }

    /// `tcp_reno_undo_cwnd`: the window before the reduction.
    pub fn reno_undo_cwnd(&self) -> u32 {
        cc_reno_undo_cwnd(self)
    }

    /// `cc_random_u32`: the next number of the stream that the run's seed determines.
    pub fn random_u32(&mut self) -> u32 {
        cc_random(self)
    }

    /// `tcp_send_ack_at`: asks the host for an ACK at once.
    pub fn send_ack_at(&mut self, rcv_nxt: u32) {
        cc_send_ack_at(self, rcv_nxt);
    }
}
