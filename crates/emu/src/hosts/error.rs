//! Why a host cannot be made.

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
    #[error("cannot make a network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// A setting that no kernel would take.
    #[error("host {host}: {problem}")]
    Setting {
        /// The host's name.
        host: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// No TAP.
    #[error("host {host} gets no network card: {source}")]
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
        /// What was asked.
        what: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// A sysctl that the kernel does not have, or not with this value.
    #[error("host {host}: the kernel refuses {name} = {value}: {source}")]
    Sysctl {
        /// The host's name.
        host: String,
        /// As `sysctl` writes it.
        name: String,
        /// What it was to be.
        value: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// No such congestion control.
    #[error(
        "host {host}: the kernel has no congestion control '{name}'; see net.ipv4.tcp_available_congestion_control"
    )]
    Algorithm {
        /// The host's name.
        host: String,
        /// The one that was asked for.
        name: String,
    },
    /// A failure once the host runs.
    #[error("host {host}: {source}")]
    Io {
        /// The host's name.
        host: String,
        /// What the kernel says.
        source: io::Error,
    },
}
