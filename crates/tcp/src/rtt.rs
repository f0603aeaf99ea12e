use congestion::MinMax;
use congestion::MinMaxSample;
const UNKNOWN: MinMaxSample = MinMaxSample { t: 0, v: u32::MAX };
/// Before the first sample.
pub(crate) const NO_RTT_MIN: MinMax = MinMax { s: [UNKNOWN; 3] };
