//! `struct tcp_congestion_ops` and the calls through it.

use crate::sock::{
    AckSample, CC_SENDS_ECT1, CC_TAKES_DEADLINES, CC_WANTS_ACCECN, CaEvent, DEADLINE_WORD, RateSample,
    TCP_CONG_NEEDS_ECN, TcpSock,
};
use std::ffi::c_char;
use std::fmt;

/// A hook that takes the socket alone.
pub type Hook = extern "C" fn(&mut TcpSock);
/// A hook that takes the socket and returns a number of segments.
pub type HookU32 = extern "C" fn(&mut TcpSock) -> u32;

/// The hooks of one algorithm, as its file's last table lists them.
///
/// A C table has this layout. Tests fill one from Rust to record a host's calls.
#[derive(Clone, Default)]
#[repr(C)]
pub struct CongestionOps {
    /// Begin on a socket; the private state is zero.
    pub init: Option<Hook>,
    /// End on a socket.
    pub release: Option<Hook>,
    /// The threshold after congestion, segments. Required.
    pub ssthresh: Option<HookU32>,
    /// Raise the window: acknowledgment number, segments newly delivered. Required, or `cong_control`.
    pub cong_avoid: Option<extern "C" fn(&mut TcpSock, u32, u32)>,
    /// The congestion state is about to change to the argument.
    pub set_state: Option<extern "C" fn(&mut TcpSock, u8)>,
    /// Something happened; the argument is a [`CaEvent`].
    pub cwnd_event: Option<extern "C" fn(&mut TcpSock, u32)>,
    /// An ACK arrived, with the flags of [`crate::sock::ack_flags`].
    pub in_ack_event: Option<extern "C" fn(&mut TcpSock, u32)>,
    /// An ACK was accounted for.
    pub pkts_acked: Option<extern "C" fn(&mut TcpSock, &AckSample)>,
    /// Instead of `cong_avoid` and the host's recovery: acknowledgment number, what the ACK brought, sample.
    pub cong_control: Option<extern "C" fn(&mut TcpSock, u32, i32, &RateSample)>,
    /// The window to restore when a reduction was spurious, segments. Required.
    pub undo_cwnd: Option<HookU32>,
    /// Minimum number of segments in a burst.
    pub min_tso_segs: Option<HookU32>,
    /// The send buffer as a multiple of the window.
    pub sndbuf_expand: Option<HookU32>,
    /// Up to 15 bytes and a zero.
    pub name: [c_char; 16],
    /// `TCP_CONG_*`.
    pub flags: u32,
    /// Padding of the C structure.
    pub cc_pad: u32,
}

impl CongestionOps {
    /// Are the required hooks there (ssthresh, undo_cwnd, one of cong_avoid and cong_control)? The first missing one.
    pub(crate) fn missing_hook(&self) -> Option<&'static str> {
        if self.ssthresh.is_none() {
            Some("ssthresh")
        } else if self.undo_cwnd.is_none() {
            Some("undo_cwnd")
        } else if self.cong_avoid.is_none() && self.cong_control.is_none() {
            Some("cong_avoid or cong_control")
        } else {
            None
        }
    }

    /// The name in the ops table, up to 15 bytes.
    pub fn name(&self) -> String {
        self.name.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect()
    }

    /// Does the algorithm negotiate ECN?
    pub fn needs_ecn(&self) -> bool {
        self.flags & TCP_CONG_NEEDS_ECN != 0
    }

    /// Does the algorithm use deadlines?
    pub fn takes_deadlines(&self) -> bool {
        self.flags & CC_TAKES_DEADLINES != 0
    }

    /// Does it send ECT(1) where AccECN was negotiated?
    pub fn sends_ect1(&self) -> bool {
        self.flags & CC_SENDS_ECT1 != 0
    }

    /// Does it ask for AccECN?
    pub fn wants_accecn(&self) -> bool {
        self.flags & CC_WANTS_ACCECN != 0
    }

    /// Does it replace cong_avoid, PRR and the default pacing rate?
    pub fn has_cong_control(&self) -> bool {
        self.cong_control.is_some()
    }

    /// Is `in_ack_event` there? Hosts may skip what only it needs.
    pub fn has_in_ack_event(&self) -> bool {
        self.in_ack_event.is_some()
    }

    /// Is `pkts_acked` there? Hosts may skip computing its sample.
    pub fn has_pkts_acked(&self) -> bool {
        self.pkts_acked.is_some()
    }

    /// Is `min_tso_segs` there?
    pub fn has_min_tso_segs(&self) -> bool {
        self.min_tso_segs.is_some()
    }
}

