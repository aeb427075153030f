//! The filter that the configuration names, as a core knows it: who asks it, who waits for his turn, and whether it is there. What is asked, and what becomes of the letter, stands in `inbound::inquiry`.
//!
//! Each core asks for itself, by connections of its own: one a letter.
//!
//! Invariants:
//! - At most [`QUESTIONS_MAX`] letters of a core are asked about at a time; others wait for their turn, the first one first, no longer than the filter may take.
//! - Of all letters of a core no more is kept for it than it was made for, nor of any more than [`LETTER_OCTETS_MAX`].
//! - A filter that did not answer is not asked for a while ([`QUIET`]): so nobody else waits for it. The console is told when it is away, and when it is back, and not of each letter.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use configuration::{Configuration, Prefix, WhenAway};
use connections::Connections;
use machine::{Instant, Micros};
use tasks::FrameId;

/// Letters of a core that are asked about at a time.
const QUESTIONS_MAX: usize = 16;
/// How long a filter that did not answer is not asked.
const QUIET: Micros = Micros::from_secs(60);
/// A larger letter is not asked about: what is unwanted is sent to many, and small.
pub(crate) const LETTER_OCTETS_MAX: usize = 512 * 1024;

/// A filter.
pub(crate) struct Filter {
    pub(crate) named: configuration::Filter,
    /// Our name.
    pub(crate) hostname: String,
    /// Where it may be, beside the internet.
    pub(crate) private_networks: Vec<Prefix>,
    /// Whose letters are asked about.
    asking: Vec<FrameId>,
    /// Whose wait for that.
    waiting: VecDeque<FrameId>,
    /// Octets that are kept of letters, and how many may be.
    pub(crate) kept: usize,
    kept_max: usize,
    asked_again_at: Instant,
    is_away: bool,
}

impl Filter {
    /// `kept_max`: so many octets of letters.
    pub(crate) fn new(named: &configuration::Filter, configuration: &Configuration, kept_max: usize) -> Filter {
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
        }
    }

    /// Letters that are asked about, and those that wait for it.
    pub(crate) fn under_way(&self) -> usize {
        self.asking.len() + self.waiting.len()
    }

    /// Whether it is worth asking.
    pub(crate) fn may_be_asked(&self, now: Instant) -> bool {
        self.asked_again_at <= now
    }

    /// So many octets more are kept. False: that would be too many.
    pub(crate) fn keep(&mut self, octets: usize) -> bool {
        let has_room = self.kept + octets <= self.kept_max;
        self.kept += if has_room { octets } else { 0 };
        has_room
    }

    /// Whether it is the turn of this session's letter; if not, the session is resumed when it is.
    pub(crate) fn is_turn_of(&mut self, session: FrameId) -> bool {
        if self.asking.contains(&session) {
            return true;
        }
        let is_turn = self.asking.len() < QUESTIONS_MAX && self.waiting.front().is_none_or(|first| *first == session);
        if is_turn {
            self.waiting.pop_front();
            self.asking.push(session);
        } else if !self.waiting.contains(&session) {
            self.waiting.push_back(session);
        }
        is_turn
    }

    /// Nothing is asked about this session's letter any more: it is the turn of the next one.
    pub(crate) fn is_done_with(&mut self, session: FrameId, connections: &mut Connections) {
        self.asking.retain(|own| *own != session);
        self.waiting.retain(|own| *own != session);
        if self.asking.len() < QUESTIONS_MAX {
            self.waiting.front().into_iter().for_each(|next| connections.resume(*next));
        }
    }

    /// It has answered. What the console is told of that.
    pub(crate) fn answered(&mut self) -> Option<String> {
        core::mem::take(&mut self.is_away).then(|| format!("filter: {} answers again", self.named.place))
    }

    /// It has not, for this reason. What the console is told of that.
    pub(crate) fn did_not_answer(&mut self, why: &str, now: Instant) -> Option<String> {
        self.asked_again_at = now + QUIET;
        let meanwhile = match self.named.when_away {
            WhenAway::Accept => "taken as if there were none",
            WhenAway::Junk => "put into Junk",
            WhenAway::Defer => "put off",
        };
        let is_news = !core::mem::replace(&mut self.is_away, true);
        is_news.then(|| format!("filter: {} {why}: letters are {meanwhile} while it is away", self.named.place))
    }
}
