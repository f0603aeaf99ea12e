//! `opentcp collect` with real exporters and a real switch: Open vSwitch in user space, softflowd, and TCP between network namespaces.

mod congestion;
mod export;
mod world;
