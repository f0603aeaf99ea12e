//! One of the enforcer's two interfaces.

#[cfg(test)]
mod tests;

use crate::bypassed;
use kernel::steer::{Attachment, QUEUES_MAX, SteerError, Steering};
use netlink::Netlink;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkLayerType, LinkMessage};
use packet_io::{
    Glue, OwnedFrame, READ_BYTES_MAX, Tap, VnetHeader, XDP_FRAME_BYTES_MAX, XDP_PIECE_BYTES_MAX, XdpSocket, XdpState,
};
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Frames received from one queue in a row.
const BATCH: u32 = 64;
/// Frames received from a TAP in a row, each up to 64 KB.
const BATCH_TAP: u32 = 16;
/// Buffers of a TAP's frames that are reused once free.
const LENT_MAX: usize = 64;
/// An Ethernet header with two tags.
const FRAMING_BYTES: u32 = 22;
/// Attempts to open a queue whose last owner has just died, which the kernel frees within seconds on a busy host, and the time between them.
const ATTEMPTS: u32 = 50;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// An interface as the kernel describes it.
#[derive(Default)]
struct Interface {
    index: u32,
    name: String,
    mtu: u32,
    queues: u32,
    address: Option<[u8; 6]>,
    /// The index of its bridge.
    controller: Option<u32>,
    is_bridge: bool,
    is_tap: bool,
    /// Its peer is another interface of this machine, not a wire.
    local: bool,
}

/// The two interfaces, and the bridge that carries what bypasses the enforcer.
pub struct Place {
    interfaces: [Interface; 2],
    /// The bridge's name; `None` between TAPs, whose wire is the enforcer.
    pub bridge: Option<String>,
    /// This machine's hardware addresses on the bridge.
    own: Vec<[u8; 6]>,
}

impl Place {
    /// Finds the interfaces.
    ///
    /// # Errors
    /// They do not exist, or are not ports of one bridge.
    pub fn find(servers: &str, clients: &str) -> Result<Place, String> {
        if servers == clients {
            return Err(format!("--between takes two different interfaces; both are {servers}"));
        }
        let all = interfaces().map_err(|error| format!("cannot list the interfaces: {error}"))?;
        Place::among(all, servers, clients)
    }

    /// The same among all interfaces of the machine.
    fn among(mut all: Vec<Interface>, servers: &str, clients: &str) -> Result<Place, String> {
        let mut take = |name: &str| {
            let at = all.iter().position(|interface| interface.name == name);
            at.map(|at| all.swap_remove(at)).ok_or_else(|| format!("there is no interface `{name}` here"))
        };
        let interfaces = [take(servers)?, take(clients)?];
        let is_host = |interface: &Interface| interface.is_tap && interface.controller.is_none();
        match [is_host(&interfaces[0]), is_host(&interfaces[1])] {
            [true, true] => return Ok(Place { bridge: None, own: Vec::new(), interfaces }),
            [false, false] => {}
            // a TAP in a bridge is a port, but cannot be used as one
            [first, _] => {
                let tap = if first { servers } else { clients };
                return Err(format!("{tap} is a TAP outside any bridge; use two such TAPs, or two ports of a bridge"));
            }
        }
        let bridge_of = |interface: &Interface| {
            all.iter().find(|bridge| bridge.is_bridge && Some(bridge.index) == interface.controller)
        };
        if let Some(at) = interfaces.iter().position(|interface| interface.is_tap) {
            let bridge = bridge_of(&interfaces[at]).map_or("br0", |bridge| bridge.name.as_str());
            return Err(virtual_machines(&interfaces[at].name, bridge, &interfaces[1 - at].name));
        }
        for interface in &interfaces {
            if bridge_of(interface).is_none() {
                let name = &interface.name;
                return Err(format!(
                    "{name} is not a port of a bridge, which carries traffic while the enforcer does not; for example:\n  \
                     ip link add br0 type bridge && ip link set br0 up\n  \
                     ip link set {servers} master br0 && ip link set {clients} master br0"
                ));
            }
        }
        let bridge = bridge_of(&interfaces[0]).filter(|_| interfaces[0].controller == interfaces[1].controller);
        let bridge =
            bridge.ok_or_else(|| format!("{servers} and {clients} are ports of two bridges; both must be in one"))?;
        if let Some(third) = all.iter().find(|interface| interface.controller == Some(bridge.index)) {
            return Err(third_port(&third.name, &bridge.name));
        }
        let own = interfaces.iter().chain([bridge]).filter_map(|interface| interface.address).collect();
        Ok(Place { bridge: Some(bridge.name.clone()), own, interfaces })
    }

