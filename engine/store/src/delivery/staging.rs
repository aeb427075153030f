//! The staging buffer of a delivery: the octets of the chunk that is being filled.
//!
//! Invariant: the buffer begins with [`HEADER_BYTES`] bytes of space for the header. After that
//! space are `length` octets.

use crate::chunk::{self, HEADER_BYTES};
use crate::delivery::Delivery;
use crate::types::{HeadSize, Recipient};
use alloc::boxed::Box;

impl Delivery {
    /// Takes as many octets as fit into the buffer. Returns their number.
    pub(super) fn take(&mut self, octets: &[u8]) -> usize {
        let Some(staging) = &mut self.staging else { return 0 };
        let Some(room) = staging.get_mut(HEADER_BYTES + self.length..) else {
            unreachable!("more octets than their buffer holds")
        };
        let count = room.len().min(octets.len());
        let (Some(place), Some(octets)) = (room.get_mut(..count), octets.get(..count)) else {
            unreachable!("the smaller of two lengths fits both")
        };
        place.copy_from_slice(octets);
        self.length += count;
        self.octets += count as u32;
        count
    }

    /// Sets the head: octets that were appended last, but are first in the message. If all octets
    /// are still in the buffer, it is rotated, so that the octets are in the order of the message.
    /// Otherwise the octets stay where they are, and the message's entry tells readers the size of
    /// the head.
    pub(super) fn set_head(&mut self, head: HeadSize) {
        self.head = head;
        let all = self
            .staging
            .as_mut()
            .and_then(|staging| staging.get_mut(HEADER_BYTES..HEADER_BYTES + self.length));
        if let Some(all) = all.filter(|all| self.chunks == 0 && all.len() >= head.octets() as usize)
        {
            all.rotate_right(head.octets() as usize);
            self.head = HeadSize::NONE;
        }
    }

    /// Moves the octets to another buffer. Returns the old buffer.
    pub(super) fn restage(&mut self, mut buffer: Box<[u8]>) -> Option<Box<[u8]>> {
        let old = self.staging.take();
        let used = HEADER_BYTES..HEADER_BYTES + self.length;
        if let Some(old) = &old {
            let (Some(from), Some(to)) = (old.get(used.clone()), buffer.get_mut(used)) else {
                unreachable!("a buffer that is too small for the octets")
            };
            to.copy_from_slice(from);
        }
        self.staging = Some(buffer);
        old
    }

    /// The buffer from which the chunk of a recipient is written. It is a copy, but for the last
    /// recipient it is the original.
    pub(super) fn buffer_for_recipient(&mut self, copy: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let Some(mut copy) = copy else { return self.staging.take() };
        let used = HEADER_BYTES..HEADER_BYTES + self.length;
        copy.get_mut(used.clone())?.copy_from_slice(self.staging.as_ref()?.get(used)?);
        Some(copy)
    }

    /// The conversation of the message for the recipient at the cursor.
    fn conversation(&self) -> u64 {
        match self.conversation {
            0 => self.guid(),
            conversation => conversation,
        }
    }

    /// The GUID of the message for the recipient at the cursor.
    fn guid(&self) -> u64 {
        let Some(guid) = self.guids.get(self.cursor) else {
            unreachable!("a recipient without a GUID")
        };
        *guid
    }

    pub(super) fn header(
        &self,
        recipient: Recipient,
        last: Option<chunk::LastChunkFields>,
    ) -> chunk::ChunkHeader {
        chunk::ChunkHeader {
            account: recipient.account,
            guid: self.guid(),
            index: self.chunks,
            length: self.length as u32,
            mailbox: recipient.mailbox.0,
            uid_validity: 0,
            conversation: self.conversation(),
            last,
        }
    }
}
