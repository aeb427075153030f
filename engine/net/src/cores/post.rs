//! What waits for another core until it can be sent.
//!
//! Invariants:
//! - All room is made at the start. Frames and hearsay that find none are refused; shells always find some, because no
//!   more buffers of a card are away than there is room for.
//! - Addresses come before frames that were sent to them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use machine::{CoreId, Frame};

use crate::interface::Address;
use crate::link::Link;

use super::message::{Hearsay, Kind, Message, Passed};

/// Frames that may wait for one core, those that are steered among them.
const FRAMES_MAX: usize = 128;
/// Frames that may wait before one that is not steered: a flood of strays leaves room for what belongs to somebody.
const STRAYS_MAX: usize = 64;
/// What may wait to be heard. Whoever misses it asks the neighbour himself.
const HEARSAY_MAX: usize = 32;

pub(super) struct Post {
    frames: VecDeque<Passed>,
    /// Buffers to return, each with the core that it was charged to.
    shells: VecDeque<(Frame, CoreId)>,
    hearsay: VecDeque<Hearsay>,
    /// What was told last of the machine's addresses.
    told_address: Option<Address>,
    told_ipv6: u32,
}

impl Post {
    /// `shells`: buffers of the core's card that may be away at once.
    pub(super) fn new(shells: usize) -> Post {
        Post {
            frames: VecDeque::with_capacity(FRAMES_MAX),
            shells: VecDeque::with_capacity(shells),
            hearsay: VecDeque::with_capacity(HEARSAY_MAX),
            told_address: None,
            told_ipv6: 0,
        }
    }

    /// Errors: the frame, when too many wait already.
    pub(super) fn push(&mut self, passed: Passed, kind: Kind) -> Result<(), Passed> {
        let room = if kind == Kind::Steered { FRAMES_MAX } else { STRAYS_MAX };
        if self.frames.len() >= room {
            return Err(passed);
        }
        self.frames.push_back(passed);
        Ok(())
    }

    pub(super) fn push_shell(&mut self, frame: Frame, charged_to: CoreId) {
        assert!(
            self.shells.len() < self.shells.capacity(),
            "so many buffers of a card are away at the most"
        );
        self.shells.push_back((frame, charged_to));
    }

    pub(super) fn push_hearsay(&mut self, hearsay: Hearsay) {
        if self.hearsay.len() < HEARSAY_MAX {
            self.hearsay.push_back(hearsay);
        }
    }

    pub(super) fn next_shell(&mut self) -> Option<Message> {
        let (frame, charged_to) = self.shells.pop_front()?;
        Some(Message::Shell(frame, charged_to))
    }

    /// The machine's addresses, if they are others than those told last.
    pub(super) fn next_state(&mut self, link: &Link) -> Option<Message> {
        let address = link.interface.address;
        if self.told_address != address {
            self.told_address = address;
            return Some(Message::Address(address));
        }
        let revision = link.ndp.revision();
        (self.told_ipv6 != revision).then(|| {
            self.told_ipv6 = revision;
            Message::Ipv6(Box::new(link.ndp.knowledge()))
        })
    }

    /// Whether there is a [`Post::next_state`].
    pub(super) fn has_state(&self, link: &Link) -> bool {
        self.told_address != link.interface.address || self.told_ipv6 != link.ndp.revision()
    }

    pub(super) fn next(&mut self) -> Option<Message> {
        self.hearsay
            .pop_front()
            .map(Message::Hearsay)
            .or_else(|| self.frames.pop_front().map(Message::Frame))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.shells.is_empty() && self.hearsay.is_empty()
    }
}
