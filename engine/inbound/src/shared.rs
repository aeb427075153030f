//! The state that SMTP sessions of a core share.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use configuration::{Access, Configuration};
use connections::Caller;
use dns::Name;
use filter::Filter;
use machine::{Micros, UnixTime};
use mail::ClientRateLimits;
use net::Net;
use relay::QueueIds;
use smtp::SmtpSettings;

use super::context::SmtpContext;
use super::dmarc_check::Checks;
use super::external_clients::inbound_policy_applies;
use super::lists::Lists;
use super::trace::Trace;
use super::transaction::InboundTransaction;

/// The state that SMTP sessions of a core share.
pub struct Inbound {
    pub(super) settings: SmtpSettings,
    pub(super) queue_ids: QueueIds,
    /// Records for transactions that no session uses.
    #[expect(clippy::vec_box, reason = "a session takes a pointer, not the record")]
    pub(super) transactions: Vec<Box<InboundTransaction>>,
    pub(super) trace: Trace,
    /// The recent actions of clients.
    pub(super) rate_limits: ClientRateLimits,
    /// The delay of the greeting to an external client.
    pub(super) greeting_delay: Option<Micros>,
    /// Lists of addresses that clients are looked up in.
    pub(super) lists: Lists,
    /// The filter that is asked about messages, if one is configured.
    pub(super) filter: Option<Filter>,
    pub(super) checks: Checks,
}

/// A client's connection, with everything that its session acts on.
pub struct SmtpCall<'c> {
    /// The connection, and the client at its other end.
    pub caller: Caller,
    /// The state that SMTP sessions share.
    pub inbound: &'c mut Inbound,
    /// The parts of this core.
    pub cx: SmtpContext<'c>,
}

/// The resources of the shared state that are in use.
pub struct InboundInUse {
    /// Transactions that may still be opened.
    pub transactions_left: usize,
    /// Lookups in lists of addresses under way.
    pub searches: usize,
    /// Checks of senders under way.
    pub checks: usize,
    /// Bytes of memory of messages that are being checked.
    pub kept_for_checks: usize,
    /// Questions to the filter under way.
    pub inquiries: usize,
    /// Bytes of messages that are kept for the filter.
    pub kept_for_filter: usize,
}

impl Inbound {
    /// The initial state, from the configuration and the values that are drawn at the start.
    pub fn new(configuration: &Configuration, seed: InboundSeed, wall: UnixTime) -> Inbound {
        let InboundSeed {
            cores,
            transactions,
            checked_bytes,
            filter_bytes,
            queue_ids,
            rate_limits_key,
            proofs_key,
        } = seed;
        let abuse = &configuration.abuse;
        let trusted =
            abuse.trusted_arc.iter().filter_map(|domain| Name::parse(domain.as_str()).ok());
        Inbound {
            settings: SmtpSettings::default(),
            queue_ids,
            transactions: (0..transactions)
                .map(|_| Box::new(InboundTransaction::with_room()))
                .collect(),
            trace: Trace::new(configuration.hostname.as_str().to_string(), wall),
            rate_limits: ClientRateLimits::new(abuse.limits, rate_limits_key, cores),
            greeting_delay: Some(abuse.greeting_delay).filter(|delay| delay.0 > 0),
            lists: Lists::new(abuse),
            filter: configuration
                .filter
                .as_ref()
                .map(|named| Filter::new(named, configuration, filter_bytes)),
            checks: Checks::new(trusted.collect(), checked_bytes, proofs_key),
        }
    }

    /// Whether all records of transactions are in use.
    pub fn is_without_transactions(&self) -> bool {
        self.transactions.is_empty()
    }

    /// Whether actions of clients must be reported to other cores.
    pub fn has_reports(&self) -> bool {
        self.rate_limits.has_reports()
    }

    /// The recent actions of clients in all protocols.
    #[inline]
    pub fn rate_limits(&mut self) -> &mut ClientRateLimits {
        &mut self.rate_limits
    }

    /// The delay of the greeting to this client, if there is one.
    pub fn greeting_delay(&self, caller: Caller, net: &Net, access: &Access) -> Option<Micros> {
        self.greeting_delay.filter(|_| inbound_policy_applies(caller, net, access))
    }

    /// The resources of the shared state that are in use now.
    pub fn in_use(&self) -> InboundInUse {
        let filter = self.filter.as_ref();
        InboundInUse {
            transactions_left: self.transactions.len(),
            searches: self.lists.searches,
            checks: self.checks.under_way,
            kept_for_checks: self.checks.kept.held(),
            inquiries: filter.map_or(0, Filter::under_way),
            kept_for_filter: filter.map_or(0, Filter::kept),
        }
    }
}

/// The values that are drawn or given for the SMTP sessions of a core at its start.
pub struct InboundSeed {
    /// The number of cores.
    pub cores: u8,
    /// Transactions that may be open at a time.
    pub transactions: usize,
    /// Bytes of the memory pool for messages that are being checked.
    pub checked_bytes: usize,
    /// Bytes of messages that may be kept for the filter.
    pub filter_bytes: usize,
    /// Queue ids for messages that arrive.
    pub queue_ids: QueueIds,
    /// A random key for the table of rate limits.
    pub rate_limits_key: [u8; 16],
    /// A random key for the memory budget of message checks.
    pub proofs_key: [u8; 16],
}
