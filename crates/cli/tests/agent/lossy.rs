//! Compiled programs for tc, among them one that drops one packet in a hundred.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

/// Compiles the program that drops packets to `object`.
pub fn compile(object: &Path) {
    compile_source("../../bpf/path.c", object);
}

/// Compiles `source`, a path from this crate's folder.
pub fn compile_source(source: &str, object: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let compilers = ["clang-16", "clang-19", "clang"];
    let compiled = compilers.iter().any(|clang| {
        let flags =
            "-target bpf -mcpu=v3 -O2 -g -std=gnu11 -ffreestanding -nostdinc -fwrapv -DSEED=1 -DLOSS=655 -DMARK=0";
        let headers = format!("-idirafter /usr/include -idirafter /usr/include/{ARCH}-linux-gnu");
        let done = Command::new(clang)
            .args(flags.split(' '))
            .args(headers.split(' '))
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(object)
            .status();
        done.is_ok_and(|status| status.success())
    });
    assert!(compiled, "the build has found one of {compilers:?}");
}
