//! The program `opentcp-agent`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::opentcp_agent()
}
