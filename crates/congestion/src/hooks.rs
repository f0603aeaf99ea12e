//! Algorithms that are not C: a trait with all hooks, behind a table of operations as C's. For teaching and for trials; such an algorithm
//! runs in no kernel, and each hook costs a search for its object.
//!
//! A hook cannot end a run: it may be called deep in a host. What goes wrong in one is kept for the thread that runs the host, which
//! asks for it ([`take_fault`]) between two steps; until then the thread's hooks do nothing.

use crate::hook::Hook;
use crate::ops::CongestionOps;
use crate::registry::Algorithm;
use crate::sock::{AckSample, RateSample, TCP_CONG_NEEDS_ECN, TcpSock};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{PoisonError, RwLock};

/// A call of a hook, with its arguments beside the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names and arguments are those of CongestionOps, where they are documented")]
pub enum Call<'a> {
    Init,
    Release,
    Ssthresh,
    CongAvoid { ack: u32, acked: u32 },
    SetState { new_state: u8 },
    CwndEvent { event: u32 },
    InAckEvent { flags: u32 },
    PktsAcked { sample: &'a AckSample },
    CongControl { ack: u32, sample: &'a RateSample },
    UndoCwnd,
    MinTsoSegs,
    SndbufExpand,
}

impl Call<'_> {
    /// Which hook.
    pub fn hook(&self) -> Hook {
        match self {
            Call::Init => Hook::Init,
            Call::Release => Hook::Release,
            Call::Ssthresh => Hook::Ssthresh,
            Call::CongAvoid { .. } => Hook::CongAvoid,
            Call::SetState { .. } => Hook::SetState,
            Call::CwndEvent { .. } => Hook::CwndEvent,
            Call::InAckEvent { .. } => Hook::InAckEvent,
            Call::PktsAcked { .. } => Hook::PktsAcked,
            Call::CongControl { .. } => Hook::CongControl,
            Call::UndoCwnd => Hook::UndoCwnd,
            Call::MinTsoSegs => Hook::MinTsoSegs,
            Call::SndbufExpand => Hook::SndbufExpand,
        }
    }
}

/// An algorithm that is not C.
pub trait Hooks: Send + Sync {
    /// Whether it has this hook. `ssthresh`, `undo_cwnd`, and one of `cong_avoid` and `cong_control` are required, as in C.
    fn has(&self, hook: Hook) -> bool;

    /// Whether it negotiates ECN.
    fn needs_ecn(&self) -> bool;

    /// Does what the hook does. The answer is the number of segments of hooks that have one, else nothing to anybody. Of the
    /// private state, [`TcpSock::icsk_ca_priv`], all is its own.
    ///
    /// # Errors
    /// Why the run must end, for its user.
    fn call(&self, sock: &mut TcpSock, call: Call<'_>) -> Result<u32, String>;
}

/// What is registered: by the table of operations' address, and by the path that scenarios name.
#[derive(Default)]
struct Registered {
    hooks: BTreeMap<usize, &'static dyn Hooks>,
    algorithms: BTreeMap<PathBuf, &'static Algorithm>,
}

static REGISTERED: RwLock<Registered> = RwLock::new(Registered { hooks: BTreeMap::new(), algorithms: BTreeMap::new() });

thread_local! {
    static FAULT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Why a hook on this thread must end its run, if one must: asked once, it is forgotten.
pub fn take_fault() -> Option<String> {
    FAULT.with(RefCell::take)
}

impl Algorithm {
    /// Makes `hooks` the algorithm of the file `path`, which [`Algorithm::load`] then gives instead of compiling the file. It stays until
    /// the process ends; another one for the same path takes its place for what is loaded later.
    ///
    /// # Errors
    /// Names the first required hook that it lacks.
    pub fn register(path: &Path, name: &str, hooks: Box<dyn Hooks>) -> Result<&'static Algorithm, String> {
        let hooks: &'static dyn Hooks = Box::leak(hooks);
        let ops: &'static CongestionOps = Box::leak(Box::new(table(name, hooks)));
        let algorithm: &'static Algorithm = Box::leak(Box::new(Algorithm::from_ops(ops)?));
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        registered.hooks.insert(ptr::from_ref(ops).addr(), hooks);
        registered.algorithms.insert(path.to_path_buf(), algorithm);
        Ok(algorithm)
    }

    /// The algorithm that is registered for a file.
    pub(crate) fn registered(path: &Path) -> Option<&'static Algorithm> {
        REGISTERED.read().unwrap_or_else(PoisonError::into_inner).algorithms.get(path).copied()
    }

