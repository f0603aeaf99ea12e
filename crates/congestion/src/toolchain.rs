//! Running C compilers on a user's file, in a private folder where `tcp.h` is this crate's own.

use crate::contract::{HEADERS, NATIVE_FLAGS};
use crate::error::LoadError;
use crate::foreign::{self, Surroundings, World};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, io, thread};
use tempfile::TempDir;

/// A call of an undeclared function would otherwise show only when the object is opened, without a line number.
const SHARED_FLAGS: &str = "-O2 -g1 -shared -fPIC -nostartfiles -Wpadded -Werror=implicit-function-declaration";

/// Foreign files keep the kernel's habits: unused parameters, casts of the private state, functions that are not static.
const FOREIGN_FLAGS: &str = "-std=gnu11 -ffreestanding -nostdinc -fwrapv -mgeneral-regs-only -O2 -g1 -shared -fPIC \
    -nostartfiles -Wall \
    -Wno-unused-function -Wno-unused-variable -Wno-unused-const-variable -fno-strict-aliasing -fvisibility=hidden \
    -Werror=implicit-function-declaration";

/// Modules compare signed with unsigned numbers, and keep what only a log would show.
const MODULE_FLAGS: &str = "-Wno-unused-but-set-variable -Wno-sign-compare -Wno-pointer-sign";

/// A plain read of a bitfield would use its position in this crate's header, not the kernel's.
const FOREIGN_BPF_FLAGS: &str = "-target bpf -mcpu=v3 -O2 -g -std=gnu11 -ffreestanding -nostdinc -Wall \
    -Wno-unused-function -Wno-unused-variable -Wno-unused-const-variable -Wno-missing-declarations \
    -Werror=implicit-function-declaration -Werror=deprecated-declarations";

/// For the kernel's loader; see `crates/kernel`.
const BPF_FLAGS: &str = "-target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror=implicit-function-declaration";

/// Limits of a compiler: seconds, memory, and the size of what it writes.
const COMPILER_SECONDS: Duration = Duration::from_secs(30);
const COMPILER_BYTES: u64 = 4 << 30;
const COMPILED_BYTES: u64 = 256 << 20;

/// The result of compiling a file.
pub(crate) struct Compiled {
    /// The object; it lives as long as `_folder`.
    pub object: PathBuf,
    /// The compiler's warnings.
    pub warnings: String,
    _folder: TempDir,
}

/// Compiles the text `source` of `path` to a shared object, with `$CC`, or else cc, clang or gcc.
pub(crate) fn compile_shared(path: &Path, source: &[u8]) -> Result<Compiled, LoadError> {
    let compiler = native_compiler().ok_or(LoadError::NoCompiler)?;
    match foreign::world(source) {
        Some(World::Bpf) => compile(path, source, &compiler, &words(&[FOREIGN_FLAGS]), &foreign::surroundings(source)),
        Some(World::Kernel) => {
            let around = foreign::module_surroundings(path, source);
            compile(path, source, &compiler, &words(&[FOREIGN_FLAGS, MODULE_FLAGS]), &around)
        }
        None => compile(path, source, &compiler, &words(&[NATIVE_FLAGS, SHARED_FLAGS]), &Surroundings::default()),
    }
}

/// The compiler of BPF objects: the first of clang-16, clang-19 and clang that there is.
pub fn bpf_compiler() -> Option<&'static str> {
    ["clang-16", "clang-19", "clang"].into_iter().find(|name| is_program(name))
}

/// Compiles the text `source` of `path` to a BPF object.
pub(crate) fn compile_bpf(path: &Path, source: &[u8]) -> Result<Compiled, LoadError> {
    let compiler = vec![bpf_compiler().ok_or(LoadError::NoClang)?.to_string()];
    match foreign::world(source) {
        Some(World::Bpf) => {
            let around = Surroundings { linked: Vec::new(), ..foreign::surroundings(source) };
            compile(path, source, &compiler, &words(&[FOREIGN_BPF_FLAGS, "-c"]), &around)
        }
        Some(World::Kernel) => Err(LoadError::Module { path: path.to_path_buf() }),
        None => compile(path, source, &compiler, &words(&[BPF_FLAGS, "-c"]), &Surroundings::default()),
    }
}

fn words<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    flags.iter().flat_map(|flags| flags.split_whitespace()).collect()
}