    /// The same where an enforcer runs: its TAPs may have been moved into other network namespaces since it opened them.
    ///
    /// # Errors
    /// They do not exist, or are not ports of one bridge.
    pub fn find_to_replace(servers: &str, clients: &str) -> Result<Place, String> {
        let all = interfaces().map_err(|error| format!("cannot list the interfaces: {error}"))?;
        if all.iter().any(|interface| [servers, clients].contains(&interface.name.as_str())) {
            return Place::find(servers, clients);
        }
        let moved = |name: &str| Interface { name: name.to_string(), is_tap: true, ..Interface::default() };
        Ok(Place { interfaces: [moved(servers), moved(clients)], bridge: None, own: Vec::new() })
    }

    /// What packets that are redirected here pass by, in words; nothing between TAPs.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn passed_by(&self) -> Result<Vec<String>, String> {
        match self.bridge {
            Some(_) => bypassed::find(self.interfaces.each_ref().map(|port| (port.index, port.name.as_str()))),
            None => Ok(Vec::new()),
        }
    }

    /// Opens both. Their BPF objects are pinned in `pins`, a folder for each.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn open(&self, pins: &Path) -> Result<[Port; 2], String> {
        let [servers, clients] = &self.interfaces;
        let open = |interface: &Interface| match self.bridge {
            Some(_) => Port::open(interface, &self.own, &pins.join(&interface.name)),
            None => Port::take_tap(&interface.name),
        };
        Ok([open(servers)?, open(clients)?])
    }

    /// Puts this version's programs in the place of those of an enforcer that runs here; packets still go to that one.
    ///
    /// # Errors
    /// The kernel refuses it; what runs is as it was.
    pub fn prepare(&self, pins: &Path) -> Result<[Prepared; 2], String> {
        let [servers, clients] = &self.interfaces;
        let prepare = |interface: &Interface| -> Result<Prepared, String> {
            let pins = pins.join(&interface.name);
            let steering = match self.bridge {
                Some(_) if !pins.exists() => Err(format!(
                    "{}: the enforcer that runs is at other interfaces, or has another --pins; `opentcp enforce --status` names them",
                    interface.name
                )),
                Some(_) => attach(interface, &self.own, &pins).map(Some),
                None => Ok(None),
            };
            let Interface { index, name, local, .. } = interface;
            Ok(Prepared { index: *index, name: name.clone(), local: *local, pins, steering: steering? })
        };
        Ok([prepare(servers)?, prepare(clients)?])
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [servers, clients] = &self.interfaces;
        write!(f, "{} and {}", servers.name, clients.name)?;
        self.bridge.as_ref().map_or(Ok(()), |bridge| write!(f, " of the bridge {bridge}"))
    }
}

/// An interface of which all is ready but its sockets, which another process has.
pub struct Prepared {
    index: u32,
    name: String,
    local: bool,
    pins: PathBuf,
    steering: Option<Steering>,
}

impl Prepared {
    /// The port, with the sockets of another process. They are that one's until [`Port::resume`] is called.
    ///
    /// # Errors
    /// They are of another interface or version.
    pub fn map(self, state: &PortState, files: Vec<OwnedFd>) -> Result<Port, String> {
        let Prepared { index, name, local, pins, steering } = self;
        if state.name != name || state.files() != files.len() || state.sockets.is_empty() != steering.is_none() {
            return Err(format!(
                "{name}: the enforcer that runs has {} in its place; give --between the interfaces that `opentcp enforce --status` names",
                state.name
            ));
        }
        let mut files = files.into_iter();
        let way = match steering {
            None => {
                let file = files.next().ok_or_else(|| format!("{name}: its file is missing"))?;
                Way::Tap { tap: Tap::resume(file), buffers: Buffers::new(), leaving: Vec::new() }
            }
            Some(steering) => {
                let mut sockets = Vec::new();
                for state in &state.sockets {
                    let pair = files.next().zip(files.next());
                    let (socket, memory) = pair.ok_or_else(|| format!("{name}: a file is missing"))?;
                    let socket = XdpSocket::map_other([socket, memory], state);
                    sockets.push(socket.map_err(|error| format!("{name}: {error}"))?);
                }
                Way::Xdp { index, sockets, steering, pins: Pins { folder: pins, kept: true }, local }
            }
        };
        Ok(Port { name, way, received: 0, sent: 0, lost: 0 })
    }
}

