//! One connection of the traffic.

use crate::info::Info;
use crate::slowdown::Slowdown;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use plan::UNLIMITED;
use results::Arm;
use std::net::TcpStream;
use units::Time;

/// A connection, both of whose ends are ours.
#[allow(clippy::struct_excessive_bools, reason = "they are independent")]
pub struct Flow {
    /// The traffic entry that opened it.
    pub entry: u32,
    /// Numbers of the hosts.
    pub src: u32,
    /// See `src`.
    pub dst: u32,
    /// In a run with a policy: the arm of the host to which it belongs, when it was opened.
    pub arm: Option<Arm>,
    /// When it was opened.
    pub start: Time,
    /// Of the network.
    slowdown: Slowdown,
    /// When its last byte arrived.
    pub end: Option<Time>,
    /// Application bytes requested; [`UNLIMITED`].
    pub bytes: u64,
    /// Of those, not yet written.
    pub unwritten: u64,
    /// Application bytes that the kernel took.
    pub written: u64,
    /// No more will be requested: after the last byte comes the FIN.
    pub closing: bool,
    /// The sender's socket; none once it is closed.
    pub sender: Option<TcpStream>,
    /// The handshake is over, or has failed.
    pub connected: bool,
    /// Both ends have closed, but the last ACK may be missing.
    pub over: bool,
    /// The receiver's socket; none before it is accepted and after it is closed.
    pub receiver: Option<TcpStream>,
    /// The receiver's application has closed it.
    pub finished: bool,
    /// Kept open for messages, whose completions count.
    pub has_messages: bool,
    /// Application bytes that arrived.
    pub received: u64,
    /// How many of those the application is waiting for.
    pub notify_at: u64,
    /// The sender's last `tcp_info`, without what its SYN has added to retransmissions and RTOs.
    pub info: Info,
    /// Retransmissions and RTOs of the SYN.
    syn: (u32, u16),
    /// Retransmissions when the last message arrived.
    reported: u32,
    /// In a run with a policy: the kernel's name of the sender's congestion control at its end.
    pub algorithm: Option<String>,
    /// `received` and `info` when counting began.
    base: (u64, Info),
}

impl Flow {
    /// A connection that is being opened.
    pub fn opening(entry: u32, (src, dst): (u32, u32), (start, slowdown): (Time, Slowdown), sender: TcpStream) -> Flow {
        Flow {
            entry,
            src,
            dst,
            arm: None,
            start,
            slowdown,
            end: None,
            bytes: 0,
            unwritten: 0,
            written: 0,
            closing: false,
            sender: Some(sender),
            connected: false,
            over: false,
            receiver: None,
            finished: false,
            has_messages: false,
            received: 0,
            notify_at: u64::MAX,
            info: Info::default(),
            syn: (0, 0),
            reported: 0,
            algorithm: None,
            base: (0, Info::default()),
        }
    }

    /// The sender can write, or has failed. Nothing has been written before.
    pub fn connect(&mut self) {
        if !self.connected {
            self.look();
            self.connected = true;
        }
    }

    /// Reads the sender's `tcp_info`; a closed sender keeps the last one.
    pub fn look(&mut self) {
        let Some(info) = self.sender.as_ref().and_then(|sender| Info::of(sender).ok()) else { return };
        if !self.connected {
            self.syn = (info.total_retrans, info.total_rto);
        }
        let total_retrans = info.total_retrans.wrapping_sub(self.syn.0);
        let total_rto = info.total_rto.wrapping_sub(self.syn.1);
        self.info = Info { total_retrans, total_rto, ..info.in_network_time(self.slowdown) };
    }

    /// Reads it for the last time, with the algorithm, which a policy may have changed.
    pub fn look_last(&mut self) {
        self.look();
        if let Some(sender) = self.sender.as_ref().filter(|_| self.arm.is_some()) {
            let name = getsockopt(sender, TcpCongestion).ok();
            self.algorithm = name.map(|name| name.to_string_lossy().trim_end_matches('\0').to_string());
        }
    }

    /// Starts counting.
    pub fn begin_counting(&mut self) {
        self.look();
        self.base = (self.received, self.info);
    }

    /// Retransmissions since the last call, at the arrival of a message.
    pub fn retransmits_of_message(&mut self) -> u64 {
        self.look();
        let before = std::mem::replace(&mut self.reported, self.info.total_retrans);
        u64::from(self.info.total_retrans.wrapping_sub(before))
    }

    /// The record of it at the run's end.
    pub fn end(mut self) -> FlowEnd {
        self.look_last();
        FlowEnd {
            entry: self.entry,
            src: self.src,
            dst: self.dst,
            arm: self.arm,
            start: self.start,
            end: self.end,
            bytes: (self.bytes < UNLIMITED).then_some(self.bytes),
            whole: self.end.is_some() || self.bytes == self.notify_at,
            delivered: self.received - self.base.0,
            info: self.info,
            algorithm: self.algorithm,
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
    /// In a run with a policy: the arm of the host to which it belongs, when it was opened.
    pub arm: Option<Arm>,
    /// When it was opened.
    pub start: Time,
    /// When its last byte arrived.
    pub end: Option<Time>,
    /// Application bytes requested; `None` if unlimited.
    pub bytes: Option<u64>,
    /// It was not stopped before its application had written everything.
    pub whole: bool,
    /// Application bytes that arrived since counting began.
    pub delivered: u64,
    /// The sender's `tcp_info` at the end, or when the last packet had closed it; without the SYN's retransmissions and RTOs.
    pub info: Info,
    /// In a run with a policy: the kernel's name of the sender's congestion control then.
    pub algorithm: Option<String>,
    /// The sender's `tcp_info` when counting began.
    pub base: Info,
}
