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

use machine::{CoreId, Frame, Instant};
use sometimes::{buggify, sometimes};

use crate::config::{CORES_MAX, Cores, FIRST};
use crate::counters::{Counter, Counters};
use crate::flow::{Flow, FlowTable};
use crate::link::Link;
use away::Away;
pub use message::{Arrived, NetMessage, Route};
pub(crate) use message::{Hearsay, Message, Passed, What};
use message::{Home, Kind, Onward};
use post::Post;
use sorting::Sort;
use steering::{Holdings, Load, Steering};
pub(crate) use strays::Fit;

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
        assert!(
            cores.own.0 < cores.count && usize::from(cores.count) <= CORES_MAX,
            "a core of those that there are"
        );
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
            steering: (is_steered && cores.own.0 < queues)
                .then(|| Steering::new(group(), connections_max)),
        })
    }

    /// Whether all have looked at what is being looked at: it is answered here.
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
        let Some(post) = self.posts.get_mut(usize::from(core.0)) else {
            unreachable!("a core above the last one")
        };
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
        self.holdings.as_ref().is_none_or(Holdings::is_empty)
            && self.steering.as_ref().is_none_or(Steering::is_idle)
    }

    pub(crate) fn cores(&self) -> Cores {
        self.cores
    }

    /// A frame has arrived by the card of this core. False: it goes to another core.
    /// `bucket`: gives the bucket of a flow.
    pub(crate) fn is_for_us(
        &mut self,
        now: Instant,
        frame: &Frame,
        link: &Link,
        bucket: impl FnOnce(&Flow) -> u16,
    ) -> bool {
        (self.now, self.hops, self.answerer) = (now, 0, None);
        let elsewhere = match sorting::sort(frame.bytes(), link) {
            Sort::Segment { flow, opens } => self.steering.as_mut().map(|steering| {
                let bucket = bucket(&flow);
                let core = steering.owner(bucket, opens);
                Onward { syn: opens.then_some(bucket), ..Onward::first(core, Kind::Steered) }
            }),
            Sort::Other => Some(Onward::first(FIRST, Kind::Other)),
            Sort::Nothing => None,
        };
        self.onward = elsewhere.filter(|onward| onward.core != self.cores.own);
        self.onward.is_none()
    }

    /// Whether the frame that was looked at goes to another core.
    pub(crate) fn goes_on(&self) -> bool {
        self.onward.is_some()
    }

    /// A frame of our card has been handled. It goes on, or is given back.
    pub(crate) fn own_handled(&mut self, frame: Frame, counters: &mut Counters) -> Option<Frame> {
        let Some(onward) = self.onward.take() else {
            unreachable!("a frame that goes on to no core")
        };
        let home = Home { core: self.cores.own, charged_to: onward.core };
        self.pass_on(frame, Some(home), onward, counters).err()
    }

    /// A frame has arrived that another core has passed on.
    pub(crate) fn passed_arrived(&mut self, now: Instant, passed: &Passed) {
        (self.now, self.hops, self.answerer, self.onward) =
            (now, passed.hops, passed.answerer, None);
        if let Some(home) = passed.home.filter(|home| home.core == self.cores.own) {
            self.away.came_home(home.charged_to);
        }
        if let (Some(holdings), Some(bucket)) = (&mut self.holdings, passed.syn) {
            holdings.syn_seen(bucket);
        }
    }

    /// It has been handled. It goes on, or home; it is given back if it is at home here.
    pub(crate) fn passed_handled(
        &mut self,
        passed: Passed,
        counters: &mut Counters,
    ) -> Option<Frame> {
        let Passed { frame, home, .. } = passed;
        let frame = match self.onward.take() {
            Some(onward) => self.pass_on(frame, home, onward, counters).err()?,
            None => frame,
        };
        // Who has no home was made of fragments, and ends here.
        let home = home?;
        if home.core == self.cores.own {
            return Some(frame);
        }
        let Some(post) = self.posts.get_mut(usize::from(home.core.0)) else {
            unreachable!("a core above the last one")
        };
        post.push_shell(frame, home.charged_to);
        None
    }

    /// The buffer of a frame of our card has come home.
    pub(crate) fn came_home(&mut self, charged_to: CoreId) {
        self.away.came_home(charged_to);
    }

    /// A core that we steer for says how much it holds.
    pub(crate) fn load_told(&mut self, load: &Load) {
        let Some(steering) = &mut self.steering else {
            unreachable!("a load told to a core that steers nothing")
        };
        steering.told(load);
    }

    /// The next message for another core, if there is one.
    pub(crate) fn next_message(&mut self, to: CoreId, link: &Link) -> Option<NetMessage> {
        let own = self.cores.own;
        let post = self.posts.get_mut(usize::from(to.0)).filter(|_| to != own)?;
        if let Some(message) = post.next_shell() {
            return Some(NetMessage(message));
        }
        if self.cores.is_first()
            && let Some(message) = post.next_state(link)
        {
            return Some(NetMessage(message));
        }
        if let Some(holdings) =
            self.holdings.as_mut().filter(|holdings| holdings.steered_by() == to)
            && let Some(load) = holdings.next_change(own)
        {
            return Some(NetMessage(Message::Load(load)));
        }
        post.next().map(NetMessage)
    }

    /// Whether anything waits for another core.
    pub(crate) fn has_messages(&self, link: &Link) -> bool {
        let (own, is_first) = (usize::from(self.cores.own.0), self.cores.is_first());
        let mut posts = self.posts.iter().enumerate().filter(|(core, _)| *core != own);
        posts.any(|(_, post)| !post.is_empty() || is_first && post.has_state(link))
            || self.holdings.as_ref().is_some_and(|holdings| holdings.has_changes())
    }

    /// Frames of our card that are with other cores.
    pub(crate) fn frames_away(&self) -> usize {
        self.away.frames()
    }

    /// What the first core has heard the others hear, too.
    pub(crate) fn pass_on_hearsay(&mut self, hearsay: Hearsay) {
        if self.cores.is_first() {
            self.others().for_each(|post| post.push_hearsay(hearsay));
        }
    }

    /// Passes a frame on to another core.
    ///
    /// Errors: the frame, for which there was no room.
    fn pass_on(
        &mut self,
        frame: Frame,
        home: Option<Home>,
        onward: Onward,
        counters: &mut Counters,
    ) -> Result<(), Frame> {
        let result = self.post(onward, home, frame);
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

    /// The other cores.
    fn others(&mut self) -> impl Iterator<Item = &mut Post> {
        let own = usize::from(self.cores.own.0);
        self.posts
            .iter_mut()
            .enumerate()
            .filter(move |(core, _)| *core != own)
            .map(|(_, post)| post)
    }
}
