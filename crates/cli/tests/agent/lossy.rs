//! A program for tc that loses one packet in a hundred, compiled.

use std::path::Path;
use std::process::Command;

/// Writes it to `object`.
pub fn compile(object: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/path.c");
    let compilers = ["clang-16", "clang-19", "clang"];
    let compiled = compilers.iter().any(|clang| {
        let flags =
            "-target bpf -mcpu=v3 -O2 -g -std=gnu11 -ffreestanding -nostdinc -fwrapv -DSEED=1 -DLOSS=655 -DMARK=0";
        let done = Command::new(clang).args(flags.split(' ')).args(["-c", source, "-o"]).arg(object).status();
        done.is_ok_and(|status| status.success())
    });
    assert!(compiled, "the build has found one of {compilers:?}");
}
