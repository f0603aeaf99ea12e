//! What is done with each flow.

use crate::packet::{Direction, End};
use policy::Prefix;
use std::sync::Arc;
use tcp::Config;
use units::Bytes;

/// What is done with a flow.
#[derive(Clone, Debug)]
pub enum Treatment {
    /// It passes untouched.
    Pass,
    /// This algorithm is enforced, with its settings. If it needs ECN, the server's data is sent as ECN-capable wherever the other end, or
    /// an enforcer at its side, echoes marks as DCTCP's receiver does.
    Enforce(Arc<Config>),
    /// Marks on data to the client are echoed as DCTCP's receiver does, if the client does not, and hidden from it.
    Echo,
    /// This share of its data is marked as by a queue, 0 to 1, if its ends agreed on ECN; else it passes untouched.
    Mark(f64),
}

impl Treatment {
    /// Whether the host that a packet of this direction comes from is to have ECN without knowing of it: an enforced server whose
    /// algorithm needs it, or a client in whose place marks are echoed.
    pub(crate) fn proxies(&self, direction: Direction) -> bool {
        match (self, direction) {
            (Treatment::Enforce(config), Direction::Out) => config.algorithm.needs_ecn(),
            (Treatment::Echo, Direction::In) => true,
            _ => false,
        }
    }
}

/// One rule: its match, and its treatment. An absent field matches everything.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The enforced hosts.
    pub servers: Option<Prefix>,
    /// The clients.
    pub clients: Option<Prefix>,
    /// A port of either end.
    pub port: Option<u16>,
    /// The code point of the SYN.
    pub dscp: Option<u8>,
    /// What is done with such flows.
    pub treatment: Treatment,
    /// Payload that may be on its way to a client, over all of its flows that match; `None`: a later rule says.
    pub window_total: Option<Bytes>,
}

impl Rule {
    /// Matches all flows.
    pub fn all(config: &Arc<Config>) -> Rule {
        Rule {
            servers: None,
            clients: None,
            port: None,
            dscp: None,
            treatment: Treatment::Enforce(Arc::clone(config)),
            window_total: None,
        }
    }

    fn fits(&self, server: End, client: End, dscp: u8) -> bool {
        self.servers.is_none_or(|prefix| prefix.contains(server.ip()))
            && self.clients.is_none_or(|prefix| prefix.contains(client.ip()))
            && self.port.is_none_or(|port| port == server.port || port == client.port)
            && self.dscp.is_none_or(|asked| asked == dscp)
    }
}

/// The rules: the first match counts; flows without a match pass untouched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    list: Vec<Rule>,
    /// One has a total.
    have_total: bool,
    /// One marks.
    have_marks: bool,
}

impl Rules {
    pub fn new(mut rules: Vec<Rule>) -> Rules {
        for rule in &mut rules {
            let Treatment::Enforce(config) = &mut rule.treatment else { continue };
            // buffered data has left the server's socket already
            // nor is a host's super-segment cut for less than its last segment
            *config = Arc::new(Config { send_buffer: u32::MAX, tso_segments: 64, ..Config::clone(config) });
        }
        let have_total = rules.iter().any(|rule| rule.window_total.is_some());
        let have_marks = rules.iter().any(|rule| matches!(rule.treatment, Treatment::Mark(_)));
        Rules { list: rules, have_total, have_marks }
    }

    /// What is done with a flow.
    pub fn treatment(&self, server: End, client: End, dscp: u8) -> &Treatment {
        let rule = self.list.iter().find(|rule| rule.fits(server, client, dscp));
        rule.map_or(&Treatment::Pass, |rule| &rule.treatment)
    }

    /// Which share of a flow's data is marked.
    #[inline]
    pub fn mark(&self, server: End, client: End, dscp: u8) -> Option<f64> {
        if !self.have_marks {
            return None;
        }
        match self.treatment(server, client, dscp) {
            Treatment::Mark(share) => Some(*share),
            _ => None,
        }
    }

    /// The algorithm of a flow that is enforced.
    pub fn config(&self, server: End, client: End, dscp: u8) -> Option<&Arc<Config>> {
        match self.treatment(server, client, dscp) {
            Treatment::Enforce(config) => Some(config),
            Treatment::Pass | Treatment::Echo | Treatment::Mark(_) => None,
        }
    }

    /// The total that such flows of a client share: of the first match that has one.
    #[inline]
    pub fn window_total(&self, server: End, client: End, dscp: u8) -> Option<Bytes> {
        if !self.have_total {
            return None;
        }
        self.list.iter().filter(|rule| rule.fits(server, client, dscp)).find_map(|rule| rule.window_total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use congestion::Algorithm;

    fn config(name: &str) -> Arc<Config> {
        Arc::new(Config::linux(Algorithm::named(name).expect("built in")))
    }

    fn end(text: &str, port: u16) -> End {
        End::new(text.parse().expect("an address"), port)
    }

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a prefix")
    }

    #[test]
    fn the_first_that_fits_holds() {
        let any = Rule {
            servers: None,
            clients: None,
            port: None,
            dscp: None,
            treatment: Treatment::Enforce(config("cubic")),
            window_total: None,
        };
        let enforce = |name: &str| Treatment::Enforce(config(name));
        let rules = Rules::new(vec![
            Rule { clients: Some(prefix("10.1.0.0/16")), treatment: Treatment::Pass, ..any.clone() },
            Rule { clients: Some(prefix("fd00::/8")), dscp: Some(46), treatment: enforce("vegas"), ..any.clone() },
            Rule { clients: Some(prefix("10.2.0.0/16")), port: Some(443), treatment: enforce("yeah"), ..any.clone() },
            Rule { clients: Some(prefix("10.2.0.0/16")), treatment: enforce("dctcp"), ..any.clone() },
            Rule { clients: Some(prefix("10.0.0.0/8")), treatment: enforce("bbr"), ..any.clone() },
            any,
        ]);
        let name = |client: &str, port: u16, dscp: u8| {
            let found = rules.config(end("192.0.2.1", port), end(client, 50_000), dscp);
            found.map(|config| config.algorithm.name())
        };
        assert_eq!(name("203.0.113.9", 80, 0), Some("cubic"));
        assert_eq!(name("10.9.0.1", 80, 0), Some("bbr"));
        assert_eq!(name("10.1.0.1", 80, 0), None, "a rule may say: untouched");
        assert_eq!(name("fd00::1", 80, 46), Some("vegas"));
        assert_eq!(name("fd00::1", 80, 0), Some("cubic"));
        assert_eq!(name("10.2.0.1", 443, 0), Some("yeah"));
        let to_443 = rules.config(end("192.0.2.1", 50_000), end("10.2.0.1", 443), 0);
        assert_eq!(to_443.map(|config| config.algorithm.name()), Some("yeah"), "whichever end has the port");
        assert_eq!(name("10.2.0.1", 80, 0), Some("dctcp"));
        assert_eq!(Rules::default().config(end("10.0.0.1", 80), end("10.0.0.2", 9), 0).map(|_| ()), None);
    }
}
