//! TCP's parameters of other programs' connections: `bpf/agent.c`, attached to a cgroup.
//!
//! [`Retuner::set`] gives the kernel a list of rules; from then on new connections start with them, and open ones adopt them at
//! their next round trip. Each rule has a deadline, after which the kernel by itself restores what the rule changed.

use crate::objects::{self, pin_maps};
use crate::sys;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.bpf.o"));

/// Names in agent.c.
const PROGRAM: &str = "agent";
const ITERATOR: &str = "adopt";
const CGROUP: &str = "cgroup_id";
/// The file that holds the attachment.
const LINK: &str = "link";

/// How often the program moves behind others that are attached after it: one that does the same must not be fought for ever.
const MOVES_MAX: u32 = 16;
/// Most rules at a time; rules that differ only in their namespaces count as one, if their order allows it.
pub const RULES_MAX: usize = 32;
/// Bytes of a congestion-control name in the kernel, with its final zero.
const ALGORITHM_MAX: usize = 16;
/// Sizes of `struct settings`, `struct rule`, `struct table` and `struct record`.
const SETTINGS_BYTES: usize = 56;
const RULE_BYTES: usize = 56 + SETTINGS_BYTES;
const TABLE_BYTES: usize = 8 + RULES_MAX * RULE_BYTES;
const RECORD_BYTES: usize = 136;

/// Why TCP cannot be retuned.
#[derive(Debug, thiserror::Error)]
pub enum RetuneError {
    /// The kernel refuses the program.
    #[error("the kernel refuses the agent's program:\n{0}")]
    Refused(String),
    /// The program cannot be attached.
    #[error("{}: the agent's program cannot be attached to this cgroup: {reason}; it takes root and the folder of a cgroup of version 2, such as /sys/fs/cgroup", path.display())]
    Attach {
        /// The cgroup's folder, of version 2.
        path: PathBuf,
        /// The system call's error.
        reason: String,
    },
    /// Another program admits none beside it.
    #[error("{}: the agent's program cannot be attached to this cgroup beside the program {other}, which admits no other: attach that one with BPF_F_ALLOW_MULTI (bpftool cgroup attach ... multi)", path.display())]
    Exclusive {
        /// The cgroup's folder.
        path: PathBuf,
        /// Its name and number, and where it is attached.
        other: String,
    },
    /// The pinned files cannot be made, used or removed.
    #[error("{}: {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system call's error.
        reason: String,
    },
    /// More rules than the kernel's table holds.
    #[error("{0} rules; the kernel holds {RULES_MAX}: merge rules that set the same")]
    TooMany(usize),
    /// Not a possible name of a congestion-control algorithm in the kernel.
    #[error("{0:?} is not a name that the kernel can have: it takes 1 to 15 characters")]
    Name(String),
    /// A map could not be read or written.
    #[error("the kernel's tables: {0}")]
    Map(#[from] libbpf_rs::Error),
}

/// The sessions to which a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// The network namespace, by its cookie; `None`: every one.
    pub netns: Option<u64>,
    /// The remote address and the length of its prefix.
    pub remote: (IpAddr, u8),
    /// The server's port.
    pub port: Option<u16>,
}

/// The settings of a rule; an absent one stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Initial window, segments; of new connections only.
    pub initial_cwnd: Option<u32>,
    /// Minimum RTO, microseconds. The kernel [keeps](kept) whole ticks and refuses one or less (4000 at 250 Hz). After its
    /// restoration, an open connection's RTO stays low until its round trips vary.
    pub rto_min_us: Option<u32>,
    /// Longest delay of an ACK, microseconds; kept in ticks as well.
    pub delack_max_us: Option<u32>,
    /// Largest congestion window, segments.
    pub cwnd_clamp: Option<u32>,
    /// Largest receive window, bytes.
    pub window_clamp: Option<u32>,
    /// Bytes of the receive windows of all connections of the rule's namespace together, or of all namespaces: each has an equal share in
    /// whole segments, at least one; a lone one has half. A connection that has sent 64 KiB more than it has received has none.
    pub window_total: Option<u32>,
    /// Largest sending rate, bytes a second; Linux takes up to 2^32 - 2. It makes the connection pace until it
    /// closes.
    pub pacing_rate: Option<u64>,
    /// The kernel's name of a congestion-control algorithm.
    pub algorithm: Option<String>,
    /// It needs ECN: open connections that did not agree on it keep their algorithm.
    pub needs_ecn: bool,
}

