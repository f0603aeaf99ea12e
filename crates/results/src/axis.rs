//! Scales, ticks and numbers for reading. Logarithms are `libm`'s: the same digits on every machine.

/// How a quantity's unit is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// bit/s.
    Rate,
    /// Nanoseconds.
    Time,
    /// Packets.
    Packets,
    /// Bytes, by powers of ten.
    Bytes,
    /// Other things.
    Count,
}

/// The unit to show a quantity in: divide by `divisor`, write `unit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub divisor: f64,
    pub unit: &'static str,
}

impl Quantity {
    /// The unit in which the largest value has one to three digits before the point, if there is one.
    pub fn unit(self, max: f64) -> Unit {
        let units: &[(f64, &str)] = match self {
            Self::Rate => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            Self::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
            Self::Packets => &[(1.0, "packets")],
            Self::Bytes => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Self::Count => &[(1.0, "")],
        };
        let fitting = units.iter().find(|(divisor, _)| max >= *divisor);
        let (divisor, unit) = *fitting.unwrap_or(&units[units.len() - 1]);
        Unit { divisor, unit }
    }
}

/// A number for a table: thousands separated, four significant digits, `–` for one that is not finite.
pub(crate) fn number(value: f64) -> String {
    significant(value, 4)
}

/// A number beside a bar: three significant digits, as many as a picture can show.
pub(crate) fn rounded(value: f64) -> String {
    significant(value, 3)
}

/// Whole numbers stay whole, whatever their size.
fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size >= 1000.0 || size.fract() == 0.0 {
        return separated(value);
    }
    let decimals = digits - 1 - libm::floor(libm::log10(size)) as i32;
    let text = format!("{size:.*}", decimals.clamp(0, 9) as usize);
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{text}")
}

fn separated(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        text.insert(0, '−');
    }
    text
}

/// A number short enough for a tick: `20k` for 20,000, `0.5` for 0.5000.
fn short(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = number(value);
    let digits = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{digits}{suffix}")
}

