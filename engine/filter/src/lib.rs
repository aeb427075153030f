//! The filter that the configuration names, as a core knows it: which messages it is asked about,
//! which wait for their turn, and whether it answers. What it is asked about one message is an
//! [`Inquiry`].
//!
//! Each core asks for itself, by connections of its own: one a message.
//!
//! Invariants:
//! - At most [`QUESTIONS_MAX`] messages of a core are asked about at a time. Others wait for their
//!   turn, the first one first, no longer than the filter may take.
//! - Of all messages of a core no more is kept for it than it was made for, nor of any more than
//!   [`MESSAGE_OCTETS_MAX`].
//! - A filter that did not answer is not asked for a while ([`QUIET`]), so no message waits for
//!   it. The console is told when it stops answering and when it answers again, and not of each
//!   message.

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
use resolver::Names;
use tasks::FrameId;

pub use inquiry::Inquiry;
pub use relay::filter::Verdict;

/// Messages of a core that are asked about at a time.
const QUESTIONS_MAX: usize = 16;
/// How long a filter that did not answer is not asked.
const QUIET: Micros = Micros::from_secs(60);
/// A larger message is not asked about: what is unwanted is sent to many, and small.
pub const MESSAGE_OCTETS_MAX: usize = 512 * 1024;

/// The parts of a core by which a filter is asked.
pub struct Context<'c> {
    /// When.
    pub turn: Turn,
    /// By which it is called.
    pub connections: &'c mut Connections,
    /// What is asked of name servers.
    pub names: &'c mut Names,
}

/// A filter.
pub struct Filter {
    named: configuration::Filter,
    /// Our name.
    hostname: String,
    /// Where it may be, beside the internet.
    private_networks: Vec<Prefix>,
    /// The sessions with messages that are asked about.
    asking: Vec<FrameId>,
    /// The sessions with messages that wait for that.
    waiting: VecDeque<FrameId>,
    /// Octets that are kept of messages, and how many may be.
    kept: usize,
    kept_max: usize,
    asked_again_at: Instant,
    is_away: bool,
    /// What the console is to be told.
    line: Option<String>,
}

impl Filter {
    /// `kept_max`: so many octets of messages.
    pub fn new(
        named: &configuration::Filter,
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

    /// Octets that are kept of messages.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// What the console is to be told of it now.
    pub fn take_line(&mut self) -> Option<String> {
        self.line.take()
    }

    /// Whether it is worth asking.
    fn may_be_asked(&self, now: Instant) -> bool {
        self.asked_again_at <= now
    }

    /// So many octets more are kept. False: that would be too many.
    fn keep(&mut self, octets: usize) -> bool {
        let has_room = self.kept + octets <= self.kept_max;
        self.kept += if has_room { octets } else { 0 };
        has_room
    }

    /// Whether it is the turn of this session's letter; if not, the session is resumed when it is.
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

    /// Nothing is asked about this session's message any more: it is the turn of the next one.
    fn is_done_with(&mut self, session: FrameId, connections: &mut Connections) {
        self.asking.retain(|own| *own != session);
        self.waiting.retain(|own| *own != session);
        if self.asking.len() < QUESTIONS_MAX {
            self.waiting.front().into_iter().for_each(|next| connections.resume(*next));
        }
    }

    /// It has answered.
    fn answered(&mut self) {
        if core::mem::take(&mut self.is_away) {
            self.line = Some(format!("filter: {} answers again", self.named.place));
        }
    }

    /// It has not, for this reason.
    fn did_not_answer(&mut self, why: &str, now: Instant) {
        self.asked_again_at = now + QUIET;
        let meanwhile = match self.named.when_away {
            WhenAway::Accept => "taken as if there were none",
            WhenAway::Junk => "put into Junk",
            WhenAway::Defer => "put off",
        };
        if !core::mem::replace(&mut self.is_away, true) {
            let place = &self.named.place;
            self.line =
                Some(format!("filter: {place} {why}: letters are {meanwhile} while it is away"));
        }
    }
}