/// Attaches the program, or replaces the one that is there.
fn attach(interface: &Interface, own: &[[u8; 6]], pins: &Path) -> Result<Steering, String> {
    let attachment = Attachment { interface: interface.index, own, folder: pins, fragments: interface.is_jumbo() };
    Steering::attach(attachment).map_err(|error| format!("{}: XDP: {error}", interface.name))
}

fn virtual_machines(tap: &str, bridge: &str, other: &str) -> String {
    format!(
        "{tap} is a virtual machine's TAP: the machine leaves segmentation to it, and AF_XDP loses its packets of up to 64 KB; join {bridge} to \
         a bridge of the enforcer's own by a veth pair, for example:\n  \
         ip link add br1 type bridge && ip link set br1 up\n  \
         ip link add vms type veth peer name to-br1\n  \
         ip link set to-br1 master {bridge} up && ip link set vms master br1 up\n  \
         ip link set {other} master br1\n\
         and name vms instead of {tap}"
    )
}

fn third_port(name: &str, bridge: &str) -> String {
    format!(
        "{name} is a third port of {bridge}; the enforcer's bridge must have two ports: what enters one leaves by the other"
    )
}

/// All interfaces of this network namespace.
fn interfaces() -> io::Result<Vec<Interface>> {
    let asked = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = Netlink::open()?.ask(NLM_F_DUMP, asked)?;
    let interface = |answer| match answer {
        RouteNetlinkMessage::NewLink(link) => Some(Interface::of(&link)),
        _ => None,
    };
    Ok(answers.into_iter().filter_map(interface).collect())
}

impl Interface {
    /// Longest frame, bytes.
    fn longest(&self) -> usize {
        (self.mtu + FRAMING_BYTES) as usize
    }

    fn is_jumbo(&self) -> bool {
        self.longest() > XDP_PIECE_BYTES_MAX
    }

    fn of(link: &LinkMessage) -> Interface {
        let mut interface = Interface { index: link.header.index, queues: 1, ..Interface::default() };
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name.clone_from(name),
                LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
                LinkAttribute::NumRxQueues(queues) => interface.queues = *queues,
                LinkAttribute::Address(bytes) => interface.address = bytes[..].try_into().ok(),
                LinkAttribute::Controller(index) => interface.controller = Some(*index),
                LinkAttribute::LinkInfo(infos) => {
                    interface.is_bridge = infos.contains(&LinkInfo::Kind(InfoKind::Bridge));
                    interface.local = infos.contains(&LinkInfo::Kind(InfoKind::Veth));
                    // the same driver's other kind (TUN) has no Ethernet header
                    let is_ethernet = link.header.link_layer_type == LinkLayerType::Ether;
                    interface.is_tap = is_ethernet && infos.contains(&LinkInfo::Kind(InfoKind::Tun));
                }
                _ => {}
            }
        }
        interface
    }
}

/// An open interface.
pub struct Port {
    pub name: String,
    way: Way,
    /// Frames received, sent, and lost on sending.
    pub received: u64,
    pub sent: u64,
    pub lost: u64,
}

/// What another process needs of a port, beside its files.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PortState {
    /// The interface.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its sockets, one for each queue; a TAP has none.
    #[prost(message, repeated, tag = "2")]
    pub sockets: Vec<XdpState>,
    /// Frames received so far.
    #[prost(uint64, tag = "3")]
    pub received: u64,
    /// Sent.
    #[prost(uint64, tag = "4")]
    pub sent: u64,
    /// Lost on sending.
    #[prost(uint64, tag = "5")]
    pub lost: u64,
}

impl PortState {
    /// How many files it has.
    pub fn files(&self) -> usize {
        if self.sockets.is_empty() { 1 } else { 2 * self.sockets.len() }
    }
}

/// How packets are received and sent.
enum Way {
    Xdp {
        index: u32,
        /// One for each queue.
        sockets: Vec<XdpSocket>,
        steering: Steering,
        /// The files that keep the program attached.
        pins: Pins,
        /// Its peer is another interface of this machine, not a wire.
        local: bool,
    },
    Tap {
        tap: Tap,
        buffers: Buffers,
        leaving: Vec<OwnedFrame>,
    },
}

