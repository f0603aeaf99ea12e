//! The seventeen scripts: what an application writes, and what the path does to each transmission.

/// What the path does with a data transmission; they are numbered from 1, retransmissions included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Drop,
    DelayMs(u64),
    Mark,
}

/// One script.
#[derive(Clone, Debug)]
pub struct Script {
    pub number: u32,
    /// When (ms after the handshake) the application writes how many segments.
    pub writes: Vec<(u64, u32)>,
    pub fault: fn(u32) -> Option<Fault>,
    pub sack: bool,
    /// A FIFO of 10 Mb/s, without limit.
    pub bottleneck: bool,
}

fn fault(yes: bool, fault: Fault) -> Option<Fault> {
    yes.then_some(fault)
}

impl Script {
    fn new(number: u32, segments: u32, fault: fn(u32) -> Option<Fault>) -> Script {
        Script { number, writes: vec![(0, segments)], fault, sack: true, bottleneck: false }
    }

    pub fn segments(&self) -> u32 {
        self.writes.iter().map(|write| write.1).sum()
    }
}

/// All of them, in the order of the recorded ones.
pub fn all() -> Vec<Script> {
    let mut scripts = vec![
        Script::new(1, 24, |_| None),
        Script::new(2, 40, |n| fault(n == 15, Fault::Drop)),
        Script { sack: false, ..Script::new(3, 40, |n| fault(n == 15, Fault::Drop)) },
        Script::new(4, 8, |n| fault(n == 8, Fault::Drop)),
        Script::new(5, 5, |n| fault((6..=12).contains(&n), Fault::Drop)),
        Script::new(6, 20, |_| None),
        Script::new(7, 80, |n| fault(n == 12, Fault::Mark)),
        Script::new(8, 40, |n| fault(n == 15, Fault::DelayMs(3))),
        Script::new(9, 60, |n| fault((11..=34).contains(&n), Fault::DelayMs(400))),
        Script::new(10, 2, |_| None),
        Script::new(11, 40, |n| fault(matches!(n, 15 | 17 | 19), Fault::Drop)),
        Script::new(12, 40, |n| fault(matches!(n, 12..=14 | 20), Fault::Mark)),
        Script::new(13, 60, |_| Some(Fault::Mark)),
        Script::new(14, 40, |_| None),
        Script { bottleneck: true, ..Script::new(15, 60, |_| None) },
        Script { bottleneck: true, ..Script::new(16, 60, |n| fault(n == 25, Fault::Drop)) },
        Script { bottleneck: true, ..Script::new(17, 3, |_| None) },
    ];
    scripts[4].writes.push((300, 6));
    scripts[5].writes.push((1500, 20));
    scripts[9].writes = (0..10).map(|i| (30 * i, 2)).collect();
    scripts[16].writes = (0..7).map(|i| (50 * i, if i == 6 { 30 } else { 3 })).collect();
    scripts
}