/// A scale from data to the unit interval, with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub label: String,
    pub ticks: Vec<(f64, String)>,
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// From zero to at least `max`, ending on a tick.
    pub fn linear(label: impl Into<String>, max: f64) -> Self {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        let step = nice_step(max / 4.0);
        let count = libm::ceil(max / step - 1e-9).max(1.0);
        let ticks = (0..=count as usize).map(|index| index as f64 * step);
        Self {
            label: label.into(),
            ticks: ticks.map(|tick| (tick, short(tick))).collect(),
            low: 0.0,
            high: count * step,
            log: false,
        }
    }

    /// From zero to exactly `max`: for time, where room after the end would look like missing data.
    pub fn linear_exact(label: impl Into<String>, max: f64) -> Self {
        let mut axis = Self::linear(label, max);
        if max.is_finite() && max > 0.0 {
            axis.high = max;
            axis.ticks.retain(|(tick, _)| *tick <= max * (1.0 + 1e-9));
        }
        axis
    }

    /// From exactly `low` to exactly `high`: for time that is measured from a warm-up on.
    pub fn linear_between(label: impl Into<String>, low: f64, high: f64) -> Self {
        let step = nice_step((high - low) / 4.0);
        let first = libm::ceil(low / step - 1e-9) as u64;
        let last = libm::floor(high / step + 1e-9) as u64;
        let ticks = (first..=last).map(|index| index as f64 * step).map(|tick| (tick, short(tick))).collect();
        Self { label: label.into(), ticks, low, high, log: false }
    }

    /// Logarithmic over `low..=high`, both positive, ending on the round values around them. The more decades, the fewer ticks
    /// in each. The label says that it is logarithmic.
    pub fn log(label: &str, low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = high.max(low * 1.5);
        let first = libm::floor(libm::log10(low)) as i32;
        let last = libm::ceil(libm::log10(high)) as i32;
        let decades = libm::log10(high / low);
        let multiples: &[f64] = if decades < 1.2 { &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0] } else { &[1.0, 2.0, 5.0] };
        let all: Vec<(f64, bool)> = (first..=last)
            .flat_map(|power| {
                let decade = libm::pow(10.0, f64::from(power));
                multiples.iter().enumerate().map(move |(i, multiple)| (multiple * decade, i == 0))
            })
            .collect();
        let begin = all.iter().rposition(|(tick, _)| *tick <= low).unwrap_or(0);
        let end = all.iter().position(|(tick, _)| *tick >= high);
        let within = &all[begin..=end.unwrap_or(all.len() - 1)];
        let labelled = within.iter().filter(|(_, decade)| decades < 2.7 || *decade);
        Self {
            label: format!("{label}, log scale"),
            ticks: labelled.map(|(tick, _)| (*tick, short(*tick))).collect(),
            low: within[0].0,
            high: within[within.len() - 1].0,
            log: true,
        }
    }

    /// Whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Smallest and largest value, and 1 for a logarithmic axis or 0: as `report.js` reads them.
    pub fn ends(&self) -> String {
        format!("{} {} {}", self.low, self.high, u8::from(self.log))
    }

    /// The position of a value, 0 to 1; values outside are clamped.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            let value = value.max(f64::MIN_POSITIVE);
            libm::log10(value / self.low) / libm::log10(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let decade = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let fitting = steps.iter().find(|step| *step * decade >= rough * (1.0 - 1e-9));
    fitting.unwrap_or(&10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_separate_thousands() {
        let cases = [
            (0.0, "0"),
            (0.012_346, "0.01235"),
            (5.4, "5.400"),
            (275.0, "275"),
            (-0.5, "−0.5000"),
            (123.46, "123.5"),
            (1_234_567.0, "1,234,567"),
            (-1_500.0, "−1,500"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn ticks_and_bars_are_shorter() {
        assert_eq!([0.5, 20_000.0, 2_500_000.0].map(short), ["0.5", "20k", "2.5M"]);
        assert_eq!(rounded(3.164), "3.16");
    }

    #[test]
    fn linear_axis_ends_on_a_round_tick_at_or_above_the_data() {
        let axis = Axis::linear("", 87.0);
        assert_eq!(axis.ticks.last(), Some(&(100.0, "100".to_owned())));
        assert!((axis.place(50.0) - 0.5).abs() < 1e-12);
        assert_eq!(Axis::linear("", 0.0).ticks.len(), 5);
    }

    #[test]
    fn an_axis_between_two_times_has_the_round_ones_in_it() {
        let axis = Axis::linear_between("", 0.5, 1.5);
        let ticks: Vec<&str> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(ticks, ["0.5", "0.75", "1", "1.25", "1.5"]);
        for (time, place) in [(0.5, 0.0), (1.0, 0.5), (1.5, 1.0)] {
            assert!((axis.place(time) - place).abs() < 1e-12, "{time}");
        }
    }

    #[test]
    fn log_axis_encloses_the_data_and_places_decades_evenly() {
        let axis = Axis::log("", 0.3, 40.0);
        assert_eq!(axis.ticks[0].1, "0.2");
        assert_eq!(axis.ticks[axis.ticks.len() - 1].1, "50");
        let near: Vec<String> = Axis::log("", 1.7, 5.2).ticks.into_iter().map(|(_, label)| label).collect();
        assert_eq!(near, ["1.5", "2", "3", "5", "7"]);
        let wide = Axis::log("", 1.0, 10_000.0);
        assert!((wide.place(100.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn unit_follows_the_largest_value() {
        assert_eq!(Quantity::Rate.unit(9.4e7).unit, "Mbit/s");
        assert_eq!(Quantity::Time.unit(420.0).unit, "ns");
        assert_eq!(Quantity::Time.unit(0.0).unit, "ns");
    }
}
