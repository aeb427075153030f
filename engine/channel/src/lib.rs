//! Links between cores: each core has one to each other core, and one to itself.
//!
//! A link is two rings (crate `rings`), one a direction, and what waits for places in the one that
//! leaves. It knows no message: a message has a [`Class`], and that says when it goes.
//!
//! | class | what | in one turn |
//! |---|---|---|
//! | control | work of the disk, frames for the card | all |
//! | answer | questions of sessions, and the replies | all |
//! | bulk | parts of messages, frames | [`BULK_PER_TURN`] |
//! | hearsay | what a core may do without | [`HEARSAY_PER_TURN`] |
//!
//! A request is asked with a [`Ticket`], and the reply comes back with it. What a link keeps
//! waiting is bounded: hearsay by [`HEARSAY_WAITING_MAX`], what [`Links::ask`] takes by
//! [`CREDITS`], since it refuses more requests without a reply, and all else by the tables and
//! pools that it comes from.
//!
//! Invariants:
//! - Messages of one class leave in the order in which they were told.
//! - In a turn a class goes behind the classes above it, each up to its number.
//! - What is told on a link that is over is dropped: it never keeps a core from sleeping.
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

/// Bulk messages that one turn sends by a link.
pub const BULK_PER_TURN: usize = 96;
/// Hearsay that one turn sends by a link.
pub const HEARSAY_PER_TURN: usize = 16;
/// Hearsay that may wait behind a link.
pub const HEARSAY_WAITING_MAX: usize = 64;
/// Requests on a link that may have no reply.
pub const CREDITS: usize = 256;

/// Where a reply goes: to what waits in this frame, on this core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The core that has asked.
    pub core: CoreId,
    /// What has asked there: its slot and generation.
    pub frame: FrameId,
}

/// How urgent a message is. The first class goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Work of the disk, and frames for the card.
    Control,
    /// What a client waits for: questions and replies.
    Answer,
    /// What comes in quantities.
    Bulk,
    /// What a core may do without.
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
pub struct Links<M> {
    own: CoreId,
    /// What this core tells itself.
    inbox: VecDeque<M>,
    links: Vec<Link<M>>,
}

/// The way to one other core.
struct Link<M> {
    core: CoreId,
    sender: Sender<M>,
    receiver: Receiver<M>,
    waiting: Waiting<M>,
    /// Requests without a reply.
    unanswered: usize,
    /// Nothing is received there any more.
    is_over: bool,
}

/// What waits for places in a ring, by its class.
struct Waiting<M> {
    control: VecDeque<M>,
    answer: VecDeque<M>,
    bulk: VecDeque<M>,
    hearsay: VecDeque<M>,
}

/// The links of the first of `cores` cores, of which there is at least one, and those of the others
/// in their order.
///
/// `places`: how many a ring has, a power of two.
pub fn links<M: Send>(cores: u8, mut places: impl FnMut() -> usize) -> (Links<M>, Vec<Links<M>>) {
    let mut all: Vec<Links<M>> = (0..cores).map(|core| Links::new(CoreId(core))).collect();
    for high in 1..cores {
        for low in 0..high {
            let (to_high, from_low) = rings::ring(places());
            let (to_low, from_high) = rings::ring(places());
            let ends = [(low, high, to_high, from_high), (high, low, to_low, from_low)];
            for (own, other, sender, receiver) in ends {
                let Some(links) = all.get_mut(usize::from(own)) else {
                    unreachable!("a core above the last one")
                };
                links.links.push(Link::new(CoreId(other), sender, receiver));
            }
        }
    }
    let others = all.split_off(1);
    let Some(first) = all.pop() else { unreachable!("a machine has a core") };
    (first, others)
}

impl<M> Links<M> {
    fn new(own: CoreId) -> Links<M> {
        Links { own, inbox: VecDeque::new(), links: Vec::new() }
    }

    /// The core that has these links.
    pub fn own(&self) -> CoreId {
        self.own
    }

    /// How many cores there are.
    pub fn cores(&self) -> u8 {
        self.links.len() as u8 + 1
    }

