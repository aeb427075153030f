//! The queue of messages for another core.
//!
//! Invariants:
//! - All space is allocated at construction. When the space for frames or for news is full, further
//!   frames or news are refused. Returning buffers always find space, because the number of a
//!   card's buffers on other cores is limited.
//! - An address change is sent before the frames that were received for the new address.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use machine::{CoreId, Frame};

use crate::interface::Ipv4Interface;
use crate::link::Link;

use super::message::{LinkNews, NetMessageKind, PassReason, PassedFrame};

/// The most frames that wait for one core, including steered frames.
const FRAMES_MAX: usize = 128;
/// The number of waiting frames from which on unsteered frames are refused. So a flood of strays
/// leaves room for segments of known connections.
const STRAYS_MAX: usize = 64;
/// The most waiting news from the link. A core that misses an item asks the neighbour when it needs
/// the address.
const LINK_NEWS_MAX: usize = 32;

pub(super) struct CoreQueue {
    frames: VecDeque<PassedFrame>,
    /// Buffers to return, each with the core that it was charged to.
    buffers: VecDeque<(Frame, CoreId)>,
    link_news: VecDeque<LinkNews>,
    /// The IPv4 address that was last sent.
    sent_address: Option<Ipv4Interface>,
    sent_ipv6: u32,
}

impl CoreQueue {
    /// `buffers`: the most buffers of the other core's card that may be away from it.
    pub(super) fn new(buffers: usize) -> CoreQueue {
        CoreQueue {
            frames: VecDeque::with_capacity(FRAMES_MAX),
            buffers: VecDeque::with_capacity(buffers),
            link_news: VecDeque::with_capacity(LINK_NEWS_MAX),
            sent_address: None,
            sent_ipv6: 0,
        }
    }

    /// Queues a frame.
    ///
    /// Errors: the frame, if too many wait already.
    pub(super) fn push(
        &mut self,
        passed: PassedFrame,
        kind: PassReason,
    ) -> Result<(), PassedFrame> {
        let room = if kind == PassReason::Steered { FRAMES_MAX } else { STRAYS_MAX };
        if self.frames.len() >= room {
            return Err(passed);
        }
        self.frames.push_back(passed);
        Ok(())
    }

    pub(super) fn push_buffer(&mut self, frame: Frame, charged_to: CoreId) {
        assert!(
            self.buffers.len() < self.buffers.capacity(),
            "the buffers of a card that are away are bounded"
        );
        self.buffers.push_back((frame, charged_to));
    }

    pub(super) fn push_link_news(&mut self, link_news: LinkNews) {
        if self.link_news.len() < LINK_NEWS_MAX {
            self.link_news.push_back(link_news);
        }
    }

    pub(super) fn next_buffer(&mut self) -> Option<NetMessageKind> {
        let (frame, charged_to) = self.buffers.pop_front()?;
        Some(NetMessageKind::Buffer(frame, charged_to))
    }

    /// The machine's addresses, if they differ from the addresses last sent.
    pub(super) fn next_state(&mut self, link: &Link) -> Option<NetMessageKind> {
        let address = link.interface.address;
        if self.sent_address != address {
            self.sent_address = address;
            return Some(NetMessageKind::Address(address));
        }
        let revision = link.ndp.revision();
        (self.sent_ipv6 != revision).then(|| {
            self.sent_ipv6 = revision;
            NetMessageKind::Ipv6(Box::new(link.ndp.shared_state()))
        })
    }

    /// Whether [`CoreQueue::next_state`] has something to send.
    pub(super) fn has_state(&self, link: &Link) -> bool {
        self.sent_address != link.interface.address || self.sent_ipv6 != link.ndp.revision()
    }

    pub(super) fn next(&mut self) -> Option<NetMessageKind> {
        self.link_news
            .pop_front()
            .map(NetMessageKind::LinkNews)
            .or_else(|| self.frames.pop_front().map(NetMessageKind::Frame))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.buffers.is_empty() && self.link_news.is_empty()
    }
}
