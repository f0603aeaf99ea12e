//! The enforcer's counters, and its record of an ended flow.

use crate::packet::End;
use units::Time;

/// All events since the start. The unit is packets unless noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each group is documented")]
pub struct Counters {
    /// The fate of each incoming packet ([`crate::Action`]): forwarded unchanged; forwarded with another window or other
    /// options, or in part; buffered, or its copy already sent; dropped. Their sum is all packets.
    pub forwarded: u64,
    pub rewritten: u64,
    pub held: u64,
    pub dropped: u64,
    /// Passed untouched: not TCP or malformed; of a connection whose start was not seen, or that no rule matches;
    /// signed, or a SYN with options that cannot be enforced ([`crate::Header::untouchable`]); because the table of
    /// flows was full; because the buffers were (the server retransmits these itself).
    pub passed_malformed: u64,
    pub passed_unknown: u64,
    pub passed_by_rule: u64,
    pub passed_by_option: u64,
    pub passed_table_full: u64,
    pub passed_buffers_full: u64,
    /// Forwarded too: SYNs and their answers; the clients' packets that needed no change.
    pub handshakes: u64,
    pub unchanged: u64,
    /// Handshakes that others evicted from their table; flows that were enforced, and that ended: by FINs, by RST, by
    /// idle timeout, because the client never answered, because the same endpoints opened a new connection, because the client was
    /// silent while memory was short, because both ends had continued without the enforcer, or with another.
    pub half_open_lost: u64,
    pub flows_opened: u64,
    pub flows_closed: u64,
    pub flows_reset: u64,
    pub flows_idle: u64,
    pub flows_given_up: u64,
    pub flows_replaced: u64,
    pub flows_silent: u64,
    pub flows_astray: u64,
    pub flows_moved: u64,
    /// Flows taken over from another enforcer as its standby; times that one caught up with what it had not seen.
    pub flows_promoted: u64,
    pub caught_up: u64,
    /// From the servers: data received; of these delayed at first; probes, pure ACKs, old data and RSTs passed.
    pub data_taken: u64,
    pub data_held: u64,
    pub others_forwarded: u64,
    /// Retransmitted by the server: absorbed because a copy is here; of these the oldest outstanding (a timeout), and the last
    /// (a probe); ACKs that reported an absorbed segment as received twice (D-SACK), so that the server undoes its window
    /// reduction; parts that fill a gap before the enforcer; those that replaced a copy, being smaller.
    pub absorbed: u64,
    pub absorbed_oldest: u64,
    pub absorbed_last: u64,
    pub undos: u64,
    pub gaps_filled: u64,
    pub replaced: u64,
    /// Gaps before the enforcer: packets that a server sent and that did not arrive here.
    pub gaps: u64,
    /// Beyond the advertised window: buffered, dropped, replaced by a keep-alive to learn the client's state.
    pub beyond_window_held: u64,
    pub beyond_window_dropped: u64,
    pub beyond_window_asked: u64,
    /// Dropped because the buffers were full.
    pub buffers_full_dropped: u64,
    /// To the clients: segments sent, and retransmitted; a RST that waited for the data before it counts as sent.
    pub sent: u64,
    pub retransmitted: u64,
    /// ACKs that carry the acknowledgment of delayed data ahead of it.
    pub acks_ahead: u64,
    /// From the clients: duplicates not forwarded to the server; late ACKs not forwarded while its data waits here; echoes not forwarded
    /// to it; ACKs of data that has not left yet, dropped; ACKs of data that did not pass here; those outside of the
    /// window, which change nothing here.
    pub hidden: u64,
    pub thinned: u64,
    pub ece_hidden: u64,
    pub optimistic_dropped: u64,
    pub acks_astray: u64,
    pub outside_window: u64,
    /// ECN in the place of hosts that know none: SYNs and their answers that were changed for it; flows for which it was agreed on; of
    /// these, flows whose data is no longer sent as ECN-capable, since losses came without marks; marks that clients did not see; ACKs of
    /// theirs that echo marks.
    pub ecn_handshakes: u64,
    pub ecn_agreed: u64,
    pub ecn_stopped: u64,
    pub marks_taken: u64,
    pub marks_echoed: u64,
    /// Marked by a rule.
    pub marked: u64,
    /// Records dropped because they were not fetched in time.
    pub records_lost: u64,
}

impl Counters {
    /// Each counter with its name.
    pub fn named(&self) -> [(&'static str, u64); 54] {
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
            flows_moved,
            flows_promoted,
            caught_up,
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
            retransmitted,
            acks_ahead,
            hidden,
            thinned,
            ece_hidden,
            optimistic_dropped,
            acks_astray,
            outside_window,
            ecn_handshakes,
            ecn_agreed,
            ecn_stopped,
            marks_taken,
            marks_echoed,
            marked,
            records_lost,
        ]
    }
}

/// What some flows have sent to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of these flows.
    pub flows: u64,
    /// Bytes that the clients acknowledged.
    pub bytes: u64,
    /// Segments, retransmissions included.
    pub segments: u64,
    /// Of these, retransmitted.
    pub retransmits: u64,
}

impl std::ops::AddAssign for Sent {
    fn add_assign(&mut self, other: Sent) {
        // peers decide how large these get
        self.flows = self.flows.saturating_add(other.flows);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.segments = self.segments.saturating_add(other.segments);
        self.retransmits = self.retransmits.saturating_add(other.retransmits);
    }
}

/// Why a flow is no longer enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Both FINs were acknowledged.
    Closed,
    /// A RST.
    Reset,
    /// No packet came for the idle time.
    Idle,
    /// The client no longer acknowledged anything.
    GivenUp,
    /// The same ends opened another connection.
    Replaced,
    /// The client acknowledged nothing for some timeouts, while memory for packets was short.
    Silent,
    /// Packets took another path: what both ends have sent and acknowledged is not known here.
    Astray,
    /// It has gone on at the enforcer whose standby this one is.
    Moved,
}

impl Ending {
    /// As a word in a table.
    pub fn as_str(self) -> &'static str {
        match self {
            Ending::Closed => "closed",
            Ending::Reset => "reset",
            Ending::Idle => "idle",
            Ending::GivenUp => "given-up",
            Ending::Replaced => "replaced",
            Ending::Silent => "silent",
            Ending::Astray => "astray",
            Ending::Moved => "moved",
        }
    }
}

/// A flow that has ended, or the state of an open one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The enforced end.
    pub server: End,
    /// The other end.
    pub client: End,
    /// End of its handshake.
    pub began: Time,
    /// When it ended, or was queried.
    pub ended: Time,
    /// Its end; `None`: it is still enforced.
    pub ending: Option<Ending>,
    /// Bytes from the server that the client acknowledged; a FIN counts as one.
    pub bytes_acked: u64,
    /// Segments sent to the client.
    pub data_segments_sent: u32,
    /// Of these, retransmitted.
    pub retransmits: u32,
    /// The enforcer's timeouts.
    pub rtos: u32,
    /// Segments delivered.
    pub delivered: u32,
    /// Of these, with an ECN echo.
    pub delivered_ce: u32,
    /// Retransmissions of the server that were absorbed.
    pub absorbed: u32,
    /// ACKs not forwarded to the server.
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