/// A row of the kernel's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Recorded with each connection to which the rule was the first to apply.
    pub number: u32,
    /// Where it applies.
    pub sessions: Sessions,
    /// What it sets.
    pub tuning: Tuning,
    /// Its deadline, on the clock of [`boot_time`].
    pub deadline: Duration,
}

/// The program's counters since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times that a connection was set.
    pub applied: u64,
    /// Times that a connection's own settings were restored.
    pub reverted: u64,
    /// Algorithms that were withheld because the connection had not agreed on ECN.
    pub ecn_refused: u64,
    /// Settings that the kernel refused.
    pub failed: u64,
    /// Connections whose record was lost because the buffer was full.
    pub records_lost: u64,
}

/// An ended connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Cookie of its network namespace.
    pub netns: u64,
    /// Start, on the clock of [`boot_time`].
    pub began: Duration,
    /// End, on the same clock.
    pub ended: Duration,
    /// Bytes acknowledged; as the kernel counts, SYN and FIN are a byte each.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// The remote end.
    pub remote: IpAddr,
    /// Port here.
    pub local_port: u16,
    /// Port there.
    pub remote_port: u16,
    /// It was opened here, as opposed to accepted.
    pub active: bool,
    /// [`Rule::number`] of the first rule that applied to it last; 0 for none.
    pub rule: u32,
    /// Segments sent.
    pub segs_out: u32,
    /// Data segments sent.
    pub data_segs_out: u32,
    /// Segments retransmitted.
    pub retransmits: u32,
    /// Segments delivered.
    pub delivered: u32,
    /// Of these, marked with CE.
    pub delivered_ce: u32,
    /// Microseconds.
    pub srtt_us: u32,
    /// Microseconds.
    pub min_rtt_us: u32,
    /// Congestion window at the end, segments.
    pub cwnd: u32,
    /// Initial window, segments, as read from the socket; `None` for a connection that was open before the program was attached.
    pub initial_cwnd: Option<u32>,
    /// Congestion control at the end.
    pub algorithm: String,
}

/// The program in the kernel, attached as long as this lives.
#[must_use = "dropping it detaches the program"]
pub struct Retuner {
    // Fields drop in this order.
    link: Link,
    object: Object,
    /// The file that keeps the link.
    pin: Option<PathBuf>,
    /// How often it was attached anew because another program was attached after it.
    moved: u32,
    generation: u64,
    /// The reader of records, once one was requested.
    records: Mutex<Option<Records>>,
}

/// The kernel's buffer of records, mapped, and the records read from it.
struct Records {
    buffer: RingBuffer<'static>,
    given: Receiver<Record>,
}

