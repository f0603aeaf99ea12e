//! What parts send each other at the end of a window, to be taken at the beginning of the next.
//!
//! There are two sets of boxes, used in turn: while some parts still take what the last window has brought, others already send at the
//! end of this one. So one barrier a window is enough.

use super::sync::Mutex;

/// A batch, and the part that sends it.
type Batch<T> = (u32, Vec<T>);

/// The boxes of all parts.
pub struct Mail<T> {
    /// By turn, then by the part that receives.
    boxes: [Vec<Mutex<Vec<Batch<T>>>>; 2],
}

impl<T> Mail<T> {
    /// Empty boxes of so many parts.
    pub fn new(parts: usize) -> Mail<T> {
        let boxes = || (0..parts).map(|_| Mutex::new(Vec::new())).collect();
        Mail { boxes: [boxes(), boxes()] }
    }

    /// At the end of a window with this `turn`, 0 or 1, the part `from` sends `batch` to the part `to`.
    pub fn send(&self, turn: usize, to: usize, from: u32, batch: Vec<T>) {
        self.boxes[turn][to].lock().expect("no thread panics while it holds a box").push((from, batch));
    }

    /// What the window with this `turn` has brought to the part `to`, by sender: the order in which threads came to send does not show.
    pub fn take(&self, turn: usize, to: usize) -> Vec<Batch<T>> {
        let mut batches =
            std::mem::take(&mut *self.boxes[turn][to].lock().expect("no thread panics while it holds a box"));
        batches.sort_by_key(|(from, _)| *from);
        batches
    }

    /// Calls `f` for everything that has not been taken, and the part that it is for.
    pub fn for_each(&self, mut f: impl FnMut(usize, &T)) {
        for boxes in &self.boxes {
            for (to, mail) in boxes.iter().enumerate() {
                let batches = mail.lock().expect("no thread panics while it holds a box");
                batches.iter().flat_map(|(_, batch)| batch).for_each(|item| f(to, item));
            }
        }
    }
}
