//! What parts send each other at the end of a window, to be taken in the next.
//!
//! There are two boxes of each sender, used in turn: while some parts still take what the last window has brought, others already send at
//! the end of this one. So one barrier a window is enough. A window brings a part only a few packets of each other part: what one sends is
//! in one list, because a list for each receiver would be in a place of its own in memory, which costs more than what is in it.

use super::sync::RwLock;

/// What one part sends in a window.
pub struct Outbox<T> {
    /// In the order in which they were sent.
    items: Vec<T>,
    /// The part that each is for.
    to: Vec<u32>,
    /// Places in `items`, by receiver; of each in the order in which they were sent.
    order: Vec<u32>,
    /// By receiver: the end of its places in `order`.
    ends: Vec<u32>,
    /// When they are to be taken.
    turn: usize,
}

impl<T> Outbox<T> {
    /// An empty one, for so many receivers.
    pub fn new(parts: usize) -> Outbox<T> {
        Outbox { items: Vec::new(), to: Vec::new(), order: Vec::new(), ends: vec![0; parts], turn: 0 }
    }

    /// Adds `item` for the part `to`.
    #[inline]
    pub fn push(&mut self, to: u32, item: T) {
        self.items.push(item);
        self.to.push(to);
    }

    /// What was added, and the part that it is for.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.to.iter().copied().zip(&self.items)
    }

    fn sort(&mut self) {
        self.ends.fill(0);
        for to in &self.to {
            self.ends[*to as usize] += 1;
        }
        let mut start = 0;
        for end in &mut self.ends {
            start += std::mem::replace(end, start);
        }
        self.order.resize(self.items.len(), 0);
        for (place, to) in self.to.iter().enumerate() {
            let end = &mut self.ends[*to as usize];
            self.order[*end as usize] = place as u32;
            *end += 1;
        }
    }

    fn clear(&mut self) {
        self.items.clear();
        self.to.clear();
    }
}

/// The boxes of all parts.
pub struct Mail<T> {
    /// Those of even and of odd turns, each by sender.
    boxes: [RwLock<Vec<Outbox<T>>>; 2],
}

impl<T> Mail<T> {
    /// Empty boxes of so many parts.
    pub fn new(parts: usize) -> Mail<T> {
        let boxes = || RwLock::new((0..parts).map(|_| Outbox::new(parts)).collect());
        Mail { boxes: [boxes(), boxes()] }
    }

    /// Sends all of `outbox`, that of the part `from`, to be taken in `turn`: it is empty then. False: it was.
    pub fn send(&self, turn: usize, from: usize, outbox: &mut Outbox<T>) -> bool {
        if outbox.items.is_empty() {
            return false;
        }
        outbox.sort();
        outbox.turn = turn;
        std::mem::swap(&mut self.boxes[turn % 2].write().expect("no thread panics while it sends")[from], outbox);
        outbox.clear();
        true
    }

    /// Hands everything that the part `to` is to take in `turn` to `take`, by sender: the order in which threads came to send does not show.
    pub fn take(&self, turn: usize, to: usize, mut take: impl FnMut(&T)) {
        let boxes = self.boxes[turn % 2].read().expect("no thread panics while it sends");
        for outbox in boxes.iter().filter(|outbox| outbox.turn == turn) {
            let start = to.checked_sub(1).map_or(0, |before| outbox.ends[before]);
            for place in &outbox.order[start as usize..outbox.ends[to] as usize] {
                take(&outbox.items[*place as usize]);
            }
        }
    }
}
