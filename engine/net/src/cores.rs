//! The cooperation of several cores as one machine: how a core passes on a frame that another core
//! must process, and which state the cores tell each other.
//!
//! Each core has a [`crate::Net`], and these share no memory. To the network, the cores look like
//! one machine:
//! - **The first core** acts for the machine. It gets the addresses, announces them, and answers
//!   requests for them. It tells the other cores the addresses and the hardware addresses of
//!   neighbours. The other cores pass all frames except TCP segments to the first core
//!   ([`sorting`]).
//! - **The core that receives a SYN owns the connection**, and sends through its own queue of the
//!   card.
//! - **If the card has fewer queues than the machine has cores**, the cores with a queue steer
//!   ([`steering`]): they choose the core for each connection. With `q` queues, core `r` receives
//!   for the cores `r`, `r + q`, `r + 2q` and so on. With one queue for each core, no core steers.
//! - **A stray** is a segment that reaches a core which does not know the segment's connection. The
//!   segment goes round all cores until one knows the connection. If no core knows it, exactly one
//!   core answers, as if the machine had only that core ([`strays`]).
//!
//! The cores send each other [`NetMessage`]s. The machine that runs the networks delivers these
//! messages, in order in each direction.
//!
//! Invariants:
//! - A message that [`MulticoreState::next_message`] has returned is never lost. State (addresses,
//!   loads) needs no queue: a core sends it when it differs from the state that was sent last.
//!   Frames beyond a limit are dropped before they become messages, and counted.
//! - The buffer of a frame belongs to one card and always returns to it. The number of buffers that
//!   are on other cores at a time is limited, and each core has a share of this limit ([`away`]).
//! - A machine with one core has no such state. It pays for one check per frame.

mod away;
mod core_queue;
mod message;
mod sorting;
mod steering;
mod strays;

use alloc::vec::Vec;

use machine::{CoreId, Frame, Instant};
use sometimes::{buggify, sometimes};

use crate::config::{CORES_MAX, Cores, FIRST};
use crate::counters::{Counter, Counters};
use crate::flow::{Flow, FlowTable};
use crate::link::Link;
use away::Away;
use core_queue::CoreQueue;
pub use message::{Arrived, NetMessage, Route};
pub(crate) use message::{Contents, LinkNews, NetMessageKind, PassedFrame};
use message::{Home, Onward, PassReason};
use sorting::FrameClass;
use steering::{Holdings, Load, Steering};
pub(crate) use strays::SegmentMatch;

/// The network's state for the cooperation with the other cores.
pub(crate) struct MulticoreState {
    cores: Cores,
    /// The time of the turn in which the current frame was received.
    now: Instant,
    /// The number of cores that have passed the current frame on because they did not know its
    /// connection.
    hops: u8,
    /// The core that answers the current frame if no core knows it.
    answerer: Option<CoreId>,
    /// The next core for the current frame, if this core passes the frame on.
    onward: Option<Onward>,
    /// The queue for each core; this core's own stays empty.
    outgoing: Vec<CoreQueue>,
    /// Buffers of our card that are on other cores.
    away: Away,
    /// The connections on this core, by bucket of flows (`steering`). `None` if no core steers
    /// segments to this core.
    holdings: Option<Holdings>,
    /// The owner of each bucket of flows (`steering`). `None` if this core does not steer.
    steering: Option<Steering>,
}

impl MulticoreState {
    /// Returns `None` on a machine with one core. `queues`: the number of cores with a receive
    /// queue of the card. `connections_max`: the most connections of each core.
    pub(crate) fn new(cores: Cores, queues: u8, connections_max: usize) -> Option<MulticoreState> {
        assert!(
            cores.own.0 < cores.count && usize::from(cores.count) <= CORES_MAX,
            "the core's number is below the number of cores"
        );
        assert!(queues > 0, "a card has a queue");
        if cores.count == 1 {
            return None;
        }
        let group = || (cores.own.0 % queues..cores.count).step_by(usize::from(queues)).map(CoreId);
        let is_steered = group().count() > 1;
        let queue = |core: u8| CoreQueue::new(if core < queues { away::FRAMES_MAX } else { 0 });
        Some(MulticoreState {
            cores,
            now: Instant::START,
            hops: 0,
            answerer: None,
            onward: None,
            outgoing: (0..cores.count).map(queue).collect(),
            away: Away::new(cores.count),
            holdings: is_steered.then(|| Holdings::new(CoreId(cores.own.0 % queues))),
            steering: (is_steered && cores.own.0 < queues)
                .then(|| Steering::new(group(), connections_max)),
        })
    }

