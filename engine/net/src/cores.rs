//! One machine, several networks: what a core does with frames that are not its own, and what the cores tell each other.
//!
//! Each core has a [`Net`], and no two share anything. They look like one machine all the same:
//! - **The first core** speaks for the machine: it gets its addresses, announces them, and answers whoever asks. The others
//!   are told of the addresses, and of what neighbours answer; what is not TCP they hand over to the first ([`sorting`]).
//! - **The core that a SYN comes to owns the connection**, and sends by its own queue of the card.
//! - **Where the card has fewer queues than there are cores** those who receive steer ([`steering`]): of `q` queues the one of
//!   core `r` is for the cores `r`, `r + q`, `r + 2q` and so on. A queue for each core, and nothing is steered.
//! - **A stray**, a segment that nobody here knows, goes round all cores until somebody knows it. If nobody does, one of them
//!   answers as if there were but one: so nobody is answered twice ([`strays`]).
//!
//! What cores tell each other are [`NetMessage`]s, carried by whoever runs the networks, each way in order.
//!
//! Invariants:
//! - A message is never lost once it was taken out here. States (addresses, loads) are told whenever they are others than
//!   those told last, so that they need no queue; frames beyond a bound are dropped, here, and counted.
//! - A frame's buffer belongs to one card and returns to it, whatever becomes of the frame. A
//!   limited number of buffers is away at a time, and each core has a share of it ([`away`]).
//! - A machine with one core has none of this, and asks once a frame.

mod away;
mod message;
mod post;
mod sorting;
mod steering;
mod strays;

use alloc::vec::Vec;

use machine::{Checksum, CoreId, Frame, Instant};
use sometimes::{buggify, sometimes};

use crate::config::{CORES_MAX, Cores, FIRST};
use crate::counters::Counter;
use crate::event::Events;
use crate::flow::{Flow, FlowTable};
use crate::net::Net;
use away::Away;
pub(crate) use message::Hearsay;
pub use message::{Arrived, NetMessage, Route};
use message::{Home, Kind, Message, Onward, Passed, What};
use post::Post;
use sorting::Sort;
use steering::{Holdings, Steering};

/// What a network knows of those on the other cores.
pub(crate) struct Fellows {
    cores: Cores,
    /// The time of the turn in which a frame was looked at last.
    now: Instant,
    /// Cores that have looked before at the frame that is being looked at, and let it go round.
    hops: u8,
    /// The one among them that answers, should nobody know it.
    answerer: Option<CoreId>,
    /// Where it goes from here, if it does.
    onward: Option<Onward>,
    /// What waits for each core; for this one nothing ever does.
    posts: Vec<Post>,
    /// Buffers of our card that are with other cores.
    away: Away,
    /// The connections here, if somebody steers for us.
    holdings: Option<Holdings>,
    /// Whose connections are where, if we steer.
    steering: Option<Steering>,
}

impl Fellows {
    /// `None` for a core that is alone. `queues`: how many cores receive for themselves.
    /// `connections_max`: how many connections each core may have.
    pub(crate) fn new(cores: Cores, queues: u8, connections_max: usize) -> Option<Fellows> {
        assert!(cores.own.0 < cores.count && usize::from(cores.count) <= CORES_MAX, "a core of those that there are");
        assert!(queues > 0, "a card has a queue");
        if cores.count == 1 {
            return None;
        }
        let group = || (cores.own.0 % queues..cores.count).step_by(usize::from(queues)).map(CoreId);
        let is_steered = group().count() > 1;
        let post = |core: u8| Post::new(if core < queues { away::FRAMES_MAX } else { 0 });
        Some(Fellows {
            cores,
            now: Instant::START,
            hops: 0,
            answerer: None,
            onward: None,
            posts: (0..cores.count).map(post).collect(),
            away: Away::new(cores.count),
            holdings: is_steered.then(|| Holdings::new(CoreId(cores.own.0 % queues))),
            steering: (is_steered && cores.own.0 < queues).then(|| Steering::new(group(), connections_max)),
        })
    }

