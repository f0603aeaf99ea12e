//! The algorithms of `cc/` in the running Linux kernel.
//!
//! The build compiles each file of `cc/` for BPF and embeds the object. [`Kernel::probe`] says whether this machine can
//! take them, [`Kernel::load`] puts one into the kernel under the name `ot_NAME` (`struct_ops` congestion control): from
//! then on sockets may choose it by `TCP_CONGESTION`, a route by `congctl`, a namespace by its sysctl. Dropping the
//! [`Loaded`] takes the name away again; sockets that use the algorithm keep it until they choose another or close.
//!
//! [`Kernel::verify`] only asks the verifier, and [`Kernel::load_object`] takes an object that a user compiled.

#![forbid(unsafe_code)]

mod load;
mod log;
mod probe;
mod trace;

pub use load::{Error, Loaded, Program, Verified};
pub use probe::{Features, Kernel, Missing};
pub use trace::{Reader, Trace, traced_object};

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// What a file's id is prefixed with to make the kernel's name of the algorithm, so that Linux's own are not met.
pub const NAME_PREFIX: &str = "ot_";

/// The names of the algorithms of `cc/`, sorted.
pub fn builtins() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|(name, _)| *name)
}

/// The BPF object file of a built-in algorithm.
pub fn object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
