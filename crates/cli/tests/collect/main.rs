//! `opentcp collect` with real exporters and a real switch: Open vSwitch in user space, softflowd, net-snmp, and TCP between network namespaces.

mod congestion;
mod export;
mod gnmi;
mod switches;
mod world;
