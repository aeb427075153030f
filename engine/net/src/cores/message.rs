//! What cores tell each other, and what becomes of a frame.

use alloc::boxed::Box;
use core::net::{Ipv4Addr, Ipv6Addr};

use machine::{CoreId, Ethernet, Frame, Instant};

use crate::icmp::Report;
use crate::interface::Address;
use crate::ndp::{Claim, Knowledge};

use super::steering::Load;

/// What one core's network tells another's: see [`crate::Net::next_message`] and [`crate::Net::message_arrived`].
#[derive(Debug)]
pub struct NetMessage(pub(crate) Message);

const _: () = assert!(size_of::<NetMessage>() <= 64, "a message is small");
const fn travels<T: Send>() {}
const _: () = travels::<NetMessage>();

#[derive(Debug)]
pub(crate) enum Message {
    /// A frame, to be looked at.
    Frame(Passed),
    /// The buffer of a frame on its way home, and the core that it was charged to.
    Shell(Frame, CoreId),
    /// The machine's IPv4 address.
    Address(Option<Address>),
    /// What the machine knows of IPv6.
    Ipv6(Box<Knowledge>),
    /// How much a core holds.
    Load(Load),
    /// What the first core has heard.
    Hearsay(Hearsay),
}

/// What the first core has heard, and may concern others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hearsay {
    /// A neighbour has said by ARP where he is.
    Neighbour { address: Ipv4Addr, hardware: Ethernet },
    /// A neighbour has advertised himself.
    Ipv6Neighbour { address: Ipv6Addr, claim: Claim },
    /// Somebody reports trouble with a segment that the first core did not send.
    Trouble(Report),
}

/// Where the buffer of a frame belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    /// The core that owns the card.
    pub(crate) core: CoreId,
    /// The core that it was passed to first, to which it is charged while it is away.
    pub(crate) charged_to: CoreId,
}

/// A frame on its way from core to core.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) frame: Frame,
    /// The time of the turn in which it was looked at last.
    pub(crate) seen_at: Instant,
    /// Where the buffer belongs; `None` for one that belongs to no card.
    pub(crate) home: Option<Home>,
    /// Cores that have looked for its connection in vain.
    pub(crate) hops: u8,
    /// The one of them that answers, should nobody know it: the one where it began if it is `None`.
    pub(crate) answerer: Option<CoreId>,
    /// Whether its transport checksum was found right.
    pub(crate) verified: bool,
    /// The bucket of a SYN that was steered.
    pub(crate) syn: Option<u16>,
}

/// Why a frame goes to another core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It belongs to a connection there, or begins one.
    Steered,
    /// It is for the first core to answer.
    Other,
    /// Nobody here knows its connection.
    Stray,
}

/// Where a frame goes: see [`crate::Net::frame_handled`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a frame may have to go to another core"]
pub enum Route {
    /// Nowhere: always where there is but one core.
    Here,
    /// To another core; the network knows to which.
    Onward,
}

/// The way of a frame to another core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Onward {
    pub(crate) core: CoreId,
    pub(crate) kind: Kind,
    pub(crate) hops: u8,
    pub(crate) answerer: Option<CoreId>,
    pub(crate) verified: bool,
    pub(crate) syn: Option<u16>,
}

impl Onward {
    /// The way of a frame that nobody has looked at.
    pub(crate) fn first(core: CoreId, kind: Kind) -> Onward {
        Onward { core, kind, hops: 0, answerer: None, verified: false, syn: None }
    }
}

/// A message that has arrived, until its events have been handled: see [`crate::Net::message_handled`].
#[derive(Debug)]
#[must_use = "it may hold a frame"]
pub struct Arrived(pub(crate) What);

#[derive(Debug)]
pub(crate) enum What {
    Nothing,
    Shell(Frame),
    Frame(Passed),
}

impl Arrived {
    /// The bytes in which those of the events lie, to be worked on in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            What::Frame(passed) => passed.frame.bytes_mut(),
            What::Nothing | What::Shell(_) => &mut [],
        }
    }
}
