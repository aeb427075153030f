//! Several cores: each has its own machine and engine, and the cores exchange messages.
//!
//! The first core makes a [`Seed`](crate::Seed) for each core with [`seeds()`](crate::seeds()).
//! Each seed is moved to its core. On that core [`Engine::new`] makes everything that the core
//! owns: network, connections, sessions, deadlines, pools, logins. Between each two cores there are
//! two rings (crate `rings`), one for each direction. A core's ends of all rings are its `Links`
//! (crate `channel`). Cores share no lock and no mutable table. They share the site and the
//! accounts, which are never written. ARCHITECTURE.md has a picture.
//!
//! In a turn messages are taken in phase 2, a bounded number from each ring, and sent in phase 5.
//! The receiving core is woken. A message that a full ring does not take waits for the next turn.
//!
//! - **The store**: each core owns the shards of some accounts. It asks the owners of other
//!   accounts about them: see crate `shards`. Only the first core has a queue of the disk. The
//!   stores of other cores forward disk requests to the first core (crate `store`).
//! - **The network**: a connection belongs to the core that received its SYN: see `net`.
//! - **Life cycle**: the first core opens the disk and makes the accounts. It hands the other cores
//!   their shards, and then the accounts. All cores begin to listen when all are ready: see crate
//!   `shards`. A request to stop reaches the first core, which tells the others. A core stops when
//!   no other core may still send it a request, and the first core stops last. All cores learn of a
//!   failed disk.
//! - **DNS**: the first core asks name servers, and caches the answers: see crate `resolver`.
//! - **Password hashes and signatures** are computed by all cores except the first: see `compute`.
//! - **Logins**: each core has a hasher, a throttle and a cache of verified passwords. Failures are
//!   reported to all cores, so it does not matter which core a client reaches. Each core counts the
//!   pending logins of an address only for itself.
//! - **Rate limits**: each core counts the actions of clients, and reports them to the others in
//!   batches.
//! - **Remote hosts**: a keyed hash of a mail origin, or of a destination, selects the core that
//!   keeps its data. So it does not matter which core gets the retry of a deferred message, or has
//!   mail for a destination.
//!
//! Invariants:
//! - A single core has no links, and sends only a few messages about certificates to itself. So
//!   this file costs it hardly any time.
//! - A core that has stopped receiving has told all others so, in its last message.
//! - A core never waits for another core. Its sessions continue when the answer arrives.
//! - Objects that are sent to another core return: pages and maildrops to the cores that made them,
//!   bodies to the store.

use alloc::sync::Arc;

use channel::{Class, Ticket};
use machine::{CoreId, Entropy, Machine};
use outbound::Outbound;
use shards::{CoreEvent, ShardedStore};
use sometimes::sometimes;

use crate::links::Message;
use crate::parts::Parts;
use crate::server::Server;

use super::{Engine, budget_of};

/// Messages taken from one ring in one turn.
const MESSAGES_PER_TURN: u32 = 128;

impl Engine {
    /// Phase 2: requests and answers of other cores.
    pub(super) fn messages(&mut self, machine: &mut impl Machine) {
        let mut number = 0;
        while let Some(from) = self.server.parts.links.other(number) {
            let mut budget = budget_of(MESSAGES_PER_TURN);
            while budget.take()
                && let Some(message) = self.server.parts.links.receive(number)
            {
                self.pace.is_quiet = false;
                self.message_arrived(from, message, machine);
            }
            self.pace.unfinished |= budget.is_spent();
            number += 1;
        }
    }

    /// Handles the messages that this core has sent to itself.
    pub(super) fn own_messages(&mut self, machine: &mut impl Machine) {
        while let Some(message) = self.server.parts.links.next_own() {
            self.message_arrived(self.core, message, machine);
        }
    }

