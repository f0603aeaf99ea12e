//! The hooks of the contract by name and number.

/// A hook, numbered as in the recording build's `enum trace_hook`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are those of CongestionOps, where they are documented")]
pub enum Hook {
    Init,
    Release,
    Ssthresh,
    CongAvoid,
    SetState,
    CwndEvent,
    InAckEvent,
    PktsAcked,
    CongControl,
    UndoCwnd,
    MinTsoSegs,
    SndbufExpand,
}

/// Number of hooks.
pub const HOOKS: usize = 12;

impl Hook {
    /// All, in the order of the table of operations.
    pub const ALL: [Hook; HOOKS] = [
        Hook::Init,
        Hook::Release,
        Hook::Ssthresh,
        Hook::CongAvoid,
        Hook::SetState,
        Hook::CwndEvent,
        Hook::InAckEvent,
        Hook::PktsAcked,
        Hook::CongControl,
        Hook::UndoCwnd,
        Hook::MinTsoSegs,
        Hook::SndbufExpand,
    ];

    /// Its name in C.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Init => "init",
            Hook::Release => "release",
            Hook::Ssthresh => "ssthresh",
            Hook::CongAvoid => "cong_avoid",
            Hook::SetState => "set_state",
            Hook::CwndEvent => "cwnd_event",
            Hook::InAckEvent => "in_ack_event",
            Hook::PktsAcked => "pkts_acked",
            Hook::CongControl => "cong_control",
            Hook::UndoCwnd => "undo_cwnd",
            Hook::MinTsoSegs => "min_tso_segs",
            Hook::SndbufExpand => "sndbuf_expand",
        }
    }
}
