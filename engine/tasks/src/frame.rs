//! A table of frames, which are found by their index. A generation distinguishes a frame from
//! earlier frames in the same slot.

use alloc::vec::Vec;

/// Identifies a frame while the frame exists. After the frame is removed, no lookup with this id
/// finds anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId {
    index: u32,
    generation: u32,
}

impl FrameId {
    /// The frame of `generation` in slot `index`.
    pub const fn new(index: u32, generation: u32) -> FrameId {
        FrameId { index, generation }
    }

    /// The slot, below the capacity of the table.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The generation: the number of frames that were in this slot before, modulo 2^32.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Slot and generation in one number, for a device or a queue that stores 64 bits.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`FrameId::to_bits`].
    pub const fn from_bits(bits: u64) -> FrameId {
        FrameId { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    state: SlotState<T>,
}

#[derive(Debug)]
enum SlotState<T> {
    Taken(T),
    Free { next_free: Option<u32> },
}

/// A fixed number of slots for frames. Inserting, finding or removing a frame is O(1).
#[derive(Debug)]
pub struct FrameTable<T> {
    slots: Vec<Slot<T>>,
    first_free: Option<u32>,
    taken: usize,
}

impl<T> FrameTable<T> {
    /// Bytes of memory for each slot.
    pub const SLOT_BYTES: usize = size_of::<Slot<T>>();

    /// A table of `capacity` free slots, fewer than 2^32.
    pub fn with_capacity(capacity: usize) -> FrameTable<T> {
        let count = u32::try_from(capacity).unwrap_or(u32::MAX);
        assert!(count < u32::MAX, "a table of 2^32 frames");
        let slots = (0..count)
            .map(|index| Slot {
                generation: 0,
                state: SlotState::Free { next_free: Some(index + 1).filter(|next| *next < count) },
            })
            .collect();
        FrameTable { slots, first_free: Some(0).filter(|_| count > 0), taken: 0 }
    }

    /// Puts `frame` into a free slot.
    ///
    /// Errors: the frame itself if every slot is taken.
    pub fn insert(&mut self, frame: T) -> Result<FrameId, T> {
        let Some(index) = self.first_free else { return Err(frame) };
        let Some(slot) = self.slots.get_mut(index as usize) else { return Err(frame) };
        if let SlotState::Free { next_free } = slot.state {
            self.first_free = next_free;
        }
        slot.state = SlotState::Taken(frame);
        self.taken += 1;
        Ok(FrameId { index, generation: slot.generation })
    }

    /// The frame with this id, if it still exists.
    pub fn get(&self, id: FrameId) -> Option<&T> {
        match self.slots.get(id.index()) {
            Some(Slot { generation, state: SlotState::Taken(frame) })
                if *generation == id.generation =>
            {
                Some(frame)
            }
            _ => None,
        }
    }

    /// The frame with this id, if it still exists.
    pub fn get_mut(&mut self, id: FrameId) -> Option<&mut T> {
        match self.slots.get_mut(id.index()) {
            Some(Slot { generation, state: SlotState::Taken(frame) })
                if *generation == id.generation =>
            {
                Some(frame)
            }
            _ => None,
        }
    }

    /// Removes the frame with this id, if it still exists. Afterwards the id is stale.
    pub fn remove(&mut self, id: FrameId) -> Option<T> {
        self.get(id)?;
        let slot = self.slots.get_mut(id.index())?;
        slot.generation = slot.generation.wrapping_add(1);
        let state =
            core::mem::replace(&mut slot.state, SlotState::Free { next_free: self.first_free });
        self.first_free = Some(id.index);
        self.taken -= 1;
        match state {
            SlotState::Taken(frame) => Some(frame),
            SlotState::Free { .. } => None,
        }
    }

    /// The id of the frame in slot `index`, whatever its generation.
    pub fn id_at(&self, index: usize) -> Option<FrameId> {
        match self.slots.get(index) {
            Some(Slot { generation, state: SlotState::Taken(_) }) => {
                Some(FrameId { index: u32::try_from(index).ok()?, generation: *generation })
            }
            _ => None,
        }
    }

    /// All frames, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &T)> {
        self.slots.iter().zip(0u32..).filter_map(|(slot, index)| match &slot.state {
            SlotState::Taken(frame) => {
                Some((FrameId { index, generation: slot.generation }, frame))
            }
            SlotState::Free { .. } => None,
        })
    }

    /// The number of frames.
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Whether the table has no frames.
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The most frames that the table can hold.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}
