//! The route of a delivery attempt: from a domain to the hosts that accept its mail.
//!
//! The mail of a domain may instead go through a smarthost (`smarthosts`). All domains that use the
//! same smarthost share one destination.
//!
//! The hosts are called in turn. The next host is called if a host has no open port, is silent, or
//! refuses before MAIL (RFC 5321 section 5.1). Otherwise the host's replies are the result. If TLS
//! with a host fails, and no policy demands TLS, the host is called once more without TLS.
//!
//! Invariant: a refusal that is about one host is not final for a recipient if another host could
//! not be asked.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use configuration::Way as Leaving;
use dns::{Knowledge, Missing, Name, Question};
use relay::policies::{Fetched, KnownPolicy};
use relay::route::Unroutable;
use relay::{Cause, DeliveryFailure, DeliveryOutcome, Lost, Stage as SmtpStage};
use resolver::{Known, QuestionNumber};
use shards::DomainPolicy;

use super::attempt_context::AttemptCx;
use super::connection::{CALL_PATIENCE, OutboundConnection, Outcomes};
use super::failure::FailureReason;
use super::host::{MailHost, RejectedHost};
use super::policy_fetch::PolicyFetch;
use super::stages::{Acceptance, DeliveryResult, Reporter, bits};
use super::tls_policy::{FetchedPolicy, HostSearch, find};
use super::{OutboundWaitPoint, smarthosts};

/// The route to the hosts that accept the mail of a destination.
pub(super) struct DestinationRoute {
    /// The name of the destination: the domain, or the smarthost's host and port.
    destination: String,
    leaving: Leaving,
    /// The recipients that the attempt is for, as bits.
    recipient_bits: u16,
    random: u64,
    /// The key by which the owner of the destination knows it.
    key: u64,
    /// Whether the owner has given leave to make a connection. The leave counts until the owner is
    /// told that the attempt is over.
    has_leave: bool,
    knowledge: Knowledge,
    /// The question to name servers that is not answered yet.
    asked: Option<(QuestionNumber, Question)>,
    /// The hosts that were not called yet. `Err`: the host must not be called.
    hosts: VecDeque<Result<MailHost, RejectedHost>>,
    /// The best result of the hosts that were called so far.
    missed: Option<DeliveryResult>,
    /// The domain's policy (MTA-STS), as far as it is known.
    policy: DomainPolicy,
    /// The result of fetching the policy.
    fetched: FetchedPolicy,
}

/// The result of a step of the lookup of the hosts.
pub(super) enum HostLookup {
    /// A question to name servers is under way.
    Asked,
    /// The policy of the domain must be fetched first.
    PolicyFetch(Box<PolicyFetch>),
    /// The hosts can be called.
    Hosts,
    /// There are no hosts.
    Nowhere(Unroutable),
}

/// The result of calling the next host.
pub(super) enum NextHost {
    /// A connection is being made.
    Connecting(Box<OutboundConnection>),
    /// The host cannot be called. Another host may be left.
    Missed,
    /// No other host is left. The value is the result for all recipients.
    NoneLeft(DeliveryResult),
}

/// The result of a connection to a host.
pub(super) enum HostAnswer {
    /// The connection was over before it was used. The hosts must be looked up again.
    Anew,
    /// The result of this host is not used for the message. The next host must be called.
    Next,
    /// The results for the recipients.
    Settled(Vec<(u8, DeliveryResult)>),
}

/// Whether all of the message could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Readability {
    Whole,
    Damaged,
}

impl DestinationRoute {
    /// The route to a destination, for these recipients. `key`: the key by which the owner knows
    /// the destination.
    pub(super) fn to(
        destination: String,
        key: u64,
        leaving: Leaving,
        recipient_bits: u16,
        random: u64,
    ) -> DestinationRoute {
        DestinationRoute {
            destination,
            leaving,
            recipient_bits,
            random,
            key,
            has_leave: false,
            knowledge: Knowledge::default(),
            asked: None,
            hosts: VecDeque::new(),
            missed: None,
            policy: None,
            fetched: FetchedPolicy::NotTried,
        }
    }

    /// The name of the destination.
    pub(super) fn destination(&self) -> &str {
        &self.destination
    }

    /// The key by which the owner of the destination knows it.
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// Notes that the owner of the destination has given leave to make a connection. `policy`: what
    /// the owner knows of the domain's policy.
    pub(super) fn granted(&mut self, policy: DomainPolicy) {
        (self.has_leave, self.policy) = (true, policy);
    }

