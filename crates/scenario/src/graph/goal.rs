//! GOAL, the text of schedules of LogGOPSim (Hoefler, Siebert and Lumsdaine 2009) and ATLAHS: a list of `calc`, `send` and `recv`
//! for each rank, and what requires what.
//!
//! A send ends when its last byte has arrived; a recv when its own requirements are met and the message is there. Sends and
//! recvs of two ranks with one tag match in the file's order.

use super::{Graph, GraphError, RANKS_MAX, TASKS_MAX, Work};
use std::collections::{BTreeMap, VecDeque};
use units::{Bytes, Time};

/// Two ranks, sender and receiver, and a tag.
type Channel = (u32, u32, u64);

/// Reading one file.
#[derive(Default)]
struct Goal {
    graph: Graph,
    /// The line of each task.
    lines: Vec<usize>,
    /// The labels of the present rank: the tasks at which an operation begins and ends.
    labels: BTreeMap<String, (u32, u32)>,
    sends: BTreeMap<Channel, VecDeque<u32>>,
    receives: BTreeMap<Channel, VecDeque<u32>>,
}

pub fn read(text: &str) -> Result<Graph, GraphError> {
    let mut goal = Goal::default();
    let mut rank: Option<u32> = None;
    let mut seen = Vec::new();
    let mut last = 1;
    for (line, row) in without_comments(text) {
        last = line;
        let error = |message: String| GraphError { line, message };
        let words: Vec<&str> = row.split_whitespace().collect();
        match (words.as_slice(), rank) {
            (["num_ranks", n], None) if goal.graph.ranks == 0 => {
                let n = n.parse().ok().filter(|n| (1..=RANKS_MAX).contains(n));
                goal.graph.ranks =
                    n.ok_or_else(|| error(format!("the number of ranks is from 1 to {RANKS_MAX}: `num_ranks 4`")))?;
                seen = vec![false; goal.graph.ranks as usize];
            }
            (["rank", number, "{"], None) if goal.graph.ranks > 0 => {
                let number = goal.rank(number).map_err(error)?;
                if std::mem::replace(&mut seen[number as usize], true) {
                    return Err(error(format!("a second rank {number}")));
                }
                goal.labels.clear();
                rank = Some(number);
            }
            (["}"], Some(_)) => rank = None,
            (words, Some(rank)) => goal.operation(rank, words, line).map_err(error)?,
            _ if goal.graph.ranks == 0 => return Err(error("the first line is `num_ranks N`".into())),
            _ => return Err(error(format!("`{row}` is not `rank N {{`"))),
        }
        if goal.graph.tasks.len() > TASKS_MAX {
            return Err(GraphError { line, message: format!("too many tasks: at most {TASKS_MAX}") });
        }
    }
    if goal.graph.ranks == 0 {
        return Err(GraphError { line: 1, message: "the first line is `num_ranks N`".into() });
    }
    if rank.is_some() {
        return Err(GraphError { line: last, message: "the last rank has no `}`".into() });
    }
    goal.matched()
}

/// The lines that are not empty, `//` and `/* */` left out, with braces apart from words.
fn without_comments(text: &str) -> Vec<(usize, String)> {
    let mut inside = false;
    let mut rows = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        let mut kept = String::new();
        let mut rest = row;
        while !rest.is_empty() {
            if inside {
                let Some((_, after)) = rest.split_once("*/") else { break };
                (inside, rest) = (false, after);
            } else if rest.starts_with("//") {
                break;
            } else if let Some(after) = rest.strip_prefix("/*") {
                (inside, rest) = (true, after);
            } else {
                let next = rest.chars().next().expect("it is not empty");
                if next == '{' {
                    kept.push_str(" {");
                } else {
                    kept.push(next);
                }
                rest = &rest[next.len_utf8()..];
            }
        }
        if !kept.trim().is_empty() {
            rows.push((line, kept.trim().to_string()));
        }
    }
    rows
}

impl Goal {
    fn rank(&self, text: &str) -> Result<u32, String> {
        let known = text.parse().ok().filter(|rank| *rank < self.graph.ranks);
        known.ok_or_else(|| format!("there is no rank `{text}`: ranks are from 0 to {}", self.graph.ranks - 1))
    }

    fn add(&mut self, work: Work, needs: Vec<u32>, line: usize) -> u32 {
        self.lines.push(line);
        self.graph.add(work, needs)
    }

