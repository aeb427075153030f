//! Buffers of this core's card that are on other cores.
//!
//! Half of the buffers that may be away are divided between the other cores. So a core that is slow
//! to return buffers takes nothing from the shares of the others. Any core may use the other half.
//!
//! Invariant: until a buffer returns, it is charged to the core that it was passed to first.

use heapless::Vec;
use machine::CoreId;

use super::message::PassReason;
use crate::config::CORES_MAX;

/// The most buffers that may be away at once.
pub(super) const FRAMES_MAX: usize = 256;
/// An unsteered frame may leave this core only while fewer buffers than this are away.
const STRAYS_MAX: usize = FRAMES_MAX / 2;
/// Of the buffers that may be away, the number that belongs to no core's share.
const SHARED_MAX: usize = FRAMES_MAX / 2;

pub(super) struct Away {
    charged: Vec<usize, CORES_MAX>,
    frames: usize,
    /// The number of buffers that are away and exceed the shares of the cores that they are charged
    /// to.
    shared: usize,
}

impl Away {
    /// `cores`: the number of cores, at most [`CORES_MAX`].
    pub(super) fn new(cores: u8) -> Away {
        Away { charged: (0..cores).map(|_| 0).collect(), frames: 0, shared: 0 }
    }

    /// The share of each other core, in buffers.
    fn share(&self) -> usize {
        (FRAMES_MAX - SHARED_MAX) / self.charged.len().saturating_sub(1).max(1)
    }

    /// Whether another buffer may be charged to `core`.
    pub(super) fn has_room(&self, core: CoreId, kind: PassReason) -> bool {
        let charged = self.charged.get(usize::from(core.0)).copied();
        let has_room =
            charged.is_some_and(|charged| charged < self.share() || self.shared < SHARED_MAX);
        has_room && (kind == PassReason::Steered || self.frames < STRAYS_MAX)
    }

    pub(super) fn left(&mut self, core: CoreId) {
        let share = self.share();
        let charged = self.charged_mut(core);
        let is_shared = *charged >= share;
        *charged += 1;
        self.frames += 1;
        self.shared += usize::from(is_shared);
        assert!(
            self.frames <= FRAMES_MAX && self.shared <= SHARED_MAX,
            "the room was checked before"
        );
    }

    pub(super) fn came_home(&mut self, core: CoreId) {
        let share = self.share();
        let charged = self.charged_mut(core);
        assert!(*charged > 0, "only a buffer that is away comes home");
        *charged -= 1;
        let was_shared = *charged >= share;
        self.frames -= 1;
        self.shared -= usize::from(was_shared);
    }

    fn charged_mut(&mut self, core: CoreId) -> &mut usize {
        match self.charged.get_mut(usize::from(core.0)) {
            Some(charged) => charged,
            None => unreachable!("a core above the last one"),
        }
    }

    pub(super) fn frames(&self) -> usize {
        self.frames
    }
}
