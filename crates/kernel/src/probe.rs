//! Whether this machine can run algorithms in its kernel.

use crate::error::Error;
use crate::features::Features;
use crate::load::{self, Loaded, Prepared, Verified};
use crate::rights::Rights;
use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use std::fs;
use std::path::Path;

const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Why this machine cannot run algorithms in its kernel.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The process lacks the rights to load programs.
    #[error(
        "loading algorithms into the kernel needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    Privilege,
    /// The kernel does not describe its types.
    #[error("the kernel does not describe its types ({VMLINUX_BTF}): it needs CONFIG_DEBUG_INFO_BTF=y")]
    Btf,
    /// Congestion control cannot be a BPF program.
    #[error(
        "the kernel does not accept BPF programs as congestion control: it needs CONFIG_BPF_JIT=y, CONFIG_BPF_SYSCALL=y"
    )]
    StructOps,
    /// It can, but would stay loaded when the loader ends.
    #[error("the kernel cannot bind an algorithm to its loader (BPF links of struct_ops): it needs Linux 6.4 or newer")]
    StructOpsLink,
}

/// A kernel that takes algorithms. [`Kernel::probe`] makes it.
#[derive(Clone, Debug)]
pub struct Kernel {
    features: Features,
}

impl Kernel {
    /// Checks whether this process may load algorithms into this machine's kernel; loads nothing.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn probe() -> Result<Kernel, Missing> {
        if !Rights::effective().may_load_programs() {
            return Err(Missing::Privilege);
        }
        Kernel::look()
    }

    /// What the kernel offers to a process with the rights, whether this process has them or not.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn look() -> Result<Kernel, Missing> {
        if !Path::new(VMLINUX_BTF).exists() {
            return Err(Missing::Btf);
        }
        let btf = Btf::from_vmlinux().map_err(|_| Missing::Btf)?;
        if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
            return Err(Missing::StructOps);
        }
        if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_none() {
            return Err(Missing::StructOpsLink);
        }
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
        let cong_control_arguments = hook_arguments(&btf, "cong_control").ok_or(Missing::StructOps)?;
        Ok(Kernel { features: Features { release, cong_control_arguments } })
    }

    /// What the kernel offers.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Loads the built-in algorithm `name` (as in [`crate::builtins`]); the kernel knows it as `ot_NAME`.
    ///
    /// # Errors
    /// No such algorithm, refused by the verifier, or the kernel has an algorithm of that name already.
    pub fn load(&self, name: &str) -> Result<Loaded, Error> {
        self.load_object(load::builtin(name)?, name)
    }

    /// Loads the algorithm of a BPF object file; the kernel knows it by the name that its `CC_OPS` gives. `label` is its
    /// name in errors.
    ///
    /// # Errors
    /// Not an algorithm's object, refused by the verifier, or the kernel has an algorithm of that name already.
    pub fn load_object(&self, bytes: &[u8], label: &str) -> Result<Loaded, Error> {
        self.prepare(bytes, label)?.register()
    }

    /// Verifies the programs of a BPF object file and keeps them, ready to be registered. `label` as above.
    ///
    /// # Errors
    /// Not an algorithm's object, or refused by the verifier.
    pub fn prepare(&self, bytes: &[u8], label: &str) -> Result<Prepared, Error> {
        load::prepare(&self.features, bytes, label)
    }

    /// Verifies the programs of a BPF object file, and removes them. `label` as above.
    ///
    /// # Errors
    /// Not an algorithm's object, or refused by the verifier.
    pub fn verify(&self, bytes: &[u8], label: &str) -> Result<Verified, Error> {
        load::verify(&self.features, bytes, label)
    }
}

/// Parameters of a member of `struct tcp_congestion_ops`.
fn hook_arguments(btf: &Btf<'_>, hook: &str) -> Option<usize> {
    let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = ops.iter().find(|member| member.name.is_some_and(|name| name == hook))?;
    let pointer = btf.type_by_id::<BtfType<'_>>(member.ty)?.skip_mods_and_typedefs();
    let target = Ptr::try_from(pointer).ok()?.referenced_type();
    FuncProto::try_from(target).ok().map(|proto| proto.len())
}
