//! `opentcp collect` with real exporters and a real switch: Open vSwitch in user space, softflowd, net-snmp, and TCP between network
//! namespaces; and a whole fleet at such a switch.

mod congestion;
mod export;
mod fleet;
mod gnmi;
mod machines;
mod switch;
mod switches;
mod world;
