//! The contract of `cc/` as it was when this program was built: what users' files include, and how they are compiled.

/// `tcp.h`.
pub(crate) const HEADER: &str = include_str!("../../../cc/include/tcp.h");

/// All headers that a file may include, by name: `tcp.h`, and what files of `cc/` share beside it.
pub(crate) const HEADERS: [(&str, &str); 3] = [
    ("tcp.h", HEADER),
    ("marks.h", include_str!("../../../cc/include/marks.h")),
    ("bbr3.h", include_str!("../../../cc/include/bbr3.h")),
];

/// Compiler flags of the contract for a native build; `build.rs` uses them too.
pub(crate) const NATIVE_FLAGS: &str = include_str!("flags.txt");