impl fmt::Debug for Retuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retuner").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl Retuner {
    /// Attaches the program to the cgroup (version 2) whose folder is `cgroup`: to all sockets that are created in it and below.
    /// It sets nothing yet.
    ///
    /// # Errors
    /// No right to do so, no cgroup of version 2, or a kernel that refuses the program.
    pub fn attach(cgroup: &Path) -> Result<Retuner, RetuneError> {
        let mut object = objects::load(OBJECT, None).map_err(RetuneError::Refused)?;
        let link = attach(&mut object, cgroup)?;
        Ok(Retuner { link, object, pin: None, moved: 0, generation: 0, records: Mutex::default() })
    }

    /// As [`Retuner::attach`], but the program stays when this is dropped, pinned in `folder`, which must be in a BPF file
    /// system. It replaces one that was pinned there before, and takes over what that one has set.
    ///
    /// # Errors
    /// As there, or the files cannot be pinned.
    pub fn attach_for_good(cgroup: &Path, folder: &Path) -> Result<Retuner, RetuneError> {
        let in_folder =
            |error: &dyn fmt::Display| RetuneError::Folder { path: folder.into(), reason: error.to_string() };
        fs::create_dir_all(folder).map_err(|error| in_folder(&error))?;
        let mut object = objects::load(OBJECT, Some(folder)).map_err(RetuneError::Refused)?;
        pin_maps(&mut object, folder).map_err(|error| in_folder(&error))?;
        let pin = folder.join(LINK);
        let link = if pin.exists() && attached_to(&object)? == number(cgroup) {
            let mut link = Link::open(&pin).map_err(|error| in_folder(&error))?;
            let program = object.progs_mut().find(|program| program.name() == PROGRAM).expect("agent.c has it");
            link.update_prog(&program).map_err(|error| in_folder(&error))?;
            link
        } else {
            // a link to a cgroup that was removed is of no use
            let mut link = attach(&mut object, cgroup)?;
            let _ = fs::remove_file(&pin);
            link.pin(&pin).map_err(|error| in_folder(&error))?;
            link
        };
        let mut retuner = Retuner { link, object, pin: Some(pin), moved: 0, generation: 0, records: Mutex::default() };
        let generation = retuner.map("generation")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        retuner.generation = generation.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(retuner)
    }

    /// Attaches the program anew where it has to be, and returns whether it had to: the cgroup of this folder was removed and made anew, as a
    /// service manager does with each restart; or another program was attached after this one, and may take its callbacks away. While there
    /// is no such cgroup, nothing is attached.
    ///
    /// # Errors
    /// As [`Retuner::attach`], or the file of its link cannot be replaced.
    pub fn stay_attached(&mut self, cgroup: &Path) -> Result<bool, RetuneError> {
        let Some(now) = number(cgroup) else { return Ok(false) };
        if attached_to(&self.object)? == Some(now) {
            let others = File::open(cgroup).and_then(|folder| sys::sock_ops(folder.as_fd())).unwrap_or_default().0;
            if self.moved >= MOVES_MAX || others.last().is_none_or(|last| self.program().is_ok_and(|own| own == *last))
            {
                return Ok(false);
            }
            self.moved += 1;
        }
        let mut link = attach(&mut self.object, cgroup)?;
        if let Some(pin) = &self.pin {
            let in_folder =
                |error: &dyn fmt::Display| RetuneError::Folder { path: pin.clone(), reason: error.to_string() };
            fs::remove_file(pin).map_err(|error| in_folder(&error))?;
            link.pin(pin).map_err(|error| in_folder(&error))?;
        }
        self.link = link;
        Ok(true)
    }

    /// Ends all rules that [`Retuner::attach_for_good`] left in `folder`, without loading anything: connections are restored at their next
    /// round trip.
    ///
    /// # Errors
    /// Nothing is pinned there, or the kernel fails.
    pub fn end_rules(folder: &Path) -> Result<(), RetuneError> {
        let map = |name: &str| MapHandle::from_pinned_path(folder.join(name));
        let generation = map("generation")?;
        let now = generation.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let next = now.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)) + 1;
        map("tables")?.update(&((next & 1) as u32).to_ne_bytes(), &table(&[])?, MapFlags::ANY)?;
        generation.update(&0_u32.to_ne_bytes(), &next.to_ne_bytes(), MapFlags::ANY)?;
        Ok(())
    }

    /// Removes what [`Retuner::attach_for_good`] left in `folder`; whether there was anything. Connections keep their
    /// settings: end the rules first.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(folder: &Path) -> Result<bool, RetuneError> {
        objects::remove(folder).map_err(|error| RetuneError::Folder { path: folder.into(), reason: error.to_string() })
    }

    /// Applies the rules to all connections of the calling thread's network namespace now: also to those that are older than the
    /// program, and to idle ones, which otherwise follow when they are next used. About a microsecond each.
    /// Sockets of other cgroups are skipped.
    ///
    /// # Errors
    /// The kernel fails.
    pub fn adopt(&mut self) -> Result<(), RetuneError> {
        let program = self.object.progs_mut().find(|program| program.name() == ITERATOR).expect("agent.c has it");
        let link = program.attach()?;
        io::copy(&mut Iter::new(&link)?, &mut io::sink()).map_err(libbpf_rs::Error::from)?;
        Ok(())
    }

    /// Replaces all rules. Of the rules that apply to a session, the first that has a setting decides it. Rules
    /// that differ only in their namespaces take one row.
    ///
    /// # Errors
    /// [`RetuneError::TooMany`], [`RetuneError::Name`], or the kernel fails.
    pub fn set(&mut self, rules: &[Rule]) -> Result<(), RetuneError> {
        let joined = Joined::of(rules);
        let table = table(&joined.rules)?;
        let next = self.generation + 1;
        // write the inactive table, then switch to it
        self.map("tables")?.update(&((next & 1) as u32).to_ne_bytes(), &table, MapFlags::ANY)?;
        self.set_namespaces(joined.namespaces, (next & 1) as usize)?;
        self.map("generation")?.update(&0_u32.to_ne_bytes(), &next.to_ne_bytes(), MapFlags::ANY)?;
        self.generation = next;
        Ok(())
    }

    /// Writes into the half `which` of each entry which rules apply to the namespace; the other half is active meanwhile.
    fn set_namespaces(&self, mut new: BTreeMap<u64, u32>, which: usize) -> Result<(), RetuneError> {
        let map = self.map("namespaces")?;
        for key in map.keys().collect::<Vec<_>>() {
            let cookie = key.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            new.entry(cookie).or_default();
        }
        for (cookie, bits) in new {
            let key = cookie.to_ne_bytes();
            let mut value = map.lookup(&key, MapFlags::ANY)?.unwrap_or_else(|| vec![0; 8]);
            value[which * 4..which * 4 + 4].copy_from_slice(&bits.to_ne_bytes());
            if value.iter().any(|byte| *byte != 0) {
                map.update(&key, &value, MapFlags::ANY)?;
            } else {
                map.delete(&key)?;
            }
        }
        Ok(())
    }

    /// The program's counters.
    ///
    /// # Errors
    /// The kernel's query fails.
    pub fn counts(&self) -> Result<Counts, RetuneError> {
        let map = self.map("counters")?;
        let count = |which: u32| -> Result<u64, RetuneError> {
            let per_cpu = map.lookup_percpu(&which.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            Ok(per_cpu.iter().filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_ne_bytes(*bytes)).sum())
        };
        Ok(Counts {
            applied: count(0)?,
            reverted: count(1)?,
            ecn_refused: count(2)?,
            failed: count(3)?,
            records_lost: count(4)?,
        })
    }

    /// Calls `take` with each connection that has ended since the last call, in order of their ends.
    ///
    /// # Errors
    /// The kernel's buffer cannot be mapped.
    pub fn ended(&self, take: impl FnMut(Record)) -> Result<(), RetuneError> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let Records { buffer, given } = match &mut *records {
            Some(records) => records,
            none => none.insert(self.map_records()?),
        };
        buffer.consume()?;
        given.try_iter().for_each(take);
        Ok(())
    }

    fn map_records(&self) -> Result<Records, RetuneError> {
        let (give, given) = mpsc::channel();
        let map = self.map("records")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |bytes| {
            // the callback lives as long as the buffer
            let _ = give.send(Record::from_bytes(bytes).expect("agent.c writes whole records"));
            0
        })?;
        Ok(Records { buffer: builder.build()?, given })
    }

    /// The program's number in the kernel.
    pub(crate) fn program(&self) -> Result<u32, RetuneError> {
        let program = self.object.progs().find(|program| program.name() == PROGRAM).expect("agent.c has it");
        Ok(libbpf_rs::Program::id_from_fd(program.as_fd())?)
    }

    fn map(&self, name: &str) -> Result<MapHandle, RetuneError> {
        let map = self.object.maps().find(|map| map.name() == name).expect("agent.c has it");
        Ok(MapHandle::try_from(&map)?)
    }
}

