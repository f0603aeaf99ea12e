//! Places for a bounded number of connections, shared by address: who takes many loses them first.

use std::future::pending;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What becomes of another one, if every address has one place and all are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It gets none.
    Refused,
    /// It gets the place that was taken first.
    Replaces,
}

/// At most so many places.
#[derive(Debug)]
pub struct Places {
    most: usize,
    beyond: Beyond,
    taken: Mutex<Taken>,
}

/// Those that are taken, in the order in which they were.
#[derive(Debug, Default)]
struct Taken {
    next: u64,
    places: Vec<OnePlace>,
}

#[derive(Debug)]
struct OnePlace {
    number: u64,
    address: IpAddr,
    since: Instant,
    loses: oneshot::Sender<()>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    all: Arc<Places>,
    number: u64,
    lost: oneshot::Receiver<()>,
}

impl Places {
    /// So many, none of them taken.
    pub fn new(most: usize, beyond: Beyond) -> Arc<Places> {
        Arc::new(Places { most, beyond, taken: Mutex::default() })
    }

    /// A place for somebody at an address. If all are taken, the oldest of the address with the most is lost to it.
    pub fn take(self: &Arc<Places>, from: IpAddr) -> Option<Place> {
        let address = network(from);
        let (loses, lost) = oneshot::channel();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.places.len() >= self.most {
            let victim = self.victim(&taken.places, address)?;
            let _ = taken.places.remove(victim).loses.send(());
        }
        let number = taken.next;
        taken.next += 1;
        taken.places.push(OnePlace { number, address, since: Instant::now(), loses });
        drop(taken);
        Some(Place { all: Arc::clone(self), number, lost })
    }

    /// How long the place that somebody at an address would get from another is still that one's, if each has it for so long.
    pub fn held(&self, from: IpAddr, least: Duration) -> Option<Duration> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.places.len() < self.most {
            return None;
        }
        let victim = self.victim(&taken.places, network(from))?;
        least.checked_sub(taken.places[victim].since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Whose place is lost to somebody at an address, if all are taken.
    fn victim(&self, places: &[OnePlace], from: IpAddr) -> Option<usize> {
        let count = |address: IpAddr| places.iter().filter(|other| other.address == address).count();
        // of several with as many, the first: `max_by_key` takes the last
        let largest = places.iter().rev().max_by_key(|place| count(place.address))?.address;
        let most = count(largest);
        let yields = most > count(from) && (most > 1 || self.beyond == Beyond::Replaces);
        let victim = if yields { largest } else { from };
        places.iter().position(|place| place.address == victim)
    }

    /// Releases a place; whoever had it does not lose it.
    pub fn release(&self, number: u64) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.places.retain(|other| other.number != number);
    }
}

impl Place {
    /// Its number, by which it is released.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Waits until it is lost to another; for ever, if it was released.
    pub async fn lost(&mut self) {
        if (&mut self.lost).await.is_err() {
            pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.release(self.number);
    }
}

/// What one machine may choose addresses from: in IPv6 the upper 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes places from these addresses, and says which of them are lost then, and whether the last got one.
    fn lost(beyond: Beyond, from: &[&str]) -> (Vec<usize>, bool) {
        let places = Places::new(4, beyond);
        let mut taken: Vec<Option<Place>> = from.iter().map(|from| places.take(from.parse().unwrap())).collect();
        let is_lost = |place: &mut Option<Place>| place.as_mut().is_some_and(|place| place.lost.try_recv().is_ok());
        let lost = (0..taken.len()).filter(|at| is_lost(&mut taken[*at])).collect();
        (lost, taken.last().is_some_and(Option::is_some))
    }

    #[test]
    fn who_has_the_most_loses_the_oldest() {
        let [a, b, c, d] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];
        for beyond in [Beyond::Refused, Beyond::Replaces] {
            assert_eq!(lost(beyond, &[a, b, b, c]), (vec![], true), "there is room");
            assert_eq!(lost(beyond, &[a, b, b, c, d]), (vec![1], true));
            assert_eq!(lost(beyond, &[a, b, b, c, b]), (vec![1], true));
            assert_eq!(lost(beyond, &[a, a, b, b, c]), (vec![0], true), "of two with as many");
            assert_eq!(lost(beyond, &[a, a, b, b, b]), (vec![2], true), "its own");
            assert_eq!(lost(beyond, &[a, b, c, d, a]), (vec![0], true), "its own");
            let all = ["2001:db8::1", "2001:db8::2", "2001:db8::3", a, b];
            assert_eq!(lost(beyond, &all), (vec![0], true), "a network of IPv6 is one address");
        }
        assert_eq!(lost(Beyond::Refused, &[a, b, c, d, "10.0.0.5"]), (vec![], false));
        assert_eq!(lost(Beyond::Replaces, &[a, b, c, d, "10.0.0.5"]), (vec![0], true));
    }

    #[test]
    fn a_place_is_held_for_a_while_if_whoever_wants_it_waits() {
        let (places, from) = (Places::new(1, Beyond::Replaces), "10.0.0.1".parse().unwrap());
        let held = |least| places.held(from, Duration::from_secs(least));
        assert_eq!(held(100), None, "there is room");
        let _place = places.take(from);
        assert!(held(100).is_some_and(|left| left > Duration::from_secs(50)));
        assert_eq!(held(0), None);
    }

    #[test]
    fn a_place_that_is_dropped_is_free() {
        let places = Places::new(1, Beyond::Refused);
        let place = places.take("10.0.0.1".parse().unwrap()).unwrap();
        assert!(places.take("10.0.0.2".parse().unwrap()).is_none());
        drop(place);
        let mut place = places.take("10.0.0.2".parse().unwrap()).unwrap();
        places.release(place.number());
        assert!(places.take("10.0.0.3".parse().unwrap()).is_some());
        assert_eq!(place.lost.try_recv(), Err(oneshot::error::TryRecvError::Closed), "it was released, not lost");
    }
}
