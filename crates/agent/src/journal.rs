//! Routes and sysctls persist when a process dies, so their earlier values are written down before they change.
//!
//! The journal is a file. It is on disk before the first change that it lists, and names for each route and sysctl the old and the new
//! value. Undoing restores only what still is as we made it: later changes by others stay. It is valid for one boot of
//! the machine and one network namespace, since neither routes nor sysctls outlive these.

#[cfg(test)]
mod tests;

use crate::netlink::RoutingTable;
use crate::plan::{ECN, Plan};
use crate::routes::{
    Change, Table, bare, description, destination, from_bytes, metrics_of, named, shows, to_bytes, without_algorithm,
};
use crate::{hex, namespaces};
use bus::files::{FileError, read_checked, replace_checked};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::RouteMessage;
use policy::Prefix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

/// What to do about a journal that cannot be read.
const DAMAGED: &str = "It lists what an agent had changed: compare `ip route show table all` with how it ought to be, then remove it. A reboot restores everything";

/// How often, and after which pauses, a restoration is tried while other changes hide routes.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// What was changed.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    content: Content,
    /// Opened with the first change.
    netlink: Option<RoutingTable>,
    /// How many dumps have lacked a route of the journal that may be there.
    missed: BTreeMap<String, usize>,
}

/// What [`Journal::apply`] has done.
#[derive(Debug, Default)]
pub struct Applied {
    /// What could not be done.
    pub notes: Vec<String>,
    /// The routes as they are now.
    pub table: Table,
    /// Routes and sysctls that others had set back, and that were set again.
    pub again: Vec<String>,
    /// All that was to be seen was seen: else it is to be done again.
    pub is_whole: bool,
}

/// What is said of routes: of many the same in one line.
#[derive(Debug, Default)]
struct Remarks(BTreeMap<String, Vec<String>>);

impl Remarks {
    fn add(&mut self, name: &str, what: Option<String>) {
        if let Some(what) = what {
            self.0.entry(what).or_default().push(name.to_string());
        }
    }

    fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(what, names)| match &names[..] {
            [name] => format!("route {name} is {what}"),
            names => format!("{} routes are {what} ({})", names.len(), named(names, "; ")),
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// /proc/sys/kernel/random/boot_id
    boot: String,
    /// The network namespace's number.
    namespace: u64,
    sysctls: BTreeMap<String, Sysctl>,
    routes: BTreeMap<String, Route>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sysctl {
    before: String,
    /// More than one while it changes from one to the next.
    ours: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Route {
    /// A netlink message; absent: there was no route.
    before: Option<Bytes>,
    ours: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Bytes(#[serde(with = "hex")] Vec<u8>);

impl Bytes {
    fn of(route: &RouteMessage) -> Bytes {
        Bytes(to_bytes(route))
    }

    fn is(&self, route: &RouteMessage) -> bool {
        from_bytes(&self.0).is_some_and(|own| shows(route, &own))
    }
}

/// What becomes of a value that is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undoing {
    /// It is as we made it: the earlier one returns.
    Restore,
    /// The earlier one is there.
    Nothing,
    /// Something else has changed it, and that stays.
    Leave,
}

impl Sysctl {
    /// The entry of a sysctl that is `now` and is to be `value`; `None`: it has that without us.
    fn wanted(known: Option<&Sysctl>, now: String, value: &str) -> Option<Sysctl> {
        let ours = known.filter(|entry| entry.ours.contains(&now));
        let before = ours.map_or(now, |entry| entry.before.clone());
        (before != value).then(|| Sysctl { before, ours: vec![value.to_string()] })
    }

    /// What becomes of it; `now`: its value, if it can be read.
    fn undoing(&self, now: Option<&str>) -> Undoing {
        match now {
            Some(now) if self.ours.iter().any(|ours| ours == now) => Undoing::Restore,
            Some(now) if now == self.before => Undoing::Nothing,
            _ => Undoing::Leave,
        }
    }
}

impl Route {
    /// `None` also if the bytes are no route, which [`Journal::base`] refuses.
    fn before(&self) -> Option<RouteMessage> {
        self.before.as_ref().and_then(|bytes| from_bytes(&bytes.0))
    }

    /// What becomes of it; `now`: the route, if there is one.
    fn undoing(&self, now: Option<&RouteMessage>) -> Undoing {
        match (now, self.before()) {
            (Some(now), _) if self.ours.iter().any(|ours| ours.is(now)) => Undoing::Restore,
            // what others have removed is theirs, too
            (None, _) => Undoing::Nothing,
            (Some(now), Some(before)) if shows(now, &before) => Undoing::Nothing,
            _ => Undoing::Leave,
        }
    }
}

impl Content {
    fn read(bytes: &[u8]) -> Result<Content, String> {
        let content: Content = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match content.sysctls.keys().find(|name| *name != ECN) {
            Some(odd) => Err(format!("it names the sysctl {odd:?}, which no agent sets")),
            None => Ok(content),
        }
    }
}

/// Reads bytes as a journal, and its routes.
pub fn parsed(bytes: &[u8]) {
    let Ok(content) = Content::read(bytes) else { return };
    for Route { before, ours } in content.routes.values() {
        for route in before.iter().chain(ours) {
            let _ = from_bytes(&route.0);
            let _ = route.is(&RouteMessage::default());
        }
    }
}

impl Journal {
    /// The journal that an earlier agent has left in `path`, if it is of this boot and namespace.
    ///
    /// # Errors
    /// The file cannot be read, or was edited.
    pub fn open(path: &Path) -> Result<Journal, FileError> {
        let io = |source| FileError::Io { path: path.to_path_buf(), source };
        let here = Content {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(io)?.trim().to_string(),
            namespace: namespaces::number("thread-self").unwrap_or_default(),
            ..Content::default()
        };
        let content = match read_checked(path, DAMAGED)? {
            None => here,
            Some(bytes) => {
                let content =
                    Content::read(&bytes).map_err(|reason| io(io::Error::new(io::ErrorKind::InvalidData, reason)))?;
                let counts = content.boot == here.boot && content.namespace == here.namespace;
                if counts { content } else { here }
            }
        };
        Ok(Journal { path: path.to_path_buf(), content, netlink: None, missed: BTreeMap::new() })
    }

    /// Whether it lists no change.
    pub fn is_empty(&self) -> bool {
        self.content.sysctls.is_empty() && self.content.routes.is_empty()
    }

    /// The number in the kernel of the socket that changes routes, if there is one.
    pub fn port(&self) -> Option<u32> {
        self.netlink.as_ref().map(RoutingTable::port)
    }

    /// Where routes lead that were added here.
    pub fn added(&self) -> Vec<Prefix> {
        let added = self.content.routes.values().filter(|entry| entry.before.is_none());
        added.filter_map(|entry| destination(&from_bytes(&entry.ours.first()?.0)?)).collect()
    }

    /// Whether others have changed a sysctl that was set here.
    pub fn has_other_sysctls(&self) -> bool {
        self.content.sysctls.iter().any(|(name, entry)| !is_set(name, entry))
    }

    /// Sets routes and sysctls as the plan says, also what others have set back, but for what is `contested`; and restores what it no longer
    /// lists.
    ///
    /// # Errors
    /// The journal cannot be written; then nothing was changed.
    pub fn apply(&mut self, plan: &Plan, contested: &BTreeSet<String>) -> Result<Applied, FileError> {
        let mut notes = Vec::new();
        let nothing = plan.wishes.is_empty() && self.content.routes.is_empty();
        let mut kernel = match Kernel::open(nothing, self.netlink.take()) {
            Ok(kernel) => kernel,
            Err(error) => {
                notes.push(format!("routes are not set: {error}"));
                Kernel::default()
            }
        };
        kernel.look_for(&self.content.routes, &mut self.missed);
        let has_more = self.take_shared(&kernel.table);
        let mut after = Content { sysctls: BTreeMap::new(), routes: BTreeMap::new(), ..self.content.clone() };
        for (name, value) in &plan.sysctls {
            let Ok(now) = sysctl(name) else {
                notes.push(format!("sysctl {name} is not set: this kernel does not have it"));
                continue;
            };
            if let Some(entry) = Sysctl::wanted(self.content.sysctls.get(name), now, value) {
                after.sysctls.insert(name.clone(), entry);
            }
        }
        let base = self.base(&kernel.table)?;
        let (mut changes, odd) = base.changes(&plan.wishes, !plan.rules.is_empty());
        notes.extend(odd);
        for (name, change) in &changes {
            let before = change.before.as_ref().map(Bytes::of);
            after.routes.insert(name.clone(), Route { before, ours: vec![Bytes::of(&change.after)] });
        }
        for name in &kernel.unseen {
            if let Some(entry) = self.content.routes.get(name) {
                after.routes.entry(name.clone()).or_insert_with(|| entry.clone());
            }
        }
        changes.retain(|name, change| !kernel.table.route(name).is_some_and(|now| shows(now, &change.after)));
        let is_known = |name: &String| self.content.routes.get(name) == after.routes.get(name);
        let mut again: Vec<String> = changes.keys().filter(|name| is_known(name)).cloned().collect();
        let sysctls = after.sysctls.iter().filter(|(name, entry)| self.content.sysctls.get(*name) == Some(entry));
        again.extend(sysctls.filter(|(name, entry)| !is_set(name, entry)).map(|(name, _)| name.clone()));
        let left: Vec<String> = again.extract_if(.., |name| contested.contains(name)).collect();
        if !left.is_empty() {
            let names = named(&left, "; ");
            notes.push(format!(
                "{} routes and sysctls are not set ({names}): something else sets them back",
                left.len()
            ));
            changes.retain(|name, _| !contested.contains(name));
        }
        let is_news = has_more || after != self.content;
        if is_news {
            self.write(&merged(&self.content, &after))?;
        }
        if is_news || !again.is_empty() {
            notes.extend(self.make(&mut after, changes, &mut kernel, contested));
        }
        if is_news {
            self.write(&after)?;
        }
        // what could not be set was not set again
        let is_in_place = |name: &String| match after.routes.get(name) {
            Some(entry) => kernel.table.route(name).is_some_and(|now| entry.ours.iter().any(|own| own.is(now))),
            None => after.sysctls.get(name).is_some_and(|entry| is_set(name, entry)),
        };
        again.retain(is_in_place);
        self.content = after;
        let Kernel { netlink, table, is_whole, unseen } = kernel;
        self.netlink = netlink;
        Ok(Applied { notes, table, again, is_whole: is_whole && unseen.is_empty() })
    }

    /// Takes routes of others into the journal that Linux has given what was set here: those that have come without metrics, of a nexthop object
    /// of which a route was set. Whether there are any.
    fn take_shared(&mut self, table: &Table) -> bool {
        let mut set = BTreeMap::new();
        for (name, entry) in &self.content.routes {
            let now = table.route(name).filter(|now| entry.ours.iter().any(|own| own.is(now)));
            let of = now.and_then(description);
            if let (Some(now), Some(of)) = (now, of)
                && entry.before().is_some_and(|before| bare(&before).is_none())
            {
                set.insert(of, metrics_of(now));
            }
        }
        let is_shared = |route: &RouteMessage| {
            description(route).and_then(|of| set.get(&of)).is_some_and(|metrics| *metrics == metrics_of(route))
        };
        let mut shared = BTreeMap::new();
        for (name, route) in table.routes().filter(|(name, _)| !self.content.routes.contains_key(*name)) {
            if let Some(before) = bare(route).filter(|_| !set.is_empty() && is_shared(route)) {
                shared.insert(name.clone(), Route { before: Some(Bytes::of(&before)), ours: vec![Bytes::of(route)] });
            }
        }
        let has_more = !shared.is_empty();
        self.content.routes.extend(shared);
        has_more
    }

    /// The changes that [`apply`](Self::apply) would make, in words. Changes nothing.
    pub fn foresee(plan: &Plan) -> io::Result<Vec<String>> {
        let kernel = Kernel::open(plan.wishes.is_empty(), None)?;
        let (changes, mut lines) = kernel.table.changes(&plan.wishes, !plan.rules.is_empty());
        for (name, change) in &changes {
            let what = if change.before.is_some() { "changed" } else { "added" };
            lines.push(format!("route {name}: {what}: {}", metrics_of(&change.after)));
        }
        for (name, value) in &plan.sysctls {
            let now = sysctl(name)?;
            if now != *value {
                lines.push(format!("sysctl {name} = {value}; it is {now}"));
            }
        }
        Ok(lines)
    }

    /// Restores everything. Returns what was left because it has been changed by others. What cannot be restored now stays in the journal: see
    /// [`Journal::left`].
    ///
    /// # Errors
    /// The journal cannot be removed.
    pub fn undo(&mut self) -> Result<Vec<String>, FileError> {
        let mut notes = Vec::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                thread::sleep(PAUSE);
            }
            notes.extend(self.apply(&Plan::default(), &BTreeSet::new())?.notes);
            if self.is_empty() {
                break;
            }
        }
        notes.sort();
        notes.dedup();
        if !self.is_empty() {
            return Ok(notes);
        }
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FileError::Io { path: self.path.clone(), source })
            }
            _ => Ok(notes),
        }
    }

    /// What is still to be restored, as text.
    pub fn left(&self) -> Option<String> {
        let names: Vec<&String> = self.content.routes.keys().chain(self.content.sysctls.keys()).collect();
        let count = if names.len() == 1 {
            "1 route or sysctl is".to_string()
        } else {
            format!("{} routes and sysctls are", names.len())
        };
        (!names.is_empty()).then(|| format!("{count} not restored ({}): try opentcp agent reset", named(&names, "; ")))
    }

    /// The routes without our changes.
    fn base(&self, table: &Table) -> Result<Table, FileError> {
        let mut base = table.clone();
        for (name, entry) in &self.content.routes {
            if table.route(name).is_some_and(|now| entry.ours.iter().any(|ours| ours.is(now))) {
                let before = match &entry.before {
                    None => None,
                    Some(bytes) => Some(from_bytes(&bytes.0).ok_or_else(|| FileError::Io {
                        path: self.path.clone(),
                        source: io::Error::new(io::ErrorKind::InvalidData, "it contains an invalid route"),
                    })?),
                };
                base.put_back(name, before);
            }
        }
        Ok(base)
    }

    fn write(&self, content: &Content) -> Result<(), FileError> {
        let mut text = serde_json::to_vec_pretty(content).expect("a journal is plain data");
        text.push(b'\n');
        replace_checked(&self.path, &text)
    }

    /// Applies the difference between the journal as it was and `after`, to which it adds what it cannot restore now.
    fn make(
        &self,
        after: &mut Content,
        changes: BTreeMap<String, Change>,
        kernel: &mut Kernel,
        contested: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let ended: Vec<_> =
            self.content.sysctls.iter().filter(|(name, _)| !after.sysctls.contains_key(*name)).collect();
        for (name, entry) in ended {
            match entry.undoing(sysctl(name).ok().as_deref()) {
                Undoing::Restore => {
                    if let Some(note) = set_sysctl(name, &entry.before) {
                        notes.push(note);
                        after.sysctls.insert(name.clone(), entry.clone());
                    }
                }
                Undoing::Nothing => {}
                Undoing::Leave => notes.push(format!("sysctl {name} is not restored: something else has changed it")),
            }
        }
        for (name, entry) in
            after.sysctls.iter().filter(|(name, entry)| !contested.contains(*name) && !is_set(name, entry))
        {
            notes.extend(set_sysctl(name, &entry.ours[0]));
        }
        let mut remarks = Remarks::default();
        self.restore_routes(after, kernel, &mut remarks);
        for (name, change) in changes {
            let route = change.after.clone();
            let is_there = kernel.table.route(&name).is_some();
            let done = kernel
                .ask(|netlink| set(|route| if is_there { netlink.replace(route) } else { netlink.add(route) }, route));
            if done.is_ok() {
                kernel.table.put_back(&name, Some(change.after));
            }
            remarks.add(&name, remark("set", done));
        }
        notes.extend(remarks.lines());
        notes
    }

    /// Restores the routes that `after` no longer lists, and lists there those that cannot be restored now.
    fn restore_routes(&self, after: &mut Content, kernel: &mut Kernel, remarks: &mut Remarks) {
        let ended: Vec<_> = self.content.routes.iter().filter(|(name, _)| !after.routes.contains_key(*name)).collect();
        for (name, entry) in ended {
            let now = kernel.table.route(name).cloned();
            match entry.undoing(now.as_ref()) {
                Undoing::Restore => {
                    let before = entry.before();
                    let done = kernel.ask(|netlink| match (before.clone(), now) {
                        (Some(before), _) => set(|route| netlink.replace(route), before),
                        (None, now) => now.map_or(Ok(()), |now| netlink.remove(now)).map(|()| true),
                    });
                    if done.as_ref().is_err_and(|error| !is_gone(error)) {
                        after.routes.insert(name.clone(), entry.clone());
                    } else {
                        kernel.table.put_back(name, before);
                    }
                    remarks.add(name, remark("restored", done));
                }
                Undoing::Nothing => {}
                Undoing::Leave => {
                    remarks.add(name, Some("not restored: something else has changed it".to_string()));
                }
            }
        }
    }
}

