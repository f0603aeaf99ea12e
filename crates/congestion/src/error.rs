//! Why a user's file is refused as an algorithm.

use std::io;
use std::path::PathBuf;

/// Why a user's file is refused as an algorithm.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The temporary folder that the file is compiled in cannot be made.
    #[error("{}: no temporary folder to compile it in: {source}", path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An algorithm in Python that nothing has registered.
    #[error("{} is an algorithm in Python, which runs only where the Python package has made it: opentcp.Algorithm.from_python", path.display())]
    Python {
        /// The file.
        path: PathBuf,
    },
    /// A module of Linux, for a kernel of which only programs are asked.
    #[error(
        "{} is a module of Linux, not a BPF program: the kernel loads the module itself (`modprobe`); the simulator and the enforcer run \
         this file", path.display()
    )]
    Module {
        /// The file.
        path: PathBuf,
    },
    /// No compiler.
    #[error("no C compiler: $CC is not set, and neither cc nor clang nor gcc was found; install gcc or clang")]
    NoCompiler,
    /// No compiler for BPF.
    #[error("no compiler for BPF: neither clang-16 nor clang-19 nor clang was found; install clang")]
    NoClang,
    /// The compiler that `$CC` names, or that was found, cannot be run.
    #[error("{}: cannot run the compiler {compiler}: {source}", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// The compiler's command.
        compiler: String,
        /// Why.
        source: io::Error,
    },
    /// The compiler was ended.
    #[error("{}: {compiler} was ended: a file may take {seconds} s", path.display())]
    Endless {
        /// The file.
        path: PathBuf,
        /// The compiler's command.
        compiler: String,
        /// Its limit.
        seconds: u64,
    },
    /// The compiler refuses the file.
    #[error("{} does not compile; {compiler} says:\n{message}", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// The compiler's command.
        compiler: String,
        /// The compiler's messages, unchanged.
        message: String,
    },
    /// A file written for libbpf uses something that the host of a native build does not have.
    #[error("{} uses what is not available here:{message}", path.display())]
    NotOffered {
        /// The file.
        path: PathBuf,
        /// What, in which line, and the alternative.
        message: String,
    },
    /// The file uses something that is declared and not defined.
    #[error(
        "{} uses `{symbol}`, which it declares and does not define; \
         an algorithm has no libraries, only what tcp.h gives it", path.display()
    )]
    UndefinedSymbol {
        /// The file.
        path: PathBuf,
        /// What is missing.
        symbol: String,
    },
    /// The object cannot be opened for another reason.
    #[error("{} compiles, but cannot be opened: {message}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The dynamic linker's message.
        message: String,
    },
    /// The file has no table of operations.
    #[error(
        "{} declares no algorithm: it must end with \
         CC_OPS(name, .ssthresh = ..., .cong_avoid = ..., .undo_cwnd = ...);", path.display()
    )]
    NoTable {
        /// The file.
        path: PathBuf,
    },
    /// The table lacks a hook, or was compiled against another contract.
    #[error("{} violates the contract: {message}", path.display())]
    Contract {
        /// The file.
        path: PathBuf,
        /// Which rule it breaks.
        message: String,
    },
}