impl fmt::Debug for CongestionOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CongestionOps({})", self.name())
    }
}

/// The hooks, called on a socket. Each does nothing where the algorithm lacks it or none is set.
impl TcpSock {
    /// `init`, after zeroing the private state as the contract asks, but for the deadline of an algorithm that takes one.
    pub fn ca_init(&mut self) {
        let deadline = self.icsk_ca_priv[DEADLINE_WORD];
        self.icsk_ca_priv = [0; 13];
        if self.icsk_ca_ops.is_some_and(CongestionOps::takes_deadlines) {
            self.icsk_ca_priv[DEADLINE_WORD] = deadline;
        }
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.init) {
            hook(self);
        }
    }

    /// `release`.
    pub fn ca_release(&mut self) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.release) {
            hook(self);
        }
    }

    /// `ssthresh`: the new threshold, segments.
    pub fn ca_ssthresh(&mut self) -> u32 {
        match self.icsk_ca_ops.and_then(|ops| ops.ssthresh) {
            Some(hook) => hook(self),
            None => self.snd_ssthresh,
        }
    }

    /// `cong_avoid`: `ack` is the acknowledgment number, `acked` the segments newly delivered.
    #[inline]
    pub fn ca_cong_avoid(&mut self, ack: u32, acked: u32) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.cong_avoid) {
            hook(self, ack, acked);
        }
    }

    /// `set_state`, before `icsk_ca_state` changes.
    pub fn ca_set_state(&mut self, new_state: u8) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.set_state) {
            hook(self, new_state);
        }
    }

    /// `cwnd_event`.
    #[inline]
    pub fn ca_cwnd_event(&mut self, event: CaEvent) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.cwnd_event) {
            hook(self, event as u32);
        }
    }

    /// `in_ack_event` with the flags of [`crate::sock::ack_flags`].
    #[inline]
    pub fn ca_in_ack_event(&mut self, flags: u32) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.in_ack_event) {
            hook(self, flags);
        }
    }

    /// `pkts_acked`.
    #[inline]
    pub fn ca_pkts_acked(&mut self, sample: &AckSample) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.pkts_acked) {
            hook(self, sample);
        }
    }

    /// `cong_control`; `flag` says what the ACK brought, by the bits `FLAG_*` of Linux's `net/ipv4/tcp_input.c`.
    #[inline]
    pub fn ca_cong_control(&mut self, ack: u32, flag: u32, sample: &RateSample) {
        if let Some(hook) = self.icsk_ca_ops.and_then(|ops| ops.cong_control) {
            hook(self, ack, flag as i32, sample);
        }
    }

    /// `undo_cwnd`: the window to restore, segments.
    pub fn ca_undo_cwnd(&mut self) -> u32 {
        match self.icsk_ca_ops.and_then(|ops| ops.undo_cwnd) {
            Some(hook) => hook(self),
            None => self.snd_cwnd,
        }
    }

    /// `min_tso_segs`: minimum number of segments in a burst; 2 without the hook.
    pub fn ca_min_tso_segs(&mut self) -> u32 {
        match self.icsk_ca_ops.and_then(|ops| ops.min_tso_segs) {
            Some(hook) => hook(self),
            None => 2,
        }
    }

    /// `sndbuf_expand`: the send buffer as a multiple of the window; 2 without the hook.
    pub fn ca_sndbuf_expand(&mut self) -> u32 {
        match self.icsk_ca_ops.and_then(|ops| ops.sndbuf_expand) {
            Some(hook) => hook(self),
            None => 2,
        }
    }
}
