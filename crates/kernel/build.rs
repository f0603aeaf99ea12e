//! Compiles every algorithm of `cc/` for BPF, as it is and for tracing, and writes the tables of the objects, which the crate
//! embeds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// In order of preference. All three give the same programs; Debian's plain `clang` is the distribution's default one.
const COMPILERS: [&str; 3] = ["clang-16", "clang-19", "clang"];

/// mcpu=v3: 32-bit and jump-less-than instructions, of kernels since 5.1; -g: the BTF that CO-RE needs.
const FLAGS: &str = "-target bpf -mcpu=v3 -O2 -g -std=gnu11 -ffreestanding -nostdinc -fwrapv -Wall -Wextra -Werror";

fn main() {
    println!("cargo:rerun-if-changed=../../cc");
    println!("cargo:rerun-if-changed=../../bpf");
    let cc_dir = Path::new("../../cc");
    let out_dir = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = compiler();
    // not PATH: it differs from shell to shell, and all that depends on this crate would be built anew in each
    if let Some(place) = whereabouts(clang) {
        println!("cargo:rerun-if-changed={}", place.display());
    }
    println!("cargo:rustc-env=OPENTCP_BPF_CLANG={clang}");

    let mut sources: Vec<PathBuf> = fs::read_dir(cc_dir)
        .expect("the folder cc/ stands beside crates/")
        .map(|entry| entry.expect("cc/ can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();

    let mut objects = String::from("static OBJECTS: &[(&str, &[u8])] = &[\n");
    let mut traced = String::from("static TRACED: &[(&str, &[u8])] = &[\n");
    for source in &sources {
        let name = source.file_stem().expect("a file has a name").to_string_lossy();
        let object = out_dir.join(format!("{name}.bpf.o"));
        compile(clang, &[], source, &object);
        list(&mut objects, &name, &object);

        let object = out_dir.join(format!("{name}.trace.bpf.o"));
        let which = [format!("-DTRACE_NAME={name}"), format!("-DTRACE_FILE=\"{name}.c\"")];
        compile(clang, &which, Path::new("../../bpf/trace.c"), &object);
        list(&mut traced, &name, &object);
    }
    // the contexts of their hooks are declared by Linux's own header
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let headers = ["/usr/include".to_string(), format!("/usr/include/{arch}-linux-gnu")];
    let headers: Vec<String> = headers.iter().flat_map(|folder| ["-idirafter".to_string(), folder.clone()]).collect();
    for name in ["agent", "enforce"] {
        compile(clang, &headers, Path::new(&format!("../../bpf/{name}.c")), &out_dir.join(format!("{name}.bpf.o")));
    }
    for (file, mut table) in [("objects.rs", objects), ("traced.rs", traced)] {
        table.push_str("];\n");
        fs::write(out_dir.join(file), table).expect("OUT_DIR can be written");
    }
}

/// Adds an object to a table.
fn list(table: &mut String, name: &str, object: &Path) {
    writeln!(table, "    ({name:?}, include_bytes!({:?})),", object.display().to_string())
        .expect("writing to a string");
}

/// The first compiler there is that can compile for BPF.
fn compiler() -> &'static str {
    let found = COMPILERS.into_iter().find(|clang| {
        let targets = Command::new(clang).arg("--print-targets").output();
        targets.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(" bpf "))
    });
    found.unwrap_or_else(|| {
        fail("no clang that can compile for BPF was found (looked for clang-16, clang-19, clang). Install one: apt-get install clang-16")
    })
}

/// What changes when a program does: the folder of its file, behind links. An upgrade may bring a file that is older than the last build, but
/// the folder's time is that of the upgrade. A folder of PATH changes with every other program, so there it is the file.
fn whereabouts(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let file = folders.iter().map(|folder| folder.join(program)).find(|file| file.is_file())?.canonicalize().ok()?;
    let folder = file.parent()?;
    let is_shared = folders.iter().any(|shared| shared.canonicalize().is_ok_and(|shared| shared == folder));
    Some(if is_shared { file } else { folder.to_path_buf() })
}

fn compile(clang: &str, defines: &[String], source: &Path, object: &Path) {
    let out = Command::new(clang)
        .args(FLAGS.split_whitespace())
        .args(["-I", "../../cc/include", "-I", "../../cc"])
        .args(defines)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .output()
        .unwrap_or_else(|e| fail(&format!("{clang} could not be run: {e}")));
    if !out.status.success() {
        fail(&format!("{clang} does not compile {}:\n{}", source.display(), String::from_utf8_lossy(&out.stderr)));
    }
}

/// Ends the build with a message of its own, without a panic's backtrace.
fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1);
}