    /// Whether all have looked at what is being looked at: it is answered here.
    fn all_have_looked(&self) -> bool {
        self.hops == self.cores.count
    }

    #[cold]
    fn opened(&mut self, flows: &FlowTable, flow: &Flow) {
        if let Some(holdings) = &mut self.holdings {
            holdings.opened(flows.bucket(flow));
            self.tell_steering();
        }
    }

    #[cold]
    fn closed(&mut self, flows: &FlowTable, flow: &Flow) {
        if let Some(holdings) = &mut self.holdings {
            holdings.closed(flows.bucket(flow));
            self.tell_steering();
        }
    }

    /// Who steers for himself knows at once what others are told in a message.
    fn tell_steering(&mut self) {
        if let (Some(steering), Some(holdings)) = (&mut self.steering, &mut self.holdings) {
            while let Some(load) = holdings.next_change(self.cores.own) {
                steering.told(&load);
            }
        }
    }

    /// Puts a frame among those that wait for a core.
    ///
    /// Errors: the frame, for which there is no room.
    fn post(&mut self, onward: Onward, home: Option<Home>, frame: Frame) -> Result<(), Frame> {
        let Onward { core, kind, hops, answerer, verified, syn } = onward;
        let ours = home.filter(|home| home.core == self.cores.own);
        let is_full = ours.is_some_and(|home| !self.away.has_room(home.charged_to, kind));
        if is_full || buggify!(NoRoomBetweenCores) {
            return Err(frame);
        }
        let Some(post) = self.posts.get_mut(usize::from(core.0)) else { return Err(frame) };
        post.push(Passed { frame, seen_at: self.now, home, hops, answerer, verified, syn }, kind)
            .map_err(|passed| passed.frame)?;
        if let Some(home) = ours {
            self.away.left(home.charged_to);
        }
        if let (Some(steering), Some(bucket)) = (&mut self.steering, syn) {
            steering.given(bucket);
        }
        Ok(())
    }

    /// Whether no connection is open here, as far as we know of those whom we steer for, too.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.holdings.as_ref().is_none_or(Holdings::is_empty) && self.steering.as_ref().is_none_or(Steering::is_idle)
    }

    /// The other cores.
    fn others(&mut self) -> impl Iterator<Item = &mut Post> {
        let own = usize::from(self.cores.own.0);
        self.posts.iter_mut().enumerate().filter(move |(core, _)| *core != own).map(|(_, post)| post)
    }
}

impl Net {
    /// The frame of an arrival has been handled, and is not needed any more. It goes where `route` says; or it is given back,
    /// for [`machine::Machine::give_back`].
    #[inline]
    pub fn frame_handled(&mut self, frame: Frame, route: Route) -> Option<Frame> {
        match route {
            Route::Here => Some(frame),
            Route::Onward => self.pass_on_own(frame),
        }
    }

    #[cold]
    fn pass_on_own(&mut self, frame: Frame) -> Option<Frame> {
        let Some((onward, own)) =
            self.fellows.as_mut().and_then(|fellows| Some((fellows.onward.take()?, fellows.cores.own)))
        else {
            return Some(frame);
        };
        let home = Home { core: own, charged_to: onward.core };
        self.pass_on(frame, Some(home), onward).err()
    }