fn attach(object: &mut Object, cgroup: &Path) -> Result<Link, RetuneError> {
    let failed = |reason: String| RetuneError::Attach { path: cgroup.to_path_buf(), reason };
    let folder = File::open(cgroup).map_err(|error| failed(error.to_string()))?;
    let program = object.progs_mut().find(|program| program.name() == PROGRAM).expect("agent.c has it");
    let link = program.attach_cgroup(folder.as_raw_fd()).map_err(|error| match exclusive(cgroup) {
        Some(other) => RetuneError::Exclusive { path: cgroup.to_path_buf(), other },
        None => failed(error.to_string()),
    })?;
    let number = folder.metadata().map_err(|error| failed(error.to_string()))?.ino();
    let map = object.maps_mut().find(|map| map.name() == CGROUP).expect("agent.c has it");
    map.update(&0_u32.to_ne_bytes(), &number.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| failed(error.to_string()))?;
    Ok(link)
}

/// The number of the cgroup to which the program is attached.
fn attached_to(object: &Object) -> Result<Option<u64>, RetuneError> {
    let map = object.maps().find(|map| map.name() == CGROUP).expect("agent.c has it");
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
    Ok(value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)))
}

/// The number by which the kernel knows the cgroup of a folder.
fn number(cgroup: &Path) -> Option<u64> {
    fs::metadata(cgroup).ok().map(|folder| folder.ino())
}

