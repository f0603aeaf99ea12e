//! One connection of the traffic.

use crate::info::Info;
use plan::UNLIMITED;
use std::net::TcpStream;
use units::Time;

/// A connection, both of whose ends are ours.
pub struct Flow {
    /// The traffic entry that opened it.
    pub entry: u32,
    /// Numbers of the hosts.
    pub src: u32,
    /// See `src`.
    pub dst: u32,
    /// When it was opened.
    pub start: Time,
    /// When its last byte arrived.
    pub end: Option<Time>,
    /// Application bytes asked for; [`UNLIMITED`].
    pub bytes: u64,
    /// Of those, not yet written.
    pub unwritten: u64,
    /// Application bytes that the kernel took.
    pub written: u64,
    /// No more will be asked for: after the last byte comes the FIN.
    pub closing: bool,
    /// The sender's socket; none once it is closed.
    pub sender: Option<TcpStream>,
    /// The handshake is over.
    pub connected: bool,
    /// The receiver's socket; none before it is accepted and after it is closed.
    pub receiver: Option<TcpStream>,
    /// The receiver's application has done with it.
    pub finished: bool,
    /// Application bytes that arrived.
    pub received: u64,
    /// How many of those the application wants to hear of.
    pub notify_at: u64,
    /// What the kernel last said of the sender.
    pub info: Info,
    /// `received` and `info` when counting began.
    pub base: (u64, Info),
}

impl Flow {
    /// A connection that is being opened.
    pub fn opening(entry: u32, (src, dst): (u32, u32), start: Time, sender: TcpStream) -> Flow {
        Flow {
            entry,
            src,
            dst,
            start,
            end: None,
            bytes: 0,
            unwritten: 0,
            written: 0,
            closing: false,
            sender: Some(sender),
            connected: false,
            receiver: None,
            finished: false,
            received: 0,
            notify_at: u64::MAX,
            info: Info::default(),
            base: (0, Info::default()),
        }
    }

    /// Asks the kernel how the sender is; the last answer stays when it is gone.
    pub fn look(&mut self) {
        if let Some(info) = self.sender.as_ref().and_then(|sender| Info::of(sender).ok()) {
            self.info = info;
        }
    }

    /// What is left of it when the run ends.
    pub fn end(mut self) -> FlowEnd {
        self.look();
        FlowEnd {
            entry: self.entry,
            src: self.src,
            dst: self.dst,
            start: self.start,
            end: self.end,
            bytes: (self.bytes < UNLIMITED).then_some(self.bytes),
            delivered: self.received - self.base.0,
            info: self.info,
            base: self.base.1,
        }
    }
}

/// A connection at the end of the run.
#[derive(Clone, Debug)]
pub struct FlowEnd {
    /// The traffic entry that opened it.
    pub entry: u32,
    /// Numbers of the hosts.
    pub src: u32,
    /// See `src`.
    pub dst: u32,
    /// When it was opened.
    pub start: Time,
    /// When its last byte arrived.
    pub end: Option<Time>,
    /// Application bytes asked for; none if it sends as long as it may.
    pub bytes: Option<u64>,
    /// Application bytes that arrived since counting began.
    pub delivered: u64,
    /// What the kernel said at the end, or when the sender closed.
    pub info: Info,
    /// What it said when counting began.
    pub base: Info,
}
