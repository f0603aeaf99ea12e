//! What an endpoint counts.

/// What an endpoint counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with payload, retransmissions included.
    pub data_segments_sent: u32,
    /// Of these, retransmissions, probes of a lost tail included.
    pub retransmits: u32,
    /// Retransmission timeouts; not those of a SYN.
    pub rtos: u32,
    /// Tail-loss probes.
    pub tlp_probes: u32,
    /// ACKs with ECE of an established connection.
    pub ece_acks: u32,
    /// Data segments received with CE.
    pub ce_received: u32,
    /// Retransmissions of a SYN or its answer.
    pub syn_retransmits: u32,
    /// Window reductions that proved wrong and were undone.
    pub undos: u32,
    /// Times that fast recovery was entered.
    pub recoveries: u32,
    /// Probes of a closed window.
    pub window_probes: u32,
}