/// The program of the cgroup, or of one above it, that admits no other beside it.
fn exclusive(cgroup: &Path) -> Option<String> {
    let of = |folder: &Path| match sys::sock_ops(File::open(folder).ok()?.as_fd()) {
        Ok((ids, false)) => Some((folder.to_path_buf(), ids)),
        _ => None,
    };
    let (folder, ids) = cgroup.ancestors().find_map(of)?;
    let names: Vec<String> = ProgInfoIter::default()
        .filter(|program| ids.contains(&program.id))
        .map(|program| format!("{} (number {})", program.name.to_string_lossy(), program.id))
        .collect();
    Some(format!("{}, attached to {}", names.join(", "), folder.display()))
}

/// The clock of deadlines: the time since boot, suspended time included.
pub fn boot_time() -> Duration {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME);
    now.map_or(Duration::ZERO, Duration::from)
}

/// The value that the kernel keeps of a minimum RTO or a longest ACK delay that a rule sets: it counts in ticks of its clock, at
/// least two (TCP_TIMEOUT_MIN).
pub fn kept(asked: Duration) -> Duration {
    let tick = nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE);
    in_ticks(asked, tick.map_or(Duration::from_millis(10), Duration::from))
}

fn in_ticks(asked: Duration, tick: Duration) -> Duration {
    tick * asked.as_nanos().div_ceil(tick.as_nanos()).clamp(2, u128::from(u32::MAX)) as u32
}

/// The cookie of the calling thread's network namespace.
///
/// # Errors
/// The kernel is older than 5.14.
pub fn netns_cookie() -> io::Result<u64> {
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    sys::netns_cookie(any.as_fd())
}

/// The rules, those that differ only in their namespaces joined.
#[derive(Debug, Default)]
struct Joined {
    /// A joined rule has the `netns` of any of its members.
    rules: Vec<Rule>,
    /// Which of the joined rules apply to a namespace, a bit each.
    namespaces: BTreeMap<u64, u32>,
}

impl Joined {
    fn of(rules: &[Rule]) -> Joined {
        let mut joined = Joined::default();
        // by namespace: the earliest row of its next rule; and that of a namespace without rules
        let mut next: BTreeMap<u64, usize> = BTreeMap::new();
        let mut everywhere = 0;
        for rule in rules {
            let known = &mut joined.rules;
            let Some(netns) = rule.sessions.netns else {
                known.push(rule.clone());
                everywhere = known.len();
                continue;
            };
            let from = next.get(&netns).copied().unwrap_or(0).max(everywhere);
            let same = |other: &Rule| {
                let sessions = Sessions { netns: Some(netns), ..other.sessions };
                other.sessions.netns.is_some() && *rule == Rule { sessions, ..other.clone() }
            };
            let place = known[from..].iter().position(same).map_or(known.len(), |place| from + place);
            if place == known.len() {
                known.push(rule.clone());
            }
            next.insert(netns, place + 1);
            // `table` reports an excess
            *joined.namespaces.entry(netns).or_default() |= 1_u32.checked_shl(place as u32).unwrap_or(0);
        }
        joined
    }
}

