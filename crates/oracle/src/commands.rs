//! Operators' requests.

use crate::daemon::Daemon;
use bus::Received;

/// How a request begins.
pub(crate) const REQUEST: &[u8] = b"opentcp request\0";

/// Does what a request asks for; the reply, if there is one.
pub(crate) fn take(_daemon: &mut Daemon, _message: &Received, _say: &mut dyn FnMut(&str)) -> Option<Vec<u8>> {
    None
}