/// Receive buffers of a TAP: a long frame stays in its buffer until it is sent, without a copy.
struct Buffers {
    /// Not shared, so the next frame can be read into it.
    next: Arc<[u8]>,
    /// Buffers that frames still use, the oldest first.
    lent: VecDeque<Arc<[u8]>>,
}

impl Buffers {
    fn new() -> Buffers {
        Buffers { next: vec![0; READ_BYTES_MAX].into(), lent: VecDeque::new() }
    }

    /// Reads the TAP's next frame.
    fn read(&mut self, tap: &mut Tap) -> Option<OwnedFrame> {
        let frame = tap.read(Arc::get_mut(&mut self.next)?).ok()??;
        let (header, bytes) = (frame.header, frame.bytes.len());
        if bytes < READ_BYTES_MAX / 2 {
            return Some(OwnedFrame::new(header, frame.bytes));
        }
        let returned = self.lent.front_mut().is_some_and(|oldest| Arc::get_mut(oldest).is_some());
        let oldest = if returned || self.lent.len() == LENT_MAX { self.lent.pop_front() } else { None };
        let next = oldest.filter(|_| returned).unwrap_or_else(|| vec![0; READ_BYTES_MAX].into());
        let buffer = mem::replace(&mut self.next, next);
        self.lent.push_back(buffer.clone());
        Some(OwnedFrame::within(header, buffer, VnetHeader::LEN..VnetHeader::LEN + bytes))
    }
}

