//! Serves a process's metrics to Prometheus.
#![forbid(unsafe_code)]
