//! The applications of a run, acting on simulated hosts.

use crate::core::{Core, Hear};
use crate::flows::{Flow, Flows, Pair, flow_of, receiver};
use crate::requests::{Request, Requests, sender};
use net::{LinkId, NodeId};
use plan::{Applications, FlowName, Message, Opening, Pairing, Stage};
use results::{CoflowRow, JobRow};
use scenario::Scenario;
use std::sync::Arc;
use units::Time;

/// All traffic of a run.
pub struct Traffic {
    applications: Applications,
    entries: Entries,
    pub flows: Flows,
}

/// The entries of the scenario, by number.
struct Entries {
    names: Vec<Arc<str>>,
    labels: Vec<String>,
    stacks: Vec<Arc<tcp::Config>>,
    /// Whether they send datagrams.
    is_udp: Vec<bool>,
    /// The place of each among their names in order: what is due at one instant is done in that order, whatever the file's is.
    places: Vec<u32>,
    /// And the entry at each place.
    by_name: Vec<u32>,
}

impl Traffic {
    /// Schedules the start of every entry of `scenario`; `stacks` has one an entry. The caller posts the requests.
    pub fn new(
        scenario: &Scenario,
        stacks: Vec<Arc<tcp::Config>>,
        mut flows: Flows,
        requests: &mut Requests,
    ) -> Traffic {
        let entries = Entries::of(scenario, stacks);
        let mut stage = Asking { requests, flows: &mut flows, entries: &entries };
        let mut applications = Applications::new(scenario, &mut stage);
        while let Some((place, which)) = stage.requests.next_early() {
            applications.on_app(&mut stage, entries.by_name[place as usize], which);
        }
        requests.sort_asked();
        Traffic { applications, entries, flows }
    }

    /// Numbers of their own that entries report: name and value.
    pub fn extra(&self, warmup: Time) -> Vec<(String, f64)> {
        let mut rows = self.applications.extra(warmup);
        if self.flows.unreachable > 0 {
            rows.push(("flows_without_a_path".into(), self.flows.unreachable as f64));
        }
        rows
    }

    /// The tables `jobs` and `coflows`.
    pub fn jobs(&self, warmup: Time) -> (Vec<JobRow>, Vec<CoflowRow>) {
        self.applications.jobs(warmup)
    }

    /// The stack of an entry's flows, as the scenario has it.
    pub fn stack(&self, entry: u32) -> &Arc<tcp::Config> {
        &self.entries.stacks[entry as usize]
    }

    /// The label of a flow's entry.
    pub fn label(&self, flow: &Flow) -> &str {
        &self.entries.labels[flow.entry as usize]
    }

    /// Names of the entries.
    pub fn names(&self) -> &[Arc<str>] {
        &self.entries.names
    }

    /// Gives every open flow whose path has a link that is down a new path, if there is one.
    pub fn reroute(&mut self, core: &mut Core) {
        self.flows.reroute(core, &self.entries.names);
    }

    /// A path for one direction of the flow with this number, which is the one with that number of its entry; none if failures have left
    /// none.
    pub fn path(&self, flow: usize, of_entry: u64, forward: bool) -> Option<Vec<LinkId>> {
        let Flow { entry, src, dst, .. } = self.flows.list[flow];
        let name = FlowName::new(&self.entries.names[entry as usize], of_entry);
        let (from, to) = if forward { (src, dst) } else { (dst, src) };
        let mut path = Vec::new();
        let hash = name.path_hash(forward);
        self.flows.router.path(NodeId(from), NodeId(to), hash, &mut path).ok().map(|()| path)
    }

    /// The send buffer of `socket` is full.
    pub fn on_full(&mut self, requests: &mut Requests, socket: u32) {
        let (entry, flow) = self.of(socket);
        let (mut stage, applications) = self.stage(requests);
        applications.on_full(&mut stage, entry, flow);
    }

    /// What applications act with, and they.
    fn stage<'a>(&'a mut self, requests: &'a mut Requests) -> (Asking<'a>, &'a mut Applications) {
        (Asking { requests, flows: &mut self.flows, entries: &self.entries }, &mut self.applications)
    }

    /// The entry of a socket's flow, and the flow.
    fn of(&self, socket: u32) -> (u32, u32) {
        let flow = flow_of(socket);
        (self.flows.list[flow as usize].entry, flow)
    }
}

impl Entries {
    fn of(scenario: &Scenario, stacks: Vec<Arc<tcp::Config>>) -> Entries {
        let names: Vec<Arc<str>> = scenario.traffic.iter().map(|entry| entry.name.as_str().into()).collect();
        let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
        by_name.sort_by_key(|entry| &names[*entry as usize]);
        let mut places = vec![0; names.len()];
        for (place, entry) in by_name.iter().enumerate() {
            places[*entry as usize] = place as u32;
        }
        let labels = scenario.traffic.iter().map(|entry| entry.label.clone()).collect();
        let is_udp = scenario.traffic.iter().map(|entry| entry.kind.datagrams().is_some()).collect();
        Entries { names, labels, stacks, is_udp, places, by_name }
    }
}

