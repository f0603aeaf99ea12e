//! Files written for libbpf, compiled as their authors would (libbpf's headers, a vmlinux.h of the running kernel), carry
//! bytes between network namespaces. The same files run in the simulator: see the tests of `congestion` and `cli`.

#![allow(unsafe_code, reason = "libbpf's writer of C declarations has only a C interface")]

use crate::support::{self, Path, algorithm};
use libbpf_rs::libbpf_sys as libbpf;
use std::ffi::{c_char, c_int, c_void};
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::{env, fs};

const MEGABYTE: usize = 1_000_000;
/// Some kernels skip a hook that is due while pid 1 is interrupted, and its caller takes what is in a register for the result: the kernel then
/// warns of the window that it sets. That says nothing of the file, so the transfer is repeated, up to so many times.
const TRIES: usize = 3;
/// Segments, far above what these paths hold.
const ABSURD_WINDOW: u64 = 5_000_000;

unsafe extern "C" {
    fn vsnprintf(buffer: *mut c_char, size: usize, format: *const c_char, args: *mut libbpf::__va_list_tag) -> c_int;
}

/// Appends what libbpf prints to the `Vec<u8>` behind `ctx`.
unsafe extern "C" fn append(ctx: *mut c_void, format: *const c_char, args: *mut libbpf::__va_list_tag) {
    let mut piece = vec![0_u8; 1 << 16];
    // SAFETY: `piece` has the size given; format and arguments belong together, libbpf says.
    let length = unsafe { vsnprintf(piece.as_mut_ptr().cast(), piece.len(), format, args) };
    let length = usize::try_from(length).expect("a format that can be printed");
    assert!(length < piece.len(), "one printed piece is short");
    // SAFETY: vmlinux_h() passes its own Vec, which nothing else uses meanwhile.
    unsafe { &mut *ctx.cast::<Vec<u8>>() }.extend_from_slice(&piece[..length]);
}

/// The running kernel's types as C, the same that bpftool prints.
fn vmlinux_h() -> Vec<u8> {
    let mut text = b"#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\
        #pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n"
        .to_vec();
    // SAFETY: libbpf's objects are made, used and freed here, each once; `text` outlives the writer.
    unsafe {
        let btf = libbpf::btf__load_vmlinux_btf();
        assert!(!btf.is_null(), "the kernel describes its types");
        let context = (&raw mut text).cast();
        let writer = libbpf::btf_dump__new(btf, Some(append), context, std::ptr::null());
        assert!(!writer.is_null(), "libbpf can print types");
        for id in 1..libbpf::btf__type_cnt(btf) {
            assert_eq!(libbpf::btf_dump__dump_type(writer, id), 0, "type {id}");
        }
        libbpf::btf_dump__free(writer);
        libbpf::btf__free(btf);
    }
    text.extend_from_slice(b"\n#pragma clang attribute pop\n#endif\n");
    text
}

/// The folder that holds `bpf/bpf_helpers.h`: the system's, or that of the libbpf that this build made.
fn libbpf_headers() -> Option<PathBuf> {
    let build = env::current_exe().ok()?.parent()?.parent()?.join("build");
    let made = fs::read_dir(build).into_iter().flatten().flatten().map(|entry| entry.path().join("out/include"));
    let folders = made.chain([PathBuf::from("/usr/include")]);
    folders.into_iter().find(|folder| folder.join("bpf/bpf_helper_defs.h").is_file())
}