/// The compiler of native objects, command and first arguments: `CC="ccache gcc"` is usual.
pub fn native_compiler() -> Option<Vec<String>> {
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

fn compile(
    path: &Path,
    source: &[u8],
    compiler: &[String],
    flags: &[&str],
    around: &Surroundings,
) -> Result<Compiled, LoadError> {
    let folder = |source| LoadError::Folder { path: path.to_path_buf(), source };
    let (home, copy) = private_copy(path, source).map_err(folder)?;
    foreign::write(home.path(), around).map_err(folder)?;
    let object = home.path().join("algorithm.o");
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).args(flags).args(&around.arguments).arg("-I").arg(home.path()).arg("-o").arg(&object);
    // messages about foreign files are parsed, so they must be in English
    command.arg(&copy).args(around.linked.iter().map(|name| home.path().join(name))).env("LC_ALL", "C");
    let (path, compiler) = (path.to_path_buf(), compiler.join(" "));
    let (status, said) = match run_limited(&mut command, &home.path().join("said")) {
        Ok(Some(output)) => output,
        Ok(None) => return Err(LoadError::Endless { path, compiler, seconds: COMPILER_SECONDS.as_secs() }),
        Err(source) => return Err(LoadError::Run { path, compiler, source }),
    };
    let shown = path.to_string_lossy().into_owned();
    let world = foreign::world(source);
    if status.success() {
        let warnings = if world.is_some() { foreign::warnings(&shown, said) } else { said };
        return Ok(Compiled { object, warnings, _folder: home });
    }
    let ours = |world| foreign::explain(world, &shown, &said).or_else(|| foreign::explain_header(world, &shown, &said));
    if let Some(message) = world.and_then(ours) {
        return Err(LoadError::NotOffered { path, message });
    }
    Err(LoadError::Compile { path, compiler, message: said.trim_end().to_string() })
}

/// Runs a compiler with limits of its time, memory and files; its messages go through the file `said`. `None`: it was ended. What a file
/// includes may have no end: a device, a pipe, a macro that doubles.
fn run_limited(command: &mut Command, said: &Path) -> io::Result<Option<(ExitStatus, String)>> {
    let messages = fs::File::create(said)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages).process_group(0);
    // SAFETY: system calls alone, between fork and exec.
    unsafe { command.pre_exec(limit_compiler) };
    let mut child = command.spawn()?;
    let group = -(child.id() as libc::pid_t);
    let (done, ends) = mpsc::channel::<()>();
    let killer = thread::spawn(move || {
        let is_late = matches!(ends.recv_timeout(COMPILER_SECONDS), Err(mpsc::RecvTimeoutError::Timeout));
        if is_late {
            // SAFETY: a plain system call, on the compiler's own group, which has not been waited for.
            unsafe { libc::kill(group, libc::SIGKILL) };
        }
        is_late
    });
    let status = child.wait()?;
    drop(done);
    let is_late = killer.join().unwrap_or(false);
    let text = String::from_utf8_lossy(&fs::read(said)?).into_owned();
    Ok((!is_late).then_some((status, text)))
}

fn limit_compiler() -> io::Result<()> {
    let limits = [
        (libc::RLIMIT_CPU, COMPILER_SECONDS.as_secs()),
        (libc::RLIMIT_AS, COMPILER_BYTES),
        (libc::RLIMIT_FSIZE, COMPILED_BYTES),
        (libc::RLIMIT_CORE, 0),
    ];
    for (resource, most) in limits {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: a plain system call on a value of our own.
        if unsafe { libc::setrlimit(resource, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A folder that only this user can enter, with the contract's headers and a copy of the file in it: the copy has the bytes
/// that were compared with earlier files, and no other header is in the folder. A `#line` keeps the file's own name in the
/// compiler's messages.
fn private_copy(path: &Path, source: &[u8]) -> io::Result<(TempDir, PathBuf)> {
    let home = tempfile::Builder::new().prefix("opentcp-cc-").tempdir()?;
    for (name, text) in HEADERS {
        fs::write(home.path().join(name), text)?;
    }
    let shown = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = format!("#line 1 \"{shown}\"\n").into_bytes();
    text.extend_from_slice(source);
    let copy = home.path().join("algorithm.c");
    fs::write(&copy, text)?;
    Ok((home, copy))
}