impl Port {
    fn take_tap(name: &str) -> Result<Port, String> {
        let tap = Tap::open(name).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => {
                format!("{name}: another program, such as a virtual machine, has this TAP open")
            }
            _ => format!("{name}: {error}; this needs root and a TAP with one queue"),
        })?;
        Ok(Port::of_tap(name, tap))
    }

    /// A TAP that is open.
    pub fn of_tap(name: &str, tap: Tap) -> Port {
        let way = Way::Tap { tap, buffers: Buffers::new(), leaving: Vec::new() };
        Port { name: name.to_string(), way, received: 0, sent: 0, lost: 0 }
    }

    fn open(interface: &Interface, own: &[[u8; 6]], pins: &Path) -> Result<Port, String> {
        let Interface { index, name, mtu, queues, local, .. } = interface;
        let failed = |what: &str, why: &dyn fmt::Display| format!("{name}: {what}: {why}");
        let most = XDP_FRAME_BYTES_MAX as u32 - FRAMING_BYTES;
        if *mtu > most {
            return Err(format!(
                "{name} has an MTU of {mtu}; the enforcer takes up to {most}. Run: ip link set {name} mtu {most}"
            ));
        }
        let mut sockets = Vec::new();
        for queue in 0..(*queues).min(QUEUES_MAX) {
            match open_socket(*index, queue, interface.longest()) {
                Ok(socket) => sockets.push(socket),
                // an interface may have fewer queues than its maximum
                Err(error) if queue > 0 && error.kind() == io::ErrorKind::InvalidInput => break,
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    return Err(failed("another program receives its packets by AF_XDP", &"stop that program first"));
                }
                Err(error) => {
                    let jumbo = if interface.is_jumbo() { ", and Linux 6.6 for an MTU this large" } else { "" };
                    let why = format!("{error}; this needs root and a kernel with CONFIG_XDP_SOCKETS{jumbo}");
                    return Err(failed("cannot open an AF_XDP socket", &why));
                }
            }
        }
        let steering = attach(interface, own, pins)?;
        let pins = Pins { folder: pins.to_path_buf(), kept: false };
        let way = Way::Xdp { index: *index, sockets, steering, pins, local: *local };
        Ok(Port { name: name.clone(), way, received: 0, sent: 0, lost: 0 })
    }

    /// Redirects its packets here.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn take_over(&self) -> Result<(), String> {
        let Way::Xdp { sockets, steering, .. } = &self.way else { return Ok(()) };
        let hand = |(queue, socket): (usize, &XdpSocket)| steering.hand_to(queue as u32, socket.as_fd());
        self.heartbeat()?;
        sockets.iter().enumerate().try_for_each(hand).map_err(|error| format!("{}: XDP: {error}", self.name))
    }

    /// Keeps packets coming here. If this is not called within each [`kernel::steer::PATIENCE`], they bypass the enforcer.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn heartbeat(&self) -> Result<(), String> {
        let Way::Xdp { steering, .. } = &self.way else { return Ok(()) };
        steering.beat().map_err(|error| format!("{}: XDP: {error}", self.name))
    }

    /// Lets new packets bypass the enforcer; those received can still be read.
    pub fn release(&self) {
        let Way::Xdp { sockets, steering, .. } = &self.way else { return };
        for queue in 0..sockets.len() as u32 {
            // if this fails, removing the program does the same
            let _ = steering.take_back(queue);
        }
    }

    /// Reads waiting frames; returns whether there may be more.
    pub fn receive(&mut self, frames: &mut Vec<OwnedFrame>) -> bool {
        let prior = frames.len();
        // another look at a ring costs less than polling; for a TAP it costs as much
        let enough = match &mut self.way {
            Way::Xdp { sockets, local, .. } => {
                for socket in sockets {
                    socket.receive(BATCH, |bytes| frames.push(OwnedFrame::received(bytes, *local)));
                }
                1
            }
            Way::Tap { tap, buffers, .. } => {
                frames.extend((0..BATCH_TAP).map_while(|_| buffers.read(tap)));
                BATCH_TAP as usize
            }
        };
        let received = frames.len() - prior;
        self.received += received as u64;
        received >= enough
    }

    /// Queues a frame for the next [`Port::flush`].
    pub fn send(&mut self, frame: OwnedFrame) {
        self.sent += 1;
        match &mut self.way {
            Way::Xdp { sockets, .. } => {
                let (header, parts) = (frame.vnet_header(), frame.parts());
                let mut lost = 0;
                let sent = sockets.first_mut().is_some_and(|socket| {
                    socket.send(header, parts) || {
                        lost += socket.flush();
                        socket.send(header, parts)
                    }
                });
                lost += u64::from(!sent);
                (self.sent, self.lost) = (self.sent - lost, self.lost + lost);
            }
            Way::Tap { leaving, .. } => leaving.push(frame),
        }
    }

    /// Sends all queued frames.
    pub fn flush(&mut self) {
        match &mut self.way {
            Way::Xdp { sockets, .. } => {
                let lost = sockets.first_mut().map_or(0, XdpSocket::flush);
                self.lost += lost;
                self.sent -= lost;
            }
            Way::Tap { tap, leaving, .. } => {
                let mut glue = Glue::new();
                // a frame that the kernel refuses is lost: the interface is down
                let mut lost = 0;
                let mut write = |header: &VnetHeader, parts: &[&[u8]]| {
                    if tap.write(header, parts).is_err() {
                        // frames that were joined have one piece each, behind their headers
                        lost += (parts.len() as u64 - 1).max(1);
                    }
                    Ok(())
                };
                for frame in leaving.iter() {
                    let _never_fails = glue.push_frame(frame, &mut write);
                }
                let _never_fails = glue.flush(&mut write);
                leaving.clear();
                self.lost += lost;
                self.sent -= lost;
            }
        }
    }

    /// Checks that the interface is still as it was when it was opened.
    ///
    /// # Errors
    /// It is gone, its MTU exceeds what the sockets take, or its bridge has a third port.
    pub fn check(&self) -> Result<(), String> {
        let gone = || format!("{} is gone", self.name);
        match &self.way {
            Way::Xdp { sockets, index, pins, .. } => {
                let all = interfaces().map_err(|error| format!("cannot list the interfaces: {error}"))?;
                let own = all.iter().find(|interface| interface.index == *index).ok_or_else(gone)?;
                let most = sockets.first().map_or(0, XdpSocket::frame_bytes_max) as u32 - FRAMING_BYTES;
                is_as_opened((&self.name, own), &all, pins.folder.exists(), most)
            }
            Way::Tap { tap, .. } => tap.is_there().then_some(()).ok_or_else(gone),
        }
    }

    /// What another process needs to take it over.
    pub fn state(&self) -> PortState {
        let sockets = match &self.way {
            Way::Xdp { sockets, .. } => sockets.iter().map(XdpSocket::state).collect(),
            Way::Tap { .. } => Vec::new(),
        };
        PortState { name: self.name.clone(), sockets, received: self.received, sent: self.sent, lost: self.lost }
    }

    /// Takes over the sockets that were mapped, from a process that no longer uses them.
    ///
    /// # Errors
    /// The state is not of these.
    pub fn resume(&mut self, state: &PortState) -> Result<(), String> {
        if let Way::Xdp { sockets, .. } = &mut self.way {
            for (socket, state) in sockets.iter_mut().zip(&state.sockets) {
                socket.resume(state).map_err(|error| format!("{}: {error}", self.name))?;
            }
        }
        (self.received, self.sent, self.lost) = (state.received, state.sent, state.lost);
        Ok(())
    }

    /// The files for it.
    pub fn files(&self) -> Vec<BorrowedFd<'_>> {
        match &self.way {
            Way::Xdp { sockets, .. } => sockets.iter().flat_map(XdpSocket::files).collect(),
            Way::Tap { tap, .. } => vec![tap.as_fd()],
        }
    }

    /// Whether its program is this process's, which removes it at the end, or another's.
    pub fn own(&mut self, is_ours: bool) {
        if let Way::Xdp { pins, .. } = &mut self.way {
            pins.kept = !is_ours;
        }
    }

    /// Removes the program.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn close(self) -> Result<(), String> {
        let Way::Xdp { sockets, steering, mut pins, .. } = self.way else { return Ok(()) };
        drop((sockets, steering));
        pins.remove().map_err(|error| format!("{}: {error}", self.name))
    }

    /// Whether frames are waiting for the card.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.way, Way::Xdp { sockets, .. } if sockets.iter().any(XdpSocket::is_waiting))
    }

    /// Frames that bypassed the enforcer through the bridge.
    pub fn bridged(&self) -> u64 {
        match &self.way {
            Way::Xdp { steering, .. } => steering.bridged().unwrap_or(0),
            Way::Tap { .. } => 0,
        }
    }

    /// Frames dropped on reception.
    pub fn missed(&self) -> u64 {
        match &self.way {
            Way::Xdp { sockets, .. } => sockets.iter().map(XdpSocket::missed).sum(),
            Way::Tap { .. } => 0,
        }
    }

    /// The descriptors to poll.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let (sockets, tap) = match &self.way {
            Way::Xdp { sockets, .. } => (&sockets[..], None),
            Way::Tap { tap, .. } => (&[][..], Some(tap.as_fd())),
        };
        sockets.iter().map(|socket| socket.as_fd()).chain(tap)
    }
}

