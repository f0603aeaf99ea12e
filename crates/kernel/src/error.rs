//! Why an algorithm was not loaded.

/// Why an algorithm was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `name` is not a built-in algorithm.
    #[error("there is no algorithm {name:?}; there are {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The built-in names.
        known: String,
    },
    /// libbpf cannot read the object file.
    #[error("{label} is not a BPF object file that can be loaded:\n{log}")]
    Object {
        /// The object.
        label: String,
        /// The end of libbpf's messages.
        log: String,
    },
    /// The object holds none, or more than one, table of operations.
    #[error("{label} declares {found} algorithms; it needs exactly one CC_OPS(...)")]
    NotOneAlgorithm {
        /// The object.
        label: String,
        /// How many there are.
        found: usize,
    },
    /// The name does not fit the kernel's 16 bytes.
    #[error(
        "{label} names its algorithm {name:?}, {} characters; the kernel takes 15, and CC_OPS(NAME, ...) puts ot_ \
         before NAME: shorten NAME to 12 characters",
        name.len()
    )]
    NameTooLong {
        /// The object.
        label: String,
        /// The name.
        name: String,
    },
    /// The same, where the table's `name` was written by hand and only its beginning is known.
    #[error("{label} names its algorithm {begin:?}...; the kernel takes 15 characters: shorten its .name")]
    TableNameTooLong {
        /// The object.
        label: String,
        /// The name's first 16 characters.
        begin: String,
    },
    /// The name is empty, or could not be written in a command or a path.
    #[error("{label} names its algorithm {name:?}; a name is 1 to 15 letters, digits, `_` or `-`")]
    Name {
        /// The object.
        label: String,
        /// The name.
        name: String,
    },
    /// The table lacks hooks that Linux requires of every algorithm.
    #[error("{label} lacks {missing} in its table of operations")]
    Incomplete {
        /// The object.
        label: String,
        /// The hooks.
        missing: String,
    },
    /// The algorithm uses the hook cong_control in a form that this kernel does not have.
    #[error("{label} has the hook cong_control, whose four-argument form needs Linux 6.10 or newer; this is {release}")]
    CongControl {
        /// The object.
        label: String,
        /// The running kernel.
        release: String,
    },
    /// The kernel's verifier, or the kernel's check of the table of operations, refused it.
    #[error("the kernel's verifier refuses {label}:\n{log}")]
    Refused {
        /// The object.
        label: String,
        /// The verifier's message: the hook, the last lines of source with their instructions, the reason.
        log: String,
    },
    /// The kernel has an algorithm of that name.
    #[error(
        "the kernel already has an algorithm {name:?}: another process has loaded it, or a socket still uses an older \
         one; `opentcp cc unload {name}` removes what `opentcp cc load` has loaded"
    )]
    Exists {
        /// The kernel's name of the algorithm.
        name: String,
    },
    /// The algorithm was verified but could not be registered.
    #[error("the algorithm {name:?} could not be registered: {reason}\n{log}")]
    Attach {
        /// The kernel's name of the algorithm.
        name: String,
        /// The system call's error.
        reason: String,
        /// The end of libbpf's messages.
        log: String,
    },
}
