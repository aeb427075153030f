//! Policies of domains (MTA-STS): which hosts take their mail, as a web server of each domain's own says it over TLS. What is known of them, and how it is fetched.
//!
//! ```text
//!   sought ── a version is announced that is not known ──▸ inquired: its server's addresses in turn ──▸ sought
//! ```
//! A policy that is enforced binds where no certificate is published by names that are authenticated (`demand`): then nothing goes to a host that it does not allow, nor to one without a certificate that is valid for its name.
//!
//! Invariants:
//! - What is known holds until its time is over, whatever is announced meanwhile and whether or not its server can be reached: who stands in between can only keep us from a first look.
//! - A server from which nothing came is left alone for [`PAUSE`].
//! - There are at most [`POLICIES_MAX`] domains of which something is known, and [`BYTES_MAX`] in all; who has to go is whose time is over first.
//! - A fetch takes [`PATIENCE`] at most.
//!
//! Answers to: RFC 8461 sections 3.3, 5 and 5.1.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use core::net::SocketAddr;

use connections::{Identity, Owner, Stir, Wire};
use dns::{Knowledge, Missing, Name, Question, RecordKind};
use machine::{Instant, Micros};
use relay::route::{Route, Target, Us, route};
use relay::sts::{Policy, PolicyId, announced};
use relay::tally::{Rule, Shortfall};
use relay::{Fetch, Lost, Speaker};
use store::Refusal;

use super::courier::{AttemptCx, Courier, Stage, Way};

const POLICIES_MAX: usize = 512;
const BYTES_MAX: usize = 1 << 20;

/// How long after a fetch of which nothing came there is no other.
const PAUSE: Micros = Micros::from_secs(300);

/// How long a fetch may take, from all addresses together.
const PATIENCE: Micros = Micros::from_secs(60);

/// Where web servers speak TLS.
const PORT: u16 = 443;

/// What a core knows of domains' policies.
#[derive(Default)]
pub(super) struct Policies {
    known: BTreeMap<Box<str>, Known>,
}

/// What is known of one domain's.
struct Known {
    policy: Option<(PolicyId, Policy)>,
    /// Until when that holds, or what came of the last fetch.
    until: Instant,
    /// No fetch before this.
    pause: Instant,
}

/// What a look comes to.
pub(super) enum Look<'a> {
    /// This holds, or there is none.
    Known(Option<&'a Policy>),
    /// This version is to be fetched first.
    Fetch(PolicyId),
}

impl Policies {
    /// What holds for a domain.
    ///
    /// Errors: [`Missing`] says what has to be known first.
    pub(super) fn of(&self, domain: &str, knowledge: &Knowledge, now: Instant) -> Result<Look<'_>, Missing> {
        let Ok(name) = Name::parse(&["_mta-sts.", domain].concat()) else { return Ok(Look::Known(None)) };
        let answer = knowledge.of(Question { name, kind: RecordKind::Text })?;
        let announced = answer.ok().and_then(|answer| announced(&answer.records));
        let known = self.known.get(domain);
        let policy = known.filter(|known| now < known.until).and_then(|known| known.policy.as_ref());
        let is_paused = known.is_some_and(|known| now < known.pause);
        Ok(match (announced, policy) {
            (Some(id), Some((known, _))) if id != *known && !is_paused => Look::Fetch(id),
            (Some(id), None) if !is_paused => Look::Fetch(id),
            (_, policy) => Look::Known(policy.map(|(_, policy)| policy)),
        })
    }

    /// This came of a fetch.
    fn learn(&mut self, domain: &str, id: PolicyId, fetched: Option<&Policy>, now: Instant) {
        match fetched {
            Some(policy) => {
                let (until, policy) = (now + policy.max_age, Some((id, policy.clone())));
                self.known.insert(domain.into(), Known { policy, until, pause: Instant::START });
            }
            None => {
                let pause = now + PAUSE;
                let known = self.known.entry(domain.into());
                known.or_insert(Known { policy: None, until: pause, pause }).pause = pause;
            }
        }
        while self.known.len() > POLICIES_MAX || self.bytes() > BYTES_MAX {
            let first = self.known.iter().min_by_key(|(_, known)| known.until).map(|(domain, _)| domain.clone());
            first.into_iter().for_each(|domain| drop(self.known.remove(&domain)));
        }
    }

    fn bytes(&self) -> usize {
        let policies = self.known.values().filter_map(|known| known.policy.as_ref());
        let names: usize = self.known.keys().map(|domain| domain.len()).sum();
        names + policies.map(|(_, policy)| policy.bytes()).sum::<usize>()
    }
}

