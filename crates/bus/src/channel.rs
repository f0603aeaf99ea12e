//! The bus within one process.

use crate::{AGENTS_MAX, Bus, BusCounts, BusError, MESSAGE_MAX, QUEUE_MAX};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// The Oracle's end.
#[derive(Debug)]
pub struct ChannelOracle {
    agents: Vec<SyncSender<Vec<u8>>>,
    reports: Receiver<Vec<u8>>,
    reporting: SyncSender<Vec<u8>>,
    counts: BusCounts,
}

/// An agent's end.
#[derive(Debug)]
pub struct ChannelAgent {
    cues: Receiver<Vec<u8>>,
    reports: SyncSender<Vec<u8>>,
}

/// A bus without agents; [`ChannelOracle::agent`] adds one.
pub fn channel() -> ChannelOracle {
    let (reporting, reports) = sync_channel(QUEUE_MAX);
    ChannelOracle { agents: Vec::new(), reports, reporting, counts: BusCounts::default() }
}

impl ChannelOracle {
    /// One more agent; `None` if there are [`AGENTS_MAX`].
    pub fn agent(&mut self) -> Option<ChannelAgent> {
        if self.agents.len() >= AGENTS_MAX {
            self.counts.refused += 1;
            return None;
        }
        let (sender, cues) = sync_channel(QUEUE_MAX);
        self.agents.push(sender);
        Some(ChannelAgent { cues, reports: self.reporting.clone() })
    }
}

impl Bus for ChannelOracle {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        let counts = &mut self.counts;
        self.agents.retain(|agent| match agent.try_send(message.to_vec()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                counts.slow += 1;
                false
            }
            Err(TrySendError::Disconnected(_)) => false,
        });
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        // it holds a sender itself, so the channel never ends
        Ok(self.reports.recv_timeout(wait).ok())
    }

    fn counts(&self) -> BusCounts {
        BusCounts { peers: self.agents.len(), ..self.counts }
    }
}

impl Bus for ChannelAgent {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        self.reports.try_send(message.to_vec()).map_err(|error| match error {
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

    fn counts(&self) -> BusCounts {
        BusCounts { peers: 1, ..BusCounts::default() }
    }
}

pub(crate) fn fits(message: &[u8]) -> Result<(), BusError> {
    if message.len() > MESSAGE_MAX { Err(BusError::Long(message.len())) } else { Ok(()) }
}
