//! Algorithms in Python: the hooks of a class, called with a socket whose attributes are the fields that C sees.
//!
//! A hook gets a copy of the socket, which is taken back when it returns. So Python never holds memory of the simulator's, and a socket that
//! is kept beyond the hook is only stale. Each flow has an instance of the class; its number is in the flow's private state, which
//! the host zeroes before `init`. A hook that comes before that gets an instance of its own.

use crate::errors::input;
use congestion::{Algorithm, Call, HOOKS, Hook, Hooks, TcpSock};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

thread_local! {
    /// The flows' instances: a run is on one thread, and the thread ends with its batch of runs.
    static INSTANCES: RefCell<Instances> = RefCell::default();
}

#[derive(Default)]
struct Instances {
    last: u64,
    by_number: BTreeMap<u64, Py<PyAny>>,
}

/// Makes a class the algorithm of the file `path`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub fn register_algorithm(py: Python<'_>, path: PathBuf, name: String, class: Bound<'_, PyAny>) -> PyResult<()> {
    let mut has = [false; HOOKS];
    for hook in Hook::ALL {
        has[hook as usize] = class.hasattr(hook.name())?;
    }
    let needs_ecn = match class.getattr_opt("needs_ecn")? {
        Some(flag) => flag.extract()?,
        None => false,
    };
    let hooks = ClassHooks { class: class.unbind(), name: name.clone(), has, needs_ecn };
    let registered = Algorithm::register(&path, &name, Box::new(hooks));
    registered.map(drop).map_err(|error| input(py, format!("the class is no algorithm: {error}")))
}

struct ClassHooks {
    class: Py<PyAny>,
    name: String,
    /// By hook: whether the class has it.
    has: [bool; HOOKS],
    needs_ecn: bool,
}

impl Hooks for ClassHooks {
    fn has(&self, hook: Hook) -> bool {
        // instances come and go with the flows
        self.has[hook as usize] || [Hook::Init, Hook::Release].contains(&hook)
    }

    fn needs_ecn(&self) -> bool {
        self.needs_ecn
    }

    fn call(&self, sock: &mut TcpSock, call: Call<'_>) -> Result<u32, String> {
        Python::attach(|py| {
            self.answer(py, sock, call).map_err(|error| {
                let traceback = error.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
                format!("the algorithm {}, in its hook {}: {error}\n{traceback}", self.name, call.hook().name())
            })
        })
    }
}

impl ClassHooks {
    fn answer(&self, py: Python<'_>, sock: &mut TcpSock, call: Call<'_>) -> PyResult<u32> {
        let instance = self.instance(py, sock, call)?;
        let hook = call.hook();
        if !self.has[hook as usize] {
            return Ok(0);
        }
        let name = hook.name();
        let lent = Bound::new(py, Socket { sock: sock.clone() })?;
        let instance = instance.bind(py);
        let answer = match call {
            Call::CongAvoid { ack, acked } => instance.call_method1(name, (&lent, ack, acked)),
            Call::SetState { new_state } => instance.call_method1(name, (&lent, new_state)),
            Call::CwndEvent { event } => instance.call_method1(name, (&lent, event)),
            Call::InAckEvent { flags } => instance.call_method1(name, (&lent, flags)),
            Call::PktsAcked { sample } => instance.call_method1(name, (&lent, AckSample::of(sample))),
            Call::CongControl { ack, sample } => instance.call_method1(name, (&lent, ack, RateSample::of(sample))),
            _ => instance.call_method1(name, (&lent,)),
        }?;
        sock.clone_from(&lent.borrow().sock);
        let least = match hook {
            Hook::Ssthresh => 2,
            Hook::UndoCwnd | Hook::MinTsoSegs | Hook::SndbufExpand => 1,
            _ => return Ok(0),
        };
        let what = "a hook that returns a number of segments";
        let segments: u32 = answer.extract().map_err(|_| {
            let shown = answer.repr().map_or_else(|_| "something else".into(), |shown| shown.to_string());
            PyValueError::new_err(format!("{what} returned {shown}: return an integer"))
        })?;
        if segments < least {
            return Err(PyValueError::new_err(format!("{what} returned {segments}: it must be at least {least}")));
        }
        Ok(segments)
    }