    // Not inlined, because a single core gets hardly any messages.
    #[inline(never)]
    fn message_arrived(&mut self, from: CoreId, message: Message, machine: &mut impl Machine) {
        let Engine { server, sending, events, .. } = self;
        let Server { parts, services, .. } = server;
        match message {
            Message::Net(message) => {
                let mut arrived =
                    parts.connections.message_arrived(parts.turn.now, message, events);
                server.handle_events(events, arrived.bytes_mut());
                if let Some(frame) = server.parts.connections.message_handled(arrived) {
                    machine.give_back(frame);
                }
            }
            Message::Parcel(parcel) => sending.arrived(from, parcel),
            Message::ParcelSent(parcel) => sending.came_home(parcel),
            Message::Upload(upload) => services.certificates.upload_arrived(*upload),
            Message::Certificates(shown) => {
                server.let_certificates(|certificates, cx| certificates.arrived(from, shown, cx));
            }
            Message::CertificatesShown(version) => {
                server.let_certificates(|certificates, cx| certificates.another_shows(version, cx));
            }
            Message::Uploaded(frame, replaced) => {
                server.tell(frame, |session, cx| session.certificate_replaced(*replaced, cx));
            }
            Message::Name(message) => {
                services.names.message_arrived(from, message);
                server.tell_names();
            }
            Message::Job(message) => {
                parts.compute.message_arrived(from, message);
                server.jobs_done(machine);
            }
            Message::ClientActions(actions) => {
                services.inbound.rate_limits().has_done_elsewhere(actions, parts.turn.now);
            }
            Message::LoginFailed(failure) => {
                parts.logins.failed_elsewhere(&failure, parts.turn.now)
            }
            Message::Shards(message) => {
                if let Some(event) = parts.store.message_arrived(from, message) {
                    self.heard_of_shards(event, machine);
                }
            }
            Message::WebmailAsked(frame, request) => {
                server.webmail_asked(Ticket { core: from, frame }, request)
            }
            Message::WebmailReplied(replied) => server.webmail_reply_arrived(from, *replied),
            Message::QueueAsked(frame, asked) => {
                services.outbound.enqueue(Ticket { core: from, frame }, *asked)
            }
            Message::QueueTold(frame, reply) => server.queue_told(frame, *reply, machine),
            Message::Over => parts.links.end(from),
        }
    }

    /// Handles an event from another core that concerns more than the stores.
    fn heard_of_shards(&mut self, event: CoreEvent, entropy: &mut dyn Entropy) {
        let server = &mut self.server;
        match event {
            CoreEvent::PasswordChanged(account) => server.end_sessions_of(account),
            CoreEvent::PasswordKnown(frame) => server.password_known(frame, entropy),
            CoreEvent::Replied(at, reply) => {
                server.let_sessions(|sessions, cx| sessions.replied(at.frame, reply, cx));
            }
            CoreEvent::DestinationNotice => server.let_outbound(Outbound::hear),
            CoreEvent::AccountsKnown => self.lifecycle.begin_passwords(server),
            CoreEvent::Stop => self.lifecycle.begin_stopping(server),
        }
    }

    /// Sends frames of other cores, as far as the card has space.
    #[inline(never)]
    pub(super) fn transmit_for_others(&mut self, machine: &mut impl Machine) {
        let Engine { sending, server, .. } = self;
        sending.transmit_for_others(machine, |from, parcel| {
            server.parts.links.tell(from, Class::Control, Message::ParcelSent(parcel));
        });
    }

    /// Phase 5: sends as many messages to other cores as the rings take.
    pub(super) fn post(&mut self, machine: &mut impl Machine) {
        let Server { parts: Parts { links, logins, compute, .. }, services, .. } = &mut self.server;
        if links.is_alone() {
            return;
        }
        while let Some((core, message)) = compute.next_message() {
            links.tell(core, Class::Answer, Message::Job(message));
        }
        // Clients cause these messages, so they wait in queues of bounded length.
        while links.takes_hearsay()
            && let Some(failure) = logins.next_failure()
        {
            let failure = Arc::new(failure);
            links.tell_others(Class::Hearsay, || Message::LoginFailed(Arc::clone(&failure)));
        }
        while links.takes_hearsay()
            && let Some(actions) = services.inbound.rate_limits().next_report()
        {
            links.tell_others(Class::Hearsay, || Message::ClientActions(actions));
        }
        // Most turns have no messages.
        self.pace.is_untold = self.has_messages();
        if !self.pace.is_untold {
            return;
        }
        let (sending, Parts { links, store, connections, .. }) =
            (&mut self.sending, &mut self.server.parts);
        links.post(
            |core, class| {
                let of_shards =
                    |store: &mut ShardedStore| store.next_message(core, class).map(Message::Shards);
                match class {
                    Class::Control => {
                        let parcel = sending.next_filled(core).map(Message::Parcel);
                        parcel.or_else(|| of_shards(store))
                    }
                    Class::Bulk => of_shards(store)
                        .or_else(|| connections.next_message(core).map(Message::Net)),
                    Class::Answer | Class::Hearsay => of_shards(store),
                }
            },
            |core| machine.wake(core),
        );
        self.pace.is_untold = self.has_messages();
        if self.pace.is_untold {
            sometimes!(RingFull);
        }
    }

    /// Whether messages for other cores wait.
    fn has_messages(&self) -> bool {
        let Server { parts, services, .. } = &self.server;
        parts.logins.has_failures()
            || services.inbound.has_reports()
            || parts.store.has_messages()
            || parts.connections.net().has_messages()
            || self.sending.has_filled()
            || parts.links.has_waiting()
    }
}
