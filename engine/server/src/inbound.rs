//! SMTP served, for mail that comes and mail that is submitted.
//!
//! A transaction has a record while it is open, lent from a pool of a fixed size; an idle session has none. The body
//! goes from the received frame into the store's buffers, behind the trace fields that are ours. Of a message from
//! outside, the fields that say what was found out about it come last, and are read first; so do the signatures under
//! one that is submitted here.
//!
//! | file | what it has |
//! |---|---|
//! | `conversation` | what a connection is told |
//! | `host` | what its session wants done |
//! | `transaction`, `incoming` | an open transaction, and its message on the way into the store |
//! | `login` | logging in |
//! | `strangers`, `limits` | which clients are strangers, and how much they may do |
//! | `lists`, `sender`, `greylist` | what lists say of a client, whether it may send in a domain's name (SPF), and whether it is deferred |
//! | `recipients`, `quota`, `allowance`, `posting` | the recipients, whether they have room, how much an account may send, and mail for other servers |
//! | `proof` | in whose name a message is (DKIM, ARC, DMARC) |
//! | `filter`, `inquiry` | the filter of a core, and what it is asked about a message |
//! | `ending` | the end of a message |

mod allowance;
mod context;
mod conversation;
mod ending;
mod filter;
mod greylist;
mod host;
mod incoming;
mod inquiry;
mod limits;
mod lists;
mod login;
mod posting;
pub(crate) mod proof;
mod quota;
mod recipients;
mod sender;
mod strangers;
mod transaction;
mod waiting;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use configuration::{Access, Configuration};
use connections::Caller;
use dns::Name;
use machine::{Micros, UnixTime};
use mail::{Greylist, Strangers};
use message::DateTimeNow;
use net::Net;
use smtp::Settings;
use store::Head;

use crate::identifier::Identifiers;
use crate::sizes::Sizes;

use filter::Filter;
use lists::Lists;
use proof::Checks;
use transaction::Transaction;

pub(crate) use context::Context;
pub(crate) use conversation::SmtpConversation;
pub(crate) use filter::LETTER_OCTETS_MAX;
pub(crate) use strangers::is_judged;

/// Bytes of the trace fields at most: of those that come first, and of those that come last.
const TRACE_BYTES_MAX: usize = Head::OCTETS_MAX;

/// What SMTP sessions of a core share.
pub(crate) struct Inbound {
    hostname: String,
    settings: Settings,
    date_now: DateTimeNow,
    identifiers: Identifiers,
    /// Records for transactions that no session uses.
    #[expect(clippy::vec_box, reason = "a session takes a pointer, not the record")]
    transactions: Vec<Box<Transaction>>,
    /// Where the trace fields of a message are put together.
    trace: Box<[u8; TRACE_BYTES_MAX]>,
    /// What clients have done lately.
    strangers: Strangers,
    /// How long a client from outside is listened to before it is greeted.
    greeting_delay: Option<Micros>,
    /// The senders whose messages are deferred until they come again, if any are.
    greylist: Option<Greylist>,
    /// Lists of addresses that clients are looked up in.
    lists: Lists,
    /// The filter that is asked about messages, if there is one.
    filter: Option<Filter>,
    checks: Checks,
}

/// A client's connection, with what its session acts on.
pub(crate) struct SmtpCall<'c> {
    pub(crate) caller: Caller,
    pub(crate) inbound: &'c mut Inbound,
    pub(crate) cx: Context<'c>,
}

/// How much of what SMTP sessions share is in use.
pub(crate) struct InboundInUse {
    pub(crate) transactions_left: usize,
    pub(crate) searches: usize,
    pub(crate) checks: usize,
    pub(crate) kept_for_proofs: usize,
    pub(crate) inquiries: usize,
    pub(crate) kept_for_filter: usize,
}

impl Inbound {
    /// `greylist_key`: the same on all cores, so that each knows what the others learn. The other keys are random.
    pub(crate) fn new(configuration: &Configuration, sizes: &Sizes, seed: InboundSeed, wall: UnixTime) -> Inbound {
        let InboundSeed { cores, greylist_key, identifiers, strangers_key, proofs_key } = seed;
        let abuse = &configuration.abuse;
        let trusted = abuse.trusted_arc.iter().filter_map(|domain| Name::parse(domain.as_str()).ok());
        Inbound {
            hostname: configuration.hostname.as_str().to_string(),
            settings: Settings::default(),
            date_now: DateTimeNow::new(wall),
            identifiers,
            transactions: (0..sizes.transactions).map(|_| Box::new(Transaction::with_room())).collect(),
            trace: Box::new([0; TRACE_BYTES_MAX]),
            strangers: Strangers::new(abuse.limits, strangers_key),
            greeting_delay: Some(abuse.greeting_delay).filter(|delay| delay.0 > 0),
            greylist: abuse.greylist.map(|delay| Greylist::new(delay, greylist_key, cores)),
            lists: Lists::new(abuse),
            filter: configuration.filter.as_ref().map(|named| Filter::new(named, configuration, sizes.filter_bytes())),
            checks: Checks::new(trusted.collect(), proofs_key),
        }
    }

    /// Whether all records of transactions are in use.
    pub(crate) fn is_without_transactions(&self) -> bool {
        self.transactions.is_empty()
    }

    /// What clients have done lately, whatever they speak.
    #[inline]
    pub(crate) fn strangers(&mut self) -> &mut Strangers {
        &mut self.strangers
    }

    /// What this core and others tell each other about senders that come again.
    #[inline]
    pub(crate) fn greylist(&mut self) -> Option<&mut Greylist> {
        self.greylist.as_mut()
    }

    /// Whether other cores are to be told about such senders.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.greylist.as_ref().is_some_and(Greylist::has_news)
    }

    /// How long the client is listened to before it is greeted, if it is.
    pub(crate) fn greeting_delay(&self, caller: Caller, net: &Net, access: &Access) -> Option<Micros> {
        self.greeting_delay.filter(|_| is_judged(caller, net, access))
    }

    /// What is in use now.
    pub(crate) fn in_use(&self) -> InboundInUse {
        let filter = self.filter.as_ref();
        InboundInUse {
            transactions_left: self.transactions.len(),
            searches: self.lists.searches,
            checks: self.checks.under_way,
            kept_for_proofs: self.checks.kept.held(),
            inquiries: filter.map_or(0, Filter::under_way),
            kept_for_filter: filter.map_or(0, |filter| filter.kept),
        }
    }
}

/// What is drawn or given for the SMTP sessions of a core at its start.
pub(crate) struct InboundSeed {
    pub(crate) cores: u8,
    /// The same on all cores, so that each knows what the others learn.
    pub(crate) greylist_key: [u8; 16],
    pub(crate) identifiers: Identifiers,
    /// Random.
    pub(crate) strangers_key: [u8; 16],
    /// Random.
    pub(crate) proofs_key: [u8; 16],
}
