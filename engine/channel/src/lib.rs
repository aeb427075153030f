//! Links between cores. Each core has a link to each other core, and a queue of messages to itself.
//!
//! A link is two rings (crate `rings`), one for each direction, and queues of messages that wait
//! for the outgoing ring. A link does not interpret messages. Each message has a [`Class`], which
//! determines when it is sent.
//!
//! | class | what | in one turn |
//! |---|---|---|
//! | control | disk requests, frames for the card | all |
//! | answer | questions of sessions, and the replies | all |
//! | bulk | parts of messages, frames | [`BULK_PER_TURN`] |
//! | hearsay | optional information | [`HEARSAY_PER_TURN`] |
//!
//! A request carries a [`Ticket`], and the reply returns the ticket. All queues of a link are
//! bounded. For hearsay, the limit is [`HEARSAY_WAITING_MAX`]. For requests, [`CoreLinks::ask`]
//! refuses a request while [`CREDITS`] other requests have no reply. For all other messages, the
//! tables and pools of their senders are the limit.
//!
//! Invariants:
//! - Messages of one class leave in the order in which they were queued.
//! - In each turn, the messages of a class follow those of the classes above it in the table. Each
//!   class has its limit.
//! - A message for a closed link is dropped. So it never keeps a core from sleeping.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::CoreId;
use rings::{Receiver, Sender};
use tasks::FrameId;

/// The most bulk messages that one turn sends on a link.
pub const BULK_PER_TURN: usize = 96;
/// The most hearsay that one turn sends on a link.
pub const HEARSAY_PER_TURN: usize = 16;
/// The most hearsay that waits for a link.
pub const HEARSAY_WAITING_MAX: usize = 64;
/// The most requests without a reply on one link.
pub const CREDITS: usize = 256;

/// The destination of a reply: the core that has sent the request, and the frame that waits there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The core that sent the request.
    pub core: CoreId,
    /// The frame that waits on that core: its slot and generation.
    pub frame: FrameId,
}

/// The urgency of a message. Earlier classes are sent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Disk requests, and frames for the card.
    Control,
    /// Questions and replies that a client waits for.
    Answer,
    /// Messages with large amounts of data.
    Bulk,
    /// Information that a core can do without.
    Hearsay,
}

impl Class {
    const ALL: [Class; 4] = [Class::Control, Class::Answer, Class::Bulk, Class::Hearsay];

    const fn per_turn(self) -> usize {
        match self {
            Class::Control | Class::Answer => usize::MAX,
            Class::Bulk => BULK_PER_TURN,
            Class::Hearsay => HEARSAY_PER_TURN,
        }
    }
}

/// The links of one core.
pub struct CoreLinks<M> {
    own: CoreId,
    /// Messages of this core to itself.
    inbox: VecDeque<M>,
    links: Vec<CoreLink<M>>,
}

/// The link to one other core.
struct CoreLink<M> {
    core: CoreId,
    sender: Sender<M>,
    receiver: Receiver<M>,
    waiting: RingBacklog<M>,
    /// The number of requests without a reply.
    unanswered: usize,
    /// The link is closed: no more messages are sent to the other core.
    is_over: bool,
}

/// Messages that wait for free slots of a ring, by class.
struct RingBacklog<M> {
    control: VecDeque<M>,
    answer: VecDeque<M>,
    bulk: VecDeque<M>,
    hearsay: VecDeque<M>,
}

/// Creates the links of `cores` cores, at least one. Returns the links of the first core, and the
/// links of the other cores in their order.
///
/// `places`: called for each ring. Returns the number of messages that the ring can hold, a power
/// of two.
pub fn links<M: Send>(
    cores: u8,
    mut places: impl FnMut() -> usize,
) -> (CoreLinks<M>, Vec<CoreLinks<M>>) {
    let mut all: Vec<CoreLinks<M>> = (0..cores).map(|core| CoreLinks::new(CoreId(core))).collect();
    for high in 1..cores {
        for low in 0..high {
            let (to_high, from_low) = rings::ring(places());
            let (to_low, from_high) = rings::ring(places());
            let ends = [(low, high, to_high, from_high), (high, low, to_low, from_low)];
            for (own, other, sender, receiver) in ends {
                let Some(links) = all.get_mut(usize::from(own)) else {
                    unreachable!("a core above the last one")
                };
                links.links.push(CoreLink::new(CoreId(other), sender, receiver));
            }
        }
    }
    let others = all.split_off(1);
    let Some(first) = all.pop() else { unreachable!("a machine has a core") };
    (first, others)
}

impl<M> CoreLinks<M> {
    fn new(own: CoreId) -> CoreLinks<M> {
        CoreLinks { own, inbox: VecDeque::new(), links: Vec::new() }
    }

    /// The core that owns these links.
    pub fn own(&self) -> CoreId {
        self.own
    }

    /// The number of cores.
    pub fn cores(&self) -> u8 {
        self.links.len() as u8 + 1
    }

    /// Whether this core is the only core.
    pub fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    /// The other core of link `number`, counted from zero.
    pub fn other(&self, number: usize) -> Option<CoreId> {
        self.links.get(number).map(|link| link.core)
    }

    /// All other cores.
    pub fn others(&self) -> impl Iterator<Item = CoreId> {
        self.links.iter().map(|link| link.core)
    }