/// The bytes of `struct table`.
fn table(rules: &[Rule]) -> Result<Vec<u8>, RetuneError> {
    if rules.len() > RULES_MAX {
        return Err(RetuneError::TooMany(rules.len()));
    }
    let mut bytes = Vec::with_capacity(TABLE_BYTES);
    bytes.extend((rules.len() as u32).to_ne_bytes());
    bytes.extend([0; 4]);
    for rule in rules {
        let (address, mask) = masked(rule.sessions.remote);
        bytes.extend(u64::from(rule.sessions.netns.is_none()).to_ne_bytes());
        bytes.extend((rule.deadline.as_nanos() as u64).to_ne_bytes());
        bytes.extend(address.to_be_bytes());
        bytes.extend(mask.to_be_bytes());
        bytes.extend(u32::from(rule.sessions.port.unwrap_or(0)).to_ne_bytes());
        bytes.extend([0; 4]);
        settings(rule, &mut bytes)?;
    }
    bytes.resize(TABLE_BYTES, 0);
    Ok(bytes)
}

/// The bytes of `struct settings`.
fn settings(rule: &Rule, bytes: &mut Vec<u8>) -> Result<(), RetuneError> {
    let Tuning {
        initial_cwnd,
        rto_min_us,
        delack_max_us,
        cwnd_clamp,
        window_clamp,
        window_total,
        pacing_rate,
        algorithm,
        needs_ecn,
    } = &rule.tuning;
    let numbers = [initial_cwnd, rto_min_us, delack_max_us, cwnd_clamp, window_clamp];
    // in the order of `enum setting`, which has the pacing rate before the last clamp
    let set = [
        initial_cwnd.is_some(),
        rto_min_us.is_some(),
        delack_max_us.is_some(),
        cwnd_clamp.is_some(),
        pacing_rate.is_some(),
        window_clamp.is_some(),
        algorithm.is_some(),
        window_total.is_some(),
    ];
    let bits: u32 = set.iter().enumerate().map(|(i, is_set)| u32::from(*is_set) << i).sum();
    bytes.extend(bits.to_ne_bytes());
    for number in numbers {
        bytes.extend(number.unwrap_or(0).to_ne_bytes());
    }
    // the largest number means no limit
    bytes.extend(pacing_rate.map_or(0, |rate| rate.min(u64::from(u32::MAX - 1)) as u32).to_ne_bytes());
    bytes.extend(u32::from(*needs_ecn).to_ne_bytes());
    let name = algorithm.as_deref().unwrap_or("");
    if algorithm.is_some() && (name.is_empty() || name.len() >= ALGORITHM_MAX || !name.is_ascii()) {
        return Err(RetuneError::Name(name.to_string()));
    }
    let mut padded = [0; ALGORITHM_MAX];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    bytes.extend(padded);
    bytes.extend(window_total.unwrap_or(0).to_ne_bytes());
    bytes.extend(rule.number.to_ne_bytes());
    Ok(())
}

/// A prefix as IPv6, zero beyond its length, and its mask.
fn masked((address, bits): (IpAddr, u8)) -> (u128, u128) {
    let (address, bits) = match address {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped(), u32::from(bits) + 96),
        IpAddr::V6(v6) => (v6, u32::from(bits)),
    };
    let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0);
    (address.to_bits() & mask, mask)
}