    /// Whether all cores have looked for the connection of the current frame, so that this core
    /// must answer.
    pub(crate) fn all_have_looked(&self) -> bool {
        self.hops == self.cores.count
    }

    #[cold]
    pub(crate) fn opened(&mut self, flows: &FlowTable, flow: &Flow) {
        if let Some(holdings) = &mut self.holdings {
            holdings.opened(flows.bucket(flow));
            self.tell_steering();
        }
    }

    #[cold]
    pub(crate) fn closed(&mut self, flows: &FlowTable, flow: &Flow) {
        if let Some(holdings) = &mut self.holdings {
            holdings.closed(flows.bucket(flow));
            self.tell_steering();
        }
    }

    /// Applies the load changes of this core, if it is its own steering core. Other cores send
    /// their load changes in messages.
    fn tell_steering(&mut self) {
        if let (Some(steering), Some(holdings)) = (&mut self.steering, &mut self.holdings) {
            while let Some(load) = holdings.next_change(self.cores.own) {
                steering.load_reported(&load);
            }
        }
    }

    /// Queues a frame for another core.
    ///
    /// Errors: the frame, if there is no room for it.
    fn enqueue(&mut self, onward: Onward, home: Option<Home>, frame: Frame) -> Result<(), Frame> {
        let Onward { core, kind, hops, answerer, verified, syn } = onward;
        let ours = home.filter(|home| home.core == self.cores.own);
        let is_full = ours.is_some_and(|home| !self.away.has_room(home.charged_to, kind));
        if is_full || buggify!(NoRoomBetweenCores) {
            return Err(frame);
        }
        let Some(queue) = self.outgoing.get_mut(usize::from(core.0)) else {
            unreachable!("a core above the last one")
        };
        queue
            .push(
                PassedFrame { frame, seen_at: self.now, home, hops, answerer, verified, syn },
                kind,
            )
            .map_err(|passed| passed.frame)?;
        if let Some(home) = ours {
            self.away.left(home.charged_to);
        }
        if let (Some(steering), Some(bucket)) = (&mut self.steering, syn) {
            steering.given(bucket);
        }
        Ok(())
    }

