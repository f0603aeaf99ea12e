//! The log of every decision and every CUE: append-only, hash-chained, rotated.
#![forbid(unsafe_code)]
