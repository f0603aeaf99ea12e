//! Experiments that could explain a deviation: each changes one setting, on the single path.

/// One changed setting.
pub struct Experiment {
    /// Name of the rows' environment.
    pub name: &'static str,
    /// Overrides of the scenario.
    pub sets: &'static [&'static str],
    /// The question that it answers, for the text.
    pub question: &'static str,
}

const QUEUES: &str = "the paper does not state its queue limit";

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
        question: "does the first slow start cause it, which the 2 MB threshold never ends?",
    },
    Experiment {
        name: "RTO min 200 ms",
        sets: &["network.routing=single-path", "tcp.rto_min=200 ms"],
        question: "does the minimum RTO of 1 s cause it?",
    },
    Experiment {
        name: "linux stack",
        sets: &["network.routing=single-path", "tcp.preset=linux"],
        question: "do SACK, an initial window of 10 and large buffers cause it?",
    },
];
