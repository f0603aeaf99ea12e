//! Student's distribution.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// What the magnitude of Student's t with these degrees of freedom (at least one) does not exceed with this probability.
pub fn student(freedom: usize, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // an angle, to all bits of it
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if within(middle, freedom) < probability { low = middle } else { high = middle }
    }
    libm::sqrt(freedom as f64) * libm::tan(low)
}

/// The probability that the magnitude of Student's t is at most `sqrt(freedom) tan(angle)` (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(angle: f64, freedom: usize) -> f64 {
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2 == 1;
    let (mut term, first) = if odd { (cos, 3) } else { (1.0, 2) };
    let mut sum = if freedom > 1 { term } else { 0.0 };
    for k in (first..freedom - 1).step_by(2) {
        term *= cos * cos * (k - 1) as f64 / k as f64;
        sum += term;
    }
    if odd { FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::student;

    #[test]
    fn students_t_is_that_of_the_tables() {
        let tables = [
            (1, 12.706, 25.452),
            (2, 4.303, 6.205),
            (3, 3.182, 4.177),
            (4, 2.776, 3.495),
            (5, 2.571, 3.163),
            (9, 2.262, 2.685),
            (10, 2.228, 2.634),
            (29, 2.045, 2.364),
            (1000, 1.962, 2.245),
        ];
        for (freedom, of_95, of_975) in tables {
            assert!((student(freedom, 0.95) - of_95).abs() < 5e-4, "{freedom}: {}", student(freedom, 0.95));
            assert!((student(freedom, 0.975) - of_975).abs() < 1e-3, "{freedom}: {}", student(freedom, 0.975));
        }
    }
}
