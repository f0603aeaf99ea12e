//! Queues with active management by delay, in the types of the network model. A full packet has `full_packet` bytes on the
//! wire.

use net::{Aqm, CodelSpec, DualPi2Spec, FqCodelSpec, PieSpec, QueueSpec, SchedulerSpec};
use scenario::{self as file, CodelControl};

pub(crate) fn pie(pie: &file::Pie, full_packet: u16) -> QueueSpec {
    QueueSpec::drop_tail(pie.packets).with(Aqm::Pie(PieSpec {
        target: pie.target,
        update: pie.update,
        burst: pie.burst,
        alpha: pie.alpha,
        beta: pie.beta,
        ecn: pie.ecn,
        mark_max: pie.mark_max.fraction(),
        mean_packet: full_packet,
    }))
}

pub(crate) fn codel(codel: &file::Codel, full_packet: u16) -> QueueSpec {
    QueueSpec::drop_tail(codel.packets).with(Aqm::Held(SchedulerSpec::Codel(control(&codel.control, full_packet))))
}

pub(crate) fn fq_codel(fq_codel: &file::FqCodel, full_packet: u16) -> QueueSpec {
    QueueSpec::unlimited().with(Aqm::Held(SchedulerSpec::FqCodel(FqCodelSpec {
        codel: control(&fq_codel.control, full_packet),
        flows: fq_codel.flows,
        quantum: u32::try_from(fq_codel.quantum.get()).unwrap_or(u32::MAX),
        limit: fq_codel.packets,
        memory: fq_codel.memory,
    })))
}

pub(crate) fn dualpi2(dualpi2: &file::DualPi2, full_packet: u16) -> QueueSpec {
    QueueSpec::drop_tail(dualpi2.packets).with(Aqm::Held(SchedulerSpec::DualPi2(DualPi2Spec {
        target: dualpi2.target,
        rtt_max: dualpi2.rtt_max,
        step: dualpi2.step,
        coupling: dualpi2.coupling,
        classic_share: dualpi2.classic_share.fraction(),
        max_packet: full_packet,
    })))
}

fn control(control: &CodelControl, full_packet: u16) -> CodelSpec {
    CodelSpec {
        target: control.target,
        interval: control.interval,
        ecn: control.ecn,
        ce_threshold: control.ce_threshold,
        max_packet: full_packet,
    }
}