    /// Whether it is one of [`Algorithm::register`].
    pub fn is_registered(&self) -> bool {
        find(self.ops()).is_some()
    }
}

fn find(ops: &CongestionOps) -> Option<&'static dyn Hooks> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.hooks.get(&ptr::from_ref(ops).addr()).copied()
}

/// The table of operations with the hooks that it has.
fn table(name: &str, hooks: &dyn Hooks) -> CongestionOps {
    let mut bytes = [0; 16];
    for (byte, c) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *byte = c as c_char;
    }
    let has = |hook| hooks.has(hook);
    CongestionOps {
        init: has(Hook::Init).then_some(init),
        release: has(Hook::Release).then_some(release),
        ssthresh: has(Hook::Ssthresh).then_some(ssthresh),
        cong_avoid: has(Hook::CongAvoid).then_some(cong_avoid),
        set_state: has(Hook::SetState).then_some(set_state),
        cwnd_event: has(Hook::CwndEvent).then_some(cwnd_event),
        in_ack_event: has(Hook::InAckEvent).then_some(in_ack_event),
        pkts_acked: has(Hook::PktsAcked).then_some(pkts_acked),
        cong_control: has(Hook::CongControl).then_some(cong_control),
        undo_cwnd: has(Hook::UndoCwnd).then_some(undo_cwnd),
        min_tso_segs: has(Hook::MinTsoSegs).then_some(min_tso_segs),
        sndbuf_expand: has(Hook::SndbufExpand).then_some(sndbuf_expand),
        name: bytes,
        flags: if hooks.needs_ecn() { TCP_CONG_NEEDS_ECN } else { 0 },
        cc_pad: 0,
    }
}

extern "C" fn init(sock: &mut TcpSock) {
    call(sock, Call::Init);
}

extern "C" fn release(sock: &mut TcpSock) {
    call(sock, Call::Release);
}

extern "C" fn ssthresh(sock: &mut TcpSock) -> u32 {
    call(sock, Call::Ssthresh).unwrap_or(sock.snd_ssthresh.max(2))
}

extern "C" fn cong_avoid(sock: &mut TcpSock, ack: u32, acked: u32) {
    call(sock, Call::CongAvoid { ack, acked });
}

extern "C" fn set_state(sock: &mut TcpSock, new_state: u8) {
    call(sock, Call::SetState { new_state });
}

extern "C" fn cwnd_event(sock: &mut TcpSock, event: u32) {
    call(sock, Call::CwndEvent { event });
}

extern "C" fn in_ack_event(sock: &mut TcpSock, flags: u32) {
    call(sock, Call::InAckEvent { flags });
}

extern "C" fn pkts_acked(sock: &mut TcpSock, sample: &AckSample) {
    call(sock, Call::PktsAcked { sample });
}

extern "C" fn cong_control(sock: &mut TcpSock, ack: u32, _flag: i32, sample: &RateSample) {
    call(sock, Call::CongControl { ack, sample });
}

extern "C" fn undo_cwnd(sock: &mut TcpSock) -> u32 {
    call(sock, Call::UndoCwnd).unwrap_or(sock.snd_cwnd)
}

extern "C" fn min_tso_segs(sock: &mut TcpSock) -> u32 {
    call(sock, Call::MinTsoSegs).unwrap_or(2)
}

extern "C" fn sndbuf_expand(sock: &mut TcpSock) -> u32 {
    call(sock, Call::SndbufExpand).unwrap_or(2)
}

/// The hook's answer; none after a fault.
fn call(sock: &mut TcpSock, call: Call<'_>) -> Option<u32> {
    if FAULT.with_borrow(Option::is_some) {
        return None;
    }
    let hooks = sock.icsk_ca_ops.and_then(find)?;
    // a panic must not cross a function of C's
    let outcome = catch_unwind(AssertUnwindSafe(|| hooks.call(sock, call)));
    let failed = |_| Err(format!("the hook {} broke an invariant, see above", call.hook().name()));
    match outcome.unwrap_or_else(failed) {
        Ok(answer) => Some(answer),
        Err(fault) => {
            FAULT.set(Some(fault));
            None
        }
    }
}
