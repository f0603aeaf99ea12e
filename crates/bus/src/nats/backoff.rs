//! When to try a server that is gone.
//!
//! Each wait is drawn from 0 up to as long as the server has been gone, at least [`SHORTEST`] and at most [`LONGEST`] (exponential back-off with full
//! jitter: what is drawn from doubles with the time). So whenever the server returns, a fleet comes back spread over that window, and not
//! all at once: of 4,000 members about 1,000 a second, and 2,000 in the first one at most. And it is back within
//! as long again as the server was gone, or in 4 seconds if that was shorter: after a restart, well below 10.

use std::time::Duration;

/// The first waits are drawn from this.
pub(super) const SHORTEST: Duration = Duration::from_secs(4);
/// However long it takes.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// How long to wait if the server has been gone for `gone`; `random` is drawn evenly from all numbers.
pub(super) fn delay(gone: Duration, random: u32) -> Duration {
    gone.clamp(SHORTEST, LONGEST).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a member whose server returns after `down` is connected; `state` is the generator's.
    fn back_at(down: f64, state: &mut u64) -> f64 {
        let mut at = 0.0;
        loop {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at += delay(Duration::from_secs_f64(at), (*state >> 32) as u32).as_secs_f64();
            if at >= down {
                return at;
            }
        }
    }

    #[test]
    fn a_fleet_is_back_soon_and_never_all_at_once() {
        let mut state = 7;
        for (down, within) in [(0.0, 4.0), (1.0, 4.0), (3.0, 4.0), (20.0, 20.0), (600.0, 30.0)] {
            let mut seconds = vec![0; 40];
            for _ in 0..4000 {
                let late = back_at(down, &mut state) - down;
                assert!((0.0..=within).contains(&late), "{late} s after {down} s");
                seconds[late as usize] += 1;
            }
            // of waits drawn from W seconds that are all under way, the end of one is nearest at first: 2/W of them within a second
            let most = seconds.into_iter().max().unwrap();
            assert!(most <= 2200, "{most} within a second, after {down} s");
        }
    }

    #[test]
    fn a_wait_is_drawn_from_nothing_to_the_whole() {
        assert_eq!(delay(Duration::ZERO, 0), Duration::ZERO);
        assert_eq!(delay(Duration::ZERO, u32::MAX), SHORTEST);
        assert_eq!(delay(Duration::from_secs(10), u32::MAX), Duration::from_secs(10));
        assert_eq!(delay(Duration::from_secs(3600), u32::MAX), LONGEST);
    }
}
