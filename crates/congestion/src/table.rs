//! From a foreign file's native build to its table of operations, with the checks that the kernel would make.

use crate::elf::{Elf, Symbol};
use crate::hook::Hook;
use crate::ops::CongestionOps;
use crate::registry::{ABI, Algorithm};
use crate::sock::TcpSock;
use std::ffi::{CStr, c_char};
use std::ptr;

/// Sections of tables of operations: registered until removed, and bound to a link.
const TABLES: [&str; 2] = [".struct_ops", ".struct_ops.link"];

/// Licences that the kernel regards as compatible with its own; it loads no congestion control with another.
const LICENSES: [&str; 6] =
    ["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];

/// `struct cc_foreign` of `src/foreign/vmlinux.h`.
#[repr(C)]
pub(crate) struct Foreign {
    abi: u32,
    sock_bytes: u32,
    hooks: *const ForeignHook,
    hooks_end: *const ForeignHook,
}

/// `struct cc_foreign_hook`: a function that was declared by BPF_PROG.
#[repr(C)]
struct ForeignHook {
    name: *const c_char,
    parameters: *const c_char,
    function: usize,
    line: u32,
    words: u16,
    answers: u16,
}

/// The algorithm of an open object whose symbol `cc_foreign` is at `foreign`; `bytes` is the object's file.
///
/// # Errors
/// What the file breaks, in words.
///
/// # Safety
/// `foreign` points at the constant of a build against `src/foreign/vmlinux.h`, in an object that is never closed, whose
/// file has the content `bytes`.
pub(crate) unsafe fn algorithm(foreign: *const Foreign, bytes: &[u8]) -> Result<Algorithm, String> {
    let elf = Elf::parse(bytes).ok_or("its native build is no 64-bit ELF file")?;
    // SAFETY: the caller's promise.
    let anchor = unsafe { &*foreign };
    if anchor.abi != ABI || anchor.sock_bytes as usize != size_of::<TcpSock>() {
        return Err("it was compiled against another version of tcp.h".to_string());
    }
    check_license(&elf)?;
    let symbols = elf.objects();
    let table = one_table(&symbols)?;
    let here = symbols.iter().find(|symbol| symbol.name == "cc_foreign").ok_or("its native build has no symbols")?;
    let base = (foreign as usize as u64).wrapping_sub(here.address);
    let address = base.wrapping_add(table.address) as usize as *const CongestionOps;
    if table.size != size_of::<CongestionOps>() as u64 || !address.is_aligned() {
        return Err(format!("{} is not one struct tcp_congestion_ops", table.name));
    }
    // SAFETY: the linker placed a variable of that size and alignment there; a copy does not follow later changes.
    let ops: &'static CongestionOps = Box::leak(Box::new(unsafe { ptr::read(address) }));
    check_name(ops)?;
    // SAFETY: the linker made both ends of one array of these, or left both null.
    let hooks = unsafe { hooks(anchor) };
    check_hooks(ops, hooks)?;
    Algorithm::from_ops(ops)
}

fn check_license(elf: &Elf<'_>) -> Result<(), String> {
    let known = LICENSES.map(|license| format!("{license:?}")).join(", ");
    let Some(section) = elf.section("license") else {
        return Err(format!(
            "it has no licence, and kernels refuse such a program: \
             char license[] SEC(\"license\") = one of {known}"
        ));
    };
    let text = String::from_utf8_lossy(section.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned();
    if LICENSES.contains(&text.as_str()) {
        return Ok(());
    }
    Err(format!("kernels refuse an algorithm with the licence {text:?}; they accept {known}"))
}

fn one_table(symbols: &[Symbol]) -> Result<&Symbol, String> {
    // the linker adds symbols without a size at the ends of sections
    let is_table = |symbol: &&Symbol| symbol.size > 0 && TABLES.contains(&symbol.section.as_str());
    let tables: Vec<&Symbol> = symbols.iter().filter(is_table).collect();
    match tables.as_slice() {
        [table] => Ok(table),
        [] => Err("it declares no algorithm: no struct tcp_congestion_ops has SEC(\".struct_ops\") or \
                   SEC(\".struct_ops.link\")"
            .to_string()),
        _ => {
            let mut names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
            names.sort_unstable();
            Err(format!("it declares {} algorithms ({}); a file has one", names.len(), names.join(", ")))
        }
    }
}

fn check_name(ops: &CongestionOps) -> Result<(), String> {
    let name = ops.name();
    if name.is_empty() {
        return Err("its table of operations has no .name".to_string());
    }
    if name.len() >= ops.name.len() || !name.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!("the kernel does not accept its name {name:?}: use 1 to 15 characters, without spaces"));
    }
    Ok(())
}

