//! The network card (virtio 1.2, section 5.1). It has a pair of queues for each core, checksum and
//! segmentation offload in both directions, and merged receive buffers.
//!
//! A pair belongs to one core, and its message interrupts only that core. The card chooses the pair
//! for an arriving frame: usually the pair that sent the connection's frames (section 5.1.6.5.5). A
//! card with a line instead of messages uses only one pair.

mod control;
mod receive;
mod transmit;

use super::queue::Events;
use super::transport::{Interrupt, Transport};
use super::{DeviceError, FEATURE_EVENT_INDEX, agree, go};
use alloc::vec::Vec;
use control::Control;
use machine::{Card, Ethernet, Frame, Offloads, OutgoingFrame, TransmitError};
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
const FEATURE_CONTROL: u64 = 1 << 17;
const FEATURE_PAIRS: u64 = 1 << 22;

/// The size of the virtio header before each frame (section 5.1.6). In version 1 the header has
/// this length even without merged buffers.
const HEADER_BYTES: usize = 12;

/// The frame's checksum field has only the sum of the pseudo header. The receiver of the frame has
/// to compute the transport checksum.
const FLAG_NEEDS_CHECKSUM: u8 = 1;
/// The card has checked the frame's transport checksum.
const FLAG_CHECKSUM_VALID: u8 = 2;

/// The number of queues of a pair. The numbers of the pairs are consecutive, and the control queue
/// follows them.
const PAIR_QUEUES: u16 = 2;
const RECEIVE_QUEUE: u16 = 0;
const TRANSMIT_QUEUE: u16 = 1;

/// The device's own registers (section 5.1.4).
const REGISTER_ADDRESS: usize = 0;
const REGISTER_PAIRS: usize = 8;
const REGISTER_MTU: usize = 10;

const MTU_DEFAULT: u16 = 1500;

/// The Ethernet address for a card that has none. It is locally administered.
const ADDRESS_DEFAULT: [u8; 6] = [0x02, 0, 0, 0, 0, 1];

/// A started network card with its pairs of queues. The first pair is for the first core.
pub(crate) struct CardQueues {
    card: Card,
    pairs: Vec<NetworkCard>,
}

/// One pair of queues of a running network card, for one core.
pub(crate) struct NetworkCard {
    transport: Transport,
    receiver: Receiver,
    transmitter: Transmitter,
}

impl CardQueues {
    /// Starts the card, with at most one pair for each of `cores`.
    pub(crate) fn start(transport: Transport, cores: usize) -> Result<CardQueues, DeviceError> {
        let cores = (cores as u16).min(transport.messages());
        let features = agree(&transport, |offered| wanted(offered, cores))?;
        let events =
            if features & FEATURE_EVENT_INDEX != 0 { Events::ByIndex } else { Events::ByFlag };
        let mut card = describe(&transport, features);
        let pairs_max =
            if features & FEATURE_PAIRS != 0 { transport.device16(REGISTER_PAIRS) } else { 1 };
        let count = cores.min(pairs_max).max(1);
        let pairs =
            (0..count).map(|pair| NetworkCard::start(transport, pair, events, card.offloads));
        let mut pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        let control =
            (count > 1).then(|| Control::start(&transport, PAIR_QUEUES.saturating_mul(pairs_max)));
        let control = control.transpose()?;
        go(&transport);
        // If the card does not grant the pairs, it uses only the first pair, and never accesses the
        // others.
        if !control.is_none_or(|control| control.use_pairs(count)) {
            pairs.truncate(1);
        }
        pairs.iter_mut().for_each(|pair| pair.receiver.ring_doorbell());
        card.queues = pairs.len() as u8;
        Ok(CardQueues { card, pairs })
    }

    pub(crate) fn card(&self) -> Card {
        self.card
    }

    /// The pairs, for the cores in their order.
    pub(crate) fn into_pairs(self) -> impl Iterator<Item = NetworkCard> {
        self.pairs.into_iter()
    }
}

impl NetworkCard {
    /// Starts the queues of one pair. The card has not been started yet.
    fn start(
        transport: Transport,
        pair: u16,
        events: Events,
        offloads: Offloads,
    ) -> Result<NetworkCard, DeviceError> {
        let first = PAIR_QUEUES.saturating_mul(pair);
        let receiver = Receiver::new(events, |size, addresses| {
            // SAFETY: the addresses are those of the receiver's queue. Its memory lives for ever.
            unsafe {
                transport.start_queue(
                    first + RECEIVE_QUEUE,
                    size,
                    addresses,
                    Interrupt::Message(pair),
                )
            }
        })?;
        let transmitter = Transmitter::new(events, offloads, |size, addresses| {
            // SAFETY: the addresses are those of the transmitter's queue. Its memory lives for
            // ever.
            unsafe {
                transport.start_queue(
                    first + TRANSMIT_QUEUE,
                    size,
                    addresses,
                    Interrupt::Message(pair),
                )
            }
        })?;
        Ok(NetworkCard { transport, receiver, transmitter })
    }

    /// The next received frame. Also releases the frames that the card has sent.
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
    pub(crate) fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        self.transmitter.transmit(frame)
    }

    #[inline]
    pub(crate) fn ring_doorbells(&mut self) {
        self.receiver.ring_doorbell();
        self.transmitter.ring_doorbell();
    }

    /// Requests interrupts that end the sleep: for the next received frame, and, if a frame did not
    /// fit into the transmit ring, for space there. Returns false if one of these events has
    /// happened already. In this case the core must not sleep.
    pub(crate) fn may_sleep(&mut self) -> bool {
        self.transport.acknowledge_interrupt();
        self.receiver.may_sleep() && self.transmitter.may_sleep()
    }

    /// Turns interrupts off again after a sleep.
    pub(crate) fn be_quiet(&self) {
        self.receiver.be_quiet();
        self.transmitter.be_quiet();
    }
}

/// The features that a machine with `cores` cores wants. A feature that depends on another is
/// included only if the card offers the other (5.1.3.1).
fn wanted(offered: u64, cores: u16) -> u64 {
    let mut wanted = FEATURE_MTU | FEATURE_ADDRESS | FEATURE_MERGED_BUFFERS | FEATURE_EVENT_INDEX;
    wanted |= FEATURE_CHECKSUM | FEATURE_GUEST_CHECKSUM;
    if offered & FEATURE_CHECKSUM != 0 {
        wanted |= FEATURE_SEGMENTS_IPV4 | FEATURE_SEGMENTS_IPV6;
    }
    if cores > 1 && offered & FEATURE_CONTROL != 0 {
        wanted |= FEATURE_CONTROL | FEATURE_PAIRS;
    }
    // A long frame needs many of our buffers, so the card must be able to merge them.
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
    // A frame that the card has not joined from segments must fit into one of our buffers.
    let mtu = if has(FEATURE_MTU) {
        transport.device16(REGISTER_MTU).min(MTU_DEFAULT)
    } else {
        MTU_DEFAULT
    };
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
