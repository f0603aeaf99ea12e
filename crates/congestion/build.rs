//! Compiles every algorithm of `cc/` and writes the table of them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// Compiler flags of the contract for a native build; users' own files are compiled with the same file of flags.
const FLAGS: &str = include_str!("src/flags.txt");

fn main() {
    let cc_dir = Path::new("../../cc");
    println!("cargo:rerun-if-changed=../../cc");
    println!("cargo:rerun-if-changed=src/flags.txt");
    println!("cargo:rerun-if-changed=src/helpers.c");
    println!("cargo:rerun-if-changed=src/layout.c");

    let mut names: Vec<String> = fs::read_dir(cc_dir)
        .expect("the folder cc/ stands beside crates/")
        .map(|entry| entry.expect("cc/ can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();

    let mut registry = String::from("unsafe extern \"C\" {\n");
    for name in &names {
        let symbol = format!("cc_algorithm_{name}");
        let mut build = compiler(cc_dir);
        build.define("CC_SYMBOL", symbol.as_str()).file(cc_dir.join(format!("{name}.c")));
        // the contract has no padding of the compiler's where pointers have 64 bits
        if !is_wasm() {
            build.flag("-Wpadded");
        }
        build.compile(&symbol);
        writeln!(registry, "    static {symbol}: RawAlgorithm;").expect("writing to a string");
    }
    registry.push_str("}\n\nfn raw_builtins() -> Vec<*const RawAlgorithm> {\n    vec![\n");
    for name in &names {
        writeln!(registry, "        &raw const cc_algorithm_{name},").expect("writing to a string");
    }
    registry.push_str("    ]\n}\n");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("registry.rs"), registry).expect("OUT_DIR can be written");

    compiler(cc_dir).file("src/helpers.c").compile("cc_helpers");
    compiler(cc_dir).file("src/layout.c").compile("cc_layout");
}

fn compiler(cc_dir: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.include(cc_dir.join("include")).opt_level(2).pic(!is_wasm()).warnings_into_errors(true);
    // WebAssembly has no general-purpose registers to be restricted to
    for flag in FLAGS.split_whitespace().filter(|flag| !is_wasm() || *flag != "-mgeneral-regs-only") {
        build.flag(flag);
    }
    build
}

fn is_wasm() -> bool {
    env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm")
}