/// Compiles a fixture unmodified with libbpf's headers; the only header of ours is bpf_tracing_net.h, which neither
/// libbpf nor a kernel's types bring.
fn compile(name: &str, headers: &FilePath) -> Vec<u8> {
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../congestion");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("foreign").join(name);
    fs::create_dir_all(&folder).expect("the test's folder can be written");
    fs::write(folder.join("vmlinux.h"), vmlinux_h()).expect("written");
    fs::copy(root.join("src/foreign/bpf_tracing_net.h"), folder.join("bpf_tracing_net.h")).expect("copied");
    let object = folder.join("algorithm.o");
    let mut clang = Command::new(env!("OPENTCP_BPF_CLANG"));
    clang.args("-target bpf -mcpu=v3 -O2 -g -D__TARGET_ARCH_x86 -Wall -Werror -Wno-unused-function".split(' '));
    clang.args("-Wno-missing-declarations -Wno-compare-distinct-pointer-types -c".split(' '));
    clang.arg("-I").arg(&folder).arg("-I").arg(headers).arg("-o").arg(&object);
    let output = clang.arg(root.join("tests/foreign").join(name)).output().expect("clang runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(object).expect("clang has written the object")
}

#[test]
fn files_written_for_libbpf_carry_bytes_through_a_queue_that_overflows() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let Some(headers) = libbpf_headers() else {
        eprintln!("skipped: libbpf's headers are neither in /usr/include nor beside this build");
        return;
    };
    let path = Path::new(400, 150_000);
    for (file, name) in [("cubic.c", "rfc_cubic"), ("dctcp.c", "rfc_dctcp")] {
        let loaded = kernel.load_object(&compile(file, &headers), file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.name(), name);
        let carried = (0..TRIES).any(|_| {
            let mut connection = path.connect(name, name);
            let took = connection.carry(20 * MEGABYTE);
            assert_eq!(algorithm(&connection.source), name);
            let sockets = path.sender_sockets();
            connection.close();
            let mbit = 160.0 / took.as_secs_f64();
            println!("{name}: {mbit:.0} Mbit/s {}", sockets.trim());
            assert!(sockets.contains(name), "{sockets}");
            assert!(mbit > 50.0, "{name} used {mbit:.0} of 400 Mbit/s");
            let cwnd = support::number(&sockets, "cwnd:").expect("it has a window");
            let skipped = cwnd > ABSURD_WINDOW;
            assert!(skipped || (2..10_000).contains(&cwnd), "{sockets}");
            !skipped
        });
        assert!(carried, "{name}: a window beyond {ABSURD_WINDOW} segments {TRIES} times");
    }
}

#[test]
fn the_programs_own_headers_compile_the_same_files_for_the_kernel() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../congestion");
    for (file, name) in [("cubic.c", "rfc_cubic"), ("dctcp.c", "rfc_dctcp")] {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let object = folder.join(format!("{name}.o"));
        let mut clang = Command::new(env!("OPENTCP_BPF_CLANG"));
        clang.args(
            "-target bpf -mcpu=v3 -O2 -g -ffreestanding -nostdinc -Wall -Werror -Wno-unused-variable -c".split(' '),
        );
        clang.arg("-Wno-missing-declarations").arg("-Wno-unused-function");
        clang.arg("-I").arg(root.join("src/foreign")).arg("-o").arg(&object).arg(root.join("tests/foreign").join(file));
        let output = clang.output().expect("clang runs");
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::read(object).expect("clang has written the object");
        let verified = kernel.verify(&bytes, file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((verified.name.as_str(), verified.programs.len()), (name, 7));
    }
}

#[test]
fn a_file_written_for_kernels_before_6_10_carries_bytes_through_a_queue_that_overflows() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let (file, name) = ("before_6_10.c", "bpf_aged_dctcp");
    let source = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../congestion/tests/foreign").join(file);
    let object = congestion::compile_for_bpf(&source).unwrap_or_else(|error| panic!("{error}"));
    let loaded = kernel.load_object(&object, file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.name(), name);
    let path = Path::new(400, 150_000);
    let mut connection = path.connect(name, name);
    let took = connection.carry(20 * MEGABYTE);
    assert_eq!(algorithm(&connection.source), name);
    let mbit = 160.0 / took.as_secs_f64();
    assert!(mbit > 50.0, "{name} used {mbit:.0} of 400 Mbit/s");
    connection.close();
}
