//! Jellyfish's random regular graph, as its paper makes it: random pairs of switches with free ports are joined, and where
//! only neighbours are left with free ports, a cable is opened and both its ends joined to one of them, or to two.

use crate::mix::SplitMix64;

/// The switches that one is joined with, sorted: few, and looked through for each cable.
#[derive(Clone, Default)]
struct Joined(Vec<u32>);

impl Joined {
    fn contains(&self, switch: usize) -> bool {
        self.0.binary_search(&(switch as u32)).is_ok()
    }

    fn insert(&mut self, switch: usize) {
        if let Err(at) = self.0.binary_search(&(switch as u32)) {
            self.0.insert(at, switch as u32);
        }
    }

    fn remove(&mut self, switch: usize) {
        if let Ok(at) = self.0.binary_search(&(switch as u32)) {
            self.0.remove(at);
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// The cables between `n` switches of which each has `degree`; one may have one less. It is connected.
pub fn graph(n: usize, degree: usize, seed: u64) -> Vec<(usize, usize)> {
    // with three and more, nearly every such graph is connected: the loop ends at once
    (0..u64::MAX)
        .map(|attempt| random_graph(n, degree, SplitMix64::new(seed, attempt)))
        .find(|cables| is_connected(n, cables))
        .expect("attempts do not end")
}

fn random_graph(count: usize, degree: usize, mut random: SplitMix64) -> Vec<(usize, usize)> {
    let mut cables: Vec<(usize, usize)> = Vec::with_capacity(count * degree / 2);
    let mut joined = vec![Joined::default(); count];
    // switches with free ports, and where each is among them
    let mut open: Vec<usize> = if degree == 0 { Vec::new() } else { (0..count).collect() };
    let mut places: Vec<usize> = open.clone();
    let mut below = |most: usize| ((random.unit() * most as f64) as usize).min(most - 1);
    loop {
        // a few random trials, then all pairs
        let trial = (0..8).find_map(|_| {
            let (a, b) = (*open.get(below(open.len().max(1)))?, *open.get(below(open.len().max(1)))?);
            (a != b && !joined[a].contains(b)).then_some((a, b))
        });
        let free = || {
            let mut pairs = open.iter().enumerate().flat_map(|(i, a)| open[i + 1..].iter().map(move |b| (*a, *b)));
            pairs.find(|(a, b)| !joined[*a].contains(*b))
        };
        if let Some((a, b)) = trial.or_else(free) {
            joined[a].insert(b);
            joined[b].insert(a);
            cables.push((a, b));
            for full in [a, b].into_iter().filter(|end| joined[*end].len() == degree) {
                remove(&mut open, &mut places, full);
            }
            continue;
        }
        // all that have free ports are neighbours: one with two of them takes both ends of a cable, or two take one each
        let twice = open.iter().find(|switch| joined[**switch].len() + 2 <= degree);
        let (one_end, other) = match (twice, &open[..]) {
            (Some(&twice), _) => (twice, twice),
            (None, &[one_end, other, ..]) => (one_end, other),
            _ => return cables,
        };
        let start = below(cables.len());
        let fits = |(x, y): (usize, usize)| {
            let apart = ![one_end, other].contains(&x) && ![one_end, other].contains(&y);
            (apart && !joined[one_end].contains(x) && !joined[other].contains(y)).then_some((x, y))
        };
        let opened = (0..cables.len()).map(|d| (start + d) % cables.len()).find_map(|i| {
            let (x, y) = cables[i];
            fits((x, y)).or_else(|| fits((y, x))).map(|ends| (i, ends))
        });
        let Some((i, (x, y))) = opened else { return cables };
        cables.swap_remove(i);
        joined[x].remove(y);
        joined[y].remove(x);
        for (end, stuck) in [(x, one_end), (y, other)] {
            joined[stuck].insert(end);
            joined[end].insert(stuck);
            cables.push((stuck, end));
            if joined[stuck].len() == degree {
                remove(&mut open, &mut places, stuck);
            }
        }
    }
}

/// Takes a switch out of `open`; the last one takes its place.
fn remove(open: &mut Vec<usize>, places: &mut [usize], switch: usize) {
    let place = places[switch];
    open.swap_remove(place);
    if let Some(moved) = open.get(place) {
        places[*moved] = place;
    }
}

fn is_connected(n: usize, cables: &[(usize, usize)]) -> bool {
    let mut neighbours = vec![Vec::new(); n];
    for &(a, b) in cables {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let mut seen = vec![false; n];
    let mut open = vec![0];
    seen[0] = true;
    while let Some(at) = open.pop() {
        open.extend(neighbours[at].iter().filter(|to| !std::mem::replace(&mut seen[**to], true)));
    }
    seen.iter().all(|seen| *seen)
}