impl Hear for Traffic {
    fn on_received(&mut self, requests: &mut Requests, socket: u32, now: Time) {
        let of = self.of(socket);
        let (mut stage, applications) = self.stage(requests);
        applications.on_received(&mut stage, of, now);
    }

    fn on_room(&mut self, requests: &mut Requests, socket: u32) {
        let (entry, flow) = self.of(socket);
        let (mut stage, applications) = self.stage(requests);
        applications.on_room(&mut stage, entry, flow);
    }

    fn on_app(&mut self, requests: &mut Requests, application: u32, which: u32) {
        let entry = self.entries.by_name[application as usize];
        let (mut stage, applications) = self.stage(requests);
        applications.on_app(&mut stage, entry, which);
    }

    fn on_request(&mut self, core: &mut Core, request: Request, _: u32) {
        let flows = &mut self.flows;
        match request {
            Request::Reserve(n) => flows.reserve(core, n),
            Request::Open(opened) => {
                let entry = opened.pair.entry as usize;
                if self.entries.is_udp[entry] {
                    flows.open_udp(core, &opened, &self.entries.stacks[entry]);
                } else {
                    flows.open(core, *opened, &self.entries.stacks[entry]);
                }
            }
            Request::Write { flow, bytes } => flows.write(core, flow, bytes),
            Request::SetDeadline { flow, due } => core.sockets[sender(flow) as usize].tcp.set_deadline(due),
            Request::WriteWhatFits { flow, bytes } => {
                if !flows.write_what_fits(core, flow, bytes) {
                    core.ask(|requests| self.on_full(requests, sender(flow)));
                }
            }
            Request::SendDatagram { flow, bytes } => flows.send_datagram(core, flow, bytes),
            Request::StopWriting { entry } => flows.stop_writing(core, entry),
            Request::NotifyAt { flow, bytes } => core.notify_at(receiver(flow), bytes),
            Request::Close { flow } => core.close(sender(flow)),
            Request::Finish { flow } => flows.finish(core, flow),
            Request::Share { host } => {
                flows.share(core, host, &self.entries.stacks);
                flows.control(core, host, &self.entries.stacks);
            }
            Request::Enter(message) => flows.on_message(core, message.0, message.1),
            Request::Join(_) => unreachable!("it is for networks in parts"),
        }
    }
}

/// The simulator, as applications see it.
struct Asking<'a> {
    requests: &'a mut Requests,
    flows: &'a mut Flows,
    entries: &'a Entries,
}

impl Stage for Asking<'_> {
    fn now(&self) -> Time {
        self.requests.effect()
    }

    fn pairing(&self) -> Pairing<'_> {
        Pairing { topology: &self.flows.topology, hosts_per_pod: self.flows.hosts_per_pod }
    }

    fn schedule(&mut self, at: Time, entry: u32, which: u32) {
        self.requests.schedule(at, self.entries.places[entry as usize], which);
    }

    fn opened(&self) -> usize {
        self.flows.asked() as usize
    }

    fn reserve(&mut self, n: usize) {
        self.requests.ask(Request::Reserve(n));
    }

    fn open(&mut self, src: NodeId, dst: NodeId, Opening { entry, name }: Opening) -> Option<u32> {
        let opened = self.flows.ask(Pair { src, dst, entry }, name)?;
        let flow = opened.flow;
        self.requests.ask(Request::Open(Box::new(opened)));
        Some(flow)
    }

    fn write(&mut self, flow: u32, bytes: u64) {
        self.requests.ask(Request::Write { flow, bytes });
    }

    fn set_deadline(&mut self, entry: u32, flow: u32, due: Time) {
        if self.entries.stacks[entry as usize].algorithm.ops().takes_deadlines() {
            self.requests.ask(Request::SetDeadline { flow, due });
        }
    }

    fn write_what_fits(&mut self, flow: u32, bytes: u64) {
        self.requests.ask(Request::WriteWhatFits { flow, bytes });
    }

    fn send_datagram(&mut self, flow: u32, bytes: u64) {
        self.requests.ask(Request::SendDatagram { flow, bytes });
    }

    fn stop_writing(&mut self, entry: u32) {
        self.requests.ask(Request::StopWriting { entry });
    }

    fn notify_at(&mut self, flow: u32, bytes: u64) {
        self.requests.ask(Request::NotifyAt { flow, bytes });
    }

    fn close(&mut self, flow: u32) {
        self.requests.ask(Request::Close { flow });
    }

    fn finish(&mut self, flow: u32, end: Time) {
        self.flows.list[flow as usize].end = end;
        self.requests.ask(Request::Finish { flow });
    }

    fn on_message(&mut self, message: Message, end: Time) {
        self.requests.ask(Request::Enter(Box::new((message, end))));
    }
}
