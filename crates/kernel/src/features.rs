//! What a kernel offers to algorithms.

/// What this machine's kernel offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// As `uname -r` prints it.
    pub release: String,
    /// Arguments of the hook `cong_control`: 4 since Linux 6.10, 2 before. Algorithms that have this hook need 4.
    pub cong_control_arguments: usize,
}
