//! Users' hooks under watch: which runs on which thread, so that one that traps, or does not return, ends the process with its name,
//! its line and the socket's values, and not without a word. A run that it was part of has no result.
//!
//! Such an algorithm's table of operations is replaced by one whose hooks note the call and make it. A thread looks at the notes ten times a
//! second; a signal's handler only writes down where it was, and waits for that thread.

use crate::hook::Hook;
use crate::model::signal_words;
use crate::ops::CongestionOps;
use crate::sock::{AckSample, RateSample, TcpSock};
use std::cell::OnceCell;
use std::ffi::c_void;
use std::fs::File;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;
use std::{ptr, thread};

/// Between two looks.
const TICK: Duration = Duration::from_millis(100);
/// So many looks at one call: it does not return. A call takes less than a microsecond.
const STUCK_TICKS: u32 = 100;
/// The same once the process shall end.
const INTERRUPTED_TICKS: u32 = 10;
/// The signals of a trap.
const TRAPS: [i32; 5] = [libc::SIGFPE, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGABRT];
/// Exit codes: of a run that failed, and of an interrupted program.
const FAILED: i32 = 1;
const INTERRUPTED: i32 = 130;

/// A user's algorithm under watch.
#[repr(C)]
struct Guarded {
    /// What sockets have, first: its address is that of the whole.
    ops: CongestionOps,
    /// The file's.
    hooks: CongestionOps,
    /// The file, as its user names it.
    file: String,
    /// The object, for the table of its lines.
    object: Option<File>,
}

/// The call of a thread.
#[derive(Default)]
struct Slot {
    /// Counts calls: two looks may be at the same one.
    calls: AtomicU64,
    /// 0: none, else one more than the hook's number.
    hook: AtomicU32,
    sock: AtomicPtr<TcpSock>,
    guarded: AtomicPtr<Guarded>,
    taken: AtomicBool,
}

/// What a signal's handler has found: the signal (0: none yet), the place, the address accessed, and the thread's slot.
static TRAP: (AtomicI32, AtomicUsize, AtomicUsize, AtomicPtr<Slot>) =
    (AtomicI32::new(0), AtomicUsize::new(0), AtomicUsize::new(0), AtomicPtr::new(ptr::null_mut()));
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
/// The actions before, to be restored where no hook has trapped.
static PRIOR: OnceLock<[libc::sigaction; TRAPS.len()]> = OnceLock::new();

/// A thread's slot; another thread takes it later.
struct Own(&'static Slot);

impl Drop for Own {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

thread_local! {
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

/// Set while the process shall end: a hook that does not return ends it then.
pub fn interrupted() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    Arc::clone(FLAG.get_or_init(Arc::default))
}

/// A table of operations that calls the hooks of `ops` under watch. `object` is what they were compiled to.
pub(crate) fn watched(path: &Path, ops: &CongestionOps, object: &[u8]) -> &'static CongestionOps {
    start();
    let guarded =
        Guarded { ops: table(ops), hooks: ops.clone(), file: path.display().to_string(), object: in_memory(object) };
    let address = Box::into_raw(Box::new(guarded)).expose_provenance();
    // SAFETY: the table is the first field of a structure with C's layout that is never freed.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

fn in_memory(object: &[u8]) -> Option<File> {
    // SAFETY: a C string; the descriptor is new, and owned by the file from here on.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"algorithm".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return None;
        }
        File::from_raw_fd(fd)
    };
    file.write_all(object).ok().map(|()| file)
}

fn table(of: &CongestionOps) -> CongestionOps {
    CongestionOps {
        init: of.init.and(Some(init)),
        release: of.release.and(Some(release)),
        ssthresh: of.ssthresh.and(Some(ssthresh)),
        cong_avoid: of.cong_avoid.and(Some(cong_avoid)),
        set_state: of.set_state.and(Some(set_state)),
        cwnd_event: of.cwnd_event.and(Some(cwnd_event)),
        in_ack_event: of.in_ack_event.and(Some(in_ack_event)),
        pkts_acked: of.pkts_acked.and(Some(pkts_acked)),
        cong_control: of.cong_control.and(Some(cong_control)),
        undo_cwnd: of.undo_cwnd.and(Some(undo_cwnd)),
        min_tso_segs: of.min_tso_segs.and(Some(min_tso_segs)),
        sndbuf_expand: of.sndbuf_expand.and(Some(sndbuf_expand)),
        ..of.clone()
    }
}

