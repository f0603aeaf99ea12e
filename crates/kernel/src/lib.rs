//! The algorithms of `cc/` in the running Linux kernel.
//!
//! The build compiles each file of `cc/` for BPF and embeds the object. [`Kernel::probe`] says whether this machine can
//! take them, [`Kernel::load`] puts one into the kernel under the name `ot_NAME` (`struct_ops` congestion control): from
//! then on sockets may choose it by `TCP_CONGESTION`, a route by `congctl`, a namespace by its sysctl. Dropping the
//! [`Loaded`] removes the name; sockets that use the algorithm keep it until they choose another or close.
//!
//! [`Kernel::verify`] only runs the verifier, and [`Kernel::load_object`] takes an object that a user compiled.
//!
//! What is to outlive its loader goes through [`Kernel::prepare`] to [`Pins::load`], which also replaces a loaded
//! algorithm by another version while connections run. [`running()`] lists the kernel's algorithms. [`cost`] measures the
//! cost of running an algorithm as a BPF program. [`retune`] sets TCP's parameters of other programs' connections, and [`steer`]
//! redirects packets of an interface to a program.

pub mod bpffs;
mod cgroup;
pub mod cost;
mod error;
mod features;
mod load;
mod log;
mod objects;
mod pins;
mod probe;
pub mod retune;
mod rights;
mod running;
mod sockets;
pub mod steer;
mod sys;
mod table;
mod trace;

pub use cgroup::cgroup_mounts;
pub use error::Error;
pub use features::Features;
pub use load::{Loaded, Prepared, Program, Verified};
pub use pins::{Change, PinError, Pins, not_pinned, pinned};
pub use probe::{Kernel, Missing};
pub use rights::{Capability, Rights};
pub use running::{Origin, Running, running};
pub use sockets::{Connection, connections, sockets_by_algorithm};
pub use trace::{Reader, Trace, traced_object};

use std::io;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Prefix that makes a file's id the kernel's name of the algorithm, so that it never collides with Linux's own.
pub const NAME_PREFIX: &str = "ot_";

/// Prefix of Linux's own algorithms in scenarios and policies.
pub const KERNEL_PREFIX: &str = "kernel:";

/// The algorithms that sockets can choose now, by their names in scenarios and policies: `kernel:NAME` is Linux's own, `NAME` one that
/// was loaded from a file.
///
/// # Errors
/// /proc does not have them.
pub fn algorithms() -> io::Result<Vec<String>> {
    let public = |name: String| match name.strip_prefix(NAME_PREFIX) {
        Some(own) => own.to_string(),
        None => format!("{KERNEL_PREFIX}{name}"),
    };
    Ok(sockets::available()?.into_iter().map(public).collect())
}

/// The kernel's name of one of [`algorithms`].
pub fn name_in_kernel(name: &str) -> String {
    name.strip_prefix(KERNEL_PREFIX).map_or_else(|| format!("{NAME_PREFIX}{name}"), str::to_string)
}

/// The names of the algorithms of `cc/`, sorted.
pub fn builtins() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|(name, _)| *name)
}

/// The BPF object file of a built-in algorithm.
pub fn object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// The name in the kernel of the algorithm in a BPF object file. `label` names the object in errors. Needs nothing
/// from the kernel.
///
/// # Errors
/// Not an algorithm's object.
pub fn name_of(bytes: &[u8], label: &str) -> Result<String, Error> {
    load::name(bytes, label)
}
