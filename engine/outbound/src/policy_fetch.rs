//! Fetches the policy of a domain (`relay::policies`) from its web server, over TLS, for a delivery
//! attempt.
//!
//! ```text
//!   LookUpHosts ── an unknown version is announced ──▸ FetchPolicy: each address ──▸ LookUpHosts
//! ```
//!
//! Invariants:
//! - The addresses of the server are called one at a time, and each once.
//! - A fetch takes [`PATIENCE`] at most.
//! - An attempt fetches a policy once. It uses the result even if the result cannot be stored.
//!
//! Implements: RFC 8461 section 3.3.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::net::SocketAddr;

use connections::{ClientTransport, Owner, ServerIdentity, TransportEvent};
use dns::{Knowledge, Missing, Name};
use machine::{Instant, Micros};
use relay::policies::Fetched;
use relay::route::{MailRoute, RouteTarget, Us, route};
use relay::sts::{PolicyId, StsPolicy};
use relay::tally::{Rule, Shortfall};
use relay::{Fetch, Lost, Speaker};

use super::attempt_context::AttemptCx;

/// The longest time for a fetch, for all addresses together.
const PATIENCE: Micros = Micros::from_secs(60);

/// The port for HTTPS.
const PORT: u16 = 443;

/// A fetch of a policy.
pub(super) struct PolicyFetch {
    domain: String,
    id: PolicyId,
    server: Name,
    /// The addresses of the server that were not called yet.
    addresses: VecDeque<SocketAddr>,
    connection: Option<PolicyServerConnection>,
    until: Instant,
    /// The reason why the last address has given no policy.
    shortfall: Shortfall,
}

/// A connection to the web server.
struct PolicyServerConnection {
    transport: ClientTransport,
    fetch: Fetch,
    is_open: bool,
}

/// The result of a step of a fetch.
pub(super) enum FetchStep {
    /// The fetch waits for the server.
    Waits,
    /// This address has given no policy. The next one can be called.
    NextAddress,
    /// The fetch is over. It has a policy, unless no address has given one in time. The attempt no
    /// longer uses the connection, but the network may still be ending it.
    Over(Box<Fetched>),
}

impl PolicyFetch {
    /// A fetch of one version of a domain's policy. `None`: the server's name would not be valid.
    ///
    /// Errors: [`Missing`] says what must be looked up first.
    pub(super) fn about(
        domain: &str,
        id: PolicyId,
        us: &Us<'_>,
        random: u64,
        knowledge: &Knowledge,
        now: Instant,
    ) -> Result<Option<PolicyFetch>, Missing> {
        let Ok(server) = Name::parse(&["mta-sts.", domain].concat()) else { return Ok(None) };
        let addresses = match route(&RouteTarget::Host(&server), us, random, knowledge)? {
            MailRoute::By { hops, .. } => {
                hops.iter().map(|hop| SocketAddr::new(hop.address, PORT)).collect()
            }
            MailRoute::Nowhere(_) => VecDeque::new(),
        };
        let domain = domain.to_string();
        let (until, shortfall) = (now + PATIENCE, Shortfall::PolicyNotFetched);
        Ok(Some(PolicyFetch { domain, id, server, addresses, connection: None, until, shortfall }))
    }

    /// Sends the output that waits, calls the next address, or ends the fetch.
    pub(super) fn go_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> FetchStep {
        let Some(PolicyServerConnection { transport, fetch, .. }) = &mut self.connection else {
            return self.call_next(cx);
        };
        transport.say(fetch, cx.parts.turn, cx.parts.connections);
        match fetch.outcome() {
            None => FetchStep::Waits,
            Some(Ok(policy)) => {
                let policy = Some(Arc::new(policy.clone()));
                transport.close(cx.parts.turn, cx.parts.connections);
                self.connection = None;
                cx.queue.deadlines.cancel(cx.frame);
                FetchStep::Over(self.fetched(policy, cx.parts.turn.now))
            }
            Some(Err(why)) => {
                self.shortfall = why;
                self.hang_up(cx);
                FetchStep::NextAddress
            }
        }
    }

    fn fetched(&self, policy: Option<Arc<StsPolicy>>, at: Instant) -> Box<Fetched> {
        Box::new(Fetched { id: self.id.clone(), policy, at })
    }

    fn call_next(&mut self, cx: &mut AttemptCx<'_, '_>) -> FetchStep {
        let parts = &mut *cx.parts;
        let address = self.addresses.pop_front().filter(|_| parts.turn.now < self.until);
        let Some(address) = address else {
            cx.queue.count_tls(&self.domain, Rule::Sts, Err(self.shortfall), parts.turn.wall);
            return FetchStep::Over(self.fetched(None, parts.turn.now));
        };
        let called = Some(self.server.as_str().to_string());
        let at = (parts.turn, &mut *parts.connections);
        let transport = ClientTransport::to(
            address,
            ServerIdentity::Authorities,
            called,
            Owner::Outbound(cx.frame),
            at,
        );
        let Some(transport) = transport else { return FetchStep::NextAddress };
        cx.queue.deadlines.set(cx.frame, self.until);
        self.connection = Some(PolicyServerConnection {
            transport,
            fetch: Fetch::from(&self.server),
            is_open: false,
        });
        FetchStep::Waits
    }

    /// Processes an event of the connection.
    pub(super) fn transport_event(&mut self, event: TransportEvent, cx: &mut AttemptCx<'_, '_>) {
        let Some(PolicyServerConnection { transport, fetch, is_open }) = &mut self.connection
        else {
            unreachable!("an attempt is told only what happens to a connection that it has")
        };
        let parts = &mut *cx.parts;
        match event {
            TransportEvent::Made | TransportEvent::Room if !*is_open => {
                *is_open = true;
                transport.begin_handshake(fetch, parts.turn, parts.connections);
            }
            TransportEvent::Made | TransportEvent::Room => {}
            TransportEvent::Bytes => transport.hear(fetch, parts.turn, parts.connections),
            TransportEvent::Turn => transport.step(fetch, parts.turn, parts.connections),
            // A response that ends only with its connection may have been cut off, even over TLS.
            TransportEvent::Over => fetch.lost(Lost::Silence),
        }
    }

    /// Ends the connection, because the address has given no policy or the policy is not wanted.
    pub(super) fn hang_up(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if let Some(mut connection) = self.connection.take() {
            connection.transport.end(cx.parts.connections);
            cx.queue.deadlines.cancel(cx.frame);
        }
    }
}