/// Whether an error says that there is no such route (ENOENT, ESRCH).
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Replaces or adds a route. If it names an algorithm that somebody has unloaded since, which Linux refuses, the name is left out. Returns
/// whether the route is set as a whole.
fn set(mut how: impl FnMut(RouteMessage) -> io::Result<()>, route: RouteMessage) -> io::Result<bool> {
    let nameless = without_algorithm(&route);
    match (how(route), nameless) {
        (Err(error), Some(route)) if error.kind() == io::ErrorKind::InvalidInput => how(route).map(|()| false),
        (done, _) => done.map(|()| true),
    }
}

/// What is to be reported of a route that should be `done` (restored, set).
fn remark(done: &str, result: io::Result<bool>) -> Option<String> {
    match result {
        Ok(true) => None,
        Ok(false) => Some(format!("{done} without its algorithm, which is not loaded any more")),
        // others remove routes as they like
        Err(error) if is_gone(&error) => None,
        Err(error) => Some(format!("not {done}: {error}")),
    }
}

/// Both values, so that ours is recognised whichever of the two was in force.
fn merged(one: &Content, other: &Content) -> Content {
    let mut both = one.clone();
    for (name, entry) in &other.sysctls {
        let known = both.sysctls.entry(name.clone()).or_insert_with(|| Sysctl { ours: Vec::new(), ..entry.clone() });
        known.before.clone_from(&entry.before);
        known.ours.extend(entry.ours.clone());
    }
    for (name, entry) in &other.routes {
        let known = both.routes.entry(name.clone()).or_insert_with(|| Route { ours: Vec::new(), ..entry.clone() });
        known.before.clone_from(&entry.before);
        known.ours.extend(entry.ours.clone());
    }
    both
}

