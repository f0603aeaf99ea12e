//! Packets of a flow that take another path: what shows it, and what is done.

use crate::buffer::Buffer;
use crate::counters::Ending;
use crate::flow::{Context, Flow, bit, room};
use crate::half_open::RTT_TICK_US;
use crate::packet::{Action, Packet};
use crate::seq::{after, later};
use tcp::Segment;

/// Time beyond the RTTs of both sides after which a client that is owed an answer counts as unheard, µs: below the minimum RTO of
/// servers (200 ms in Linux), so that the first one tells.
const UNHEARD_US: u32 = 5_000;
/// The same where a server sends beyond its window: one that ignores it does so at any time, also while a busy client is late.
const BEYOND_US: u32 = 200_000;

impl<P: Packet> Flow<P> {
    /// The client acknowledges data that was not sent from here.
    pub fn unsent(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        if !after(segment.ack, self.nxt()) {
            // the server has sent that, but the client can have it only by another path: then what is sent from here stays
            // unacknowledged until a timeout
            if self.relay.backoff() > 0 && self.relay.accepts(segment) {
                self.catch_up(cx, segment);
                if !after(segment.ack, self.relay.sock().snd_nxt) {
                    return self.acknowledged(cx, segment, packet);
                }
            }
            cx.counters.optimistic_dropped += 1;
            return Action::Dropped;
        }
        // either it was never sent, and the server will reject it, or it took another path
        if self.relay.accepts(segment) {
            self.bits |= bit::ASTRAY;
        }
        cx.counters.acks_astray += 1;
        Action::Forward(packet)
    }

    /// Data of the server beyond its window, and not adjacent to the buffer: either it ignores the window, or packets
    /// have taken another path for a while, and both ends have advanced.
    pub fn beyond(&mut self, cx: &mut Context<P>, packet: P) -> Action<P> {
        if self.has(bit::ASTRAY) || self.is_unheard(cx, BEYOND_US) {
            return self.end_astray(cx, packet);
        }
        let silent_us = cx.now.as_us().saturating_sub(self.relay.sock().delivered_mstamp);
        let is_idle = self.buffer.as_ref().is_none_or(|buffer| buffer.is_empty());
        if is_idle && silent_us > u64::from(self.answer_us() + BEYOND_US) {
            if self.has(bit::ASKED) {
                return self.end_astray(cx, packet);
            }
            // the client's answer to one segment will show what it has
            self.bits |= bit::ASKED;
            cx.counters.beyond_window_asked += 1;
            cx.counters.others_forwarded += 1;
            return Action::Forward(packet);
        }
        cx.counters.beyond_window_dropped += 1;
        Action::Dropped
    }

    /// Whether nothing has come from the client for this much longer than any answer takes, and the server's reaction to it, µs. Of a flow of
    /// another enforcer's, some may have come there.
    fn is_unheard(&self, cx: &Context<P>, longer_us: u32) -> bool {
        let Some(buffer) = self.buffer.as_ref().filter(|buffer| !buffer.is_empty()) else { return false };
        let for_us = cx.now_us().wrapping_sub(buffer.heard_us);
        !self.has(bit::CATCHES_UP | bit::PROMOTED) && for_us > self.answer_us() + longer_us
    }

    /// The longest that an answer of the client takes, and the server's reaction to it, µs.
    fn answer_us(&self) -> u32 {
        UNHEARD_US + (self.relay.sock().srtt_us >> 3) + RTT_TICK_US * u32::from(self.server_rtt_ticks)
    }

    /// Whether data of the server shows that it has had ACKs that did not pass here, while nothing from the client does: then nothing
    /// here can know what the client lacks. It has sent beyond its window, where one byte may be a probe; or it retransmits from above
    /// what was acknowledged here, as after a timeout (RFC 6298 5.4). A retransmission of its last segment may be a probe (RFC
    /// 8985 7), but not the second in a row; what fills a gap that is new may be reordered.
    pub fn knows_more(&mut self, cx: &Context<P>, segment: &Segment) -> bool {
        if !self.is_unheard(cx, 0) {
            return false;
        }
        let (nxt, end, answer_us) = (self.nxt(), segment.end_seq(), self.answer_us());
        if room(later(nxt, end), self.offered) > 1 && self.is_unheard(cx, BEYOND_US) {
            return true;
        }
        if after(end, nxt) || !after(segment.seq, self.relay.sock().snd_una) {
            return false;
        }
        let fills = |buffer: &Buffer<P>| buffer.has_gap_since((segment.seq, end), cx.now_us().wrapping_sub(answer_us));
        if self.buffer.as_deref().is_some_and(fills) {
            return false;
        }
        let was_probed = self.has(bit::PROBED);
        self.bits |= bit::PROBED;
        end != nxt || was_probed
    }

    /// Packets of the flow take another path: from now on it passes untouched, with what was delayed.
    pub fn end_astray(&mut self, cx: &mut Context<P>, packet: P) -> Action<P> {
        cx.ending = Some(Ending::Astray);
        self.pass_behind_delayed(cx, packet)
    }
}