    /// Whether the owner of the destination has given leave.
    pub(super) fn has_leave(&self) -> bool {
        self.has_leave
    }

    /// A number that is independent of other attempts' numbers.
    pub(super) fn random(&self) -> u64 {
        self.random
    }

    /// The recipients that the route is for, as bits.
    pub(super) fn recipient_bits(&self) -> u16 {
        self.recipient_bits
    }

    /// Sets the recipients that the route is for.
    pub(super) fn set_recipients(&mut self, recipient_bits: u16) {
        self.recipient_bits = recipient_bits;
    }

    /// Looks up the hosts.
    pub(super) fn look_up_hosts(&mut self, cx: &mut AttemptCx<'_, '_>) -> HostLookup {
        let DestinationRoute { destination, leaving, random, knowledge, policy, fetched, .. } =
            self;
        let ourselves = cx.queue.config.ourselves(cx.parts.connections.net());
        let us = ourselves.us();
        let hosts = match leaving {
            Leaving::By(smarthost) => smarthosts::hosts(smarthost, &us, *random, knowledge)
                .map(|hosts| hosts.map(HostSearch::Hosts)),
            Leaving::Direct => {
                find(destination, &us, *random, policy.as_deref(), fetched, &*cx.parts, knowledge)
            }
        };
        match hosts {
            Err(Missing(question)) => {
                let at = cx.continuation(OutboundWaitPoint::NameKnown);
                let number = cx.parts.names.ask(at, question.clone());
                self.asked = Some((number, question));
                HostLookup::Asked
            }
            Ok(Ok(HostSearch::PolicyFetch(policy_fetch))) => HostLookup::PolicyFetch(policy_fetch),
            Ok(Ok(HostSearch::Hosts(hosts))) => {
                self.hosts = hosts.into();
                HostLookup::Hosts
            }
            Ok(Err(why)) => HostLookup::Nowhere(why),
        }
    }

    /// Takes the answer to a question. Returns false if it answers another question.
    pub(super) fn learn(&mut self, number: QuestionNumber, known: Known) -> bool {
        let asked = self.asked.take_if(|(asked, _)| *asked == number);
        let is_asked = asked.is_some();
        asked.into_iter().for_each(|(_, question)| self.knowledge.learn(question, known.clone()));
        is_asked
    }

    /// Takes the result of fetching the domain's policy. The policy is not fetched again.
    pub(super) fn policy_fetched(&mut self, fetched: &Fetched) {
        self.policy = KnownPolicy::after(self.policy.as_deref(), fetched).map(Arc::new);
        self.fetched = FetchedPolicy::Tried(fetched.policy.clone());
    }

    /// Calls the next host.
    pub(super) fn call(&mut self, cx: &mut AttemptCx<'_, '_>) -> NextHost {
        let missed = match self.hosts.pop_front() {
            None => return NextHost::NoneLeft(self.missed.take().unwrap_or(no_host_reached())),
            Some(Ok(host)) => match OutboundConnection::to(host, cx) {
                Some(connection) => {
                    cx.queue.deadlines.set(cx.frame, cx.parts.turn.now + CALL_PATIENCE);
                    return NextHost::Connecting(Box::new(connection));
                }
                None => no_host_reached(),
            },
            Some(Err(RejectedHost { why, counts_as })) => {
                if let Some((rule, shortfall)) = counts_as {
                    cx.queue.count_tls(&self.destination, rule, Err(shortfall), cx.parts.turn.wall);
                }
                DeliveryResult::Later(FailureReason::NoRoute(why))
            }
        };
        self.miss(missed);
        NextHost::Missed
    }

    /// Counts the TLS result of a connection, if its first message is over.
    pub(super) fn count_tls(&self, connection: &OutboundConnection, cx: &mut AttemptCx<'_, '_>) {
        if let Some((rule, result)) = connection.to_be_counted() {
            cx.queue.count_tls(&self.destination, rule, result, cx.parts.turn.wall);
        }
    }