    /// Whether this core has no open connection, and knows of none on the cores that it steers for.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.holdings.as_ref().is_none_or(Holdings::is_empty)
            && self.steering.as_ref().is_none_or(Steering::is_idle)
    }

    pub(crate) fn cores(&self) -> Cores {
        self.cores
    }

    /// Decides which core processes a frame from our card. Returns false if another core does.
    /// `bucket`: returns the bucket of a flow (`steering`).
    pub(crate) fn is_for_us(
        &mut self,
        now: Instant,
        frame: &Frame,
        link: &Link,
        bucket: impl FnOnce(&Flow) -> u16,
    ) -> bool {
        (self.now, self.hops, self.answerer) = (now, 0, None);
        let elsewhere = match sorting::classify(frame.bytes(), link) {
            FrameClass::Segment { flow, opens } => self.steering.as_mut().map(|steering| {
                let bucket = bucket(&flow);
                let core = steering.owner(bucket, opens);
                Onward { syn: opens.then_some(bucket), ..Onward::first(core, PassReason::Steered) }
            }),
            FrameClass::Other => Some(Onward::first(FIRST, PassReason::Other)),
            FrameClass::Nothing => None,
        };
        self.onward = elsewhere.filter(|onward| onward.core != self.cores.own);
        self.onward.is_none()
    }

    /// Whether the current frame will be passed on to another core.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.onward.is_some()
    }

    /// Passes a frame of our card on to its next core. Returns the frame if the queue for that core
    /// is full.
    pub(crate) fn own_handled(&mut self, frame: Frame, counters: &mut Counters) -> Option<Frame> {
        let Some(onward) = self.onward.take() else {
            unreachable!("a frame to be passed on without a next core")
        };
        let home = Home { core: self.cores.own, charged_to: onward.core };
        self.pass_on(frame, Some(home), onward, counters).err()
    }

    /// Prepares for a frame that another core has passed on to this core.
    pub(crate) fn passed_arrived(&mut self, now: Instant, passed: &PassedFrame) {
        (self.now, self.hops, self.answerer, self.onward) =
            (now, passed.hops, passed.answerer, None);
        if let Some(home) = passed.home.filter(|home| home.core == self.cores.own) {
            self.away.came_home(home.charged_to);
        }
        if let (Some(holdings), Some(bucket)) = (&mut self.holdings, passed.syn) {
            holdings.syn_seen(bucket);
        }
    }

    /// Ends the processing of a passed frame: passes it on, or sends its buffer back to its home.
    /// Returns the frame if this core is its home.
    pub(crate) fn passed_handled(
        &mut self,
        passed: PassedFrame,
        counters: &mut Counters,
    ) -> Option<Frame> {
        let PassedFrame { frame, home, .. } = passed;
        let frame = match self.onward.take() {
            Some(onward) => self.pass_on(frame, home, onward, counters).err()?,
            None => frame,
        };
        // Without a home, the frame was made from reassembled fragments. No card owns its buffer,
        // so the buffer is dropped.
        let home = home?;
        if home.core == self.cores.own {
            return Some(frame);
        }
        let Some(queue) = self.outgoing.get_mut(usize::from(home.core.0)) else {
            unreachable!("a core above the last one")
        };
        queue.push_buffer(frame, home.charged_to);
        None
    }

    /// Records that a buffer of our card has returned.
    pub(crate) fn came_home(&mut self, charged_to: CoreId) {
        self.away.came_home(charged_to);
    }

    /// Records the load of a core that this core steers for.
    pub(crate) fn load_reported(&mut self, load: &Load) {
        let Some(steering) = &mut self.steering else {
            unreachable!("a load reported to a core that steers nothing")
        };
        steering.load_reported(load);
    }

    /// The next message for another core, if there is one.
    pub(crate) fn next_message(&mut self, to: CoreId, link: &Link) -> Option<NetMessage> {
        let own = self.cores.own;
        let queue = self.outgoing.get_mut(usize::from(to.0)).filter(|_| to != own)?;
        if let Some(message) = queue.next_buffer() {
            return Some(NetMessage(message));
        }
        if self.cores.is_first()
            && let Some(message) = queue.next_state(link)
        {
            return Some(NetMessage(message));
        }
        if let Some(holdings) =
            self.holdings.as_mut().filter(|holdings| holdings.steered_by() == to)
            && let Some(load) = holdings.next_change(own)
        {
            return Some(NetMessage(NetMessageKind::Load(load)));
        }
        queue.next().map(NetMessage)
    }

    /// Whether a message waits for another core.
    pub(crate) fn has_messages(&self, link: &Link) -> bool {
        let (own, is_first) = (usize::from(self.cores.own.0), self.cores.is_first());
        let mut outgoing = self.outgoing.iter().enumerate().filter(|(core, _)| *core != own);
        outgoing.any(|(_, queue)| !queue.is_empty() || is_first && queue.has_state(link))
            || self.holdings.as_ref().is_some_and(|holdings| holdings.has_changes())
    }

    /// The number of frames of our card that are on other cores.
    pub(crate) fn frames_away(&self) -> usize {
        self.away.frames()
    }

    /// Passes news from the link to the other cores, if this is the first core.
    pub(crate) fn pass_on_link_news(&mut self, link_news: LinkNews) {
        if self.cores.is_first() {
            self.others().for_each(|queue| queue.push_link_news(link_news));
        }
    }

    /// Passes a frame on to another core.
    ///
    /// Errors: the frame, if there was no room for it.
    fn pass_on(
        &mut self,
        frame: Frame,
        home: Option<Home>,
        onward: Onward,
        counters: &mut Counters,
    ) -> Result<(), Frame> {
        let result = self.enqueue(onward, home, frame);
        match (&result, onward.kind) {
            (Ok(()), PassReason::Steered) => {
                sometimes!(FrameSteered);
                counters.count(Counter::Steered);
            }
            (Ok(()), PassReason::Stray) if onward.hops == 1 => {
                sometimes!(StraySent);
                counters.count(Counter::Strays);
            }
            (Ok(()), _) => {}
            (Err(_), _) => {
                counters.count(Counter::DroppedBetweenCores);
            }
        }
        result
    }

    /// The queues for the other cores.
    fn others(&mut self) -> impl Iterator<Item = &mut CoreQueue> {
        let own = usize::from(self.cores.own.0);
        self.outgoing
            .iter_mut()
            .enumerate()
            .filter(move |(core, _)| *core != own)
            .map(|(_, queue)| queue)
    }
}
