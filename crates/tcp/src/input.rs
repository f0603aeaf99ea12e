use crate::endpoint::Endpoint;
use crate::segment::Segment;
use units::Time;
impl Endpoint {
    /// A segment arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        self.refresh_clock(now);
        let _ = segment;
    }
    /// To be called when [`Endpoint::poll_timeout`] has come.
    pub fn on_timer(&mut self, now: Time) {
        self.refresh_clock(now);
    }
}