/// A netlink socket, and the routes when it was opened.
#[derive(Default)]
struct Kernel {
    netlink: Option<RoutingTable>,
    table: Table,
    /// What is not in the table was not there.
    is_whole: bool,
    /// Names of the journal's routes of which it is not known whether they are there.
    unseen: BTreeSet<String>,
}

impl Kernel {
    fn open(nothing: bool, netlink: Option<RoutingTable>) -> io::Result<Kernel> {
        if nothing {
            return Ok(Kernel { is_whole: true, ..Kernel::default() });
        }
        let mut netlink = netlink.map_or_else(RoutingTable::open, Ok)?;
        let [four, six] = [netlink.routes(AddressFamily::Inet)?, netlink.routes(AddressFamily::Inet6)?];
        let is_whole = four.is_whole && six.is_whole;
        let all = [four.messages, six.messages].concat();
        let mut table = Table::new(all);
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            // rules that change just now leave what is known of them
            table.ruled(&netlink.rules(family).unwrap_or_default());
        }
        Ok(Kernel { netlink: Some(netlink), table, is_whole, unseen: BTreeSet::new() })
    }

    /// Asks for each of the journal's routes that the dump lacks: of a table that changes meanwhile some dumps of IPv6 lack routes without
    /// being marked as interrupted. What stays unknown is taken as gone when several whole dumps, one after the other, have lacked it.
    fn look_for(&mut self, routes: &BTreeMap<String, Route>, missed: &mut BTreeMap<String, usize>) {
        missed.retain(|name, _| routes.contains_key(name) && self.table.route(name).is_none());
        for (name, entry) in routes.iter().filter(|(_, entry)| !entry.ours.is_empty()) {
            if self.table.route(name).is_some() {
                continue;
            }
            let to = entry.ours.first().and_then(|bytes| from_bytes(&bytes.0));
            let answer = self.netlink.as_mut().zip(to.as_ref()).and_then(|(netlink, to)| netlink.matching(to).ok());
            let bits = to.map_or(0, |to| to.header.destination_prefix_length);
            let is_known = answer.and_then(|answer| self.table.answered(name, bits, answer)).is_some();
            let times = missed.entry(name.clone()).or_default();
            *times += usize::from(self.is_whole && !self.table.is_ambiguous(name));
            if !is_known && *times < TRIES {
                self.unseen.insert(name.clone());
            }
        }
    }

    /// Does it, if there are routes to change; see [`set`] for the result.
    fn ask(&mut self, what: impl FnOnce(&mut RoutingTable) -> io::Result<bool>) -> io::Result<bool> {
        self.netlink.as_mut().map_or(Ok(true), what)
    }
}

/// The routes of the calling thread's namespace.
pub fn table() -> io::Result<Table> {
    Kernel::open(false, None).map(|kernel| kernel.table)
}

fn path_of(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// A sysctl of the calling thread's namespace.
fn sysctl(name: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path_of(name))?.trim().to_string())
}

/// Whether a sysctl has the value that it was given here.
fn is_set(name: &str, entry: &Sysctl) -> bool {
    sysctl(name).is_ok_and(|now| entry.ours.first() == Some(&now))
}

/// Sets it; returns why not.
fn set_sysctl(name: &str, value: &str) -> Option<String> {
    fs::write(path_of(name), value).err().map(|error| format!("sysctl {name} = {value} is not set: {error}"))
}
