//! A recorded script between two endpoints: the wire does what its title says.

use crate::peer::MSS;
use crate::recorder::{self, EPOCH, Row, time_of};
use crate::wire::Pair;
use std::sync::Arc;
use tcp::{Config, Ecn, Endpoint, Segment};
use units::{Rate, Time};

/// One way, the recording machine's own delays included.
const ONE_WAY: Time = Time::from_us(10_250);
/// Ethernet's header, preamble, checksum and gap as the recording counts them.
const FRAME_BYTES: u64 = 14 + 24;

/// What the wire does with the data transmission of that number.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Drop,
    DelayMs(u64),
    Mark,
}

/// A script's title.
pub struct Title {
    /// When the application writes how many segments.
    pub writes: Vec<(f64, u32)>,
    /// The sender closes no earlier than this, ms.
    pub open_until_ms: f64,
    pub fault: fn(u32) -> Option<Fault>,
    pub bottleneck: Option<Rate>,
}

fn enter(end: usize, now: Time) {
    recorder::enter(if end == 0 { 'S' } else { 'R' }, now);
}

/// Runs it with both ends at `config`; returns the sender's hooks.
pub fn run(title: &Title, config: &Config) -> Result<Vec<Row>, String> {
    recorder::take();
    let config = Arc::new(config.clone());
    let ends = [Endpoint::connect(&config, 40_000, 1), Endpoint::listen(&config, 80_000, 2)];
    let (fault, bottleneck) = (title.fault, title.bottleneck);
    let mut transmissions = 0;
    let mut idle_at = [Time::ZERO; 2];
    let wire = move |now: Time, from: usize, segment: &Segment| {
        let mut segment = *segment;
        let mut sent = now;
        if let Some(rate) = bottleneck {
            idle_at[from] = idle_at[from].max(now) + rate.serialization(segment.ip_bytes() as u64 + FRAME_BYTES);
            sent = idle_at[from];
        }
        let mut arrival = sent + ONE_WAY;
        if from == 0 && segment.len > 0 {
            transmissions += 1;
            match fault(transmissions) {
                Some(Fault::Drop) => return Vec::new(),
                Some(Fault::DelayMs(ms)) => arrival += Time::from_ms(ms),
                Some(Fault::Mark) => segment.ecn = Ecn::Ce,
                None => {}
            }
        }
        vec![(arrival, segment)]
    };
    let mut pair = Pair::new(ends, EPOCH.saturating_sub(ONE_WAY * 2), wire, enter);
    let total = title.writes.iter().map(|&(_, segments)| (segments * MSS) as u64).sum::<u64>();
    let mut writes = title.writes.iter().copied().peekable();
    let mut closed = [false; 2];
    while !(pair.ends[0].is_closed() && pair.ends[1].is_closed()) {
        let mut next = pair.next_time();
        if let Some(&(ms, segments)) = writes.peek()
            && time_of(ms) <= next
        {
            pair.now = pair.now.max(time_of(ms));
            writes.next();
            pair.act(0, |endpoint, now| endpoint.write_all(now, (segments * MSS) as u64));
            next = pair.now;
        }
        if pair.ends[1].received() == total && !closed[1] {
            closed[1] = true;
            pair.act(1, Endpoint::close);
        }
        let open_until = time_of(title.open_until_ms);
        if closed[1] && !closed[0] && (pair.now >= open_until || next >= open_until) {
            closed[0] = true;
            pair.now = pair.now.max(open_until);
            pair.act(0, Endpoint::close);
        }
        if next > EPOCH + Time::from_secs(60) || !pair.step() {
            return Err(format!("{} of {total} bytes arrive", pair.ends[1].received()));
        }
    }
    Ok(recorder::take().into_iter().filter(|row| row.side == 'S').collect())
}
