//! The contract of `cc/` as it was when this program was built: what users' files include, and how they are compiled.

/// `tcp.h`.
pub(crate) const HEADER: &str = include_str!("../../../cc/include/tcp.h");

/// Compiler flags of the contract for a native build; `build.rs` uses them too.
pub(crate) const NATIVE_FLAGS: &str = include_str!("flags.txt");
