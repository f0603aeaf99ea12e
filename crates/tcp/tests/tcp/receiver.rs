//! Replays the receiver's side of a recorded script: data segments arrive when its `cwnd_event` rows say so.

use crate::peer::MSS;
use crate::recorder::{self, Row, time_of};
use std::sync::Arc;
use tcp::{Config, Ecn, Endpoint, Segment, flags};
use units::Time;

const CLIENT: u32 = 300_000;
const SERVER: u32 = 900_000;

/// The sender, as far as the receiver sees it.
struct Client {
    endpoint: Endpoint,
    /// Relative number of the next data byte, from 1.
    next: u32,
    /// The receiver's FIN is acknowledged from here on.
    fin_acked: bool,
}

/// Runs `rows` (the receiver's) against an endpoint with `config`; returns its hooks.
pub fn run(rows: &[Row], config: Config) -> Vec<Row> {
    recorder::take();
    let begin = time_of(-11.0);
    recorder::enter('R', begin);
    let mut client = Client { endpoint: Endpoint::listen(&Arc::new(config), SERVER, 1), next: 1, fin_acked: false };
    let syn = Segment {
        seq: CLIENT,
        window: 64_240,
        mss: 1460,
        flags: flags::SYN | flags::ECE | flags::CWR,
        has_timestamp: true,
        tsval: 1,
        sack_permitted: true,
        window_scale: 8,
        ..Segment::default()
    };
    client.receive(begin, &syn);
    let data: Vec<usize> = (0..rows.len()).filter(|&i| is_data(&rows[i])).collect();
    for (index, row) in rows.iter().enumerate() {
        let now = time_of(row.ms);
        let mut segment = client.plain(now);
        if is_data(row) {
            segment.len = MSS as u16;
            segment.ecn = if row.arg("event") == Some(5) { Ecn::Ce } else { Ecn::Ect0 };
            // a segment with CWR is what makes an ACK due at once
            if row.arg("ack.pending").is_some_and(|pending| pending & 16 != 0) {
                segment.flags |= flags::CWR;
            }
            client.next += MSS;
            client.receive(now, &segment);
            if data.last() == Some(&index) {
                client.endpoint.close(now);
                client.transmit(now);
            }
        } else if row.hook == "set_state" {
            client.receive(now, &segment);
        } else if row.hook == "pkts_acked" {
            client.fin_acked = row.arg("n") == Some(1);
            let mut segment = client.plain(now);
            if client.fin_acked {
                segment.seq = segment.seq.wrapping_add(1);
            } else {
                segment.flags |= flags::FIN;
            }
            client.receive(now, &segment);
        }
    }
    recorder::take()
}

fn is_data(row: &Row) -> bool {
    row.is("cwnd_event", "event", 4) || row.is("cwnd_event", "event", 5)
}

impl Client {
    fn plain(&self, now: Time) -> Segment {
        Segment {
            seq: CLIENT.wrapping_add(self.next),
            ack: SERVER + 1 + self.fin_acked as u32,
            window: 1 << 20,
            tsval: (now.as_us() / 1000) as u32,
            tsecr: (now.as_us() / 1000) as u32 - 20,
            flags: flags::ACK,
            has_timestamp: true,
            ..Segment::default()
        }
    }

    fn receive(&mut self, now: Time, segment: &Segment) {
        while self.endpoint.poll_timeout() <= now {
            let at = self.endpoint.poll_timeout();
            recorder::enter('R', at);
            self.endpoint.on_timer(at);
            self.transmit(at);
        }
        recorder::enter('R', now);
        self.endpoint.on_segment(now, segment);
        self.transmit(now);
    }

    fn transmit(&mut self, now: Time) {
        let mut segment = Segment::default();
        while self.endpoint.poll_transmit(now, &mut segment) {}
    }
}
