//! The kernel's state of a connection: `struct tcp_info`.

use crate::slowdown::Slowdown;
use nix::libc::{self, tcp_info};
use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use results::CaState;
use std::mem::offset_of;
use std::os::fd::AsFd;

/// Up to `tcpi_total_rto_time`, which Linux has since 6.7; newer kernels' longer structs are cut to this.
const LEN: usize = 248;

sockopt_impl!(
    /// The start of `struct tcp_info`, as bytes: a kernel may know fewer fields than this machine's headers.
    RawInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; LEN]
);

sockopt_impl!(
    /// Largest rate of a socket, bytes a second; setting it makes the socket pace.
    MaxPacingRate, SetOnly, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64
);

/// `TCP_INFINITE_SSTHRESH` of Linux.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// Far above any real window. On some kernels a BPF algorithm's hook is skipped when pid 1 is interrupted, and the value
/// that its caller then takes for the hook's result is far above, or zero.
pub const ABSURD_WINDOW: u32 = 5_000_000;

/// `TCP_CLOSE` of Linux.
const CLOSE: u8 = 7;

/// The fields that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// `sk_state`.
    pub tcp_state: u8,
    /// `icsk_ca_state`.
    pub ca_state: u8,
    /// Window, segments.
    pub snd_cwnd: u32,
    /// Threshold of slow start, segments.
    pub snd_ssthresh: u32,
    /// Smoothed round trip, us; 0 before the first sample.
    pub rtt_us: u32,
    /// Smallest round trip, us; all ones before the first sample.
    pub min_rtt_us: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of those, SACKed.
    pub sacked: u32,
    /// Of those, marked lost.
    pub lost: u32,
    /// Of those, retransmitted and not acknowledged.
    pub retrans: u32,
    /// Retransmissions, in all.
    pub total_retrans: u32,
    /// Data segments sent, in all.
    pub data_segs_out: u32,
    /// Timeouts, in all.
    pub total_rto: u16,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes a second.
    pub pacing_rate: u64,
    /// The receive window that the remote end advertises, bytes.
    pub snd_wnd: u32,
    /// Time with data to send, us.
    pub busy_us: u64,
    /// Of that, time limited by the remote end's receive window, us.
    pub rwnd_limited_us: u64,
}

impl Info {
    /// Of an open socket.
    ///
    /// # Errors
    /// The error of `getsockopt(2)`; a kernel whose struct is shorter (before Linux 6.7) counts as one.
    pub fn of(socket: &impl AsFd) -> nix::Result<Info> {
        Ok(Info::read(&getsockopt(socket, RawInfo)?))
    }

    fn read(raw: &[u8; LEN]) -> Info {
        let u16_at = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
        let u32_at = |at: usize| raw[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let u64_at = |at: usize| raw[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Info {
            tcp_state: raw[offset_of!(tcp_info, tcpi_state)],
            ca_state: raw[offset_of!(tcp_info, tcpi_ca_state)],
            snd_cwnd: u32_at(offset_of!(tcp_info, tcpi_snd_cwnd)),
            snd_ssthresh: u32_at(offset_of!(tcp_info, tcpi_snd_ssthresh)),
            rtt_us: u32_at(offset_of!(tcp_info, tcpi_rtt)),
            min_rtt_us: u32_at(offset_of!(tcp_info, tcpi_min_rtt)),
            unacked: u32_at(offset_of!(tcp_info, tcpi_unacked)),
            sacked: u32_at(offset_of!(tcp_info, tcpi_sacked)),
            lost: u32_at(offset_of!(tcp_info, tcpi_lost)),
            retrans: u32_at(offset_of!(tcp_info, tcpi_retrans)),
            total_retrans: u32_at(offset_of!(tcp_info, tcpi_total_retrans)),
            data_segs_out: u32_at(offset_of!(tcp_info, tcpi_data_segs_out)),
            total_rto: u16_at(offset_of!(tcp_info, tcpi_total_rto)),
            bytes_acked: u64_at(offset_of!(tcp_info, tcpi_bytes_acked)),
            pacing_rate: u64_at(offset_of!(tcp_info, tcpi_pacing_rate)),
            snd_wnd: u32_at(offset_of!(tcp_info, tcpi_snd_wnd)),
            busy_us: u64_at(offset_of!(tcp_info, tcpi_busy_time)),
            rwnd_limited_us: u64_at(offset_of!(tcp_info, tcpi_rwnd_limited)),
        }
    }

    /// The same in a slower network's time.
    #[must_use]
    pub fn in_network_time(self, slowdown: Slowdown) -> Info {
        let times = slowdown.times();
        // all ones: no sample
        let span = |us: u32| if us == u32::MAX { us } else { us.div_ceil(times) };
        Info {
            rtt_us: span(self.rtt_us),
            min_rtt_us: span(self.min_rtt_us),
            pacing_rate: self.pacing_rate.saturating_mul(u64::from(times)),
            busy_us: self.busy_us / u64::from(times),
            rwnd_limited_us: self.rwnd_limited_us / u64::from(times),
            ..self
        }
    }

    /// Whether the connection has ended, or was never begun: no packet changes its counters any more.
    pub fn is_closed(&self) -> bool {
        self.tcp_state == CLOSE
    }

    /// Segments in the network.
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// The threshold of slow start, if there is one.
    pub fn ssthresh(&self) -> Option<u32> {
        (self.snd_ssthresh < INFINITE_SSTHRESH).then_some(self.snd_ssthresh)
    }

    /// The state of loss recovery.
    pub fn state(&self) -> CaState {
        match self.ca_state {
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            4 => CaState::Loss,
            _ => CaState::Open,
        }
    }

    /// Whether no algorithm could have set this window or threshold.
    pub fn is_absurd(&self) -> bool {
        let is_open = self.rtt_us > 0;
        let possible = |segments: u32| (1..=ABSURD_WINDOW).contains(&segments);
        is_open && !(possible(self.snd_cwnd) && self.ssthresh().is_none_or(possible))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_info_is_read_field_by_field() {
        let mut raw = [0; LEN];
        raw[0] = 7;
        raw[1] = 3;
        raw[76..80].copy_from_slice(&INFINITE_SSTHRESH.to_ne_bytes());
        raw[68..72].copy_from_slice(&500u32.to_ne_bytes());
        raw[80..84].copy_from_slice(&20u32.to_ne_bytes());
        raw[24..28].copy_from_slice(&9u32.to_ne_bytes());
        raw[28..32].copy_from_slice(&4u32.to_ne_bytes());
        raw[240..242].copy_from_slice(&2u16.to_ne_bytes());
        let info = Info::read(&raw);
        assert_eq!((info.snd_cwnd, info.in_flight(), info.total_rto), (20, 5, 2));
        assert_eq!((info.ssthresh(), info.state()), (None, CaState::Recovery));
        assert!(!info.is_absurd() && info.is_closed());
        assert!(Info { snd_cwnd: 90_000_000, ..info }.is_absurd());
        assert!(Info { snd_cwnd: 0, ..info }.is_absurd() && Info { snd_ssthresh: 0, ..info }.is_absurd());
        assert!(!Info::default().is_absurd(), "a connection that is being opened has no values yet");
    }

    #[test]
    fn the_kernel_answers_for_a_real_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is up");
        let stream = std::net::TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        match Info::of(&stream) {
            Ok(info) => assert!(info.snd_cwnd > 0 && info.snd_cwnd < 1000 && !info.is_closed(), "{info:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}
