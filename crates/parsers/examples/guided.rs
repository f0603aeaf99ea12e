//! libFuzzer on the parser that `OPENTCP_PARSER` names, as `tools/fuzz parsers` runs it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use parsers::{PARSERS, Parser};
use std::env;
use std::sync::LazyLock;

static PARSER: LazyLock<&Parser> = LazyLock::new(|| {
    let name = env::var("OPENTCP_PARSER").expect("it names a parser");
    PARSERS.iter().find(|parser| parser.name == name).expect("it names a parser")
});

fuzz_target!(|bytes: &[u8]| (PARSER.read)(bytes));
