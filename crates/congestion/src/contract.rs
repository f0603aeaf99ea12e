//! The contract of `cc/` as it was when this program was built: what users' files include, and how they are compiled.

/// `tcp.h`.
pub(crate) const HEADER: &str = include_str!("../../../cc/include/tcp.h");

/// What the contract asks of a native build, as `build.rs` uses it too.
pub(crate) const NATIVE_FLAGS: &str = include_str!("flags.txt");