    /// A message of another core has arrived. What it meant is added to `events`, which must be empty.
    pub fn message_arrived(&mut self, now: Instant, message: NetMessage, events: &mut Events) -> Arrived {
        match message.0 {
            Message::Frame(passed) => return self.passed_arrived(now, passed, events),
            Message::Shell(frame, charged_to) => {
                if let Some(fellows) = &mut self.fellows {
                    fellows.away.came_home(charged_to);
                }
                return Arrived(What::Shell(frame));
            }
            Message::Address(address) => self.change_address(now, address),
            Message::Ipv6(knowledge) => self.link.ndp.learn(*knowledge),
            Message::Load(load) => {
                if let Some(steering) = self.fellows.as_mut().and_then(|fellows| fellows.steering.as_mut()) {
                    steering.told(&load);
                }
            }
            Message::Hearsay(Hearsay::Neighbour { address, hardware }) => {
                self.link.neighbour_heard(now, address, hardware);
            }
            Message::Hearsay(Hearsay::Ipv6Neighbour { address, claim }) => {
                self.link.ipv6_neighbour_heard(now, address, claim);
            }
            Message::Hearsay(Hearsay::Trouble(report)) => self.trouble_reported(now, &report, events),
        }
        Arrived(What::Nothing)
    }

    /// A message has been handled. Returns a frame for [`machine::Machine::give_back`], if one of this core's card came home.
    pub fn message_handled(&mut self, arrived: Arrived) -> Option<Frame> {
        let Passed { frame, home, .. } = match arrived.0 {
            What::Nothing => return None,
            What::Shell(frame) => return Some(frame),
            What::Frame(passed) => passed,
        };
        let frame = match self.fellows.as_mut()?.onward.take() {
            Some(onward) => self.pass_on(frame, home, onward).err()?,
            None => frame,
        };
        // Who has no home was made of fragments, and ends here.
        let (home, fellows) = (home?, self.fellows.as_mut()?);
        if home.core == fellows.cores.own {
            return Some(frame);
        }
        if let Some(post) = fellows.posts.get_mut(usize::from(home.core.0)) {
            post.push_shell(frame, home.charged_to);
        }
        None
    }

    /// The next message for another core, if there is one. It must arrive there, after all that were taken before it.
    pub fn next_message(&mut self, to: CoreId) -> Option<NetMessage> {
        let fellows = self.fellows.as_mut()?;
        let is_first = fellows.cores.is_first();
        let own = fellows.cores.own;
        let post = fellows.posts.get_mut(usize::from(to.0)).filter(|_| to != own)?;
        if let Some(message) = post.next_shell() {
            return Some(NetMessage(message));
        }
        if is_first && let Some(message) = post.next_state(&self.link) {
            return Some(NetMessage(message));
        }
        if let Some(holdings) = fellows.holdings.as_mut().filter(|holdings| holdings.steered_by() == to)
            && let Some(load) = holdings.next_change(own)
        {
            return Some(NetMessage(Message::Load(load)));
        }
        post.next().map(NetMessage)
    }

    /// Whether anything waits for another core.
    pub fn has_messages(&self) -> bool {
        self.fellows.as_ref().is_some_and(|fellows| {
            let (own, is_first) = (usize::from(fellows.cores.own.0), fellows.cores.is_first());
            let mut posts = fellows.posts.iter().enumerate().filter(|(core, _)| *core != own);
            posts.any(|(_, post)| !post.is_empty() || is_first && post.has_state(&self.link))
                || fellows.holdings.as_ref().is_some_and(|holdings| holdings.has_changes())
        })
    }

    /// Frames of our card that are with other cores.
    pub fn frames_away(&self) -> usize {
        self.fellows.as_ref().map_or(0, |fellows| fellows.away.frames())
    }

    pub(crate) fn cores(&self) -> Cores {
        self.fellows.as_ref().map_or(Cores::ALONE, |fellows| fellows.cores)
    }

