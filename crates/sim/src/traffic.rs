//! The applications of a run, acting on simulated hosts.

use crate::core::{Core, Hear};
use crate::flows::{Flow, Flows, Pair, flow_of, receiver};
use net::NodeId;
use plan::{Applications, Message, Pairing, Stage};
use scenario::Scenario;
use std::sync::Arc;
use units::Time;

/// All traffic of a run.
pub struct Traffic {
    applications: Applications,
    /// By entry: its stack and its label.
    entries: Vec<(Arc<tcp::Config>, String)>,
    pub flows: Flows,
}

impl Traffic {
    /// Schedules the start of every entry of `scenario`; `configs` has one stack an entry.
    pub fn new(scenario: &Scenario, configs: Vec<Arc<tcp::Config>>, mut flows: Flows, core: &mut Core) -> Traffic {
        let labels = scenario.traffic.iter().map(|entry| entry.label.clone());
        let entries: Vec<_> = configs.into_iter().zip(labels).collect();
        let applications = Applications::new(scenario, &mut Simulated { core, flows: &mut flows, entries: &entries });
        Traffic { applications, entries, flows }
    }

    /// Numbers of their own that entries report: name and value.
    pub fn extra(&self) -> Vec<(String, f64)> {
        let mut rows = self.applications.extra();
        if self.flows.unreachable > 0 {
            rows.push(("flows_without_a_path".into(), self.flows.unreachable as f64));
        }
        rows
    }

    /// The stack of an entry's flows, as the scenario has it.
    pub fn stack(&self, entry: u32) -> &Arc<tcp::Config> {
        &self.entries[entry as usize].0
    }

    /// The label of a flow's entry.
    pub fn label(&self, flow: &Flow) -> &str {
        &self.entries[flow.entry as usize].1
    }
}

impl Hear for Traffic {
    fn on_received(&mut self, core: &mut Core, socket: u32, _: Time) {
        let flow = flow_of(socket);
        let entry = self.flows.list[flow as usize].entry;
        let mut stage = Simulated { core, flows: &mut self.flows, entries: &self.entries };
        self.applications.on_received(&mut stage, entry, flow);
    }

    fn on_room(&mut self, core: &mut Core, socket: u32) {
        let flow = flow_of(socket);
        let entry = self.flows.list[flow as usize].entry;
        let mut stage = Simulated { core, flows: &mut self.flows, entries: &self.entries };
        self.applications.on_room(&mut stage, entry, flow);
    }

    fn on_app(&mut self, core: &mut Core, what: u32, which: u32, _: Time) {
        let mut stage = Simulated { core, flows: &mut self.flows, entries: &self.entries };
        self.applications.on_app(&mut stage, what, which);
    }
}

/// The simulator, as applications see it.
struct Simulated<'a> {
    core: &'a mut Core,
    flows: &'a mut Flows,
    entries: &'a [(Arc<tcp::Config>, String)],
}

impl Stage for Simulated<'_> {
    fn now(&self) -> Time {
        self.core.now()
    }

    fn pairing(&self) -> Pairing<'_> {
        Pairing { topology: &self.flows.topology, hosts_per_pod: self.flows.hosts_per_pod }
    }

    fn schedule(&mut self, at: Time, entry: u32, which: u32) {
        self.core.schedule_app(at, entry, which);
    }

    fn opened(&self) -> usize {
        self.flows.list.len()
    }

    fn reserve(&mut self, n: usize) {
        self.flows.reserve(self.core, n);
    }

    fn open(&mut self, src: NodeId, dst: NodeId, entry: u32) -> Option<u32> {
        let config = &self.entries[entry as usize].0;
        self.flows.open(self.core, Pair { src, dst, entry }, config)
    }

    fn write(&mut self, flow: u32, bytes: u64) {
        self.flows.write(self.core, flow, bytes);
    }

    fn write_what_fits(&mut self, flow: u32, bytes: u64) -> bool {
        self.flows.write_what_fits(self.core, flow, bytes)
    }

    fn stop_writing(&mut self, entry: u32) {
        self.flows.stop_writing(self.core, entry);
    }

    fn notify_at(&mut self, flow: u32, bytes: u64) {
        self.core.notify_at(receiver(flow), bytes);
    }

    fn close(&mut self, flow: u32) {
        Flows::close(self.core, flow);
    }

    fn finish(&mut self, flow: u32) {
        self.flows.finish(self.core, flow);
    }

    fn on_message(&mut self, message: Message) {
        self.flows.on_message(self.core, message);
    }
}
