//! Paths through servers: BCube's source routing and DCell's.
//!
//! A path is a list of nodes here, and becomes links at the end. Where a link of it is down, the next of the parallel paths is
//! taken, and after the last a shortest path that a breadth-first search finds.

use crate::topology::dcell_servers;
use crate::{LinkId, NodeId, Shape, Topology};
use std::collections::VecDeque;

/// All links of a network where servers forward, by the node that they leave, and its shape.
#[derive(Debug)]
pub struct Servers {
    shape: Shape,
    n_hosts: usize,
    first: Vec<u32>,
    out: Vec<(LinkId, u32)>,
}

impl Servers {
    /// Of `topology`, if servers forward in it.
    pub fn of(topology: &Topology) -> Option<Servers> {
        let shape = topology.shape().filter(Shape::servers_forward)?;
        let mut servers = Servers { shape, n_hosts: topology.n_hosts(), first: vec![0], out: Vec::new() };
        for node in 0..topology.nodes().len() as u32 {
            let links = topology.out_links(NodeId(node)).iter();
            servers.out.extend(links.map(|&link| (link, topology.link(link).to.0)));
            servers.first.push(servers.out.len() as u32);
        }
        Some(servers)
    }

    /// Writes the links from `src` to `dst` to `out`. `choice` is one among the shortest of parallel paths, from 0 to 1 in units
    /// of 2^-32; none: the first.
    pub fn path(
        &self,
        (src, dst): (NodeId, NodeId),
        choice: Option<u32>,
        down: &[bool],
        out: &mut Vec<LinkId>,
    ) -> Option<()> {
        let (src, dst) = (src.index(), dst.index());
        if src == dst || src.max(dst) >= self.n_hosts {
            return None;
        }
        let mut paths = self.parallel(src, dst);
        let least = paths.iter().map(Vec::len).min()?;
        let shortest = paths.iter().filter(|path| path.len() == least).count() as u64;
        let first = choice.map_or(0, |choice| (u64::from(choice) * shortest) >> 32);
        // a stable sort keeps the paper's order among the shortest
        paths.sort_by_key(Vec::len);
        paths[..shortest as usize].rotate_left(first as usize);
        for path in &paths {
            out.clear();
            if self.links(path, down, out).is_some() {
                return Some(());
            }
        }
        out.clear();
        self.links(&self.search(src, dst, down)?, down, out)
    }

    /// The parallel paths between two servers, as nodes.
    fn parallel(&self, src: usize, dst: usize) -> Vec<Vec<usize>> {
        match self.shape {
            Shape::DCell { n, .. } => {
                let mut path = vec![src];
                self.dcell(n, src, dst, &mut path);
                vec![path]
            }
            Shape::BCube { n, k } => BCube { n: n as usize, k: k as usize, n_hosts: self.n_hosts }.paths(src, dst),
            _ => Vec::new(),
        }
    }

    /// DCellRouting: to the server whose cable leads to the other's part, over the cable, and on from there.
    fn dcell(&self, n: u32, src: usize, dst: usize, path: &mut Vec<usize>) {
        if src == dst {
            return;
        }
        if src / n as usize == dst / n as usize {
            path.extend([self.n_hosts + src / n as usize, dst]);
            return;
        }
        let inner = (0..).map(|level| dcell_servers(n, level) as usize);
        // of the last level in which both are in different parts, the servers of a part
        let inner = inner.take_while(|inner| src / inner != dst / inner).last().unwrap_or(1);
        let whole = src / (inner * (inner + 1)) * inner * (inner + 1);
        let (from, to) = ((src - whole) / inner, (dst - whole) / inner);
        let end = |part: usize, other: usize| whole + part * inner + if part < other { other - 1 } else { other };
        let (near, far) = (end(from, to), end(to, from));
        self.dcell(n, src, near, path);
        path.push(far);
        self.dcell(n, far, dst, path);
    }

    fn links(&self, path: &[usize], down: &[bool], out: &mut Vec<LinkId>) -> Option<()> {
        for hop in path.windows(2) {
            let (link, _) = self.out(hop[0]).iter().find(|(_, to)| *to as usize == hop[1])?;
            if down[link.index()] {
                return None;
            }
            out.push(*link);
        }
        Some(())
    }

    fn out(&self, node: usize) -> &[(LinkId, u32)] {
        &self.out[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// A shortest path over links that work.
    fn search(&self, src: usize, dst: usize, down: &[bool]) -> Option<Vec<usize>> {
        let mut before = vec![usize::MAX; self.first.len() - 1];
        before[src] = src;
        let mut open = VecDeque::from([src]);
        while let Some(at) = open.pop_front() {
            if at == dst {
                let mut path = vec![dst];
                while path[path.len() - 1] != src {
                    path.push(before[path[path.len() - 1]]);
                }
                path.reverse();
                return Some(path);
            }
            for &(link, to) in self.out(at) {
                if before[to as usize] == usize::MAX && !down[link.index()] {
                    before[to as usize] = at;
                    open.push_back(to as usize);
                }
            }
        }
        None
    }
}

/// BCube's addresses: a server's has k + 1 digits of base n.
struct BCube {
    n: usize,
    k: usize,
    n_hosts: usize,
}

impl BCube {
    /// BuildPathSet: k + 1 paths that share no node but their ends. For each digit, highest first, the path that corrects it
    /// first and then those below, around to the one above it; where it is right already, the path goes through the next
    /// neighbour of this level and corrects it last.
    fn paths(&self, src: usize, dst: usize) -> Vec<Vec<usize>> {
        let turn = |first: usize| (0..=self.k).map(move |d| (first + self.k + 1 - d) % (self.k + 1));
        let path = |level: usize| {
            let mut path = vec![src];
            if self.digit(src, level) == self.digit(dst, level) {
                let near = self.with_digit(src, level, (self.digit(src, level) + 1) % self.n);
                path.extend([self.switch(src, level), near]);
                self.correct(near, dst, turn(level).skip(1).chain([level]), &mut path);
            } else {
                self.correct(src, dst, turn(level), &mut path);
            }
            path
        };
        (0..=self.k).rev().map(path).collect()
    }

    /// BCubeRouting: one digit at a time.
    fn correct(&self, src: usize, dst: usize, levels: impl Iterator<Item = usize>, path: &mut Vec<usize>) {
        let mut at = src;
        for level in levels.filter(|level| self.digit(src, *level) != self.digit(dst, *level)) {
            path.push(self.switch(at, level));
            at = self.with_digit(at, level, self.digit(dst, level));
            path.push(at);
        }
    }

    fn stride(&self, level: usize) -> usize {
        self.n.pow(level as u32)
    }

    fn digit(&self, server: usize, level: usize) -> usize {
        server / self.stride(level) % self.n
    }

    fn with_digit(&self, server: usize, level: usize, digit: usize) -> usize {
        server - self.digit(server, level) * self.stride(level) + digit * self.stride(level)
    }

    /// The switch of this level that a server has a cable to.
    fn switch(&self, server: usize, level: usize) -> usize {
        let stride = self.stride(level);
        self.n_hosts + level * self.stride(self.k) + server / (stride * self.n) * stride + server % stride
    }
}
