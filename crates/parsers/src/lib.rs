//! Every parser of bytes from outside, as a function of bytes. What each is tried with begins from seeds: files in `seeds/NAME`, or files
//! of the repository, so that changed bytes get further than a parser's first refusal.
//!
//! A parser may refuse and may give anything; it may not panic, and must end soon. [`Changes`] are drawn from a seed, so a failure is
//! found again by the same numbers.
#![forbid(unsafe_code)]

mod change;
mod read;

pub use change::{Changes, LENGTH_MAX};

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A parser of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    /// What it reads.
    pub name: &'static str,
    /// Reads the bytes, and whatever is read out of them later.
    pub read: fn(&[u8]),
    /// Where its seeds are: files and folders of the repository; none: `crates/parsers/seeds/NAME`.
    seeds: &'static [&'static str],
}

const fn of(name: &'static str, read: fn(&[u8])) -> Parser {
    Parser { name, read, seeds: &[] }
}

/// All of them.
pub const PARSERS: &[Parser] = &[
    // what comes over the network
    of("cue", read::cue),
    of("beacon", read::beacon),
    of("answer", read::answer),
    of("report", read::report),
    of("measurement", read::measurement),
    of("request", read::request),
    of("reply", read::reply),
    of("sealed", read::sealed),
    of("enrolment", read::enrolment),
    of("http", read::http),
    of("openflow", collect::parsers::openflow),
    of("gnmi", collect::parsers::gnmi),
    of("snmp", collect::parsers::snmp),
    of("sflow", read::sflow),
    of("netflow", read::netflow),
    of("frame", read::frame),
    // what the kernel's programs write
    of("ended-connection", read::ended_connection),
    of("traced-call", read::traced_call),
    // files
    of("keys", read::keys),
    of("audit", read::audit),
    of("journal", agent::parsers::journal),
    of("reverted", bus::reverted::parsed),
    of("lease", read::lease),
    of("sizes", read::sizes),
    Parser { name: "policy", read: read::policy, seeds: &["policies"] },
    of("view", read::view),
    Parser { name: "scenario", read: read::scenario, seeds: &["scenarios"] },
    of("goal", read::goal),
    of("job", read::job),
];

impl Parser {
    /// Its seeds: each file's name and content, in the order of the names.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn seeds(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders: Vec<PathBuf> = match self.seeds {
            [] => vec![root.join("seeds").join(self.name)],
            named => named.iter().map(|folder| root.join("../..").join(folder)).collect(),
        };
        let mut seeds = Vec::new();
        for folder in folders {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let is_seed = self.seeds.is_empty() || path.extension().is_some_and(|extension| extension == "toml");
                if is_seed && path.is_file() {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    seeds.push((name, fs::read(&path)?));
                }
            }
        }
        seeds.sort();
        Ok(seeds)
    }
}
