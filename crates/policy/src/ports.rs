//! The ports in front of hosts.

use crate::view::{Link, NetworkView};
use std::collections::BTreeMap;

/// The links at whose end is a host, by places in the view: the ports in front of hosts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports(Vec<(usize, usize)>);

impl Ports {
    /// Those of a view.
    pub(crate) fn of_view(view: &NetworkView) -> Ports {
        let hosts: BTreeMap<&str, usize> =
            view.hosts.iter().enumerate().map(|(i, host)| (host.name.as_str(), i)).collect();
        let to_host = |(i, link): (usize, &Link)| Some((*hosts.get(link.to.as_str())?, i));
        let mut ports: Vec<(usize, usize)> = view.links.iter().enumerate().filter_map(to_host).collect();
        ports.sort_unstable();
        Ports(ports)
    }

    /// Those of a host.
    pub(crate) fn of(&self, host: usize) -> impl Iterator<Item = usize> {
        let first = self.0.partition_point(|(of, _)| *of < host);
        self.0[first..].iter().take_while(move |(of, _)| *of == host).map(|(_, link)| *link)
    }
}