    /// The flow's instance.
    fn instance(&self, py: Python<'_>, sock: &mut TcpSock, call: Call<'_>) -> PyResult<Py<PyAny>> {
        let number = sock.icsk_ca_priv[0];
        if call == Call::Release {
            let kept = INSTANCES.with_borrow_mut(|instances| instances.by_number.remove(&number));
            return kept.map_or_else(|| self.class.call0(py), Ok);
        }
        let kept = INSTANCES.with_borrow(|all| all.by_number.get(&number).map(|instance| instance.clone_ref(py)));
        if let Some(instance) = kept {
            return Ok(instance);
        }
        let instance = self.class.call0(py)?;
        if call == Call::Init {
            INSTANCES.with_borrow_mut(|instances| {
                instances.last += 1;
                instances.by_number.insert(instances.last, instance.clone_ref(py));
                sock.icsk_ca_priv[0] = instances.last;
            });
        }
        Ok(instance)
    }
}

/// A socket as an algorithm sees it.
#[pyclass(module = "opentcp._native")]
#[derive(Debug)]
pub struct Socket {
    sock: TcpSock,
}

/// A field's value.
#[derive(IntoPyObject)]
enum Number {
    Unsigned(u64),
    Signed(i32),
}

macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        /// The value of a field, undo_retrans apart, which alone is signed.
        fn field(sock: &TcpSock, name: &str) -> Option<u64> {
            match name {
                $(stringify!($name) => Some(u64::from(sock.$name)),)*
                _ => None,
            }
        }

        /// Names of the fields.
        const FIELDS: &[&str] = &["undo_retrans", $(stringify!($name)),*];
    };
}

fields!(
    sk_pacing_rate,
    sk_max_pacing_rate,
    sk_pacing_status,
    sk_gso_max_size,
    sk_pacing_shift,
    icsk_ca_state,
    icsk_retransmits,
    icsk_ack_pending,
    snd_cwnd,
    snd_cwnd_cnt,
    snd_ssthresh,
    snd_cwnd_clamp,
    packets_out,
    sacked_out,
    lost_out,
    retrans_out,
    delivered,
    delivered_ce,
    lost,
    app_limited,
    max_packets_out,
    cwnd_usage_seq,
    srtt_us,
    mdev_us,
    delivered_mstamp,
    first_tx_mstamp,
    tcp_wstamp_ns,
    prior_cwnd,
    prior_ssthresh,
    high_seq,
    undo_marker,
    rate_delivered,
    rate_interval_us,
    snd_cwnd_stamp,
    bytes_sent,
    lsndtime,
    advmss,
    ecn_flags,
    is_cwnd_limited,
    tcp_mstamp,
    tcp_clock_cache,
    bytes_acked,
    mss_cache,
    rcv_nxt,
    snd_una,
    snd_nxt,
);

#[pymethods]
impl Socket {
    fn __getattr__(&self, name: &str) -> PyResult<Number> {
        if name == "undo_retrans" {
            return Ok(Number::Signed(self.sock.undo_retrans));
        }
        field(&self.sock, name).map(Number::Unsigned).ok_or_else(|| unknown(name))
    }

    /// The fields that the kernel lets an algorithm write.
    fn __setattr__(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let sock = &mut self.sock;
        match name {
            "snd_cwnd" => {
                let (cwnd, most) = (value.extract::<u32>()?, sock.snd_cwnd_clamp);
                if cwnd == 0 || cwnd > most {
                    return Err(PyValueError::new_err(format!(
                        "snd_cwnd of {cwnd}: a window has 1 to {most} segments"
                    )));
                }
                sock.snd_cwnd = cwnd;
            }
            "snd_cwnd_cnt" => sock.snd_cwnd_cnt = value.extract()?,
            "snd_cwnd_stamp" => sock.snd_cwnd_stamp = value.extract()?,
            "snd_ssthresh" => sock.snd_ssthresh = value.extract()?,
            "app_limited" => sock.app_limited = value.extract()?,
            "ecn_flags" => sock.ecn_flags = value.extract()?,
            "icsk_ack_pending" => sock.icsk_ack_pending = value.extract()?,
            "sk_pacing_rate" => sock.sk_pacing_rate = value.extract()?,
            "sk_pacing_status" => sock.sk_pacing_status = value.extract()?,
            host if FIELDS.contains(&host) => {
                return Err(PyAttributeError::new_err(format!("{host} is the host's: an algorithm only reads it")));
            }
            other => return Err(unknown(other)),
        }
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __dir__(&self) -> Vec<&'static str> {
        FIELDS.to_vec()
    }

