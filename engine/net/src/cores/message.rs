//! Messages between cores, and the routes of frames.

use alloc::boxed::Box;
use core::net::{Ipv4Addr, Ipv6Addr};

use machine::{CoreId, Ethernet, Frame, Instant};

use crate::icmp::IcmpReport;
use crate::interface::Ipv4Interface;
use crate::ndp::{AdvertisedNeighbour, SharedIpv6State};

use super::steering::Load;

/// A message from one core's network to another core's network: see [`crate::Net::next_message`]
/// and [`crate::Net::message_arrived`].
#[derive(Debug)]
pub struct NetMessage(pub(crate) NetMessageKind);

const _: () = assert!(size_of::<NetMessage>() <= 64, "a message is small");
const fn travels<T: Send>() {}
const _: () = travels::<NetMessage>();

#[derive(Debug)]
pub(crate) enum NetMessageKind {
    /// A frame to process.
    Frame(PassedFrame),
    /// The buffer of a frame that returns home, and the core that it was charged to.
    Buffer(Frame, CoreId),
    /// The machine's IPv4 address.
    Address(Option<Ipv4Interface>),
    /// The machine's IPv6 state.
    Ipv6(Box<SharedIpv6State>),
    /// The load of a core.
    Load(Load),
    /// News from the link.
    LinkNews(LinkNews),
}

/// News from the link that the first core has received, and that may concern other cores.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkNews {
    /// A neighbour has announced its hardware address by ARP.
    Neighbour { address: Ipv4Addr, hardware: Ethernet },
    /// A neighbour has advertised its hardware address by NDP.
    Ipv6Neighbour { address: Ipv6Addr, claim: AdvertisedNeighbour },
    /// An ICMP error about a segment that the first core did not send.
    TransportError(IcmpReport),
}

/// The owner of a frame's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    /// The core that owns the card.
    pub(crate) core: CoreId,
    /// The core that the frame was passed to first. The buffer is charged to that core while it is
    /// away.
    pub(crate) charged_to: CoreId,
}

/// A frame in transit between cores.
#[derive(Debug)]
pub(crate) struct PassedFrame {
    pub(crate) frame: Frame,
    /// The time of the turn in which a core last processed the frame.
    pub(crate) seen_at: Instant,
    /// The owner of the buffer; `None` if the buffer belongs to no card.
    pub(crate) home: Option<Home>,
    /// The number of cores that have looked for the connection of this frame without success.
    pub(crate) hops: u8,
    /// The core that answers if no core knows the connection. `None`: the core with the card that
    /// received the frame.
    pub(crate) answerer: Option<CoreId>,
    /// Whether the transport checksum of the frame has been verified.
    pub(crate) verified: bool,
    /// The bucket of a SYN that was steered (`steering`).
    pub(crate) syn: Option<u16>,
}

/// Why a frame is passed to another core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PassReason {
    /// The other core owns the connection of the frame, or will own the connection that the frame
    /// opens.
    Steered,
    /// Only the first core handles frames of this kind.
    Other,
    /// This core does not know the connection of the frame.
    Stray,
}

/// The route of a handled frame: see [`crate::Net::frame_handled`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a frame may have to go to another core"]
pub enum Route {
    /// The frame stays on this core. On a machine with one core, every frame does.
    Here,
    /// The frame must be passed to another core. The network has chosen that core.
    Onward,
}

/// The route of a frame to another core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Onward {
    pub(crate) core: CoreId,
    pub(crate) kind: PassReason,
    pub(crate) hops: u8,
    pub(crate) answerer: Option<CoreId>,
    pub(crate) verified: bool,
    pub(crate) syn: Option<u16>,
}

impl Onward {
    /// The route of a frame that no core has processed yet.
    pub(crate) fn first(core: CoreId, kind: PassReason) -> Onward {
        Onward { core, kind, hops: 0, answerer: None, verified: false, syn: None }
    }
}

/// A received message, until its events are handled: see [`crate::Net::message_handled`].
#[derive(Debug)]
#[must_use = "it may hold a frame"]
pub struct Arrived(pub(crate) Contents);

#[derive(Debug)]
pub(crate) enum Contents {
    Nothing,
    Buffer(Frame),
    Frame(PassedFrame),
}

impl Arrived {
    /// The bytes that the events refer to, mutable so that they can be decoded in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Contents::Frame(passed) => passed.frame.bytes_mut(),
            Contents::Nothing | Contents::Buffer(_) => &mut [],
        }
    }
}
