//! The network card (virtio 1.2, section 5.1): one pair of queues, checksum and segmentation offload both ways, merged receive buffers.

mod receive;
mod transmit;

use super::queue::Events;
use super::transport::{Interrupt, Transport};
use super::{DeviceError, FEATURE_EVENT_INDEX, agree, go};
use machine::{Card, Ethernet, Frame, Offloads, Outgoing, TransmitError};
use receive::Receiver;
use transmit::Transmitter;

const FEATURE_CHECKSUM: u64 = 1 << 0;
const FEATURE_GUEST_CHECKSUM: u64 = 1 << 1;
const FEATURE_MTU: u64 = 1 << 3;
const FEATURE_ADDRESS: u64 = 1 << 5;
const FEATURE_GUEST_SEGMENTS_IPV4: u64 = 1 << 7;
const FEATURE_GUEST_SEGMENTS_IPV6: u64 = 1 << 8;
const FEATURE_SEGMENTS_IPV4: u64 = 1 << 11;
const FEATURE_SEGMENTS_IPV6: u64 = 1 << 12;
const FEATURE_MERGED_BUFFERS: u64 = 1 << 15;

/// Bytes of the header before each frame (section 5.1.6); as long without merged buffers, in version 1.
const HEADER_BYTES: usize = 12;

/// The frame's transport checksum is not filled in: it covers the pseudo header only.
const FLAG_NEEDS_CHECKSUM: u8 = 1;
/// The card has checked the frame's transport checksum.
const FLAG_CHECKSUM_VALID: u8 = 2;

const RECEIVE_QUEUE: u16 = 0;
const TRANSMIT_QUEUE: u16 = 1;

/// The device's own registers (section 5.1.4).
const REGISTER_ADDRESS: usize = 0;
const REGISTER_MTU: usize = 10;

const MTU_DEFAULT: u16 = 1500;

/// The address when the card has none of its own: locally administered.
const ADDRESS_DEFAULT: [u8; 6] = [0x02, 0, 0, 0, 0, 1];

/// A network card at work.
pub(crate) struct NetworkCard {
    transport: Transport,
    card: Card,
    receiver: Receiver,
    transmitter: Transmitter,
}

impl NetworkCard {
    /// Starts the card.
    pub(crate) fn start(transport: Transport) -> Result<NetworkCard, DeviceError> {
        let features = agree(&transport, wanted)?;
        let events = if features & FEATURE_EVENT_INDEX != 0 { Events::ByIndex } else { Events::ByFlag };
        let card = describe(&transport, features);
        let receiver = Receiver::new(events, |size, addresses| {
            // SAFETY: the addresses are those of the receiver's own queue, which lives for ever.
            unsafe { transport.start_queue(RECEIVE_QUEUE, size, addresses, Interrupt::Message) }
        })?;
        let transmitter = Transmitter::new(events, card.offloads, |size, addresses| {
            // SAFETY: the addresses are those of the transmitter's own queue, which lives for ever.
            unsafe { transport.start_queue(TRANSMIT_QUEUE, size, addresses, Interrupt::Message) }
        })?;
        go(&transport);
        let mut card = NetworkCard { transport, card, receiver, transmitter };
        card.receiver.ring_doorbell();
        Ok(card)
    }

    pub(crate) fn card(&self) -> Card {
        self.card
    }

    /// The next frame; also lets go of what was sent since.
    #[inline]
    pub(crate) fn receive(&mut self) -> Option<Frame> {
        self.transmitter.reap();
        self.receiver.next()
    }

    #[inline]
    pub(crate) fn give_back(&mut self, frame: Frame) {
        self.receiver.give_back(frame);
    }

    #[inline]
    pub(crate) fn transmit(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError> {
        self.transmitter.transmit(frame)
    }

    #[inline]
    pub(crate) fn ring_doorbells(&mut self) {
        self.receiver.ring_doorbell();
        self.transmitter.ring_doorbell();
    }

    /// Prepares for a sleep that the next frame ends, or, when a frame did not fit into the ring, the next one that was sent. Answers
    /// whether there is nothing to do yet.
    pub(crate) fn may_sleep(&mut self) -> bool {
        self.transport.acknowledge_interrupt();
        self.receiver.may_sleep() && self.transmitter.may_sleep()
    }

    /// After a sleep.
    pub(crate) fn be_quiet(&self) {
        self.receiver.be_quiet();
        self.transmitter.be_quiet();
    }
}

/// The features that we can use of those `offered`. What builds on another feature is wanted only together with it (5.1.3.1).
fn wanted(offered: u64) -> u64 {
    let mut wanted = FEATURE_MTU | FEATURE_ADDRESS | FEATURE_MERGED_BUFFERS | FEATURE_EVENT_INDEX;
    wanted |= FEATURE_CHECKSUM | FEATURE_GUEST_CHECKSUM;
    if offered & FEATURE_CHECKSUM != 0 {
        wanted |= FEATURE_SEGMENTS_IPV4 | FEATURE_SEGMENTS_IPV6;
    }
    // A long frame needs many of our buffers.
    if offered & FEATURE_GUEST_CHECKSUM != 0 && offered & FEATURE_MERGED_BUFFERS != 0 {
        wanted |= FEATURE_GUEST_SEGMENTS_IPV4 | FEATURE_GUEST_SEGMENTS_IPV6;
    }
    wanted
}

fn describe(transport: &Transport, features: u64) -> Card {
    let has = |feature: u64| features & feature != 0;
    let address = if has(FEATURE_ADDRESS) {
        [0, 1, 2, 3, 4, 5].map(|byte| transport.device8(REGISTER_ADDRESS + byte))
    } else {
        ADDRESS_DEFAULT
    };
    // Frames longer than one of our buffers and not joined by the card are not for us.
    let mtu = if has(FEATURE_MTU) { transport.device16(REGISTER_MTU).min(MTU_DEFAULT) } else { MTU_DEFAULT };
    Card {
        address: Ethernet(address),
        mtu,
        offloads: Offloads {
            checksum: has(FEATURE_CHECKSUM),
            segmentation_ipv4: has(FEATURE_SEGMENTS_IPV4),
            segmentation_ipv6: has(FEATURE_SEGMENTS_IPV6),
        },
        queues: 1,
    }
}