/// Whether an interface, which was `name` when it was opened, can still be used: in a bridge of two ports, with its program, and with an MTU
/// that the sockets take.
fn is_as_opened(
    (name, own): (&str, &Interface),
    all: &[Interface],
    has_program: bool,
    most: u32,
) -> Result<(), String> {
    let is_bridge = |interface: &&Interface| Some(interface.index) == own.controller;
    let bridge = all.iter().find(is_bridge).ok_or_else(|| format!("{name} is no longer a port of a bridge"))?;
    let mut ports = all.iter().filter(|interface| interface.controller == Some(bridge.index));
    if let Some(third) = ports.nth(2) {
        return Err(third_port(&third.name, &bridge.name));
    }
    if !has_program {
        return Err(format!("{name}: the enforcer's program was removed"));
    }
    let mtu = own.mtu;
    if mtu > most {
        return Err(format!("{name} has an MTU of {mtu} now; this enforcer takes up to {most}. Start it again"));
    }
    Ok(())
}

/// The files that keep an interface's program attached; removing them removes it.
struct Pins {
    folder: PathBuf,
    /// They were removed, or are another process's.
    kept: bool,
}

impl Pins {
    fn remove(&mut self) -> Result<(), SteerError> {
        self.kept = true;
        let outcome = Steering::remove(&self.folder);
        // the folder of both interfaces, once empty
        let _ = self.folder.parent().map(fs::remove_dir);
        outcome.map(drop)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if !self.kept {
            // not closed because of another failure, which is reported
            let _ = self.remove();
        }
    }
}

fn open_socket(index: u32, queue: u32, longest: usize) -> io::Result<XdpSocket> {
    for _ in 1..ATTEMPTS {
        match XdpSocket::open(index, queue, longest) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(BETWEEN_ATTEMPTS),
            done => return done,
        }
    }
    XdpSocket::open(index, queue, longest)
}
