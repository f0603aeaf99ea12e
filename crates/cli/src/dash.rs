//! `opentcp dash`: the fleet, or a simulation, live in a browser.

use crate::failure::Failure;
use crate::operator::{Place, operator};
use crate::stop;
use crate::terminal::{message, note};
use ::dash::{Config, DashError, Token, Watched};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serve the dashboard of a running Oracle: its fleet, live in a browser; or a simulation, if there is a scenario
///
/// Racks and links by their utilization, rules in force by host, treated hosts against the control group, what became of each rule and why it
/// was withheld, guards. Everything is in this program: nothing is loaded from elsewhere. Whoever reaches the address can look; to change
/// something (pause, resume, roll back) a browser needs the token.
///
/// With a scenario: its network with queues that fill, windows and round-trip times of flows, at a pace that the page sets. It begins when
/// somebody looks, and writes no results. A C file that it names in `cc` is native code, and runs with your rights: run others' files as a user
/// without rights.
///
/// Exit codes: 0 stopped, 1 the work failed, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp dash\n  opentcp dash scenarios/dumbbell.toml --set traffic.old.cc=vegas\n  openssl rand -hex 16 > token && chmod 600 token\n  opentcp dash --token token\n  \
                        opentcp dash --identity ~/operator --listen 10.0.0.5:8090 --name dash.example"
)]
pub struct Args {
    /// A scenario file (TOML) to simulate and watch; of a sweep the first run
    #[arg(conflicts_with_all = ["token", "socket", "identity"])]
    scenario: Option<PathBuf>,
    /// Set a key of the scenario, dotted; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "scenario")]
    sets: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Where the page is served: an address of this machine and a port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// A file, readable by its owner alone, with the token that pausing, resuming and rolling back need [default: nobody can]
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// A name by which browsers call it, if not by an address or `localhost`; more than one may be given
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
}

/// Serves it until it is stopped.
///
/// # Errors
/// As the exit codes say.
pub fn dash(args: Args) -> Result<(), Failure> {
    if let Some(scenario) = args.scenario {
        let runs = study::load_scenario(&scenario, &args.sets, study::Backend::Sim)?;
        let count = runs.len();
        let run = runs.into_iter().next().expect("a scenario has a run");
        if count > 1 {
            note!("{} is shown, the first of {count} runs; --set chooses another", run.name);
        }
        let watched = Watched { listen: args.listen, names: args.names, run };
        let stop = stop::on_signals();
        return ::dash::watch(watched, &|| stop.is_set(), &mut |line| message!("dash: {line}"))
            .map_err(|error| failure(&error));
    }
    let token =
        args.token.as_deref().map(Token::read).transpose().map_err(|error| Failure::Input(error.to_string()))?;
    let (oracle, operator) = (args.place.address()?, operator());
    let config = Config { listen: args.listen, names: args.names, oracle, token, operator };
    let stop = stop::on_signals();
    ::dash::run(config, &|| stop.is_set(), &mut |line| message!("dash: {line}")).map_err(|error| failure(&error))
}

fn failure(error: &DashError) -> Failure {
    match error {
        DashError::Bind { .. } | DashError::Run(_) => Failure::Input(error.to_string()),
        DashError::Io(_) => Failure::Run(error.to_string()),
    }
}
