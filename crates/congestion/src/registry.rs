//! The algorithms and their descriptions.

use crate::ops::CongestionOps;
use crate::sock::TcpSock;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// `CC_ABI` of the header that this crate was written for.
pub(crate) const ABI: u32 = 1;

#[repr(C)]
struct RawInfo {
    title: *const c_char,
    environment: *const c_char,
    reference: *const c_char,
    category: u32,
    measures: u32,
}

/// `struct cc_algorithm`.
#[repr(C)]
pub(crate) struct RawAlgorithm {
    abi: u32,
    sock_bytes: u32,
    info: *const RawInfo,
    ops: CongestionOps,
}

// SAFETY: the tables are constants of C: nothing writes to them, and their strings live as long as the program.
unsafe impl Sync for RawAlgorithm {}

include!(concat!(env!("OUT_DIR"), "/registry.rs"));

/// What kind of algorithm it is (`enum cc_category`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Takes loss for congestion.
    LossBased,
    /// Takes a growing round-trip time for congestion.
    DelayBased,
    /// Both.
    Hybrid,
    /// Takes marks (ECN) for congestion.
    EcnBased,
    /// Models the path's bandwidth and propagation time.
    ModelBased,
    /// The file does not say.
    Unknown,
}

impl Category {
    /// For people: `loss-based`.
    pub fn words(self) -> &'static str {
        match self {
            Category::LossBased => "loss-based",
            Category::DelayBased => "delay-based",
            Category::Hybrid => "hybrid",
            Category::EcnBased => "ECN-based",
            Category::ModelBased => "model-based",
            Category::Unknown => "unknown",
        }
    }
}

/// An algorithm: its hooks and its file's description.
#[derive(Debug)]
pub struct Algorithm {
    name: String,
    ops: &'static CongestionOps,
    title: String,
    environment: String,
    reference: String,
    category: Category,
    measures: u32,
    warnings: String,
}

impl Algorithm {
    /// The algorithms of `cc/`, sorted by name.
    pub fn builtins() -> &'static [Algorithm] {
        static BUILTINS: OnceLock<Vec<Algorithm>> = OnceLock::new();
        BUILTINS.get_or_init(|| {
            raw_builtins()
                .into_iter()
                // SAFETY: the build script's table points at constants that this program links.
                .map(|raw| Algorithm::from_raw(unsafe { &*raw }).expect("an algorithm of cc/ keeps the contract"))
                .collect()
        })
    }

    /// The built-in algorithm of that name.
    pub fn named(name: &str) -> Option<&'static Algorithm> {
        Algorithm::builtins().iter().find(|algorithm| algorithm.name == name)
    }

    /// An algorithm whose table is filled from Rust: for tests and tools that record a host's calls.
    ///
    /// # Errors
    /// Names the first required hook that the table lacks.
    pub fn from_ops(ops: &'static CongestionOps) -> Result<Algorithm, String> {
        if let Some(hook) = ops.missing_hook() {
            return Err(format!("its table of operations lacks {hook}"));
        }
        Ok(Algorithm {
            name: ops.name(),
            ops,
            title: ops.name(),
            environment: String::new(),
            reference: String::new(),
            category: Category::Unknown,
            measures: 0,
            warnings: String::new(),
        })
    }

    /// Checks that `raw` was compiled against this crate's contract; an error says what differs.
    pub(crate) fn from_raw(raw: &'static RawAlgorithm) -> Result<Algorithm, String> {
        if raw.abi != ABI || raw.sock_bytes as usize != size_of::<TcpSock>() {
            return Err("it was compiled against another version of tcp.h".to_string());
        }
        if let Some(hook) = raw.ops.missing_hook() {
            return Err(format!("its table of operations lacks {hook}"));
        }
        // SAFETY: null (no CC_INFO) or a constant of the same object file.
        let info = unsafe { raw.info.as_ref() };
        let text = |pick: fn(&RawInfo) -> *const c_char| match info.map(pick) {
            // SAFETY: CC_INFO's members are string literals.
            Some(p) if !p.is_null() => unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        let name = raw.ops.name();
        let title = text(|i| i.title);
        Ok(Algorithm {
            title: if title.is_empty() { name.clone() } else { title },
            name,
            ops: &raw.ops,
            environment: text(|i| i.environment),
            reference: text(|i| i.reference),
            category: match info.map_or(0, |i| i.category) {
                1 => Category::LossBased,
                2 => Category::DelayBased,
                3 => Category::Hybrid,
                4 => Category::EcnBased,
                5 => Category::ModelBased,
                _ => Category::Unknown,
            },
            measures: info.map_or(0, |i| i.measures),
            warnings: String::new(),
        })
    }

    /// The same with other hooks.
    #[cfg(unix)]
    pub(crate) fn with_ops(self, ops: &'static CongestionOps) -> Algorithm {
        Algorithm { ops, ..self }
    }

    /// The same with the compiler's warnings about its file.
    pub(crate) fn with_warnings(self, warnings: String) -> Algorithm {
        Algorithm { warnings, ..self }
    }

    /// The name that scenarios use.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its hooks, for [`TcpSock::icsk_ca_ops`].
    pub fn ops(&self) -> &'static CongestionOps {
        self.ops
    }
    /// Its usual name, such as `CUBIC`.
    pub fn title(&self) -> &str {
        &self.title
    }
    /// The environment it was made for.
    pub fn environment(&self) -> &str {
        &self.environment
    }
    /// Paper or RFC.
    pub fn reference(&self) -> &str {
        &self.reference
    }
    /// What kind it is.
    pub fn category(&self) -> Category {
        self.category
    }
    /// Does it take loss for congestion?
    pub fn measures_loss(&self) -> bool {
        self.measures & 1 != 0
    }
    /// Does it take delay for congestion?
    pub fn measures_delay(&self) -> bool {
        self.measures & 2 != 0
    }
    /// Does it take marks for congestion?
    pub fn measures_ecn(&self) -> bool {
        self.measures & 4 != 0
    }
    /// Does it model the path?
    pub fn measures_model(&self) -> bool {
        self.measures & 8 != 0
    }
    /// The compiler's warnings about a user's file; empty for the built-in ones.
    pub fn warnings(&self) -> &str {
        &self.warnings
    }
    /// Does it negotiate ECN?
    pub fn needs_ecn(&self) -> bool {
        self.ops.needs_ecn()
    }
}
