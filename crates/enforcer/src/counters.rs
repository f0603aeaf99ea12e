//! What the enforcer counts, and what it tells of a flow that has ended.

use crate::packet::End;
use units::Time;

/// Everything that was done, since the beginning. Packets where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each group is documented")]
pub struct Counters {
    /// What became of each packet that was handed in ([`crate::Action`]): went on as it came, went on with another window or other
    /// options or in part, was kept or had its like sent already, was dropped. Together they are all.
    pub forwarded: u64,
    pub rewritten: u64,
    pub held: u64,
    pub dropped: u64,
    /// Let through untouched: not TCP or malformed; of a connection whose beginning was not seen, or that no rule is for;
    /// signed, or a SYN that asks for what cannot be enforced ([`crate::Header::untouchable`]); because
    /// the table of flows was full; because the buffers were (its copy is the sender's).
    pub passed_malformed: u64,
    pub passed_unknown: u64,
    pub passed_by_rule: u64,
    pub passed_by_option: u64,
    pub passed_table_full: u64,
    pub passed_buffers_full: u64,
    /// Forwarded too: SYNs and their answers; packets of the clients in which nothing was to change.
    pub handshakes: u64,
    pub unchanged: u64,
    /// Handshakes that others pushed out of their table; flows that came to be enforced, and that ended: by FINs, by RST, for
    /// want of any packet, because the client never answered, because the same ends began anew, because the client was silent while
    /// memory was short, because both ends had gone on without the enforcer.
    pub half_open_lost: u64,
    pub flows_opened: u64,
    pub flows_closed: u64,
    pub flows_reset: u64,
    pub flows_idle: u64,
    pub flows_given_up: u64,
    pub flows_replaced: u64,
    pub flows_silent: u64,
    pub flows_astray: u64,
    /// From the servers: data taken; of these delayed at first; probes, pure ACKs, old data and RSTs let through.
    pub data_taken: u64,
    pub data_held: u64,
    pub others_forwarded: u64,
    /// Retransmitted by the server: absorbed because a copy is here; of these the oldest outstanding (a timeout), and the last
    /// (a probe); ACKs that reported an absorbed segment as received twice (D-SACK), so that it undoes what it did about
    /// the loss that was none; parts that fill a gap before the enforcer; those that took a copy's place, being cut smaller.
    pub absorbed: u64,
    pub absorbed_oldest: u64,
    pub absorbed_last: u64,
    pub undos: u64,
    pub gaps_filled: u64,
    pub replaced: u64,
    /// Gaps before the enforcer: packets that a server sent and that did not get here.
    pub gaps: u64,
    /// Beyond the window that was offered: held, dropped, a keep-alive in its place to find out what the client has.
    pub beyond_window_held: u64,
    pub beyond_window_dropped: u64,
    pub beyond_window_asked: u64,
    /// Dropped because nothing more could be buffered.
    pub buffers_full_dropped: u64,
    /// To the clients: segments sent, and retransmitted; a RST that waited for the first counts.
    pub sent: u64,
    pub sent_again: u64,
    /// ACKs that let held data's acknowledgments go ahead.
    pub acks_ahead: u64,
    /// From the clients: duplicates kept from the server; others that it does without while what it sent waits here; echoes kept from
    /// it; those that acknowledge what waits here, dropped; those that acknowledge what did not come by here; those outside of the
    /// window, which change nothing here.
    pub hidden: u64,
    pub thinned: u64,
    pub ece_hidden: u64,
    pub optimistic_dropped: u64,
    pub acks_astray: u64,
    pub outside_window: u64,
    /// Records that nobody fetched in time.
    pub records_lost: u64,
}

impl Counters {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u64); 45] {
        macro_rules! each {
            ($($name:ident),* $(,)?) => {{
                let Counters { $($name),* } = *self;
                [$((stringify!($name), $name)),*]
            }};
        }
        each![
            forwarded,
            rewritten,
            held,
            dropped,
            passed_malformed,
            passed_unknown,
            passed_by_rule,
            passed_by_option,
            passed_table_full,
            passed_buffers_full,
            handshakes,
            unchanged,
            half_open_lost,
            flows_opened,
            flows_closed,
            flows_reset,
            flows_idle,
            flows_given_up,
            flows_replaced,
            flows_silent,
            flows_astray,
            data_taken,
            data_held,
            others_forwarded,
            absorbed,
            absorbed_oldest,
            absorbed_last,
            undos,
            gaps_filled,
            replaced,
            gaps,
            beyond_window_held,
            beyond_window_dropped,
            beyond_window_asked,
            buffers_full_dropped,
            sent,
            sent_again,
            acks_ahead,
            hidden,
            thinned,
            ece_hidden,
            optimistic_dropped,
            acks_astray,
            outside_window,
            records_lost,
        ]
    }
}

/// What has left to clients, of some flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many flows that is.
    pub flows: u64,
    /// Bytes that the clients acknowledged.
    pub bytes: u64,
    /// Segments, retransmissions included.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
}

impl std::ops::AddAssign for Sent {
    fn add_assign(&mut self, other: Sent) {
        self.flows += other.flows;
        self.bytes += other.bytes;
        self.segments += other.segments;
        self.retransmits += other.retransmits;
    }
}

/// Why a flow is enforced no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Both FINs were acknowledged.
    Closed,
    /// A RST.
    Reset,
    /// No packet came for the idle time.
    Idle,
    /// The client acknowledged nothing any more.
    GivenUp,
    /// The same ends opened another connection.
    Replaced,
    /// The client acknowledged nothing for some timeouts, while memory for packets was short.
    Silent,
    /// Packets have gone another way: what both ends have said and heard is not known here.
    Astray,
}

impl Ending {
    /// In a table.
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Closed => "closed",
            Ending::Reset => "reset",
            Ending::Idle => "idle",
            Ending::GivenUp => "given-up",
            Ending::Replaced => "replaced",
            Ending::Silent => "silent",
            Ending::Astray => "astray",
        }
    }
}

/// A flow that has ended, or what is known of it up to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The enforced end.
    pub server: End,
    /// The other.
    pub client: End,
    /// When its handshake was over.
    pub began: Time,
    /// When it ended, or was asked for.
    pub ended: Time,
    /// How; `None`: it is enforced still.
    pub ending: Option<Ending>,
    /// Bytes from the server that the client acknowledged; FIN is one.
    pub bytes_acked: u64,
    /// Segments sent to the client.
    pub data_segments_sent: u32,
    /// Of these again.
    pub retransmits: u32,
    /// The enforcer's timeouts.
    pub rtos: u32,
    /// Segments delivered, and of these with an echo of congestion.
    pub delivered: u32,
    /// Marked on the way.
    pub delivered_ce: u32,
    /// Retransmissions of the server that were absorbed.
    pub absorbed: u32,
    /// ACKs kept from the server.
    pub hidden: u32,
    /// Microseconds.
    pub srtt_us: u32,
    /// Microseconds.
    pub min_rtt_us: u32,
    /// Segments.
    pub cwnd: u32,
    /// The algorithm.
    pub algorithm: String,
}
