//! How flows are spread over their paths.

use serde::Serialize;
use units::Time;

/// What takes one path together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Balancing {
    /// All packets of a flow. The default.
    #[default]
    Flow,
    /// Each packet for itself: packet spraying.
    Packet,
    /// Packets of a flow with no longer pause between them (Kandula et al., CCR 2007).
    Flowlet {
        /// After a longer pause the path is chosen anew.
        gap: Time,
    },
}

impl Balancing {
    /// Whether it is the default.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn is_by_flow(&self) -> bool {
        *self == Balancing::Flow
    }
}