    /// A frame has arrived by the card of one of several cores.
    #[cold]
    pub(crate) fn frame_arrived_among(&mut self, now: Instant, frame: &Frame, events: &mut Events) -> Route {
        let Some(fellows) = &mut self.fellows else { return Route::Here };
        (fellows.now, fellows.hops, fellows.answerer) = (now, 0, None);
        let elsewhere = match sorting::sort(frame.bytes(), &self.link) {
            Sort::Segment { flow, opens } => fellows.steering.as_mut().map(|steering| {
                let bucket = self.flows.bucket(&flow);
                let core = steering.owner(bucket, opens);
                Onward { syn: opens.then_some(bucket), ..Onward::first(core, Kind::Steered) }
            }),
            Sort::Other => Some(Onward::first(FIRST, Kind::Other)),
            Sort::Nothing => None,
        };
        fellows.onward = elsewhere.filter(|onward| onward.core != fellows.cores.own);
        if fellows.onward.is_none() {
            self.goes_up_among(now, frame.bytes(), frame.checksum() == Checksum::Verified, events);
        }
        if self.goes_on() { Route::Onward } else { Route::Here }
    }

    /// Whether the frame that was looked at goes to another core.
    fn goes_on(&self) -> bool {
        self.fellows.as_ref().is_some_and(|fellows| fellows.onward.is_some())
    }

    #[inline(never)]
    fn goes_up_among(&mut self, now: Instant, bytes: &[u8], verified: bool, events: &mut Events) {
        self.goes_up(now, bytes, verified, events);
    }

    /// A frame has arrived that another core has passed on.
    fn passed_arrived(&mut self, now: Instant, passed: Passed, events: &mut Events) -> Arrived {
        let Some(fellows) = &mut self.fellows else { return Arrived(What::Nothing) };
        (fellows.now, fellows.hops, fellows.answerer, fellows.onward) = (now, passed.hops, passed.answerer, None);
        if let Some(home) = passed.home.filter(|home| home.core == fellows.cores.own) {
            fellows.away.came_home(home.charged_to);
        }
        if let (Some(holdings), Some(bucket)) = (&mut fellows.holdings, passed.syn) {
            holdings.syn_seen(bucket);
        }
        // Another core's turn may have begun after this one's.
        self.link.counters.frame_was_passed(now.since(passed.seen_at));
        // Who goes round is counted where he began.
        let segments_in = self.link.counters.of(Counter::SegmentsIn);
        let verified = passed.verified || passed.frame.checksum() == Checksum::Verified;
        self.goes_up_among(now, passed.frame.bytes(), verified, events);
        if passed.hops > 0 {
            self.link.counters.take_back(Counter::SegmentsIn, segments_in);
            if passed.hops < self.cores().count && !self.goes_on() {
                sometimes!(StrayKept);
            }
        }
        Arrived(What::Frame(passed))
    }

    /// Passes a frame on to another core.
    ///
    /// Errors: the frame, for which there was no room.
    fn pass_on(&mut self, frame: Frame, home: Option<Home>, onward: Onward) -> Result<(), Frame> {
        let Some(fellows) = &mut self.fellows else { return Err(frame) };
        let result = fellows.post(onward, home, frame);
        let counters = &mut self.link.counters;
        match (&result, onward.kind) {
            (Ok(()), Kind::Steered) => {
                sometimes!(FrameSteered);
                counters.count(Counter::Steered);
            }
            (Ok(()), Kind::Stray) if onward.hops == 1 => {
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

    /// What the first core has heard the others hear, too.
    pub(crate) fn pass_on_hearsay(&mut self, hearsay: Hearsay) {
        if let Some(fellows) = self.fellows.as_mut().filter(|fellows| fellows.cores.is_first()) {
            fellows.others().for_each(|post| post.push_hearsay(hearsay));
        }
    }

    /// A flow leads to a connection of ours from now on, or to its handshake.
    #[inline]
    pub(crate) fn flow_opened(&mut self, flow: &Flow) {
        if let Some(fellows) = &mut self.fellows {
            fellows.opened(&self.flows, flow);
        }
    }

    /// It does not any more.
    #[inline]
    pub(crate) fn flow_closed(&mut self, flow: &Flow) {
        if let Some(fellows) = &mut self.fellows {
            fellows.closed(&self.flows, flow);
        }
    }
}