    fn __repr__(&self) -> String {
        let TcpSock { snd_cwnd, snd_ssthresh, packets_out, srtt_us, .. } = self.sock;
        format!("<Socket cwnd {snd_cwnd}, ssthresh {snd_ssthresh}, packets_out {packets_out}, srtt_us {srtt_us}>")
    }

    fn tcp_slow_start(&mut self, acked: u32) -> u32 {
        self.sock.slow_start(acked)
    }

    fn tcp_cong_avoid_ai(&mut self, w: u32, acked: u32) {
        self.sock.cong_avoid_ai(w, acked);
    }

    fn tcp_is_cwnd_limited(&self) -> bool {
        self.sock.is_window_limited()
    }

    fn tcp_in_slow_start(&self) -> bool {
        self.sock.in_slow_start()
    }

    fn tcp_left_out(&self) -> u32 {
        self.sock.left_out()
    }

    fn tcp_packets_in_flight(&self) -> u32 {
        self.sock.packets_in_flight()
    }

    fn tcp_min_rtt(&self) -> u32 {
        self.sock.min_rtt_us()
    }

    fn tcp_reno_ssthresh(&self) -> u32 {
        self.sock.reno_ssthresh()
    }

    fn tcp_reno_cong_avoid(&mut self, acked: u32) {
        self.sock.reno_cong_avoid(acked);
    }

    fn tcp_reno_undo_cwnd(&self) -> u32 {
        self.sock.reno_undo_cwnd()
    }

    fn tcp_send_ack_at(&mut self, rcv_nxt: u32) {
        self.sock.send_ack_at(rcv_nxt);
    }

    fn cc_random_u32(&mut self) -> u32 {
        self.sock.random_u32()
    }
}

fn unknown(name: &str) -> PyErr {
    PyAttributeError::new_err(format!(
        "a socket has no field {name}; what an algorithm keeps is on self, one for each flow"
    ))
}

/// What an ACK said: the argument of `pkts_acked`.
#[pyclass(frozen, get_all, module = "opentcp._native")]
#[derive(Debug)]
pub struct AckSample {
    pkts_acked: u32,
    rtt_us: i32,
    in_flight: u32,
}

impl AckSample {
    fn of(sample: &congestion::AckSample) -> AckSample {
        let congestion::AckSample { pkts_acked, rtt_us, in_flight } = *sample;
        AckSample { pkts_acked, rtt_us, in_flight }
    }
}

/// A sample of the rate of delivery: the argument of `cong_control`.
#[pyclass(frozen, get_all, module = "opentcp._native")]
#[derive(Debug)]
pub struct RateSample {
    prior_mstamp: u64,
    prior_delivered: u32,
    prior_delivered_ce: u32,
    delivered: i32,
    delivered_ce: i32,
    interval_us: i64,
    snd_interval_us: u32,
    rcv_interval_us: u32,
    rtt_us: i64,
    losses: i32,
    acked_sacked: u32,
    prior_in_flight: u32,
    last_end_seq: u32,
    is_app_limited: bool,
    is_retrans: bool,
    is_ack_delayed: bool,
}

impl RateSample {
    fn of(sample: &congestion::RateSample) -> RateSample {
        RateSample {
            prior_mstamp: sample.prior_mstamp,
            prior_delivered: sample.prior_delivered,
            prior_delivered_ce: sample.prior_delivered_ce,
            delivered: sample.delivered,
            delivered_ce: sample.delivered_ce,
            interval_us: sample.interval_us,
            snd_interval_us: sample.snd_interval_us,
            rcv_interval_us: sample.rcv_interval_us,
            rtt_us: sample.rtt_us,
            losses: sample.losses,
            acked_sacked: sample.acked_sacked,
            prior_in_flight: sample.prior_in_flight,
            last_end_seq: sample.last_end_seq,
            is_app_limited: sample.is_app_limited,
            is_retrans: sample.is_retrans,
            is_ack_delayed: sample.is_ack_delayed,
        }
    }
}
