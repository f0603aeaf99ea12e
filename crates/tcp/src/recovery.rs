/// Segments of reordering to tolerate at first (RFC 5681: three duplicate ACKs).
pub(crate) const REORDERING_INITIAL: u32 = 3;