    /// `l1: send 100b to 1 tag 0`, `l2 requires l1`; a label may be left out.
    fn operation(&mut self, rank: u32, words: &[&str], line: usize) -> Result<(), String> {
        if let [after, kind @ ("requires" | "irequires"), before] = words {
            let of =
                |label: &str| self.labels.get(label).copied().ok_or_else(|| format!("there is no `{label}` above"));
            let (begin, _) = of(after)?;
            let (begun, ended) = of(before)?;
            let needed = if *kind == "requires" { ended } else { begun };
            self.graph.tasks[begin as usize].needs.push(needed);
            return Ok(());
        }
        let (label, words) = match words {
            [first, rest @ ..] if first.ends_with(':') => (Some(first.trim_end_matches(':')), rest),
            words => (None, words),
        };
        // what an operation requires is required by its beginning, so that another can require that alone
        let begin = self.add(Work::Compute { time: Time::ZERO }, Vec::new(), line);
        let end = match words {
            ["calc", ns, options @ ..] => {
                option(options, &["cpu"])?;
                let most = crate::Scenario::DURATION_MAX;
                let time = ns.parse().ok().filter(|ns| *ns <= most.as_ns()).map(Time::from_ns);
                let time = time.ok_or_else(|| format!("`{ns}` is not a number of nanoseconds, up to {most}"))?;
                self.add(Work::Compute { time }, vec![begin], line)
            }
            ["send", bytes, "to", peer, options @ ..] => {
                let (bytes, peer, tag) =
                    (size(bytes)?, self.peer(rank, peer)?, option(options, &["tag", "cpu", "nic"])?);
                let coflow = self.graph.coflow(&format!("tag-{tag}"));
                let sent = self.add(Work::Send { from: rank, to: peer, bytes, coflow }, vec![begin], line);
                self.sends.entry((rank, peer, tag)).or_default().push_back(sent);
                sent
            }
            ["recv", bytes, "from", peer, options @ ..] => {
                let (_, peer, tag) = (size(bytes)?, self.peer(rank, peer)?, option(options, &["tag", "cpu", "nic"])?);
                let received = self.add(Work::Compute { time: Time::ZERO }, vec![begin], line);
                self.receives.entry((peer, rank, tag)).or_default().push_back(received);
                received
            }
            _ => {
                return Err(
                    "an operation is `calc 100`, `send 10b to 1 tag 0` or `recv 10b from 1 tag 0`, with a label \
                            before it, or `l2 requires l1`"
                        .into(),
                );
            }
        };
        match label {
            Some(label) if self.labels.insert(label.to_string(), (begin, end)).is_some() => {
                Err(format!("a second `{label}` in rank {rank}"))
            }
            _ => Ok(()),
        }
    }

    fn peer(&self, rank: u32, text: &str) -> Result<u32, String> {
        match self.rank(text)? {
            peer if peer == rank => Err(format!("rank {rank} would send to itself")),
            peer => Ok(peer),
        }
    }

    /// Joins sends and recvs, and refuses what would wait for ever.
    fn matched(mut self) -> Result<Graph, GraphError> {
        let unmatched = |task: u32, what: &str, lines: &[usize]| {
            Err(GraphError { line: lines[task as usize], message: format!("this {what} has no counterpart") })
        };
        for (channel, receives) in &self.receives {
            let sends = self.sends.entry(*channel).or_default();
            for received in receives {
                let Some(sent) = sends.pop_front() else { return unmatched(*received, "recv", &self.lines) };
                self.graph.tasks[*received as usize].needs.push(sent);
            }
        }
        if let Some(sent) = self.sends.values().find_map(VecDeque::front) {
            return unmatched(*sent, "send", &self.lines);
        }
        if self.graph.tasks.is_empty() {
            return Err(GraphError { line: 1, message: "no rank has an operation".into() });
        }
        match self.graph.cycle() {
            Some(task) => Err(GraphError {
                line: self.lines[task],
                message: "this operation waits for itself: the requirements form a cycle".into(),
            }),
            None => Ok(self.graph),
        }
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    let bytes = text.strip_suffix('b').unwrap_or(text).parse().ok();
    let bytes = bytes.filter(|bytes| (1..=super::BYTES_MAX).contains(bytes));
    bytes
        .map(Bytes::new)
        .ok_or_else(|| format!("`{text}` is not a number of bytes such as `100b`, from 1 to {}", super::BYTES_MAX))
}

/// Pairs of a word and a number; the tag, 0 unless given.
fn option(options: &[&str], allowed: &[&str]) -> Result<u64, String> {
    let mut tag = 0;
    for pair in options.chunks(2) {
        let [word, number] = pair else { return Err(format!("`{}` has no number", pair[0])) };
        if !allowed.contains(word) {
            return Err(format!("`{word}` is not one of {}", document::list(allowed.iter().copied())));
        }
        let number: u64 = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
        if *word == "tag" {
            tag = number;
        }
    }
    Ok(tag)
}
