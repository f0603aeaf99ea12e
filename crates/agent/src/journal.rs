//! Routes and sysctls persist when a process dies, so their earlier values are written down before they change.
//!
//! The journal is a file. It is on disk before the first change that it lists, and names for each route and sysctl the old and the new
//! value. Undoing restores only what still is as we made it: later changes by others stay. It is valid for one boot of
//! the machine and one network namespace, since neither routes nor sysctls outlive these.

#[cfg(test)]
mod tests;

use crate::netlink::RoutingTable;
use crate::plan::{ECN, Plan};
use crate::routes::{Change, Table, essence, from_bytes, metrics_of, shows, to_bytes, without_algorithm};
use crate::{hex, namespaces};
use bus::files::{FileError, read_checked, replace_checked};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::RouteMessage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What to do about a journal that cannot be read.
const DAMAGED: &str = "It lists what an agent had changed: compare `ip route show table all` with how it ought to be, then remove it. A reboot restores everything";

/// What was changed.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    content: Content,
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
            (None, None) => Undoing::Nothing,
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
        Ok(Journal { path: path.to_path_buf(), content })
    }

    /// Whether it lists no change.
    pub fn is_empty(&self) -> bool {
        self.content.sysctls.is_empty() && self.content.routes.is_empty()
    }

    /// Sets routes and sysctls as the plan says, and restores what it no longer lists. Returns what could not be done.
    ///
    /// # Errors
    /// The journal cannot be written; then nothing was changed.
    pub fn apply(&mut self, plan: &Plan) -> Result<Vec<String>, FileError> {
        let mut notes = Vec::new();
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
        let mut kernel = match Kernel::open(plan.wishes.is_empty() && self.content.routes.is_empty()) {
            Ok(kernel) => kernel,
            Err(error) => {
                notes.push(format!("routes are not set: {error}"));
                Kernel::default()
            }
        };
        let base = self.base(&kernel.table)?;
        let (changes, odd) = base.changes(&plan.wishes, !plan.rules.is_empty());
        notes.extend(odd);
        for (name, change) in &changes {
            let before = change.before.as_ref().map(Bytes::of);
            after.routes.insert(name.clone(), Route { before, ours: vec![Bytes::of(&change.after)] });
        }
        if after == self.content {
            return Ok(notes);
        }
        self.write(&merged(&self.content, &after))?;
        notes.extend(self.make(&after, &changes, &mut kernel));
        self.write(&after)?;
        self.content = after;
        Ok(notes)
    }

    /// The changes that [`apply`](Self::apply) would make, in words. Changes nothing.
    pub fn foresee(plan: &Plan) -> io::Result<Vec<String>> {
        let kernel = Kernel::open(plan.wishes.is_empty())?;
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

    /// Restores everything. Returns what was left because it has been changed by others.
    ///
    /// # Errors
    /// The journal cannot be removed.
    pub fn undo(&mut self) -> Result<Vec<String>, FileError> {
        let notes = self.apply(&Plan::default())?;
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FileError::Io { path: self.path.clone(), source })
            }
            _ => Ok(notes),
        }
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

    /// Applies the difference between the journal as it was and `after`.
    fn make(&self, after: &Content, changes: &BTreeMap<String, Change>, kernel: &mut Kernel) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, entry) in self.content.sysctls.iter().filter(|(name, _)| !after.sysctls.contains_key(*name)) {
            match entry.undoing(sysctl(name).ok().as_deref()) {
                Undoing::Restore => notes.extend(set_sysctl(name, &entry.before)),
                Undoing::Nothing => {}
                Undoing::Leave => notes.push(format!("sysctl {name} is not restored: something else has changed it")),
            }
        }
        for (name, entry) in &after.sysctls {
            let is_there =
                self.content.sysctls.get(name) == Some(entry) && sysctl(name).is_ok_and(|now| now == entry.ours[0]);
            if !is_there {
                notes.extend(set_sysctl(name, &entry.ours[0]));
            }
        }
        for (name, entry) in self.content.routes.iter().filter(|(name, _)| !after.routes.contains_key(*name)) {
            let now = kernel.table.route(name).cloned();
            match entry.undoing(now.as_ref()) {
                Undoing::Restore => {
                    let done = kernel.ask(|netlink| match (entry.before(), now) {
                        (Some(before), _) => set(|route| netlink.replace(route), before),
                        (None, now) => now.map_or(Ok(()), |now| netlink.remove(now)).map(|()| true),
                    });
                    notes.extend(note(name, "restored", done));
                }
                Undoing::Nothing => {}
                Undoing::Leave => notes.push(format!("route {name} is not restored: something else has changed it")),
            }
        }
        for (name, change) in changes {
            let now = kernel.table.route(name);
            if now.is_some_and(|now| essence(now) == essence(&change.after)) {
                continue;
            }
            let after = change.after.clone();
            let is_there = now.is_some();
            let done = kernel
                .ask(|netlink| set(|route| if is_there { netlink.replace(route) } else { netlink.add(route) }, after));
            notes.extend(note(name, "set", done));
        }
        notes
    }
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
fn note(name: &str, done: &str, result: io::Result<bool>) -> Option<String> {
    match result {
        Ok(true) => None,
        Ok(false) => Some(format!("route {name} is {done} without its algorithm, which is not loaded any more")),
        Err(error) => Some(format!("route {name} is not {done}: {error}")),
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
}

impl Kernel {
    fn open(nothing: bool) -> io::Result<Kernel> {
        if nothing {
            return Ok(Kernel::default());
        }
        let mut netlink = RoutingTable::open()?;
        let mut all = netlink.routes(AddressFamily::Inet)?;
        all.extend(netlink.routes(AddressFamily::Inet6)?);
        Ok(Kernel { netlink: Some(netlink), table: Table::new(all) })
    }

    /// Does it, if there are routes to change; see [`set`] for the result.
    fn ask(&mut self, what: impl FnOnce(&mut RoutingTable) -> io::Result<bool>) -> io::Result<bool> {
        self.netlink.as_mut().map_or(Ok(true), what)
    }
}

/// The routes of the calling thread's namespace.
pub fn table() -> io::Result<Table> {
    Kernel::open(false).map(|kernel| kernel.table)
}

fn path_of(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// A sysctl of the calling thread's namespace.
fn sysctl(name: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path_of(name))?.trim().to_string())
}

/// Sets it; returns why not.
fn set_sysctl(name: &str, value: &str) -> Option<String> {
    fs::write(path_of(name), value).err().map(|error| format!("sysctl {name} = {value} is not set: {error}"))
}
