//! `opentcp`: simulate scenarios, reproduce papers' figures, check congestion-control algorithms, tune hosts by policies.
//!
//! This crate is thin: it parses arguments, calls the libraries and prints results. Data goes to stdout, messages to stderr; the exit
//! code is 0 for done, 1 if the work failed, 2 for bad input, 130 if the user stopped it.
//!
//! It makes two programs: `opentcp`, and `opentcp-agent`, which `opentcp agent` becomes. The agent runs on every host, and the pages of
//! a program that is in use are its largest memory by far: a program that is nothing but the agent has a third of them.
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr, reason = "it ends the program where stderr is closed")]

mod agent;
#[cfg(test)]
mod book;
mod cc;
mod collect;
mod dash;
mod demo;
mod doctor;
mod emu_shell;
mod enforce;
mod enroll;
mod failure;
mod fleet;
mod help;
mod history;
mod identity;
mod init;
mod keygen;
mod log;
mod manual;
mod members;
mod operator;
mod options;
mod oracle;
mod policy;
mod reproduce;
mod run;
mod scenarios;
mod status;
mod stop;
mod sweep;
mod terminal;
mod top;

use clap::{FromArgMatches as _, Parser, Subcommand};
use failure::Failure;
use std::env;
use std::process::ExitCode;
use terminal::{Colour, Output};

/// TCP congestion control for whole networks: simulate it, emulate it, and set it on hosts by policy.
#[derive(Debug, Parser)]
#[command(name = "opentcp", version, propagate_version = true, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, clap::Args)]
struct OutputArgs {
    /// Print only errors on stderr: no progress, no notes
    #[arg(long, short, global = true)]
    quiet: bool,
    /// When output is coloured: auto, always or never; auto respects NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Colour::Auto, hide_possible_values = true)]
    color: Colour,
}

impl From<OutputArgs> for Output {
    fn from(args: OutputArgs) -> Output {
        Output { quiet: args.quiet, colour: args.color }
    }
}

/// Default socket of the Oracle and its agents.
const SOCKET: &str = "/run/opentcp/oracle.sock";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the run or the comparison failed, 2 bad input, 3 no agent runs (agent status), 130 interrupted.
Data goes to stdout, messages to stderr; with --json, stdout holds one JSON object.";

#[derive(Debug, Subcommand)]
enum Command {
    Doctor(doctor::Args),
    Init(init::Args),
    /// Scenario files: check one, show its network and traffic
    #[command(subcommand, after_help = scenarios::EXAMPLES)]
    Scenario(scenarios::Command),
    /// Run a scenario file and write its results
    ///
    /// A C file that it names in `cc` is native code, and runs with your rights: run others' files as a user without rights.
    Run(run::Args),
    /// Run every combination of values of a scenario's keys into one dataset; continues where it was stopped
    ///
    /// A C file that it names in `cc` is native code, and runs with your rights: run others' files as a user without rights.
    Sweep(sweep::Args),
    /// The policy loop on a small network of real kernels, in three minutes; without root, simulated
    Demo(demo::Args),
    /// Reproduce a paper's tables and figures and compare them with the paper's
    Reproduce(reproduce::Args),
    /// Congestion-control algorithms: list them, check a file of your own, load them into the kernel
    #[command(subcommand, after_help = cc::EXAMPLES)]
    Cc(cc::Command),
    /// Policies: check a file, explain what it would do, apply it to a running Oracle, pause it
    #[command(subcommand, after_help = policy::EXAMPLES)]
    Policy(policy::Command),
    Keygen(keygen::Args),
    Oracle(oracle::Args),
    Status(status::Args),
    History(history::Args),
    Agent(Box<agent::Args>),
    Collect(collect::Args),
    Enforce(enforce::Args),
    Enroll(enroll::Args),
    /// A fleet of machines: make one, admit machines by tokens, renew its keys
    #[command(subcommand, after_help = fleet::EXAMPLES)]
    Fleet(fleet::Command),
    Top(top::Args),
    Dash(dash::Args),
    /// Emulated networks for your own programs
    #[command(subcommand, after_help = emu_shell::EXAMPLES)]
    Emu(emu_shell::Command),
    Help(help::Args),
    /// Print the version
    Version,
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

/// The program `opentcp`.
pub fn opentcp() -> ExitCode {
    let cli = match help::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let args: Vec<String> = env::args().skip(1).collect();
            match help::refused(&error, &args) {
                Some(words) => return end(Err(Failure::Input(words))),
                None => error.exit(),
            }
        }
    };
    terminal::set_output(cli.output.into());
    end(match cli.command {
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Init(args) => init::init(&args),
        Command::Scenario(command) => scenarios::scenario(&command),
        Command::Run(args) => run::run(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Cc(command) => cc::cc(&command),
        Command::Policy(command) => policy::policy(&command),
        Command::Keygen(args) => keygen::keygen(&args),
        Command::Oracle(args) => oracle::oracle(args),
        Command::Status(args) => status::status(&args),
        Command::History(args) => history::history(&args),
        Command::Agent(_) => Err(agent::become_agent(env::args_os())),
        Command::Collect(args) => collect::collect(&args),
        Command::Enforce(args) => enforce::enforce(&args),
        Command::Enroll(args) => enroll::enroll(&args),
        Command::Fleet(command) => fleet::fleet(&command),
        Command::Top(args) => top::top(&args),
        Command::Dash(args) => dash::dash(args),
        Command::Emu(command) => emu_shell::emu(&command),
        Command::Help(args) => help::help(&args),
        Command::Version => help::version(),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    })
}

/// `opentcp agent` without the rest of `opentcp`.
#[derive(Debug, Parser)]
#[command(name = "opentcp-agent", bin_name = "opentcp agent", version)]
struct AgentCli {
    #[command(flatten)]
    args: agent::Args,
    #[command(flatten)]
    output: OutputArgs,
}

/// The program `opentcp-agent`.
pub fn opentcp_agent() -> ExitCode {
    let cli = AgentCli::parse();
    terminal::set_output(cli.output.into());
    end(agent::agent(cli.args))
}

fn end(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let message = failure.message(terminal::is_coloured(&std::io::stderr()));
            if !message.is_empty() {
                terminal::message!("{message}");
            }
            ExitCode::from(failure.code())
        }
    }
}
