//! The filter that the configuration names, for one core: which messages it is asked about, which
//! wait for their turn, and whether it answers. The question about one message is a
//! [`FilterQuery`].
//!
//! Each core asks for itself, on connections of its own, one for each message.
//!
//! Invariants:
//! - At most [`QUESTIONS_MAX`] messages of a core are asked about at a time. Others wait for their
//!   turn, in their order, no longer than the filter may take.
//! - The memory for all messages of a core is limited to what [`FilterConfig::new`] was given, and
//!   for one message to [`MESSAGE_OCTETS_MAX`].
//! - A filter that did not answer is not asked for [`QUIET`], so no message waits for it. The
//!   console is told when it stops answering and when it answers again, but not for each message.

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

/// The most messages of a core that are asked about at a time.
const QUESTIONS_MAX: usize = 16;
/// How long a filter that did not answer is not asked.
const QUIET: Micros = Micros::from_secs(60);
/// A larger message is not asked about: spam is sent in large numbers, and is small.
pub const MESSAGE_OCTETS_MAX: usize = 512 * 1024;

/// The parts of a core for a question to the filter.
pub struct FilterContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The questions to name servers.
    pub names: &'c mut NameLookups,
}

/// A filter.
pub struct Filter {
    named: configuration::FilterConfig,
    /// Our name.
    hostname: String,
    /// Private networks in which it may be.
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

    /// Messages that are asked about, and those that wait for it.
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

    /// Whether it may be asked now.
    fn may_be_asked(&self, now: Instant) -> bool {
        self.asked_again_at <= now
    }

    /// Reserves memory for more bytes. False: there is not enough.
    fn keep(&mut self, octets: usize) -> bool {
        let has_room = self.kept + octets <= self.kept_max;
        self.kept += if has_room { octets } else { 0 };
        has_room
    }

    /// Whether it is the turn of this session's message. If not, the session is resumed when it is.
    fn is_turn_of(&mut self, session: FrameId) -> bool {
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

    /// The question about this session's message is over: the next one has its turn.
    fn is_done_with(&mut self, session: FrameId, connections: &mut Connections) {
        self.asking.retain(|own| *own != session);
        self.waiting.retain(|own| *own != session);
        if self.asking.len() < QUESTIONS_MAX {
            self.waiting.front().into_iter().for_each(|next| connections.resume(*next));
        }
    }

    /// The filter has answered.
    fn answered(&mut self) {
        if core::mem::take(&mut self.is_away) {
            self.line = Some(format!("filter: {} answers again", self.named.place));
        }
    }

    /// The filter has not answered, for this reason.
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