/// A fetch of a policy.
pub(super) struct Inquiry {
    domain: String,
    id: PolicyId,
    server: Name,
    /// The addresses of the server that were not called yet.
    addresses: VecDeque<SocketAddr>,
    line: Option<Line>,
    until: Instant,
    /// Why nothing came from the last of them.
    shortfall: Shortfall,
}

/// A connection to a web server.
struct Line {
    wire: Wire,
    fetch: Fetch,
    is_open: bool,
}

impl Inquiry {
    /// About a version of a domain's policy. `None`: no server can have it.
    ///
    /// Errors: [`Missing`] says what has to be known first.
    pub(super) fn about(
        domain: &str,
        id: PolicyId,
        (us, random): (&Us<'_>, u64),
        knowledge: &Knowledge,
        now: Instant,
    ) -> Result<Option<Inquiry>, Missing> {
        let Ok(server) = Name::parse(&["mta-sts.", domain].concat()) else { return Ok(None) };
        let addresses = match route(&Target::Host(&server), us, random, knowledge)? {
            Route::By { hops, .. } => hops.iter().map(|hop| SocketAddr::new(hop.address, PORT)).collect(),
            Route::Nowhere(_) => VecDeque::new(),
        };
        let domain = domain.to_string();
        let (until, shortfall) = (now + PATIENCE, Shortfall::PolicyNotFetched);
        Ok(Some(Inquiry { domain, id, server, addresses, line: None, until, shortfall }))
    }
}

impl Courier {
    /// Goes on with a fetch: says what there is to say, or calls the next address, or is done.
    pub(super) fn inquire(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let Some(inquiry) = &mut self.inquiry else {
            self.stage(Stage::Sought);
            return Ok(());
        };
        let parts = &mut *cx.parts;
        if let Some(Line { wire, fetch, .. }) = &mut inquiry.line {
            wire.say(fetch, parts.turn, parts.connections);
            match fetch.outcome() {
                None => self.is_waiting = true,
                Some(Ok(policy)) => {
                    cx.queue.policies.learn(&inquiry.domain, inquiry.id.clone(), Some(policy), parts.turn.now);
                    self.end_inquiry(cx);
                }
                Some(Err(why)) => {
                    inquiry.shortfall = why;
                    self.drop_address(cx);
                }
            }
            return Ok(());
        }
        let address = inquiry.addresses.pop_front().filter(|_| parts.turn.now < inquiry.until);
        let Some(address) = address else {
            cx.queue.policies.learn(&inquiry.domain, inquiry.id.clone(), None, parts.turn.now);
            cx.queue.count_tls(&inquiry.domain, Rule::Sts, Err(inquiry.shortfall), parts.turn.wall);
            self.end_inquiry(cx);
            return Ok(());
        };
        let called = Some(inquiry.server.as_str().to_string());
        let owner = Owner::Outbound(cx.frame);
        let at = (parts.turn, &mut *parts.connections);
        let Some(wire) = Wire::to(address, Identity::Vouched, called, owner, at) else { return Ok(()) };
        cx.queue.deadlines.set(cx.frame, inquiry.until);
        inquiry.line = Some(Line { wire, fetch: Fetch::from(&inquiry.server), is_open: false });
        self.is_waiting = true;
        Ok(())
    }

    /// Something has happened to the connection.
    pub(super) fn inquiry_stirred(&mut self, stir: Stir, cx: &mut AttemptCx<'_, '_>) -> Way {
        if let Some(Line { wire, fetch, is_open }) = self.inquiry.as_mut().and_then(|inquiry| inquiry.line.as_mut()) {
            let parts = &mut *cx.parts;
            match stir {
                Stir::Made | Stir::Room if !*is_open => {
                    *is_open = true;
                    wire.begin_handshake(fetch, parts.turn, parts.connections);
                }
                Stir::Made | Stir::Room => {}
                Stir::Bytes => wire.hear(fetch, parts.turn, parts.connections),
                Stir::Turn => wire.step(fetch, parts.turn, parts.connections),
                // What has no end of its own over TLS may have been cut off.
                Stir::Over => fetch.lost(Lost::Silence),
            }
        }
        self.is_waiting = false;
        self.go_on(cx)
    }

    /// The policy is known, or that there is none. The connection is ended in good order.
    fn end_inquiry(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let line = self.inquiry.take().and_then(|inquiry| inquiry.line);
        cx.queue.deadlines.cancel(cx.frame);
        line.into_iter().for_each(|mut line| line.wire.close(cx.parts.turn, cx.parts.connections));
        self.stage(Stage::Sought);
    }

    /// Nothing came from this address, or nothing is wanted from it any more.
    pub(super) fn drop_address(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if let Some(mut line) = self.inquiry.as_mut().and_then(|inquiry| inquiry.line.take()) {
            line.wire.end(cx.parts.connections);
            cx.queue.deadlines.cancel(cx.frame);
        }
    }
}
