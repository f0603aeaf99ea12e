//! What a scale model cannot say.

use crate::failure::Failure;
use policy::{Expression, Hosts, Policy};
use scenario::{Buffer, Queues, Routing, Scenario, TrafficKind};

/// Refuses a scenario whose hosts are not alike, or that asks for what depends on their number.
///
/// # Errors
/// What it asks for, why a model cannot say it, and what to do.
pub fn check(scenario: &Scenario) -> Result<(), Failure> {
    let (network, measure) = (&scenario.network, &scenario.measure);
    let traffic = scenario.traffic.iter().map(|entry| &entry.kind).find_map(|kind| match kind {
        TrafficKind::Poisson { from: None, to: None, flows: None, arrivals: scenario::Arrivals::Load(_), .. } => None,
        TrafficKind::Poisson { from: None, to: None, flows: None, .. } => {
            Some("`poisson.flows_per_second`: it is of all hosts together; write `load`")
        }
        TrafficKind::Poisson { from: None, to: None, .. } => {
            Some("`poisson.flows`: it is of all hosts together; set `stop`")
        }
        TrafficKind::Poisson { .. } => Some("`poisson.from` and `poisson.to`: its hosts are not alike"),
        _ => {
            Some("traffic other than `poisson`: what jobs, incasts and traces do depends on the number of their hosts")
        }
    });
    let asks = [
        (network.routing != Routing::Ecmp, "`network.routing` other than `ecmp`: its flows meet elsewhere"),
        (!network.failure.is_empty(), "`network.failure`: a link is a larger part of the model"),
        (!network.loss.is_empty(), "`network.loss`: a link is a larger part of the model"),
        (
            network.buffer != Buffer::Private,
            "`network.buffer`: a switch of the model has fewer ports to share its memory",
        ),
        (!scenario.enforcer.is_empty(), "`enforcer`: what it has to do depends on the number of hosts"),
        (measure.links.is_some(), "`measure.links`: the model's links are not the network's"),
        (measure.queues != Queues::Links(Vec::new()), "`measure.queues`: the model's links are not the network's"),
        (measure.cwnd.is_some(), "`measure.cwnd`: the model's flows are not the network's"),
    ];
    let asked = asks.iter().find(|(asked, _)| *asked).map(|(_, words)| *words);
    if let Some(words) = traffic.or(asked) {
        return Err(refusal(words));
    }
    scenario.policy.as_ref().map_or(Ok(()), |control| check_policy(&control.policy))
}

/// An error that names what a model cannot say.
pub fn refusal(words: &str) -> Failure {
    Failure::Input(format!("--fast cannot model {words}. Leave it out, or run without --fast"))
}

/// Refuses a policy that looks at numbers which depend on the number of hosts and links, or that names hosts.
fn check_policy(policy: &Policy) -> Result<(), Failure> {
    let refused = |rule: &str, words: String| refusal(&format!("the policy's `{rule}`: {words}"));
    let sized = |name: &str, conditions: &[&Expression]| {
        let mut variables = conditions.iter().flat_map(|condition| condition.variables());
        variables.find(|variable| depends_on_size(variable.name)).map_or(Ok(()), |variable| {
            Err(refused(name, format!("`{}` depends on the number of hosts and links", variable.name)))
        })
    };
    for constraint in &policy.constraints {
        sized(&constraint.name, &[&constraint.holds])?;
    }
    for rule in &policy.rules {
        let conditions: Vec<&Expression> = [&rule.when].into_iter().chain(&rule.until).collect();
        sized(&rule.name, &conditions)?;
        if matches!(rule.hosts.which, Hosts::Named(_)) || !rule.hosts.labels.is_empty() {
            return Err(refused(&rule.name, "it chooses hosts by name or label".to_string()));
        }
    }
    Ok(())
}

/// Whether a variable is a sum, or an extreme of all links.
fn depends_on_size(name: &str) -> bool {
    const SIZED: [&str; 5] = [
        "network.live_flows",
        "network.flow_starts",
        "network.inter_rack_rate",
        "network.intra_rack_rate",
        "network.max_rack_pair_share",
    ];
    SIZED.contains(&name) || name.starts_with("network.max_link_") || name.starts_with("link.") || name == "host.rack"
}
