//! Running C compilers on a user's file, in a private folder where `tcp.h` is this crate's own.

use crate::load::LoadError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};
use tempfile::TempDir;

/// The contract that users' files include, as it was when this program was built.
const HEADER: &str = include_str!("../../../cc/include/tcp.h");

/// What the contract asks of a native build, as `build.rs` uses it too.
const NATIVE_FLAGS: &str = include_str!("flags.txt");

/// A call of what nobody declared would otherwise show only when the object is opened, without a line number.
const SHARED_FLAGS: &str = "-O2 -shared -fPIC -Wpadded -Werror=implicit-function-declaration";

/// What the kernel's loader is given; see `crates/kernel`.
const BPF_FLAGS: &str = "-target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror=implicit-function-declaration";

/// What a compiler made of a file.
pub(crate) struct Compiled {
    /// The object; it lives as long as `_folder`.
    pub object: PathBuf,
    /// What the compiler said though it succeeded.
    pub warnings: String,
    _folder: TempDir,
}

/// Compiles the text `source` of `path` to a shared object, with `$CC`, or else cc, clang or gcc.
pub(crate) fn compile_shared(path: &Path, source: &[u8]) -> Result<Compiled, LoadError> {
    let compiler = native_compiler().ok_or(LoadError::NoCompiler)?;
    let flags = NATIVE_FLAGS.split_whitespace().chain(SHARED_FLAGS.split_whitespace());
    compile(path, source, &compiler, flags)
}

/// Compiles the text `source` of `path` to a BPF object, with the first of clang-16, clang-19 and clang that there is.
pub(crate) fn compile_bpf(path: &Path, source: &[u8]) -> Result<Compiled, LoadError> {
    let clang = ["clang-16", "clang-19", "clang"].into_iter().find(|name| is_program(name));
    let compiler = vec![clang.ok_or(LoadError::NoClang)?.to_string()];
    compile(path, source, &compiler, BPF_FLAGS.split_whitespace().chain(["-c"]))
}

/// The command and its first arguments: `CC="ccache gcc"` is usual.
fn native_compiler() -> Option<Vec<String>> {
    let chosen = env::var("CC").unwrap_or_default();
    let words: Vec<String> = chosen.split_whitespace().map(str::to_string).collect();
    if !words.is_empty() {
        return Some(words);
    }
    ["cc", "clang", "gcc"].into_iter().find(|name| is_program(name)).map(|name| vec![name.to_string()])
}

fn is_program(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

fn compile<'a>(
    path: &Path,
    source: &[u8],
    compiler: &[String],
    flags: impl Iterator<Item = &'a str>,
) -> Result<Compiled, LoadError> {
    let folder = |source| LoadError::Folder { path: path.to_path_buf(), source };
    let (home, copy) = private_copy(path, source).map_err(folder)?;
    let object = home.path().join("algorithm.o");
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).args(flags).arg("-I").arg(home.path()).arg("-o").arg(&object).arg(&copy);
    let (path, compiler) = (path.to_path_buf(), compiler.join(" "));
    let output = match command.output() {
        Ok(output) => output,
        Err(source) => return Err(LoadError::Run { path, compiler, source }),
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(LoadError::Compile { path, compiler, message: said.trim_end().to_string() });
    }
    Ok(Compiled { object, warnings: said, _folder: home })
}

/// A folder that only this user can enter, with `tcp.h` and a copy of the file in it: the copy is what was read, so what
/// is compiled is what was compared with earlier files, and no other `tcp.h` stands beside it. A `#line` gives it its
/// name back in the compiler's messages.
fn private_copy(path: &Path, source: &[u8]) -> io::Result<(TempDir, PathBuf)> {
    let home = tempfile::Builder::new().prefix("opentcp-cc-").tempdir()?;
    fs::write(home.path().join("tcp.h"), HEADER)?;
    let shown = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = format!("#line 1 \"{shown}\"\n").into_bytes();
    text.extend_from_slice(source);
    let copy = home.path().join("algorithm.c");
    fs::write(&copy, text)?;
    Ok((home, copy))
}
