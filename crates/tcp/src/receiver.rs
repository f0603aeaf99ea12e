use crate::endpoint::Endpoint;
impl Endpoint {
    pub(crate) fn drain_unread(&mut self) {}
}