/// # Safety
/// The anchor's two pointers are the ends of one array in an object that is never closed, or both null.
unsafe fn hooks(anchor: &Foreign) -> &'static [ForeignHook] {
    if anchor.hooks.is_null() {
        return &[];
    }
    let bytes = anchor.hooks_end as usize - anchor.hooks as usize;
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(anchor.hooks, bytes / size_of::<ForeignHook>()) }
}

/// Does each member take the host's parameters, and return a value where one is expected?
fn check_hooks(ops: &CongestionOps, hooks: &[ForeignHook]) -> Result<(), String> {
    for (hook, function) in Hook::ALL.into_iter().zip(members(ops)).filter(|&(_, function)| function != 0) {
        let (parameters, answers) = signature(hook);
        let Some(entry) = hooks.iter().find(|entry| entry.function == function) else {
            return Err(format!("its .{} is not a function declared by BPF_PROG", hook.name()));
        };
        let words = parameters.split(',').count();
        if usize::from(entry.words) != words {
            let (line, name, given) = (entry.line, text(entry.name), text(entry.parameters));
            let hook = hook.name();
            return Err(format!("line {line}: {name}({given}) is its {hook}, which takes ({parameters})"));
        }
        if answers && entry.answers == 0 {
            return Err(format!("line {}: {} is its {}, which returns u32", entry.line, text(entry.name), hook.name()));
        }
    }
    Ok(())
}

/// The functions' addresses in the order of [`Hook::ALL`]; 0: none.
fn members(ops: &CongestionOps) -> [usize; 12] {
    [
        ops.init.map_or(0, |f| f as usize),
        ops.release.map_or(0, |f| f as usize),
        ops.ssthresh.map_or(0, |f| f as usize),
        ops.cong_avoid.map_or(0, |f| f as usize),
        ops.set_state.map_or(0, |f| f as usize),
        ops.cwnd_event.map_or(0, |f| f as usize),
        ops.in_ack_event.map_or(0, |f| f as usize),
        ops.pkts_acked.map_or(0, |f| f as usize),
        ops.cong_control.map_or(0, |f| f as usize),
        ops.undo_cwnd.map_or(0, |f| f as usize),
        ops.min_tso_segs.map_or(0, |f| f as usize),
        ops.sndbuf_expand.map_or(0, |f| f as usize),
    ]
}

/// A hook's parameters in C, and whether it returns a number.
fn signature(hook: Hook) -> (&'static str, bool) {
    match hook {
        Hook::Init | Hook::Release => ("struct sock *sk", false),
        Hook::Ssthresh | Hook::UndoCwnd | Hook::MinTsoSegs | Hook::SndbufExpand => ("struct sock *sk", true),
        Hook::CongAvoid => ("struct sock *sk, u32 ack, u32 acked", false),
        Hook::SetState => ("struct sock *sk, u8 new_state", false),
        Hook::CwndEvent => ("struct sock *sk, enum tcp_ca_event event", false),
        Hook::InAckEvent => ("struct sock *sk, u32 flags", false),
        Hook::PktsAcked => ("struct sock *sk, const struct ack_sample *sample", false),
        Hook::CongControl => ("struct sock *sk, u32 ack, int flag, const struct rate_sample *rs", false),
    }
}

fn text(pointer: *const c_char) -> String {
    // SAFETY: BPF_PROG's entries name string literals of an object that is never closed.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
