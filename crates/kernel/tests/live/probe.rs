//! The errors on kernels that cannot take algorithms. The kernel is this one; its description of its types is not.

use crate::support;
use kernel::{Error, Kernel, Missing};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::path::{Path, PathBuf};
use std::{fs, thread};

const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Types of a kernel that has all that algorithms need, with a `cong_control` of two arguments as before Linux 6.10.
const OLDER: &str = "
struct sock;
struct rate_sample;
struct tcp_congestion_ops { void (*cong_control)(struct sock *sk, const struct rate_sample *rs); } ops;
struct bpf_struct_ops_tcp_congestion_ops { struct tcp_congestion_ops data; } table;
struct bpf_struct_ops_link { int id; } link;
";

#[test]
fn a_kernel_without_btf_is_reported() {
    let Some(_kernel) = support::kernel() else { return };
    let missing = with_sys_kernel_btf(None, Kernel::probe).expect_err("there is no BTF");
    assert_eq!(missing, Missing::Btf);
    assert!(missing.to_string().contains("CONFIG_DEBUG_INFO_BTF=y"), "{missing}");
}

#[test]
fn a_kernel_without_struct_ops_or_their_links_is_reported() {
    let Some(_kernel) = support::kernel() else { return };
    let cases = [
        ("bpf_struct_ops_tcp_congestion_ops", Missing::StructOps, "BPF programs as congestion control"),
        ("bpf_struct_ops_link", Missing::StructOpsLink, "Linux 6.4"),
    ];
    for (lacking, expected, words) in cases {
        let types = types_of("lacking", &OLDER.replace(lacking, "something_else"));
        let missing = with_sys_kernel_btf(Some(&types), Kernel::probe).expect_err(lacking);
        assert_eq!(missing, expected);
        assert!(missing.to_string().contains(words), "{missing}");
    }
}

#[test]
fn a_kernel_with_two_arguments_of_cong_control_refuses_those_algorithms_that_have_it() {
    let Some(_kernel) = support::kernel() else { return };
    let types = types_of("older", OLDER);
    let older = with_sys_kernel_btf(Some(&types), Kernel::probe).unwrap_or_else(|missing| panic!("{missing}"));
    assert_eq!(older.features().cong_control_arguments, 2);
    let error = older.load("bbr").expect_err("bbr has the hook");
    assert!(matches!(error, Error::CongControl { .. }), "{error}");
    assert!(error.to_string().contains("needs Linux 6.10"), "{error}");
    // This kernel takes the others.
    drop(older.load("cubic").unwrap_or_else(|error| panic!("{error}")));
}

/// The types of a C file as the kernel would show its own, in a file.
fn types_of(name: &str, source: &str) -> PathBuf {
    let object = support::compile(name, source);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.btf"));
    fs::write(&path, section(&object, b".BTF")).expect("the test's folder can be written");
    path
}

/// A section of a 64-bit little-endian ELF file.
fn section<'a>(elf: &'a [u8], name: &[u8]) -> &'a [u8] {
    let number = |at: usize, bytes: usize| {
        elf[at..at + bytes].iter().rev().fold(0usize, |value, &byte| value << 8 | usize::from(byte))
    };
    let (headers, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let content = |index: usize| {
        let header = headers + 64 * index;
        let (offset, size) = (number(header + 24, 8), number(header + 32, 8));
        &elf[offset..offset + size]
    };
    let is_named = |index: &usize| {
        let start = number(headers + 64 * index, 4);
        content(names)[start..].split(|&byte| byte == 0).next() == Some(name)
    };
    content((0..count).find(is_named).expect("the compiler was asked for debugging information"))
}

/// Runs `work` where the kernel's description of its types is another file's, or is missing.
fn with_sys_kernel_btf<T: Send>(types: Option<&Path>, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).expect("root may have mounts of its own");
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none).expect("what follows stays here");
            match types {
                Some(file) => mount(Some(file), VMLINUX_BTF, none, MsFlags::MS_BIND, none).expect("root may mount"),
                None => mount(Some("none"), "/sys/kernel/btf", Some("tmpfs"), MsFlags::empty(), none).expect("tmpfs"),
            }
            work()
        });
        worker.join().expect("the work does not panic")
    })
}
