//! The enforcer's main loop: packets in, packets out, timers.

#[cfg(test)]
mod tests;

use crate::cues::Cues;
use crate::flows::{Listings, Turn};
use crate::hand_over::{Giving, Successor, Taking};
use crate::mirror::Mirror;
use crate::port::Port;
use crate::status::{Listener, PortStatus, Question, Status};
use bus::Clock;
use enforcer::{Action, Direction, Enforcer, Limits, Rule};
use kernel::steer::PATIENCE;
use metrics::Server;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use packet_io::OwnedFrame;
use sd_notify::NotifyState;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use units::Time;

/// The longest sleep, and the interval of looking for signals, CUEs and status requests.
const LOOK: Time = Time::from_ms(100);

/// The longest sleep while a card has not taken all packets.
const SOON: Time = Time::from_ms(1);
/// At the end, received packets are drained this many times at most: a TAP's host continues to send.
const LAST_ROUNDS: u32 = 64;
/// A loop that is late by this much was suspended (a debugger, swapping), and packets may have bypassed it: [`PATIENCE`] counts
/// from the previous iteration.
const STILL: Time = Time::from_ms(PATIENCE.as_millis() as u64 - 200);
/// An enforcer that was replaced has left the address of its metrics by then.
const METRICS_WITHIN: Time = Time::from_secs(5);
/// Interval of checks of the interfaces.
const CHECK: Time = Time::from_secs(1);

/// Where an enforcer's state is shown.
pub struct Shown {
    /// The status socket.
    pub listener: Listener,
    /// Prometheus.
    pub metrics: Option<Server>,
    /// The address for it, while the enforcer whose place this one has taken may still have it.
    pub metrics_at: Option<SocketAddr>,
}

/// Why the loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Stopped,
    /// Another enforcer has its place.
    Replaced,
}

/// The enforcer, its two interfaces, its CUEs and its status socket.
pub struct Daemon {
    /// The servers' side, the clients' side.
    ports: [Port; 2],
    enforcer: Enforcer<OwnedFrame>,
    limits: Limits,
    /// The operator's rules; those of CUEs come first.
    rules: Vec<Rule>,
    cues: Option<Cues>,
    mirror: Option<Mirror>,
    shown: Shown,
    listings: Listings,
    /// A new enforcer that prepares to take this one's place.
    successor: Option<Successor>,
    /// The longest turn of the loop.
    turn_max: Time,
    clock: Clock,
    look_at: Time,
    check_at: Time,
    /// Received and not yet processed.
    frames: Vec<OwnedFrame>,
}

fn not_replaced(error: &io::Error) -> String {
    format!("another enforcer was to take over, and failed ({error}): this one goes on")
}

/// The port where packets of this direction arrive; they leave by the other.
fn entrance(direction: Direction) -> usize {
    match direction {
        Direction::Out => 0,
        Direction::In => 1,
    }
}

/// The hash seed is random, so that nobody can aim flows at one bucket.
fn enforcer(limits: Limits, rules: Vec<Rule>) -> Enforcer<OwnedFrame> {
    Enforcer::new(limits, rules, RandomState::new().hash_one(std::process::id()))
}

impl Daemon {
    pub fn new(
        ports: [Port; 2],
        limits: Limits,
        rules: Vec<Rule>,
        (cues, mirror): (Option<Cues>, Option<Mirror>),
        shown: Shown,
    ) -> Daemon {
        let (clock, frames) = (Clock::begin(), Vec::new());
        let enforcer = enforcer(limits, rules.clone());
        Daemon {
            ports,
            enforcer,
            limits,
            rules,
            cues,
            mirror,
            shown,
            listings: Listings::default(),
            successor: None,
            turn_max: Time::ZERO,
            clock,
            look_at: Time::ZERO,
            check_at: Time::ZERO,
            frames,
        }
    }

