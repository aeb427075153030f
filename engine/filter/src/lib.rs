//! The client of the content filter that the configuration names. Each core has one, which asks the
//! filter about each message on a separate connection. It knows which messages are asked about,
//! which wait for their turn, and whether the filter answers. The question about one message is a
//! [`FilterQuery`].
//!
//! Invariants:
//! - A core asks about at most [`QUESTIONS_MAX`] messages at a time. Other messages wait for their
//!   turn, in their order, but no longer than the configured time.
//! - The messages of a core take at most the memory that [`Filter::new`] was given, and one message
//!   at most [`MESSAGE_OCTETS_MAX`].
//! - If the filter does not answer, the core asks it about no further message for the time
//!   [`QUIET`]. A message that ends in this time does not wait for the filter. The console shows
//!   when the filter stops answering and when it answers again, but no line for each message.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod inquiry;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use configuration::{Configuration, Prefix, WhenAway};
use connections::Connections;
use machine::{Instant, Micros, Turn};
use resolver::NameLookups;
use tasks::FrameId;

pub use inquiry::FilterQuery;
pub use relay::filter::FilterVerdict;

/// The most messages of a core that the filter is asked about at a time.
const QUESTIONS_MAX: usize = 16;
/// The time for which a core does not ask the filter again after the filter did not answer.
const QUIET: Micros = Micros::from_secs(60);
/// The filter is not asked about a larger message: spam is sent in large numbers, and is small.
pub const MESSAGE_OCTETS_MAX: usize = 512 * 1024;

/// The parts of a core that a question to the filter needs.
pub struct FilterContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The lookups at name servers.
    pub names: &'c mut NameLookups,
}

/// The filter, as one core knows it.
pub struct Filter {
    named: configuration::FilterConfig,
    /// The name of this server.
    hostname: String,
    /// The private networks in which the filter may be.
    private_networks: Vec<Prefix>,
    /// The sessions with an open request about their message.
    asking: Vec<FrameId>,
    /// The sessions that wait to make a request about their message.
    waiting: VecDeque<FrameId>,
    /// The bytes of messages in memory, and their limit.
    kept: usize,
    kept_max: usize,
    asked_again_at: Instant,
    is_away: bool,
    /// A line for the console.
    line: Option<String>,
}

impl Filter {
    /// `kept_max`: the most bytes of messages in memory.
    pub fn new(
        named: &configuration::FilterConfig,
        configuration: &Configuration,
        kept_max: usize,
    ) -> Filter {
        Filter {
            named: named.clone(),
            hostname: configuration.hostname.as_str().to_string(),
            private_networks: configuration.relay.private_networks.clone(),
            asking: Vec::with_capacity(QUESTIONS_MAX),
            waiting: VecDeque::new(),
            kept: 0,
            kept_max,
            asked_again_at: Instant::START,
            is_away: false,
            line: None,
        }
    }

    /// The number of messages that the filter is asked about, or that wait for their turn.
    pub fn under_way(&self) -> usize {
        self.asking.len() + self.waiting.len()
    }

    /// The bytes of messages in memory.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Takes the line for the console.
    pub fn take_line(&mut self) -> Option<String> {
        self.line.take()
    }

    /// Whether the filter may be asked now.
    fn may_be_asked(&self, now: Instant) -> bool {
        self.asked_again_at <= now
    }

    /// Reserves memory for more bytes. Returns false if there is not enough.
    fn reserve(&mut self, octets: usize) -> bool {
        let has_room = self.kept + octets <= self.kept_max;
        self.kept += if has_room { octets } else { 0 };
        has_room
    }

    /// Whether it is the turn of this session's message. If not, queues the session, which is
    /// resumed in its turn.
    fn take_turn_of(&mut self, session: FrameId) -> bool {
        if self.asking.contains(&session) {
            return true;
        }
        let is_turn = self.asking.len() < QUESTIONS_MAX
            && self.waiting.front().is_none_or(|first| *first == session);
        if is_turn {
            self.waiting.pop_front();
            self.asking.push(session);
        } else if !self.waiting.contains(&session) {
            self.waiting.push_back(session);
        }
        is_turn
    }

    /// Ends the question about this session's message. The next session has its turn.
    fn end_turn_of(&mut self, session: FrameId, connections: &mut Connections) {
        self.asking.retain(|own| *own != session);
        self.waiting.retain(|own| *own != session);
        if self.asking.len() < QUESTIONS_MAX {
            self.waiting.front().into_iter().for_each(|next| connections.resume(*next));
        }
    }

    /// Notes that the filter has answered.
    fn answered(&mut self) {
        if core::mem::take(&mut self.is_away) {
            self.line = Some(format!("filter: {} answers again", self.named.place));
        }
    }

    /// Notes that the filter has not answered, for this reason.
    fn did_not_answer(&mut self, why: &str, now: Instant) {
        self.asked_again_at = now + QUIET;
        let meanwhile = match self.named.when_away {
            WhenAway::Accept => "accepted without a check",
            WhenAway::Junk => "moved to Junk",
            WhenAway::Defer => "deferred",
        };
        if !core::mem::replace(&mut self.is_away, true) {
            let place = &self.named.place;
            self.line = Some(format!(
                "filter: {place} {why}: messages are {meanwhile} until it answers again"
            ));
        }
    }
}