/// Makes a call on this thread's slot.
#[inline]
fn call<R>(sock: &mut TcpSock, hook: Hook, call: impl FnOnce(&CongestionOps, &mut TcpSock) -> R) -> R {
    let ops = sock.icsk_ca_ops.expect("its hook was called");
    // SAFETY: only tables of `watched` have these hooks; the whole is never freed, and nothing writes to it.
    let guarded: &'static Guarded = unsafe { &*ptr::with_exposed_provenance(ptr::from_ref(ops).addr()) };
    let noted = OWN.try_with(|own| {
        let slot = own.get_or_init(take).0;
        slot.calls.store(slot.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        slot.sock.store(sock, Ordering::Relaxed);
        slot.guarded.store(ptr::from_ref(guarded).cast_mut(), Ordering::Relaxed);
        slot.hook.store(hook as u32 + 1, Ordering::Relaxed);
        slot
    });
    let result = call(&guarded.hooks, sock);
    if let Ok(slot) = noted {
        slot.hook.store(0, Ordering::Relaxed);
    }
    result
}

fn take() -> Own {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = slots.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire)).copied();
    Own(free.unwrap_or_else(|| {
        let slot: &'static Slot = Box::leak(Box::new(Slot { taken: AtomicBool::new(true), ..Slot::default() }));
        slots.push(slot);
        slot
    }))
}

/// A hook under watch: its name in [`Hook`] and in the table, its arguments, and what it returns.
macro_rules! hooks {
    ($($name:ident $hook:ident ($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        $(extern "C" fn $name(sock: &mut TcpSock $(, $argument: $type)*) $(-> $answer)? {
            call(sock, Hook::$hook, |hooks, sock| hooks.$name.expect("the table has it")(sock $(, $argument)*))
        })*
    };
}

hooks! {
    init Init ();
    release Release ();
    ssthresh Ssthresh () -> u32;
    cong_avoid CongAvoid (ack: u32, acked: u32);
    set_state SetState (new_state: u8);
    cwnd_event CwndEvent (event: u32);
    in_ack_event InAckEvent (flags: u32);
    pkts_acked PktsAcked (sample: &AckSample);
    cong_control CongControl (ack: u32, flag: i32, sample: &RateSample);
    undo_cwnd UndoCwnd () -> u32;
    min_tso_segs MinTsoSegs () -> u32;
    sndbuf_expand SndbufExpand () -> u32;
}

/// Handles traps, and begins to look. A process that cannot have another thread goes on without.
fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        if thread::Builder::new().name("hooks".to_string()).spawn(watch).is_err() {
            return;
        }
        let prior = TRAPS.map(|signal| {
            // SAFETY: zero is a valid sigaction; the handler does only what a handler may.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                let mut prior = MaybeUninit::zeroed();
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = on_trap;
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(signal, &raw const action, prior.as_mut_ptr());
                prior.assume_init()
            }
        });
        let _ = PRIOR.set(prior);
    });
}

