//! Bring your own: a user's C file becomes an algorithm through the same contract as those of `cc/`.

use crate::elf::Elf;
use crate::error::LoadError;
use crate::foreign::{self, World};
use crate::guard;
use crate::registry::{Algorithm, RawAlgorithm};
use crate::table;
use crate::toolchain;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

impl Algorithm {
    /// Compiles a user's file natively, against the contract of `cc/include/tcp.h` that is part of this program, and
    /// opens it. The compiler is `$CC`, or else cc, clang or gcc. A file written for libbpf (it includes vmlinux.h or
    /// another of libbpf's headers) is compiled unmodified, against headers of this program's own; so is a module of Linux
    /// (`net/ipv4/tcp_*.c`), together with the headers and modules beside it that it includes.
    ///
    /// The algorithm stays loaded until the process ends. A file of the same bytes is compiled once, a module once at each path.
    ///
    /// Compiling does not make a file safe: it runs with this process's rights. [`crate::check_invariants`] checks
    /// it in a process of its own.
    ///
    /// # Errors
    /// [`LoadError`] says what is wrong with the file, with the compiler's own message where the compiler refuses it.
    pub fn load(path: &Path) -> Result<&'static Algorithm, LoadError> {
        static LOADED: Mutex<BTreeMap<(Vec<u8>, PathBuf), &'static Algorithm>> = Mutex::new(BTreeMap::new());

        if let Some(algorithm) = Algorithm::registered(path) {
            return Ok(algorithm);
        }
        let source = read(path)?;
        let beside = if foreign::world(&source) == Some(World::Kernel) { path.to_path_buf() } else { PathBuf::new() };
        let key = (source, beside);
        // held while compiling: a second thread with the same file waits for the first one's result
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(algorithm) = loaded.get(&key) {
            return Ok(algorithm);
        }
        let compiled = toolchain::compile_shared(path, &key.0)?;
        let algorithm = open(path, &key.0, &compiled.object)?.with_warnings(compiled.warnings);
        let algorithm: &'static Algorithm = Box::leak(Box::new(algorithm));
        loaded.insert(key, algorithm);
        Ok(algorithm)
    }
}

/// Compiles a user's file for the kernel: the bytes of a BPF object. Only loading it shows
/// whether the kernel's verifier accepts it.
///
/// # Errors
/// [`LoadError::NoClang`] where there is no clang, else [`Algorithm::load`]'s errors of files that do not compile.
pub fn compile_for_bpf(path: &Path) -> Result<Vec<u8>, LoadError> {
    let compiled = toolchain::compile_bpf(path, &read(path)?)?;
    fs::read(&compiled.object).map_err(|source| LoadError::Folder { path: path.to_path_buf(), source })
}

/// Longest text of a file for the compiler, bytes.
const SOURCE_MAX: u64 = 16 << 20;

/// The text of a file for the compiler.
fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    if path.extension().is_some_and(|extension| extension == "py") {
        return Err(LoadError::Python { path: path.to_path_buf() });
    }
    let refused = |source| LoadError::Read { path: path.to_path_buf(), source };
    let about = fs::metadata(path).map_err(refused)?;
    if !about.is_file() || about.len() > SOURCE_MAX {
        let words = format!("it is no file of at most {} MiB", SOURCE_MAX >> 20);
        return Err(refused(io::Error::new(io::ErrorKind::InvalidInput, words)));
    }
    fs::read(path).map_err(refused)
}

/// `cc_module` of `src/foreign/module.h`: starts a module, and returns its algorithm, or null and why.
type Begin = unsafe extern "C" fn(error: *mut i32) -> *const RawAlgorithm;

/// Opens a shared object, never to be closed, and finds its table.
fn open(path: &Path, source: &[u8], object: &Path) -> Result<Algorithm, LoadError> {
    let world = foreign::world(source);
    let contract = |message: &str| LoadError::Contract { path: path.to_path_buf(), message: message.to_string() };
    let bytes = fs::read(object).map_err(|source| LoadError::Folder { path: path.to_path_buf(), source })?;
    let elf = Elf::parse(&bytes).ok_or_else(|| contract("its native build is no 64-bit ELF file"))?;
    if elf.has_constructors() {
        return Err(contract(
            "it has functions that run when it is opened (constructors, _init, ifunc); only its hooks may run",
        ));
    }
    // the dynamic linker would find what this process has: _exit, fork
    if let Some(symbol) = elf.undefined().find(|symbol| !COMPILERS.contains(&symbol.as_str())) {
        return Err(missing(path, source, &symbol));
    }
    let name = CString::new(object.as_os_str().as_bytes()).expect("a temporary folder's name has no zero byte");
    // SAFETY: `name` is a C string. The object has no constructors, see above.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(LoadError::Open { path: path.to_path_buf(), message: last_message() });
    }
    let symbol = match world {
        None => c"cc_algorithm",
        Some(World::Bpf) => c"cc_foreign",
        Some(World::Kernel) => c"cc_module",
    };
    // SAFETY: `handle` is open; the name is a C string.
    let table: *mut c_void = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    if table.is_null() {
        return Err(LoadError::NoTable { path: path.to_path_buf() });
    }
    let algorithm = match world {
        // SAFETY: vmlinux.h of the headers that the file was compiled with defines the symbol as a constant of this
        // type, `bytes` is the file that was opened, and it is never closed.
        Some(World::Bpf) => unsafe { table::algorithm(table.cast(), &bytes) }.and_then(|found| constant(&elf, found)),
        // SAFETY: module_init of the header that the file was compiled with defines the symbol as this function.
        Some(World::Kernel) => unsafe { begun(table, &elf) },
        // SAFETY: CC_OPS of the header that the file was compiled with defines that symbol as a constant of this type, and
        // the object is never closed. A file that defines it as something else breaks the contract on purpose.
        None => Algorithm::from_raw(unsafe { &*table.cast::<RawAlgorithm>() }).and_then(|found| constant(&elf, found)),
    };
    let algorithm = algorithm.map_err(|message| contract(&message))?;
    let ops = guard::watched(path, algorithm.ops(), &bytes);
    Ok(algorithm.with_ops(ops))
}

