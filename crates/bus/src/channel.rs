//! The bus within one process.

use crate::{AGENTS_MAX, Bus, BusCounts, BusError, Hub, MESSAGE_MAX, Peer, QUEUE_MAX, Received, ReplyTo};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// The Oracle's end.
#[derive(Debug)]
pub struct ChannelOracle {
    agents: Vec<(u64, SyncSender<Vec<u8>>)>,
    /// How many agents there have been: the next one's number.
    numbers: u64,
    reports: Receiver<(u64, Vec<u8>)>,
    reporting: SyncSender<(u64, Vec<u8>)>,
    counts: BusCounts,
}

/// An agent's end.
#[derive(Debug)]
pub struct ChannelAgent {
    number: u64,
    cues: Receiver<Vec<u8>>,
    reports: SyncSender<(u64, Vec<u8>)>,
}

/// A bus without agents; [`ChannelOracle::agent`] adds one.
pub fn channel() -> ChannelOracle {
    let (reporting, reports) = sync_channel(QUEUE_MAX);
    ChannelOracle { agents: Vec::new(), numbers: 0, reports, reporting, counts: BusCounts::default() }
}

impl ChannelOracle {
    /// One more agent; `None` if there are [`AGENTS_MAX`].
    pub fn agent(&mut self) -> Option<ChannelAgent> {
        if self.agents.len() >= AGENTS_MAX {
            self.counts.refused += 1;
            return None;
        }
        let (sender, cues) = sync_channel(QUEUE_MAX);
        let number = self.numbers;
        self.numbers += 1;
        self.agents.push((number, sender));
        Some(ChannelAgent { number, cues, reports: self.reporting.clone() })
    }
}

impl Hub for ChannelOracle {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        let counts = &mut self.counts;
        self.agents.retain(|(_, agent)| is_sent(agent, message, counts));
        Ok(())
    }

    fn answer(&mut self, to: &ReplyTo, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        let ReplyTo::Connection(to) = to else { return Ok(()) };
        let counts = &mut self.counts;
        self.agents.retain(|(number, agent)| number != to || is_sent(agent, message, counts));
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, BusError> {
        // it holds a sender itself, so the channel never ends
        let received = self.reports.recv_timeout(wait).ok();
        Ok(received.map(|(number, bytes)| Received { from: Peer::Local, bytes, reply: ReplyTo::Connection(number) }))
    }

    fn counts(&self) -> BusCounts {
        BusCounts { peers: self.agents.len(), ..self.counts }
    }
}

impl Bus for ChannelAgent {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        self.reports.try_send((self.number, message.to_vec())).map_err(|error| match error {
            TrySendError::Full(_) => BusError::Full,
            TrySendError::Disconnected(_) => BusError::Gone,
        })
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        match self.cues.recv_timeout(wait) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(BusError::Gone),
        }
    }
}

/// Sends; whether the agent is to be kept.
fn is_sent(agent: &SyncSender<Vec<u8>>, message: &[u8], counts: &mut BusCounts) -> bool {
    let sent = agent.try_send(message.to_vec());
    counts.slow += u64::from(matches!(sent, Err(TrySendError::Full(_))));
    sent.is_ok()
}

pub(crate) fn fits(message: &[u8]) -> Result<(), BusError> {
    if message.len() > MESSAGE_MAX { Err(BusError::Long(message.len())) } else { Ok(()) }
}