/// In a process of its own a trap is a signal.
pub(crate) fn forget() {
    for signal in TRAPS {
        // SAFETY: a plain system call.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

extern "C" fn on_trap(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let slot = OWN.try_with(|own| own.get().map(|own| own.0)).ok().flatten();
    let Some(slot) = slot.filter(|slot| slot.hook.load(Ordering::Relaxed) != 0) else {
        // not a hook's: the instruction traps again, as before this handler
        let at = TRAPS.iter().position(|trap| *trap == signal);
        if let Some(prior) = PRIOR.get().zip(at).map(|(prior, at)| &prior[at]) {
            // SAFETY: an action that the kernel has given.
            unsafe { libc::sigaction(signal, prior, ptr::null_mut()) };
        }
        return;
    };
    // SAFETY: the kernel passes both to a handler with SA_SIGINFO.
    let (place, address) = unsafe { (place_of(context), (*info).si_addr() as usize) };
    TRAP.1.store(place, Ordering::Relaxed);
    TRAP.2.store(address, Ordering::Relaxed);
    TRAP.3.store(ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
    TRAP.0.store(signal, Ordering::Release);
    loop {
        // SAFETY: waits for a signal; the other thread ends the process.
        unsafe { libc::pause() };
    }
}

/// The instruction that trapped.
///
/// # Safety
/// `context` is what the kernel passes to a handler.
unsafe fn place_of(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's promise.
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        0
    }
}

/// Looks at all calls until the process ends.
fn watch() {
    let interrupted = interrupted();
    let mut seen: Vec<(u64, u32)> = Vec::new();
    loop {
        thread::park_timeout(TICK);
        let signal = TRAP.0.load(Ordering::Acquire);
        if signal != 0 {
            // SAFETY: a slot is never freed.
            let slot = unsafe { &*TRAP.3.load(Ordering::Relaxed) };
            let (place, address) = (TRAP.1.load(Ordering::Relaxed), TRAP.2.load(Ordering::Relaxed));
            let words = signal_words(signal);
            let at = if signal == libc::SIGSEGV { format!("{words} at {address:#x}") } else { words };
            end(slot, Some(place), &at, FAILED);
        }
        let slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.resize(slots.len(), (0, 0));
        for (slot, seen) in slots.iter().zip(&mut seen) {
            let calls = slot.calls.load(Ordering::Relaxed);
            let is_same = slot.hook.load(Ordering::Relaxed) != 0 && seen.0 == calls;
            *seen = (calls, if is_same { seen.1 + 1 } else { 0 });
            if seen.1 >= INTERRUPTED_TICKS && interrupted.load(Ordering::Relaxed) {
                end(slot, None, "it did not return, and the program was to end", INTERRUPTED);
            }
            if seen.1 >= STUCK_TICKS {
                end(slot, None, &format!("it did not return within {} s", (TICK * STUCK_TICKS).as_secs()), FAILED);
            }
        }
    }
}

/// Ends the process with what is known of the call.
fn end(slot: &Slot, place: Option<usize>, what: &str, code: i32) -> ! {
    let hook = Hook::ALL[(slot.hook.load(Ordering::Relaxed) as usize).saturating_sub(1) % Hook::ALL.len()];
    let mut words = format!("{}: {what}", hook.name());
    // SAFETY: the call has not returned, so both are there; the thread that writes to the socket stands still, or what is read is old.
    unsafe {
        if let Some(guarded) = slot.guarded.load(Ordering::Relaxed).as_ref() {
            let line = place.and_then(|place| line_of(guarded, place)).unwrap_or_else(|| guarded.file.clone());
            words = format!("{line}: {words}");
        }
        if let Some(sock) = slot.sock.load(Ordering::Relaxed).as_ref() {
            words = format!("{words}, with {}", values(sock));
        }
    }
    eprintln!("opentcp: {words}");
    // SAFETY: nothing is to be done at exit: other threads run.
    unsafe { libc::_exit(code) }
}

fn values(sock: &TcpSock) -> String {
    format!(
        "snd_cwnd {}, snd_ssthresh {}, packets_out {}, mss_cache {}, srtt {} µs, icsk_ca_state {}",
        sock.snd_cwnd,
        sock.snd_ssthresh,
        sock.packets_out,
        sock.mss_cache,
        sock.srtt_us >> 3,
        sock.icsk_ca_state
    )
}

/// File and line of an instruction, by the compiler's own tool; what linkers need has it too.
fn line_of(guarded: &Guarded, place: usize) -> Option<String> {
    let object = guarded.object.as_ref()?;
    // SAFETY: zero is a valid answer; the address is only looked up.
    let base = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(ptr::without_provenance(place), &raw mut found) == 0 {
            return None;
        }
        found.dli_fbase as usize
    };
    let file = format!("/proc/{}/fd/{}", std::process::id(), object.as_raw_fd());
    let offset = format!("{:#x}", place.checked_sub(base)?);
    let output = Command::new("addr2line").args(["-e", &file, &offset]).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_string();
    let line = line.split(" (").next().unwrap_or_default().to_string();
    // some of a compiler's lines name its copy, whose numbers are the file's
    let line = match line.rsplit_once("algorithm.c:") {
        Some((_, number)) => format!("{}:{number}", guarded.file),
        None => line,
    };
    (output.status.success() && !line.starts_with("??") && !line.ends_with(":?")).then_some(line)
}
