//! Why a host cannot be created.

use std::io;

/// What went wrong with a host, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process lacks the rights.
    #[error(
        "network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN); run it as root, or in a container with both"
    )]
    NotRoot,
    /// The kernel made no namespace, or no thread to hold it.
    #[error("cannot create a network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// A setting that no kernel accepts.
    #[error("host {host}: {problem}")]
    Setting {
        /// The host's name.
        host: String,
        /// The mistake, and its correction.
        problem: String,
    },
    /// The TAP cannot be created.
    #[error("host {host}: cannot create its network card: {source}")]
    Tap {
        /// The host's name.
        host: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// The kernel refused an address, a route or the like.
    #[error("host {host}: the kernel refuses {what}: {source}")]
    Network {
        /// The host's name.
        host: String,
        /// What was refused.
        what: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// A sysctl that the kernel lacks, or whose value it refuses.
    #[error("host {host}: the kernel refuses {name} = {value}: {source}")]
    Sysctl {
        /// The host's name.
        host: String,
        /// As `sysctl` writes it.
        name: String,
        /// The value.
        value: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// The kernel lacks the congestion control.
    #[error(
        "host {host}: the kernel has no congestion control '{name}'; see net.ipv4.tcp_available_congestion_control"
    )]
    Algorithm {
        /// The host's name.
        host: String,
        /// Its name.
        name: String,
    },
    /// A failure of a running host.
    #[error("host {host}: {source}")]
    Io {
        /// The host's name.
        host: String,
        /// What the kernel says.
        source: io::Error,
    },
}
