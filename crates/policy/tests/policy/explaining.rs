//! What a policy is said to do in a network: golden files, `snapshots/`.

use crate::common::KNOWN;
use insta::assert_snapshot;
use policy::{History, NetworkView, Policy, decide};
use units::Time;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");

fn shipped(name: &str) -> Policy {
    Policy::parse(name, &std::fs::read_to_string(format!("{FOLDER}/{name}.toml")).unwrap(), KNOWN).unwrap()
}

/// The network of the book: two racks of three hosts, under 60 % utilized.
fn example() -> NetworkView {
    NetworkView::from_json(&std::fs::read_to_string(format!("{FOLDER}/example-view.json")).unwrap()).unwrap()
}

fn explained(policy: &Policy, views: &[NetworkView]) -> String {
    let mut history = History::default();
    let explained = |view: &NetworkView| decide(policy, view, &mut history).explain(policy);
    views.iter().map(explained).collect::<Vec<_>>().join("\n----\n\n")
}

#[test]
fn opentcp1_in_a_calm_network_and_then_in_a_busy_one() {
    let mut busy = NetworkView { at: Time::from_secs(60), ..example() };
    busy.links[0].utilization = Some(0.83);
    assert_snapshot!(explained(&shipped("opentcp1"), &[example(), busy]));
}

#[test]
fn incast_aimed_at_one_host_of_which_another_says_nothing() {
    let mut view = example();
    view.hosts.iter_mut().for_each(|host| host.fan_in = Some(2.0));
    (view.hosts[2].fan_in, view.hosts[3].fan_in) = (Some(16.0), None);
    assert_snapshot!(explained(&shipped("incast-aimed"), &[view]));
}

#[test]
fn opentcp2_with_its_guard() {
    assert_snapshot!(explained(&shipped("opentcp2"), &[example()]));
}

#[test]
fn opentcp2_where_rtts_are_too_long_for_its_period() {
    let mut slow = example();
    slow.hosts.iter_mut().for_each(|host| host.srtt_us = vec![(700_000, 20)]);
    assert_snapshot!(explained(&shipped("opentcp2"), &[slow]));
}

#[test]
fn paced_held_on_by_its_hold_time() {
    let mut crowded = NetworkView { at: Time::from_secs(30), ..example() };
    crowded.hosts[0].live_flows = Some(90_000.0);
    assert_snapshot!(explained(&shipped("paced"), &[example(), crowded]));
}

#[test]
fn diurnal_at_night_with_a_conflict_and_with_a_broken_constraint() {
    let mut night = NetworkView { hour: Some(23.25), at: Time::from_secs(7200), ..example() };
    night.links.iter_mut().for_each(|link| link.utilization = Some(0.05));
    let mut lossy = NetworkView { at: Time::from_secs(7500), ..night.clone() };
    lossy.links[4].drop_rate = Some(0.02);
    assert_snapshot!(explained(&shipped("diurnal"), &[example(), night, lossy]));
}

#[test]
fn dctcp_where_one_rack_does_not_mark() {
    let mut split = example();
    // the spine is gone, and with it the way from rack to rack
    split.links.retain(|link| link.from != "spine" && link.to != "spine");
    split.links.iter_mut().filter(|link| link.from == "leaf2").for_each(|link| link.marks = Some(false));
    assert_snapshot!(explained(&shipped("dctcp-when-ecn"), &[split]));
}

#[test]
fn a_network_of_which_nothing_is_known() {
    assert_snapshot!(explained(&shipped("opentcp2"), &[NetworkView::default()]));
}