impl Record {
    /// From the bytes of a `struct record`; `None`: they are too few.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        bytes.get(..RECORD_BYTES)?;
        let long = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("within the record"));
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("within the record"));
        let remote: [u8; 16] = *bytes[40..].first_chunk().expect("within the record");
        let name = &bytes[112..128];
        let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
        Some(Record {
            netns: long(0),
            began: Duration::from_nanos(long(8)),
            ended: Duration::from_nanos(long(16)),
            bytes_acked: long(24),
            bytes_received: long(32),
            remote: Ipv6Addr::from(remote).to_canonical(),
            local_port: word(56) as u16,
            remote_port: word(60) as u16,
            active: word(64) != 0,
            rule: word(68),
            segs_out: word(72),
            data_segs_out: word(76),
            retransmits: word(80),
            delivered: word(88),
            delivered_ce: word(92),
            srtt_us: word(96),
            min_rtt_us: word(100),
            cwnd: word(104),
            initial_cwnd: Some(word(128)).filter(|segments| *segments > 0),
            algorithm: String::from_utf8_lossy(name).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_both_families_are_ipv6_prefixes() {
        let (address, mask) = masked(("10.1.2.3".parse().unwrap(), 8));
        assert_eq!(Ipv6Addr::from(address), "::ffff:10.0.0.0".parse::<Ipv6Addr>().unwrap());
        assert_eq!(mask.leading_ones(), 104);
        assert_eq!(masked(("fd00::1".parse().unwrap(), 0)), (0, 0));
        assert_eq!(masked(("fd00::1".parse().unwrap(), 128)).1, u128::MAX);
    }

    #[test]
    fn timeouts_are_whole_ticks_at_least_two() {
        let kept =
            |us: u64, tick_us: u64| in_ticks(Duration::from_micros(us), Duration::from_micros(tick_us)).as_micros();
        assert_eq!([kept(1, 4000), kept(2000, 4000), kept(8000, 4000), kept(8001, 4000)], [8000, 8000, 8000, 12_000]);
        assert_eq!([kept(2000, 1000), kept(2000, 10_000)], [2000, 20_000]);
    }

    #[test]
    fn rules_that_differ_in_their_namespace_are_one_unless_another_stands_between() {
        let rule = |netns: Option<u64>, number: u32| Rule {
            number,
            sessions: Sessions { netns, remote: ("0.0.0.0".parse().unwrap(), 0), port: None },
            tuning: Tuning::default(),
            deadline: Duration::ZERO,
        };
        let joined = |rules: &[(u64, u32)]| {
            let netns = |cookie: u64| Some(cookie).filter(|cookie| *cookie > 0);
            let rules: Vec<Rule> = rules.iter().map(|(cookie, number)| rule(netns(*cookie), *number)).collect();
            let joined = Joined::of(&rules);
            let numbers: Vec<u32> = joined.rules.iter().map(|rule| rule.number).collect();
            (numbers, joined.namespaces.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(joined(&[(1, 7), (2, 7), (1, 8), (2, 8)]), (vec![7, 8], vec![(1, 3), (2, 3)]));
        // the second namespace has them the other way round
        assert_eq!(joined(&[(1, 7), (1, 8), (2, 8), (2, 7)]), (vec![7, 8, 7], vec![(1, 3), (2, 6)]));
        // rules for all namespaces keep their place
        assert_eq!(joined(&[(1, 7), (0, 9), (2, 7)]), (vec![7, 9, 7], vec![(1, 1), (2, 4)]));
        let many: Vec<(u64, u32)> = (1..=64).flat_map(|host| [(host, 1), (host, 2), (host, 3)]).collect();
        assert_eq!(joined(&many).0, [1, 2, 3]);
    }

    #[test]
    fn a_table_is_as_long_as_the_kernels() {
        let sessions = Sessions { netns: None, remote: ("0.0.0.0".parse().unwrap(), 0), port: None };
        let rule = Rule { number: 1, sessions, tuning: Tuning::default(), deadline: Duration::ZERO };
        assert_eq!(table(std::slice::from_ref(&rule)).unwrap().len(), TABLE_BYTES);
        assert!(matches!(table(&vec![rule.clone(); RULES_MAX + 1]), Err(RetuneError::TooMany(33))));
        let long = Tuning { algorithm: Some("x".repeat(16)), ..Tuning::default() };
        assert!(matches!(table(&[Rule { tuning: long, ..rule }]), Err(RetuneError::Name(_))));
    }
}