/// What compilers call without being asked.
const COMPILERS: [&str; 6] = ["memcpy", "memset", "memmove", "memcmp", "__tls_get_addr", "__stack_chk_fail"];

/// Starts a module.
///
/// # Safety
/// `begin` is the function `cc_module` of an object that is never closed, and has not been called.
unsafe fn begun(begin: *mut c_void, elf: &Elf<'_>) -> Result<Algorithm, String> {
    // SAFETY: the caller's promise.
    let call = unsafe { std::mem::transmute::<*mut c_void, Begin>(begin) };
    let mut error = 0;
    // SAFETY: as in a kernel, once; the module's table is never freed.
    let raw = unsafe { call(&raw mut error).as_ref() };
    let raw = raw.ok_or_else(|| format!("its module_init fails or registers no algorithm: {error}"))?;
    fix_variables(begin, elf)?;
    Algorithm::from_raw(raw)
}

/// The algorithm, of an object that has hooks and constants. What a hook wrote to a variable would be there in the next run of this process,
/// and in the runs of other threads: results would depend on what was run before.
fn constant(elf: &Elf<'_>, algorithm: Algorithm) -> Result<Algorithm, String> {
    let variables = elf.variables();
    if variables.is_empty() {
        return Ok(algorithm);
    }
    Err(format!(
        "it has global variables that can be written ({}): a run would depend on those before it. \
         Keep what changes in the private state of a connection (inet_csk_ca), and make constants const",
        variables.join(", ")
    ))
}

/// Makes the variables of an open object, which has `symbol`, constant from now on: a module fills tables when it starts, but what a hook
/// wrote would carry from run to run. Such a hook is stopped by the memory protection.
fn fix_variables(symbol: *const c_void, elf: &Elf<'_>) -> Result<(), String> {
    // SAFETY: an all-zero Dl_info is one; dladdr fills it.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `symbol` is an address, `about` a structure of the caller's.
    if unsafe { libc::dladdr(symbol, &raw mut about) } == 0 {
        return Err("its object cannot be found in memory".to_string());
    }
    // SAFETY: asks for a constant.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    for (address, size) in elf.writable_segments() {
        let start = (about.dli_fbase as u64 + address) / page * page;
        let end = (about.dli_fbase as u64 + address + size).next_multiple_of(page);
        // SAFETY: pages of the object's own writable segments, which nothing but its own code, and not Rust, writes.
        let fixed = unsafe { libc::mprotect(start as *mut c_void, (end - start) as usize, libc::PROT_READ) };
        if fixed != 0 {
            return Err(format!("its variables cannot be protected: {}", std::io::Error::last_os_error()));
        }
    }
    Ok(())
}

fn last_message() -> String {
    // SAFETY: dlerror answers with null or a C string that lives until the next call of the dl family on this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the dynamic linker gives no reason".to_string();
    }
    // SAFETY: not null, see above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// A symbol that the file uses and does not define.
fn missing(path: &Path, source: &[u8], symbol: &str) -> LoadError {
    let path = path.to_path_buf();
    if is_soft_float(symbol) {
        let message = format!("it uses floating point ({symbol}); algorithms use integers only");
        return LoadError::Contract { path, message };
    }
    if let Some(world) = foreign::world(source) {
        return LoadError::NotOffered { path, message: foreign::missing_kfunc(world, source, symbol) };
    }
    LoadError::UndefinedSymbol { path, symbol: symbol.to_string() }
}

/// Without floating-point registers clang calls the compiler's library (`__muldf3`, `__fixunsdfsi`, …), where gcc stops.
fn is_soft_float(symbol: &str) -> bool {
    let parts = ["df", "sf", "tf"];
    symbol.starts_with("__") && parts.iter().any(|part| symbol.contains(part))
}
