//! What else could explain a deviation, each changed alone, on the single path.

/// One setting beside the study's own.
pub struct Experiment {
    /// Name of the rows' environment.
    pub name: &'static str,
    /// What is set for it.
    pub sets: &'static [&'static str],
    /// What it asks, for people.
    pub question: &'static str,
}

const QUEUES: &str = "the paper leaves its queue limit unsaid";

macro_rules! queue_limit {
    ($packets:literal) => {
        Experiment {
            name: concat!("queue ", $packets),
            sets: &[
                "network.routing=single-path",
                concat!("network.queue={ drop_tail = { packets = ", $packets, " } }"),
                concat!("network.nic_queue={ drop_tail = { packets = ", $packets, " } }"),
            ],
            question: QUEUES,
        }
    };
}

/// The sweep of the queue limit, then one experiment for each property of the stack.
pub const ALL: [Experiment; 8] = [
    queue_limit!(25),
    queue_limit!(50),
    queue_limit!(100),
    queue_limit!(200),
    queue_limit!(400),
    Experiment {
        name: "ssthresh 64 kB",
        sets: &["network.routing=single-path", "tcp.initial_ssthresh=64 kB"],
        question: "does the first slow start, which the 2 MB threshold never ends, decide?",
    },
    Experiment {
        name: "RTO min 200 ms",
        sets: &["network.routing=single-path", "tcp.rto_min=200 ms"],
        question: "do the waits of a 1 s least time-out decide?",
    },
    Experiment {
        name: "linux stack",
        sets: &["network.routing=single-path", "tcp.preset=linux"],
        question: "do SACK, a window of ten and large buffers decide?",
    },
];