    /// Redirects packets of both interfaces here. Call [`Daemon::run`] at once: the sockets buffer little, and allocating tables took longer.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn take_over(&self) -> Result<(), String> {
        self.ports.iter().try_for_each(Port::take_over)
    }

    /// Takes the place of the enforcer that has begun to give it; `socket` is the path of the status socket. Returns the number of flows,
    /// and how long no packet was read. Call [`Daemon::run`] at once.
    ///
    /// # Errors
    /// That enforcer goes on.
    pub fn replace(&mut self, taking: Taking, socket: &Path) -> io::Result<(u64, Duration)> {
        let taken = taking.finish(&mut self.ports, &mut self.enforcer, self.cues.as_mut(), || self.clock.now())?;
        self.ports.iter_mut().for_each(|port| port.own(true));
        self.shown.listener.own(Some(socket));
        self.heartbeat()?;
        self.transmit();
        Ok(taken)
    }

    /// Runs until `stopped`, or until another enforcer has its place; `say` gets messages.
    ///
    /// # Errors
    /// An interface is gone or has changed, polling fails, or the highest epoch cannot be stored.
    pub fn run(mut self, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> io::Result<()> {
        let outcome = self.work(stopped, say);
        if let Ok(Ended::Replaced) = outcome {
            return Ok(());
        }
        self.leave();
        self.ports.into_iter().for_each(|port| port.close().unwrap_or_else(|why| say(&why)));
        if let Some(cues) = self.cues {
            cues.finish().unwrap_or_else(|why| say(&why));
        }
        outcome.map(drop)
    }

    fn work(&mut self, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> io::Result<Ended> {
        while !stopped() {
            let began = self.clock.now();
            if self.look_at + STILL <= began {
                self.resume(say)?;
            }
            let more = self.pass();
            let now = self.clock.now();
            if self.enforcer.poll_timeout() <= now {
                self.enforcer.on_timer(now);
                self.transmit();
            }
            self.ports.iter_mut().for_each(Port::flush);
            if self.look_at <= now {
                self.look_at = now + LOOK;
                if self.look(say)? {
                    return Ok(Ended::Replaced);
                }
            }
            let mirrors = self.mirror.as_mut().is_some_and(|mirror| mirror.turn(now, &mut self.enforcer));
            let listing = self.listings.turn(&self.clock, &self.enforcer);
            self.turn_max = self.turn_max.max(self.clock.now().saturating_sub(began));
            if !more && !mirrors && listing != Turn::More {
                self.wait(listing)?;
            }
        }
        Ok(Ended::Stopped)
    }

    /// Processes received packets; returns whether more may be waiting.
    fn pass(&mut self) -> bool {
        let mut more = false;
        for direction in [Direction::In, Direction::Out] {
            more |= self.ports[entrance(direction)].receive(&mut self.frames);
            self.forward(direction);
        }
        more
    }

    /// Stops enforcing all flows, since packets have bypassed the enforcer.
    fn resume(&mut self, say: &mut dyn FnMut(&str)) -> io::Result<()> {
        let (now, flows) = (self.clock.now(), self.enforcer.flows());
        self.enforcer.release(now);
        self.transmit();
        self.enforcer.forget(now);
        // before the message: who reads it may rely on new connections being enforced
        self.heartbeat()?;
        if flows > 0 {
            let still = now.saturating_sub(self.look_at).as_secs_f64();
            say(&format!(
                "was suspended for {still:.1} s: the {flows} flows that were open pass untouched from now on"
            ));
        }
        Ok(())
    }

    /// Keeps packets coming here; without this the XDP programs let them bypass the enforcer.
    fn heartbeat(&self) -> io::Result<()> {
        self.ports.iter().try_for_each(Port::heartbeat).map_err(io::Error::other)
    }

    /// Forwards what was received and buffered, so that it leaves before what the bridge carries next.
    fn leave(&mut self) {
        self.ports.iter().for_each(Port::release);
        for _ in 0..LAST_ROUNDS {
            let more = self.pass();
            self.ports.iter_mut().for_each(Port::flush);
            if !more {
                break;
            }
        }
        self.enforcer.release(self.clock.now());
        self.transmit();
        self.ports.iter_mut().for_each(Port::flush);
    }

    /// All work other than packets: liveness, interfaces, status, CUEs. Returns whether another enforcer has its place.
    fn look(&mut self, say: &mut dyn FnMut(&str)) -> io::Result<bool> {
        if self.clock.is_old() {
            // open flows pass untouched from here on
            self.enforcer = enforcer(self.limits, self.rules.clone());
            (self.clock, self.look_at, self.check_at) = (Clock::begin(), Time::ZERO, Time::ZERO);
            self.cues.iter_mut().for_each(Cues::begin_anew);
            self.mirror.iter_mut().for_each(Mirror::begin_anew);
        }
        let now = self.clock.now();
        self.heartbeat()?;
        if self.check_at <= now {
            self.check_at = now + CHECK;
            self.ports.iter().try_for_each(Port::check).map_err(io::Error::other)?;
            self.serve_metrics(now, say);
            if let Some(server) = &self.shown.metrics {
                server.publish(self.status().page());
            }
        }
        // here, since a loop that is never out of packets never sleeps
        self.show(say);
        if self.hands_over(say) {
            return Ok(true);
        }
        match &mut self.cues {
            Some(cues) => {
                cues.turn(self.clock.now(), &mut self.enforcer, &self.rules, say).map_err(io::Error::other)?;
                self.transmit();
            }
            // nobody counts them
            None => while self.enforcer.poll_record().is_some() {},
        }
        Ok(false)
    }

    /// Serves metrics as soon as the enforcer whose place this one has taken does so no more.
    fn serve_metrics(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let Some(address) = self.shown.metrics_at else { return };
        match Server::bind(address) {
            Ok(server) => {
                say(&format!("metrics at http://{}/metrics", server.address()));
                (self.shown.metrics, self.shown.metrics_at) = (Some(server), None);
            }
            Err(error) if now > METRICS_WITHIN => {
                say(&format!("there are no metrics: {error}"));
                self.shown.metrics_at = None;
            }
            Err(_) => {}
        }
    }

    /// Gives everything to the new enforcer once that has prepared itself. False: there is none, or it failed, and this one goes on.
    fn hands_over(&mut self, say: &mut dyn FnMut(&str)) -> bool {
        let Some(mut successor) = self.successor.take() else { return false };
        let given = successor.waits(self.clock.now()).and_then(|waits| {
            if waits {
                self.ports.iter_mut().for_each(Port::flush);
                let (ports, enforcer, cues) = (&self.ports, &self.enforcer, self.cues.as_ref());
                Giving { ports, enforcer, cues, now: self.clock.now() }.give(&successor)?;
            }
            Ok(waits)
        });
        // no packet has bypassed the enforcer meanwhile
        self.look_at = self.clock.now() + LOOK;
        match given {
            Ok(true) => {
                self.ports.iter_mut().for_each(|port| port.own(false));
                self.shown.listener.own(None);
                // systemd, if it runs this, would otherwise see its service end
                let named = successor.process().and_then(|id| sd_notify::notify(&[NotifyState::MainPid(id)]));
                named.unwrap_or_else(|error| say(&format!("systemd does not hear of the new process: {error}")));
                let flows = self.enforcer.flows() + self.enforcer.echoes();
                say(&format!("another enforcer has taken over, with {flows} flows"));
                return true;
            }
            Ok(false) => self.successor = Some(successor),
            Err(error) => say(&not_replaced(&error)),
        }
        false
    }

    /// Answers at the status socket.
    fn show(&mut self, say: &mut dyn FnMut(&str)) {
        let asking = self.shown.listener.questions();
        if asking.is_empty() {
            return;
        }
        let status = serde_json::to_string(&self.status()).unwrap_or_default();
        for (question, mut stream) in asking {
            match question {
                // it fits a socket's buffer, so a client that does not read cannot block this
                Question::Status => drop(stream.write_all(status.as_bytes())),
                Question::Flows => self.listings.begin(stream),
                Question::HandOver => {
                    let (now, listener) = (self.clock.now(), self.shown.listener.file());
                    match Successor::begin(now, stream, listener, &self.ports, &self.enforcer) {
                        Ok(successor) => self.successor = Some(successor),
                        Err(error) => say(&not_replaced(&error)),
                    }
                }
            }
        }
    }

    /// Runs received packets through the enforcer, and forwards what it lets pass.
    fn forward(&mut self, direction: Direction) {
        let now = self.clock.now();
        let mut frames = std::mem::take(&mut self.frames);
        for frame in frames.drain(..) {
            match self.enforcer.on_packet(now, direction, frame) {
                Action::Forward(frame) | Action::Rewritten(frame) => self.ports[1 - entrance(direction)].send(frame),
                Action::Held | Action::Dropped => {}
            }
            self.transmit();
        }
        self.frames = frames;
    }

    /// Sends what the enforcer has ready: buffered packets, retransmissions, ACKs.
    fn transmit(&mut self) {
        while let Some((direction, frame)) = self.enforcer.poll_transmit() {
            self.ports[1 - entrance(direction)].send(frame);
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self, listing: Turn) -> io::Result<()> {
        let soon = if listing == Turn::Blocked || self.ports.iter().any(Port::is_waiting) {
            self.clock.now() + SOON
        } else {
            Time::NEVER
        };
        let round = self.mirror.as_ref().map_or(Time::NEVER, Mirror::poll_timeout);
        let until =
            self.enforcer.poll_timeout().min(self.look_at).min(soon).min(round).saturating_sub(self.clock.now());
        let files = self.ports.iter().flat_map(Port::fds).chain(self.mirror.as_ref().and_then(Mirror::fd));
        let mut fds: Vec<PollFd<'_>> = files.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match ppoll(&mut fds, Some(TimeSpec::from(Duration::from_nanos(until.as_ns()))), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn status(&self) -> Status {
        let port = |port: &Port| PortStatus {
            interface: port.name.clone(),
            received: port.received,
            sent: port.sent,
            lost: port.lost,
            bridged: port.bridged(),
            missed: port.missed(),
        };
        let [servers, clients] = &self.ports;
        let counters = self.enforcer.counters().named().into_iter().map(|(name, value)| (name.to_string(), value));
        let mut flows_by_algorithm: BTreeMap<String, usize> = BTreeMap::new();
        self.enforcer
            .algorithms()
            .for_each(|(name, flows)| *flows_by_algorithm.entry(name.to_string()).or_default() += flows);
        Status {
            up_seconds: self.clock.now().as_secs_f64(),
            servers: port(servers),
            clients: port(clients),
            flows: self.enforcer.flows(),
            flows_by_algorithm,
            echoes: self.enforcer.echoes(),
            buffered_bytes: self.enforcer.buffered_bytes(),
            buffered_bytes_max: self.enforcer.buffered_bytes_max(),
            buffered_bytes_limit: self.limits.buffer_bytes,
            flows_limit: self.limits.flows,
            turn_max_seconds: self.turn_max.as_secs_f64(),
            listing_max_seconds: self.listings.slice_max.as_secs_f64(),
            oracle: self.cues.as_ref().map(Cues::oracle),
            counters: counters.collect(),
            mirrored: self.enforcer.mirrored(),
            mirror_refused: self.mirror.as_ref().map_or(0, |mirror| mirror.refused),
        }
    }
}