    /// Whether there is no other core.
    pub fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    /// The other core of this link, counted from zero.
    pub fn other(&self, number: usize) -> Option<CoreId> {
        self.links.get(number).map(|link| link.core)
    }

    /// Takes a message that has come by the link of this number.
    pub fn receive(&mut self, number: usize) -> Option<M> {
        self.links.get_mut(number)?.receiver.receive()
    }

    /// What this core has told itself, the first one first.
    pub fn next_own(&mut self) -> Option<M> {
        self.inbox.pop_front()
    }

    /// Whether this core has told itself something.
    #[inline]
    pub fn has_own(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Tells a core something, be it this one.
    pub fn tell(&mut self, core: CoreId, class: Class, message: M) {
        if core == self.own {
            return self.inbox.push_back(message);
        }
        if let Some(link) = self.link(core).filter(|link| !link.is_over) {
            link.waiting.of(class).push_back(message);
        }
    }

    /// Tells each other core something. How many there are.
    pub fn tell_others(&mut self, class: Class, message: impl Fn() -> M) -> usize {
        let links = self.links.iter_mut().filter(|link| !link.is_over);
        links.map(|link| link.waiting.of(class).push_back(message())).count()
    }

    /// Asks another core something that it answers.
    ///
    /// Errors: the request, if too many have no reply yet.
    pub fn ask(&mut self, core: CoreId, class: Class, request: M) -> Result<(), M> {
        match self.link(core) {
            Some(link) if link.unanswered < CREDITS && !link.is_over => link.unanswered += 1,
            _ => return Err(request),
        }
        self.tell(core, class, request);
        Ok(())
    }

    /// Another core has answered one request.
    pub fn answered(&mut self, core: CoreId) {
        if let Some(link) = self.link(core).filter(|link| !link.is_over) {
            assert!(link.unanswered > 0, "a reply to a request that was asked");
            link.unanswered -= 1;
        }
    }

    /// Requests of this core that have no reply.
    pub fn unanswered(&self) -> usize {
        self.links.iter().map(|link| link.unanswered).sum()
    }

    /// Whether each link takes more hearsay. What finds no room stays where it comes from, or is
    /// forgotten.
    pub fn takes_hearsay(&self) -> bool {
        self.links.iter().all(|link| link.waiting.hearsay.len() < HEARSAY_WAITING_MAX)
    }

    /// A core receives nothing any more.
    pub fn end(&mut self, core: CoreId) {
        if let Some(link) = self.link(core) {
            link.is_over = true;
            link.unanswered = 0;
            link.waiting = Waiting::default();
        }
    }

    /// Whether anything waits here for another core.
    pub fn has_waiting(&self) -> bool {
        self.links.iter().any(|link| !link.waiting.is_empty())
    }

    /// The end of a turn: sends what waits, as much as the rings take.
    ///
    /// `next`: what else there is for a core, of a class, behind what was told. `wake`: something
    /// was sent to this core.
    pub fn post(
        &mut self,
        mut next: impl FnMut(CoreId, Class) -> Option<M>,
        mut wake: impl FnMut(CoreId),
    ) {
        for link in &mut self.links {
            if link.is_over {
                // What has no queue here ends here too.
                Class::ALL.iter().for_each(|class| while next(link.core, *class).is_some() {});
            } else if link.post(&mut next) {
                wake(link.core);
            }
        }
    }

    fn link(&mut self, core: CoreId) -> Option<&mut Link<M>> {
        self.links.iter_mut().find(|link| link.core == core)
    }
}

impl<M> Link<M> {
    fn new(core: CoreId, sender: Sender<M>, receiver: Receiver<M>) -> Link<M> {
        Link { core, sender, receiver, waiting: Waiting::default(), unanswered: 0, is_over: false }
    }

    /// Sends what waits, and what comes next of each class. Whether there was anything.
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

impl<M> Waiting<M> {
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

impl<M> Default for Waiting<M> {
    fn default() -> Waiting<M> {
        Waiting {
            control: VecDeque::new(),
            answer: VecDeque::new(),
            bulk: VecDeque::new(),
            hearsay: VecDeque::new(),
        }
    }
}
