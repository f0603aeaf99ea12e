//! The links' counters while the engine runs: requested by one thread, answered by the engine's.

use net::{LinkCounters, QueueLength};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// By link: its counters since the start, and its queue.
pub type Readings = Vec<(LinkCounters, QueueLength)>;

/// A request and its answer.
#[derive(Debug, Default)]
pub struct Gauges {
    asked: AtomicBool,
    answer: Mutex<Option<Readings>>,
    answered: Condvar,
}

impl Gauges {
    /// All links' readings; `None` without an answer within `patience`. Only one thread may ask at a time.
    pub fn read(&self, patience: Duration) -> Option<Readings> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        // a late answer to the last request
        *answer = None;
        self.asked.store(true, Ordering::Release);
        let waited = self.answered.wait_timeout_while(answer, patience, |answer| answer.is_none());
        let (mut answer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.asked.store(false, Ordering::Release);
        answer.take()
    }

    /// Answers with the result of `readings`, if there is a request.
    pub fn answer(&self, readings: impl FnOnce() -> Readings) {
        if self.asked.load(Ordering::Acquire) {
            self.asked.store(false, Ordering::Release);
            *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(readings());
            self.answered.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_question_is_answered_once_and_only_if_asked() {
        let gauges = Gauges::default();
        gauges.answer(|| unreachable!("there is no request"));
        assert_eq!(gauges.read(Duration::ZERO), None, "no answer");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    gauges.answer(|| vec![<(LinkCounters, QueueLength)>::default(); 3]);
                }
            });
            for _ in 0..10 {
                assert_eq!(gauges.read(Duration::from_secs(10)).map(|readings| readings.len()), Some(3));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
