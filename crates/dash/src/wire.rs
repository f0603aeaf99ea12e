//! What browsers get: once everything, then what has changed.

use crate::model::{Hosts, Links, Point, Seen, Table};
use oracle::{EventLine, Overview, Span};
use serde::Serialize;

/// Everything.
#[derive(Serialize)]
struct Full<'a> {
    now: f64,
    acts: bool,
    trouble: &'a Option<String>,
    answered: Option<f64>,
    decided: Option<f64>,
    note: &'a Option<String>,
    overview: &'a Option<Overview>,
    hosts: &'a Hosts,
    links: &'a Links,
    over: Vec<&'a Span>,
    open: Vec<&'a Span>,
    events: &'a [EventLine],
    series: Vec<&'a Point>,
}

/// What has changed; what is missing has not.
#[derive(Serialize)]
struct Delta<'a> {
    now: f64,
    trouble: &'a Option<String>,
    answered: Option<f64>,
    decided: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<&'a Overview>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<&'a Hosts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    host_rows: Vec<(usize, &'a crate::model::HostLive)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<&'a Links>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    link_rows: Vec<(usize, &'a crate::model::LinkLive)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<Vec<&'a Span>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Vec<&'a Span>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<&'a [EventLine]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    point: Option<&'a Point>,
}

/// An event of the stream, with everything.
pub fn full(seen: &Seen, acts: bool, now: f64) -> Vec<u8> {
    let (over, open) = halves(&seen.spans);
    let Seen { trouble, answered_unix_s, note, overview, hosts, links, events, series, .. } = seen;
    let series = series.iter().collect();
    let (answered, decided) = (*answered_unix_s, seen.decided_unix_s);
    event(
        "full",
        &Full { now, acts, trouble, answered, decided, note, overview, hosts, links, over, open, events, series },
    )
}

/// An event of the stream, with what is other in `new` than in `old`.
pub fn delta(old: &Seen, new: &Seen, now: f64) -> Vec<u8> {
    let ((over_old, open_old), (over, open)) = (halves(&old.spans), halves(&new.spans));
    let hosts = Rows::between(&old.hosts, &new.hosts);
    let links = Rows::between(&old.links, &new.links);
    event(
        "delta",
        &Delta {
            now,
            trouble: &new.trouble,
            answered: new.answered_unix_s,
            decided: new.decided_unix_s,
            note: (old.note != new.note).then_some(&new.note),
            overview: new.overview.as_ref().filter(|overview| old.overview.as_ref() != Some(overview)),
            hosts: hosts.whole,
            host_rows: hosts.changed,
            links: links.whole,
            link_rows: links.changed,
            over: (over_old != over).then_some(over),
            open: (open_old != open).then_some(open),
            events: (old.events != new.events).then_some(&new.events),
            point: new.series.back().filter(|point| old.series.back() != Some(point)),
        },
    )
}

/// Spans that are over, and those that go on.
fn halves(spans: &[Span]) -> (Vec<&Span>, Vec<&Span>) {
    spans.iter().partition(|span| span.to_unix_s.is_some())
}

/// What of a table is sent.
struct Rows<'a, F, L> {
    /// All of it, where its entries are others.
    whole: Option<&'a Table<F, L>>,
    /// Else the rows that have changed.
    changed: Vec<(usize, &'a L)>,
}

impl<'a, F: PartialEq, L: PartialEq> Rows<'a, F, L> {
    fn between(old: &Table<F, L>, new: &'a Table<F, L>) -> Rows<'a, F, L> {
        if old.fixed != new.fixed || old.total != new.total {
            return Rows { whole: Some(new), changed: Vec::new() };
        }
        let changed = new.live.iter().enumerate().zip(&old.live).filter(|((_, new), old)| new != old);
        Rows { whole: None, changed: changed.map(|(row, _)| row).collect() }
    }
}

/// An event of a stream of server-sent events: JSON has no line break of its own.
fn event(name: &str, data: &impl Serialize) -> Vec<u8> {
    let mut bytes = format!("event: {name}\ndata: ").into_bytes();
    serde_json::to_writer(&mut bytes, data).expect("what is shown is plain data");
    bytes.extend_from_slice(b"\n\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;
    use oracle::HostLine;
    use serde_json::Value;

    fn seen(names: &[(&str, f64)]) -> Seen {
        let line =
            |(name, flows): &(&str, f64)| HostLine { name: (*name).into(), flows: Some(*flows), ..HostLine::default() };
        Seen { hosts: model::hosts(names.iter().map(line).collect(), names.len()), ..Seen::default() }
    }

    fn data(event: &[u8], name: &str) -> Value {
        let text = std::str::from_utf8(event).unwrap();
        let json = text.strip_prefix(&format!("event: {name}\ndata: ")).unwrap().strip_suffix("\n\n").unwrap();
        assert!(!json.contains('\n'));
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_rows_that_changed_are_sent() {
        let (old, new) = (seen(&[("a", 1.0), ("b", 2.0)]), seen(&[("a", 1.0), ("b", 3.0)]));
        let sent = data(&delta(&old, &new, 5.0), "delta");
        assert_eq!(sent["host_rows"].as_array().unwrap().len(), 1);
        assert_eq!((&sent["host_rows"][0][0], &sent["host_rows"][0][1][1]), (&1.into(), &3.0.into()));
        for absent in ["hosts", "links", "overview", "over", "open", "events", "point", "note"] {
            assert!(sent.get(absent).is_none(), "{absent}: {sent}");
        }
        let sent = data(&delta(&new, &new, 6.0), "delta");
        assert_eq!(sent, serde_json::json!({ "now": 6.0, "trouble": null, "answered": null, "decided": null }));
    }

    #[test]
    fn another_list_of_hosts_is_sent_whole() {
        let (old, new) = (seen(&[("a", 1.0)]), seen(&[("a", 1.0), ("b", 3.0)]));
        let sent = data(&delta(&old, &new, 5.0), "delta");
        assert_eq!(sent["hosts"]["fixed"][1][0], "b");
        assert!(sent.get("host_rows").is_none());
    }

    #[test]
    fn a_name_with_line_breaks_and_markup_stays_one_line_of_data() {
        let sent = data(&full(&seen(&[("<b>\n\nevent: x", 1.0)]), false, 5.0), "full");
        assert_eq!(sent["hosts"]["fixed"][0][0], "<b>\n\nevent: x");
    }
}