    /// Takes the result of a connection that is over. If the host said nothing about the recipients
    /// and another host can be called, the result is not used.
    pub(super) fn connection_ended(
        &mut self,
        connection: &mut OutboundConnection,
        condition: Readability,
    ) -> HostAnswer {
        if connection.ended_unused() {
            (self.knowledge, self.asked, self.missed) = (Knowledge::default(), None, None);
            self.fetched = FetchedPolicy::NotTried;
            self.hosts.clear();
            return HostAnswer::Anew;
        }
        if let Some(host) = connection.to_be_called_in_the_clear() {
            self.hosts.push_front(Ok(host));
            return HostAnswer::Next;
        }
        let (host, reporter) = (connection.host().cloned(), connection.reporter());
        let host = host.as_ref();
        let mut outcomes = connection.take_outcomes();
        if let Leaving::By(_) = self.leaving {
            outcomes = outcomes
                .into_iter()
                .map(|(bit, outcome)| (bit, smarthosts::mendable(outcome)))
                .collect();
        }
        // If the message could not be read to its end, the outcome says nothing about the host.
        let is_damaged = |(_, outcome): &(u8, DeliveryOutcome)| {
            condition == Readability::Damaged && is_given_up(outcome)
        };
        let (damaged, outcomes): (Outcomes, Outcomes) = outcomes.into_iter().partition(is_damaged);
        // A reply before MAIL is about the host. The next host may give another reply.
        let is_of_host = |(_, outcome): &(u8, DeliveryOutcome)| match outcome {
            DeliveryOutcome::Later(reason) | DeliveryOutcome::Never(reason) => {
                reason.stage < SmtpStage::Sender
            }
            DeliveryOutcome::Delivered(_) => false,
        };
        if damaged.is_empty() && outcomes.iter().all(is_of_host) {
            let first = outcomes.into_iter().next();
            self.miss(
                first.map_or(no_host_reached(), |(_, outcome)| result_of(outcome, host, reporter)),
            );
            return HostAnswer::Next;
        }
        let damaged = damaged
            .into_iter()
            .map(|(bit, _)| (bit, DeliveryResult::Later(FailureReason::Damaged)));
        let outcomes =
            outcomes.into_iter().map(|(bit, outcome)| (bit, result_of(outcome, host, reporter)));
        HostAnswer::Settled(damaged.chain(outcomes).collect())
    }

    /// Keeps the result of a host that was passed over, if it is better than the earlier one. A
    /// temporary result is better than a permanent one. Among temporary results, the first one of a
    /// host that was reached is kept.
    fn miss(&mut self, result: DeliveryResult) {
        let is_kept = match &self.missed {
            Some(DeliveryResult::Later(
                FailureReason::NoRoute(Unroutable::Forbidden)
                | FailureReason::Host(DeliveryFailure { cause: Cause::Lost(Lost::NotMade), .. }, _),
            )) => !matches!(result, DeliveryResult::Later(_)),
            Some(DeliveryResult::Later(_)) => true,
            _ => false,
        };
        if !is_kept {
            self.missed = Some(result);
        }
    }

    /// The same result for each recipient.
    pub(super) fn for_all(&self, result: &DeliveryResult) -> Vec<(u8, DeliveryResult)> {
        bits(self.recipient_bits).map(|bit| (bit, result.clone())).collect()
    }
}

/// The result if no host could be reached.
pub(super) fn no_host_reached() -> DeliveryResult {
    DeliveryResult::Later(FailureReason::Host(
        DeliveryFailure { stage: SmtpStage::Greeting, cause: Cause::Lost(Lost::NotMade) },
        None,
    ))
}

/// The result for a recipient from the outcome at a host.
pub(super) fn result_of(
    outcome: DeliveryOutcome,
    host: Option<&Name>,
    reporter: Reporter,
) -> DeliveryResult {
    match outcome {
        DeliveryOutcome::Delivered(reply) => {
            DeliveryResult::Delivered(Acceptance { reply, host: host.cloned(), reporter })
        }
        DeliveryOutcome::Later(reason) => {
            DeliveryResult::Later(FailureReason::Host(reason, host.cloned()))
        }
        DeliveryOutcome::Never(reason) => {
            DeliveryResult::Never(FailureReason::Host(reason, host.cloned()))
        }
    }
}

/// Whether this machine gave the connection up. In that case the outcome says nothing about the
/// host.
fn is_given_up(outcome: &DeliveryOutcome) -> bool {
    matches!(
        outcome,
        DeliveryOutcome::Later(DeliveryFailure { cause: Cause::Lost(Lost::GivenUp), .. })
    )
}