    /// Takes a message that has arrived on link `number`.
    pub fn receive(&mut self, number: usize) -> Option<M> {
        self.links.get_mut(number)?.receiver.receive()
    }

    /// The next message of this core to itself.
    pub fn next_own(&mut self) -> Option<M> {
        self.inbox.pop_front()
    }

    /// Whether this core has sent a message to itself that it has not taken yet.
    #[inline]
    pub fn has_own(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Queues a message for a core, or for this core itself.
    pub fn tell(&mut self, core: CoreId, class: Class, message: M) {
        if core == self.own {
            return self.inbox.push_back(message);
        }
        if let Some(link) = self.link(core).filter(|link| !link.is_over) {
            link.waiting.of(class).push_back(message);
        }
    }

    /// Queues a message for each other core. Returns the number of these cores.
    pub fn tell_others(&mut self, class: Class, message: impl Fn() -> M) -> usize {
        let links = self.links.iter_mut().filter(|link| !link.is_over);
        links.map(|link| link.waiting.of(class).push_back(message())).count()
    }

    /// Queues a request that the other core will answer.
    ///
    /// Errors: the request, if too many requests have no reply yet or the link is closed.
    pub fn ask(&mut self, core: CoreId, class: Class, request: M) -> Result<(), M> {
        match self.link(core) {
            Some(link) if link.unanswered < CREDITS && !link.is_over => link.unanswered += 1,
            _ => return Err(request),
        }
        self.tell(core, class, request);
        Ok(())
    }

    /// Records that `core` has answered a request.
    pub fn answered(&mut self, core: CoreId) {
        if let Some(link) = self.link(core).filter(|link| !link.is_over) {
            assert!(link.unanswered > 0, "a reply belongs to a counted request");
            link.unanswered -= 1;
        }
    }

    /// The number of requests of this core without a reply.
    pub fn unanswered(&self) -> usize {
        self.links.iter().map(|link| link.unanswered).sum()
    }

    /// Whether every link accepts more hearsay. If not, the sender keeps its message or drops it.
    pub fn takes_hearsay(&self) -> bool {
        self.links.iter().all(|link| link.waiting.hearsay.len() < HEARSAY_WAITING_MAX)
    }

    /// Closes the link to a core.
    pub fn end(&mut self, core: CoreId) {
        if let Some(link) = self.link(core) {
            link.is_over = true;
            link.unanswered = 0;
            link.waiting = RingBacklog::default();
        }
    }

    /// Whether messages for other cores wait in the queues.
    pub fn has_waiting(&self) -> bool {
        self.links.iter().any(|link| !link.waiting.is_empty())
    }

    /// Ends a turn: sends waiting messages, as many as the rings accept.
    ///
    /// `next`: returns further messages for a core and class. They are sent after the queued
    /// messages. `wake`: is called for each core to which a message was sent.
    pub fn post(
        &mut self,
        mut next: impl FnMut(CoreId, Class) -> Option<M>,
        mut wake: impl FnMut(CoreId),
    ) {
        for link in &mut self.links {
            if link.is_over {
                // Messages that `next` returns are dropped as well.
                Class::ALL.iter().for_each(|class| while next(link.core, *class).is_some() {});
            } else if link.post(&mut next) {
                wake(link.core);
            }
        }
    }

    fn link(&mut self, core: CoreId) -> Option<&mut CoreLink<M>> {
        self.links.iter_mut().find(|link| link.core == core)
    }
}

impl<M> CoreLink<M> {
    fn new(core: CoreId, sender: Sender<M>, receiver: Receiver<M>) -> CoreLink<M> {
        CoreLink {
            core,
            sender,
            receiver,
            waiting: RingBacklog::default(),
            unanswered: 0,
            is_over: false,
        }
    }

    /// Sends the queued messages of each class, then the messages of `next`. Returns whether it
    /// sent any.
    fn post(&mut self, next: &mut impl FnMut(CoreId, Class) -> Option<M>) -> bool {
        let mut has_sent = false;
        for class in Class::ALL {
            let mut left = class.per_turn();
            while left > 0
                && self.sender.has_room()
                && let Some(message) =
                    self.waiting.of(class).pop_front().or_else(|| next(self.core, class))
            {
                let sent = self.sender.send(message);
                assert!(sent.is_ok(), "a ring that has room takes a message");
                (has_sent, left) = (true, left - 1);
            }
        }
        has_sent
    }
}

impl<M> RingBacklog<M> {
    fn of(&mut self, class: Class) -> &mut VecDeque<M> {
        match class {
            Class::Control => &mut self.control,
            Class::Answer => &mut self.answer,
            Class::Bulk => &mut self.bulk,
            Class::Hearsay => &mut self.hearsay,
        }
    }

    fn is_empty(&self) -> bool {
        self.control.is_empty()
            && self.answer.is_empty()
            && self.bulk.is_empty()
            && self.hearsay.is_empty()
    }
}

impl<M> Default for RingBacklog<M> {
    fn default() -> RingBacklog<M> {
        RingBacklog {
            control: VecDeque::new(),
            answer: VecDeque::new(),
            bulk: VecDeque::new(),
            hearsay: VecDeque::new(),
        }
    }
}
