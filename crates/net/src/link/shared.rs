//! A switch's memory that its ports share: reserves, dynamic thresholds by class, headroom.

use crate::LinkId;
use crate::ecn::Ecn;
use crate::queue::SharedSpec;

/// The memory of one switch. The queues in it are known to the caller.
#[derive(Debug, Clone)]
pub(super) struct SharedBuffer {
    pub(super) ports: Vec<LinkId>,
    spec: SharedSpec,
    /// Bytes that are no port's reserve.
    pool: u64,
    /// Bytes of the pool beyond which a port leaves the headroom free.
    equal_share: u64,
    /// Bytes of the headroom.
    headroom: u64,
}

impl SharedBuffer {
    /// For the switch of these ports.
    ///
    /// # Errors
    /// What is wrong with `spec`.
    pub(super) fn new(spec: SharedSpec, ports: Vec<LinkId>) -> Result<SharedBuffer, &'static str> {
        let positive = |alpha: f64| alpha > 0.0 && alpha.is_finite();
        if spec.total.get() == 0 {
            return Err("a shared buffer of zero bytes holds no packet");
        }
        if !positive(spec.alpha) || !positive(spec.alpha_not_ect) {
            return Err("alpha, the part of the free buffer that a port may take, must be above zero");
        }
        if !(0.0..1.0).contains(&spec.headroom) {
            return Err("the headroom must be at least 0 and below 1");
        }
        let reserved = (ports.len() as u64).checked_mul(spec.reserve.get());
        let Some(pool) = reserved.and_then(|reserved| spec.total.get().checked_sub(reserved)) else {
            return Err("its ports' reserves are larger than its shared buffer");
        };
        let equal_share = pool / (ports.len() as u64).max(1);
        let headroom = (pool as f64 * spec.headroom) as u64;
        Ok(SharedBuffer { ports, spec, pool, equal_share, headroom })
    }

    /// The same memory, whose ports have other numbers.
    pub(super) fn at(&self, ports: Vec<LinkId>) -> SharedBuffer {
        SharedBuffer { ports, ..self.clone() }
    }

    /// Bytes of the pool that a port with `queued` bytes takes.
    pub(super) fn pooled(&self, queued: u64) -> u64 {
        queued.saturating_sub(self.spec.reserve.get())
    }

    /// Whether a packet of `len` bytes is accepted at a port with `queued` bytes, when all ports take `pooled` bytes of the pool.
    pub(super) fn takes(&self, queued: u64, len: u64, pooled: u64, ecn: Ecn) -> bool {
        let after = self.pooled(queued + len);
        if after == 0 {
            return true;
        }
        let kept_free = if after > self.equal_share { self.headroom } else { 0 };
        let alpha = if ecn.is_capable() { self.spec.alpha } else { self.spec.alpha_not_ect };
        let pooled_after = pooled + after - self.pooled(queued);
        pooled_after + kept_free <= self.pool && after as f64 <= alpha * (self.pool - pooled) as f64
    }
}
