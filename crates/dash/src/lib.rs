//! The live dashboard of a running Oracle: a page, and a stream of what has changed since.
//!
//! One thread asks the Oracle, once for all browsers and at a bounded rate ([`feed`]). What it sees becomes rows ([`model`]), and the rows
//! that have changed become one message that all browsers get ([`wire`], [`board`]). A second thread serves HTTP ([`serve`], [`routes`]):
//! the page, the stream, and, with a token, what changes something ([`guard`]). A simulation is watched the same way ([`simulated`]).
#![forbid(unsafe_code)]

mod assets;
mod board;
mod feed;
mod guard;
mod model;
mod places;
mod routes;
mod serve;
mod simulated;
mod stream;
mod wire;

pub use guard::{TOKEN_LEAST, Token};
pub use simulated::{Watched, watch};

use board::Board;
use bus::Address;
use feed::Feed;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Actions that may wait for the Oracle.
const ACTIONS_MAX: usize = 8;

/// What a dashboard needs.
pub struct Config {
    /// Where the page is served.
    pub listen: SocketAddr,
    /// Names by which browsers may call it, beside IP addresses and `localhost`: a page elsewhere whose name is made to lead here is refused.
    pub names: Vec<String>,
    /// Where the Oracle is.
    pub oracle: Address,
    /// What whoever pauses, resumes or rolls back has to know; `None`: nobody can.
    pub token: Option<Token>,
    /// Who runs it, for the Oracle's audit log.
    pub operator: String,
}

/// Why there is no dashboard.
#[derive(Debug, thiserror::Error)]
pub enum DashError {
    /// The address cannot be used.
    #[error("{address}: {source}; the dashboard needs an address of this machine and a port that no other program has")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The run cannot be set up.
    #[error("{0}")]
    Run(String),
    /// The system's.
    #[error("the dashboard: {0}")]
    Io(#[from] io::Error),
}

/// Serves the dashboard until `stopped` returns true. `say` gets a line about anything that people should know: first the page's address,
/// then each action, and why the Oracle is not there.
///
/// # Errors
/// The address cannot be used, or the system has no thread or socket.
pub fn run(config: Config, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> Result<(), DashError> {
    let (listener, address) = bind(config.listen)?;
    let (actions, asked) = sync_channel(ACTIONS_MAX);
    let board = Arc::new(Board::new(config.token.is_some()));
    let state = routes::State { board: Arc::clone(&board), token: config.token.map(Arc::new), actions };
    let server = serve::Server::start(listener, routes::routes(state, config.names))?;
    let acts = if board.acts() { "who has the token can pause, resume and roll back" } else { "read-only" };
    say(&format!("the dashboard is at http://{address}/ ({acts})"));
    Feed::new(config.oracle, config.operator, board).run(&asked, stopped, say);
    drop(server);
    Ok(())
}

/// A listener at an address, and the address that it has.
fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), DashError> {
    let listener = TcpListener::bind(address).map_err(|source| DashError::Bind { address, source })?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
