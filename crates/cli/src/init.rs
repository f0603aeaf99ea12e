//! `opentcp init`: writes a first scenario, policy or algorithm, commented and ready to run.

use crate::failure::Failure;
use crate::terminal::{note, print};
use congestion::Algorithm;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

/// Letters of an algorithm's name: the kernel takes 15, and `ot_` comes before it.
const ALGORITHM_LETTERS_MAX: usize = 12;

/// Write a first scenario, policy or algorithm, ready to run
///
/// A scenario is NAME.toml: two flows on one bottleneck. A policy is NAME.toml, which sets larger initial windows while no link is
/// busy, and NAME-network.toml, a network to try it on. An algorithm is NAME.c, additive increase and multiplicative decrease with
/// two parameters, and NAME.toml, which compares it with NewReno. The files go into the current folder. Existing files are never
/// overwritten.
///
/// Exit codes: 0 done, 2 a file exists already, or the name is not valid.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp init scenario first && opentcp dash first.toml\n  \
                        opentcp init policy calm && opentcp policy try calm.toml --scenario calm-network.toml\n  \
                        opentcp init algorithm mine && opentcp run mine.toml")]
pub struct Args {
    /// What to write
    #[arg(value_enum)]
    kind: Kind,
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// A network and its traffic
    Scenario,
    /// Rules by which the Oracle changes hosts' TCP
    Policy,
    /// A congestion-control algorithm in C
    Algorithm,
}

impl Kind {
    /// Endings of files' names, and their texts.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Scenario => &[(".toml", include_str!("init/scenario.toml"))],
            Kind::Policy => {
                &[(".toml", include_str!("init/policy.toml")), ("-network.toml", include_str!("init/network.toml"))]
            }
            Kind::Algorithm => {
                &[(".c", include_str!("init/algorithm.c")), (".toml", include_str!("init/compare.toml"))]
            }
        }
    }

    /// What to do next.
    fn next(self) -> &'static str {
        match self {
            Kind::Scenario => "opentcp dash NAME.toml\nopentcp run NAME.toml\nopentcp scenario show NAME.toml\n",
            Kind::Policy => {
                "opentcp policy check NAME.toml\nopentcp policy try NAME.toml --scenario NAME-network.toml\n"
            }
            Kind::Algorithm => "opentcp run NAME.toml\nopentcp cc check NAME.c\n",
        }
    }
}

/// Does it.
///
/// # Errors
/// As the exit codes say; nothing is written then.
pub fn init(args: &Args) -> Result<(), Failure> {
    let Args { kind, name } = args;
    match kind {
        Kind::Algorithm => algorithm_name(name),
        Kind::Scenario | Kind::Policy => file_name(name),
    }
    .map_err(Failure::Input)?;
    let files: Vec<(String, String)> =
        kind.files().iter().map(|(ending, text)| (format!("{name}{ending}"), text.replace("NAME", name))).collect();
    if let Some((there, _)) = files.iter().find(|(file, _)| Path::new(file).symlink_metadata().is_ok()) {
        return Err(Failure::Input(format!("{there} already exists and is not overwritten; choose another name")));
    }
    for (i, (file, text)) in files.iter().enumerate() {
        if let Err(error) = File::create_new(file).and_then(|mut new| new.write_all(text.as_bytes())) {
            files[..i].iter().for_each(|(written, _)| drop(fs::remove_file(written)));
            return Err(Failure::Input(format!("{file}: {error}")));
        }
    }
    let names: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    note!("wrote {}; next:", names.join(" and "));
    print(&kind.next().replace("NAME", name))
}

fn file_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(fits) && !name.starts_with('-') {
        return Ok(());
    }
    Err(format!("`{name}` is not a valid name: use letters, digits, `-` and `_`"))
}

fn algorithm_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(fits)
        || name.len() > ALGORITHM_LETTERS_MAX
    {
        return Err(format!(
            "`{name}` is not a valid name of an algorithm: use lower-case letters, digits and `_`, a letter first, at most {ALGORITHM_LETTERS_MAX} characters"
        ));
    }
    if Algorithm::named(name).is_some() {
        return Err(format!("`{name}` is a built-in algorithm; choose another name"));
    }
    Ok(())
}
