//! State that an idle connection does not need: one box, allocated when data is sent, waits to be sent, or is lost, and
//! freed when it would equal a new one.

use crate::rare::Rare;
use crate::scoreboard::{Record, Ring};
use crate::stats::Stats;
use congestion::TcpSock;
use units::Time;

/// The contents of the box: what every sender needs, within a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Work {
    pub ring: Ring,
    /// Payload bytes that the application has written or wants to, since the beginning.
    pub app_end: u64,
    /// When [`Endpoint::timer`](crate::Endpoint) is due.
    pub timer_at: Time,
    pub rare: Option<Box<Rare>>,
    /// snd_nxt when this round trip began.
    pub rtt_seq: u32,
}

const _: () = assert!(size_of::<Work>() == 64);

impl Work {
    /// Nothing written, nothing in flight, no timer: the state of a connection without the box.
    #[cold]
    #[inline(never)]
    fn boxed(sock: &TcpSock) -> Box<Work> {
        Box::new(Work {
            ring: Ring::default(),
            app_end: sock.bytes_acked,
            timer_at: Time::NEVER,
            rare: None,
            // where every sample leaves it once all is acknowledged
            rtt_seq: sock.snd_una,
        })
    }

    /// What few connections need, made if it is not there.
    #[inline]
    pub fn make_rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(Rare::boxed)
    }

    /// Is it as a new one would be?
    fn is_idle(&self, sock: &TcpSock) -> bool {
        self.rare.is_none()
            && self.timer_at == Time::NEVER
            && self.app_end == sock.bytes_acked
            && self.rtt_seq == sock.snd_una
    }
}

/// The box, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Busy(Option<Box<Work>>);

impl Busy {
    /// The box, made if there is none.
    #[inline]
    pub fn make(&mut self, sock: &TcpSock) -> &mut Work {
        self.0.get_or_insert_with(|| Work::boxed(sock))
    }

    #[inline]
    pub fn work(&self) -> Option<&Work> {
        self.0.as_deref()
    }

    #[inline]
    pub fn work_mut(&mut self) -> Option<&mut Work> {
        self.0.as_deref_mut()
    }

    /// The ring of a connection with segments in flight.
    #[inline]
    pub fn ring(&self) -> &Ring {
        &self.0.as_ref().expect("what is in flight is in the box").ring
    }

    /// The same, to change.
    #[inline]
    pub fn ring_mut(&mut self) -> &mut Ring {
        &mut self.0.as_mut().expect("what is in flight is in the box").ring
    }

    /// The record `index` places after the oldest.
    #[inline]
    pub fn at(&self, index: u32) -> &Record {
        self.ring().at(index)
    }

    /// The same, to change.
    #[inline]
    pub fn at_mut(&mut self, index: u32) -> &mut Record {
        self.ring_mut().at_mut(index)
    }

    /// What few connections need, if this one does.
    #[inline]
    pub fn rare(&self) -> Option<&Rare> {
        self.0.as_ref()?.rare.as_deref()
    }

    /// The same, to change.
    #[inline]
    pub fn rare_mut(&mut self) -> Option<&mut Rare> {
        self.0.as_mut()?.rare.as_deref_mut()
    }

    /// All was acknowledged some time ago: frees the rarely needed state too, and returns its counts.
    pub fn rest(&mut self, sock: &TcpSock) -> Stats {
        let Some(work) = &mut self.0 else { return Stats::default() };
        // the next round trip is a new one
        work.rtt_seq = sock.snd_una;
        let rare = work.rare.take();
        self.free(sock);
        rare.map_or_else(Stats::default, |rare| rare.stats)
    }

    /// Nothing is in flight: frees the ring, and the box if it holds nothing else.
    pub fn free(&mut self, sock: &TcpSock) {
        if let Some(work) = &mut self.0 {
            work.ring.free();
            if work.is_idle(sock) {
                self.0 = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_box_is_freed_only_if_it_holds_nothing() {
        let sock = TcpSock { bytes_acked: 5000, snd_una: 6000, ..TcpSock::default() };
        let tells: [fn(&mut Work); 4] = [
            |work| work.app_end += 1,
            |work| work.timer_at = Time::from_ms(1),
            |work| work.rtt_seq -= 1,
            |work| work.rare = Some(Box::default()),
        ];
        for tell in tells {
            let mut busy = Busy::default();
            tell(busy.make(&sock));
            busy.free(&sock);
            assert!(busy.work().is_some());
        }
        let mut busy = Busy::default();
        busy.make(&sock).ring.push(0, Record::default());
        busy.free(&sock);
        assert!(busy.work().is_none());
    }
}
