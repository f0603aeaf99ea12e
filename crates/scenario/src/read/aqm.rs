//! Queues with active management by delay.

use super::queue::PACKETS_MAX;
use super::{Reader, Section};
use crate::model::{Codel, CodelControl, DualPi2, FqCodel, Percent, Pie, Queue};
use units::{Bytes, Time};

/// Queues of a link with flow queues.
const FLOWS_MAX: u32 = 65_536;
/// Largest weight of a controller.
const WEIGHT_MAX: f64 = 1000.0;

/// The queue called `name`; `frame_bytes` is the largest packet as links count it.
pub(super) fn queue(name: &str, section: &Section, frame_bytes: u64) -> Option<Queue> {
    match name {
        "pie" => Some(Queue::Pie(pie(section))),
        "codel" => Some(Queue::Codel(Codel { packets: packets(section, 1000), control: control(section, false) })),
        "fq_codel" => Some(Queue::FqCodel(fq_codel(section, frame_bytes))),
        _ => dualpi2(section).map(Queue::DualPi2),
    }
}

fn packets(section: &Section, default: u32) -> u32 {
    section.get("packets", |r, n| r.count(n, 1, PACKETS_MAX)).unwrap_or(default)
}

fn span(section: &Section, key: &'static str, default: Time) -> Time {
    section.get(key, Reader::span).unwrap_or(default)
}

fn pie(section: &Section) -> Pie {
    Pie {
        packets: packets(section, 1000),
        target: span(section, "target", Time::from_ms(15)),
        update: span(section, "update", Time::from_ms(15)),
        burst: span(section, "burst", Time::from_ms(150)),
        alpha: section.get("alpha", |r, n| r.number(n, WEIGHT_MAX)).unwrap_or(0.125),
        beta: section.get("beta", |r, n| r.number(n, WEIGHT_MAX)).unwrap_or(1.25),
        ecn: section.get("ecn", |r, n| r.boolean(n)).unwrap_or(false),
        mark_max: section.get("mark_max", Reader::percentage).unwrap_or(Percent(10.0)),
    }
}

fn control(section: &Section, ecn: bool) -> CodelControl {
    CodelControl {
        target: span(section, "target", Time::from_ms(5)),
        interval: span(section, "interval", Time::from_ms(100)),
        ecn: section.get("ecn", |r, n| r.boolean(n)).unwrap_or(ecn),
        ce_threshold: section.get("ce_threshold", Reader::span),
    }
}

fn fq_codel(section: &Section, frame_bytes: u64) -> FqCodel {
    let at_least_a_packet = |key: &'static str, default: Bytes| {
        let most = Bytes::new(1_000_000_000);
        let rule = format!("at least one full packet ({frame_bytes} B), {most} at most");
        let within = |bytes: &Bytes| bytes.get() >= frame_bytes && *bytes <= most;
        section.get(key, |r, n| r.within(n, within, &rule)).unwrap_or(default)
    };
    FqCodel {
        packets: packets(section, 10_240),
        memory: at_least_a_packet("memory", Bytes::new(32_000_000)),
        flows: section.get("flows", |r, n| r.count(n, 1, FLOWS_MAX)).unwrap_or(1024),
        quantum: at_least_a_packet("quantum", Bytes::new(frame_bytes)),
        control: control(section, true),
    }
}

fn dualpi2(section: &Section) -> Option<DualPi2> {
    let dualpi2 = DualPi2 {
        packets: packets(section, 10_000),
        target: span(section, "target", Time::from_ms(15)),
        rtt_max: span(section, "rtt_max", Time::from_ms(100)),
        step: span(section, "step", Time::from_ms(1)),
        coupling: section.get("coupling", |r, n| r.number(n, WEIGHT_MAX)).unwrap_or(2.0),
        classic_share: section.get("classic_share", Reader::percentage).unwrap_or(Percent(10.0)),
    };
    if dualpi2.coupling < 1.0 {
        return section.problem("coupling", "the coupling is at least 1", None);
    }
    if dualpi2.classic_share.fraction() >= 1.0 {
        return section.problem("classic_share", "the classic queue cannot have the whole link", None);
    }
    Some(dualpi2)
}
