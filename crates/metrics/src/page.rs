//! What a process publishes: metrics, and their values at one instant.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, MetricEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit as ClientUnit};
use std::fmt;
use std::sync::Arc;

/// Most series of a page; what is beyond is left out.
pub const SERIES_MAX: usize = 4096;
/// Longest value of a label, bytes; what is longer is cut.
pub const LABEL_MAX: usize = 256;

/// How a metric changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, from 0 at the process's start. Its name ends in `_total`.
    Counter,
    /// It is what it is now.
    Gauge,
}

/// A base unit, with which a metric's name ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of what the name says.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share: 1 is all.
    Ratio,
}

impl Unit {
    fn suffix(self) -> Option<&'static str> {
        match self {
            Unit::Count => None,
            Unit::Seconds => Some("seconds"),
            Unit::Bytes => Some("bytes"),
            Unit::Ratio => Some("ratio"),
        }
    }
}

/// A metric, without its values.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without unit and without `_total`: `opentcp_oracle_period`.
    pub name: &'static str,
    /// How it changes.
    pub kind: Kind,
    /// What it is measured in.
    pub unit: Unit,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it is, in a sentence.
    pub help: &'static str,
}

impl Metric {
    /// A gauge without labels.
    pub const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Metric {
        Metric { name, kind: Kind::Gauge, unit, labels: &[], help }
    }

    /// A counter without labels.
    pub const fn counter(name: &'static str, help: &'static str) -> Metric {
        Metric { name, kind: Kind::Counter, unit: Unit::Count, labels: &[], help }
    }

    /// The same, with these labels.
    #[must_use]
    pub const fn by(self, labels: &'static [&'static str]) -> Metric {
        Metric { labels, ..self }
    }

    /// The same, in this unit.
    #[must_use]
    pub const fn in_unit(self, unit: Unit) -> Metric {
        Metric { unit, ..self }
    }

    /// The name under which Prometheus knows it: `opentcp_oracle_period_seconds`.
    pub fn full_name(&self) -> String {
        let unit = self.unit.suffix().map(|unit| format!("_{unit}")).unwrap_or_default();
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name)
    }
}

/// The values of a process's metrics at one instant.
#[derive(Clone, Debug, Default)]
pub struct Page {
    families: Vec<Family>,
    series: usize,
}

/// A metric's values.
#[derive(Clone, Debug)]
struct Family {
    metric: &'static Metric,
    series: Vec<(Vec<String>, f64)>,
}

impl Page {
    /// Sets a metric's value; `labels` are the values of its labels, in their order. Nothing is set where the value is not finite, as of
    /// what is not known, and beyond [`SERIES_MAX`] series.
    ///
    /// # Panics
    /// If there are more or fewer labels than the metric has.
    pub fn set(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        assert_eq!(metric.labels.len(), labels.len(), "the labels of {}", metric.name);
        if !value.is_finite() || self.series >= SERIES_MAX {
            return;
        }
        self.series += 1;
        let labels = labels.iter().map(|label| clipped(label).to_string()).collect();
        match self.families.iter_mut().rev().find(|family| family.metric.name == metric.name) {
            Some(family) => family.series.push((labels, value)),
            None => self.families.push(Family { metric, series: vec![(labels, value)] }),
        }
    }

    /// The same for a number that may not be known, without labels.
    pub fn set_if(&mut self, metric: &'static Metric, value: Option<f64>) {
        self.set(metric, &[], value.unwrap_or(f64::NAN));
    }

    /// Sets a metric with one label for each of its values.
    pub fn each<'a>(&mut self, metric: &'static Metric, values: impl IntoIterator<Item = (&'a str, u64)>) {
        for (label, value) in values {
            self.set(metric, &[label], value as f64);
        }
    }

    /// A count, without labels.
    pub fn count(&mut self, metric: &'static Metric, value: u64) {
        self.set(metric, &[], value as f64);
    }

    /// The text that Prometheus reads (OpenMetrics 1.0).
    pub fn text(self: Arc<Self>) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Shown(self)));
        let mut text = String::new();
        text::encode(&mut text, &registry).expect("a string takes all that is written to it");
        text
    }
}

/// The longest part of a label that is kept, in whole characters.
fn clipped(label: &str) -> &str {
    let end = (0..=LABEL_MAX.min(label.len())).rev().find(|end| label.is_char_boundary(*end));
    &label[..end.unwrap_or(0)]
}

/// A page, as the encoder takes it.
#[derive(Debug)]
struct Shown(Arc<Page>);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.families.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Metric { name, kind, unit, labels, help } = *self.metric;
        let unit = match unit {
            Unit::Count => None,
            Unit::Seconds => Some(ClientUnit::Seconds),
            Unit::Bytes => Some(ClientUnit::Bytes),
            Unit::Ratio => Some(ClientUnit::Other("ratio".to_string())),
        };
        let sort = match kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
        };
        let mut metric = encoder.encode_descriptor(name, help, unit.as_ref(), sort)?;
        for (values, value) in &self.series {
            if labels.is_empty() {
                write(&mut metric, kind, *value)?;
            } else {
                write(&mut metric.encode_family(&Labels { names: labels, values })?, kind, *value)?;
            }
        }
        Ok(())
    }
}

fn write(series: &mut MetricEncoder<'_>, kind: Kind, value: f64) -> fmt::Result {
    match kind {
        Kind::Counter => series.encode_counter(&value, None::<&Exemplar<Labels<'_>, f64>>),
        Kind::Gauge => series.encode_gauge(&value),
    }
}

/// The labels of a series.
#[derive(Debug)]
struct Labels<'a> {
    names: &'static [&'static str],
    values: &'a [String],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let mut each = self.names.iter().zip(self.values);
        each.try_for_each(|(name, value)| (*name, value.as_str()).encode(encoder.encode_label()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static AGE: Metric = Metric::gauge("test_age", Unit::Seconds, "The age.");
    static SEEN: Metric = Metric::counter("test_seen", "What was seen.").by(&["rule"]);

    fn text(page: Page) -> String {
        Arc::new(page).text()
    }

    #[test]
    fn a_page_is_text_with_help_type_and_unit() {
        let mut page = Page::default();
        page.set(&AGE, &[], 1.5);
        page.set(&SEEN, &["a \"b\"\n"], 3.0);
        page.set(&SEEN, &["c"], 4.0);
        let expected = "# HELP test_age_seconds The age.\n# TYPE test_age_seconds gauge\n# UNIT test_age_seconds seconds\n\
                        test_age_seconds 1.5\n# HELP test_seen What was seen.\n# TYPE test_seen counter\n\
                        test_seen_total{rule=\"a \\\"b\\\"\\n\"} 3.0\ntest_seen_total{rule=\"c\"} 4.0\n# EOF\n";
        assert_eq!(text(page), expected);
    }

    #[test]
    fn what_is_not_known_is_not_there_and_what_is_too_much_is_left_out() {
        let mut page = Page::default();
        page.set(&AGE, &[], f64::NAN);
        page.set_if(&AGE, None);
        assert_eq!(text(page), "# EOF\n");
        let mut page = Page::default();
        (0..SERIES_MAX + 10).for_each(|n| page.set(&SEEN, &[&n.to_string()], 0.0));
        assert_eq!(text(page).lines().filter(|line| !line.starts_with('#')).count(), SERIES_MAX);
        let mut page = Page::default();
        page.set(&SEEN, &[&"ä".repeat(LABEL_MAX)], 0.0);
        assert!(text(page).contains(&format!("\"{}\"", "ä".repeat(LABEL_MAX / 2))));
    }
}
