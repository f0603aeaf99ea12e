//! The TCP stacks of servers that must not be changed.

/// A server's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    /// Linux's defaults.
    Linux,
    NoSack,
    NoTimestamps,
    /// No window scaling, and buffers to match.
    SmallBuffers,
    /// The initial window of RFC 3390.
    InitialWindow3,
    /// Linux as it comes, whose second server runs the kernel's own bbr in place of ours. Only on kernels.
    OwnBbr,
}

impl Stack {
    /// All but Linux's defaults.
    pub const OTHERS: [Stack; 4] = [Stack::NoSack, Stack::NoTimestamps, Stack::SmallBuffers, Stack::InitialWindow3];

    pub fn name(self) -> &'static str {
        match self {
            Stack::Linux => "Linux",
            Stack::NoSack => "SACK off",
            Stack::NoTimestamps => "timestamps off",
            Stack::SmallBuffers => "64 KB buffers",
            Stack::InitialWindow3 => "IW 3",
            Stack::OwnBbr => "kernel’s own bbr",
        }
    }

    /// Overrides for a simulated server.
    pub fn sets(self) -> &'static [&'static str] {
        match self {
            Stack::Linux | Stack::OwnBbr => &[],
            Stack::NoSack => &["tcp.sack=false"],
            Stack::NoTimestamps => &["tcp.timestamps=false"],
            Stack::SmallBuffers => &["tcp.window_scaling=false", "tcp.send_buffer=64 KiB", "tcp.receive_buffer=64 KiB"],
            Stack::InitialWindow3 => &["tcp.initial_cwnd=3"],
        }
    }

    /// The same for a kernel: values below `net.ipv4`.
    pub fn sysctls(self) -> &'static [&'static str] {
        match self {
            Stack::Linux | Stack::InitialWindow3 | Stack::OwnBbr => &[],
            Stack::NoSack => &["tcp_sack=0"],
            Stack::NoTimestamps => &["tcp_timestamps=0"],
            Stack::SmallBuffers => &["tcp_window_scaling=0", "tcp_wmem=4096 65536 65536"],
        }
    }

    /// Attributes of its routes.
    pub fn route(self) -> &'static str {
        if self == Stack::InitialWindow3 { "initcwnd 3" } else { "" }
    }
}
