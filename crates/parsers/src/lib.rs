//! Every parser of bytes from outside, as a function of bytes. What each is tried with begins from seeds, the files in `seeds/NAME`, so that
//! changed bytes get further than a parser's first refusal. The repository's policies and scenarios are seeds as well.
//!
//! A parser may refuse and may give anything; it may not panic, and must end soon. [`Changes`] are drawn from a seed, so a failure is
//! found again by the same numbers; they are what tests try. `tools/fuzz parsers` has libFuzzer go on from there.
#![forbid(unsafe_code)]

mod change;
mod read;

pub use change::{Changes, LENGTH_MAX};

use std::path::Path;
use std::{fs, io};

/// A parser of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    /// What it reads.
    pub name: &'static str,
    /// Reads the bytes, and whatever is read out of them later.
    pub read: fn(&[u8]),
}

const fn of(name: &'static str, read: fn(&[u8])) -> Parser {
    Parser { name, read }
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
    of("policy", read::policy),
    of("view", read::view),
    of("scenario", read::scenario),
    of("goal", read::goal),
    of("job", read::job),
];

impl Parser {
    /// Its seeds: each file's name and content, in the order of the names.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn seeds(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut seeds = Vec::new();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(self.name))? {
            let path = entry?.path();
            if path.is_file() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                seeds.push((name, fs::read(&path)?));
            }
        }
        seeds.sort();
        Ok(seeds)
    }
}
