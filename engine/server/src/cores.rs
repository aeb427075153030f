//! Many cores: each is a machine of its own, with an engine of its own, and they tell each other what they must.
//!
//! [`seeds`] makes a [`Seed`] for each core, on the first one. A seed is carried to its core, and [`Engine::new`] makes there
//! whatever the core has for itself: network, connections, sessions, deadlines, pools, logins. Between each two cores lie two
//! rings (crate `rings`), one a direction; a core's ends of them are its [`Links`] (crate `channel`). There is nothing else between
//! cores: no lock, no shared table. What is shared is never written: the site, and the accounts.
//!
//! ```text
//!   every core ◂── requests: letters' pages, reads, removals, maildrops ─────────▸ every other
//!              ◂── news: what came of them, pages that go home, how a store is ──▸
//!              ◂── frames and addresses (`net`) ───────────────────────────────▸
//!   core 0, with the disk ◂── errands: reads, writes, flushes, roots, segments ─── every other
//!                          ── answers; shares, who is who, serve, stop ─────────▸
//!   core 0, with the resolver ◂── names to be looked up ────────────────────────── every other
//!                             ── what is known of them ─────────────────────────▸
//! ```
//!
//! In a turn messages are taken in phase 2, a bounded number from each ring, and sent in phase 5; whoever was sent something is
//! woken. What a full ring does not take waits where it is until the next turn.
//!
//! - **The store**: each core owns the shards of some accounts, and what concerns others is asked of their owners: see crate `shards`.
//!   The disk has one queue for us, and the first core has it: the stores of others run errands to it (crate `store`).
//! - **The network**: a connection belongs to the core that received its SYN: see `net`.
//! - **Life**: the first core opens the disk, makes the accounts, hands over to the others their shares of the shards, and tells them
//!   to serve when all have taken theirs. Asked to stop, it tells the others. Each stops when no other may ask it for anything; the
//!   first one goes last. A disk that fails is told to all.
//! - **Names**: the first core asks name servers, and remembers what they said: see crate `resolver`.
//! - **Password hashes and signatures** are computed for all cores by all but the first: see
//!   `compute`.
//! - **Logins**: each core has a hasher, a throttle and a memory of passwords that were right. Failures are told to all, so that
//!   it does not matter to which core a client comes; how many logins an address has under way each core counts for itself.
//! - **Greylisting**: what is known of an origin the core knows that a keyed hash of it names, and is asked about it there. So it
//!   does not matter to which core a message comes again.
//!
//! Invariants:
//! - With one core there is no link and no message to another, and nothing of this costs anything.
//! - A core that receives nothing any more has said so to all others, as the last thing that it says.
//! - A core never waits for another. Whatever it asks for, its sessions go on when the answer comes.
//! - Everything that travels goes home: pages and maildrops to who made them, bodies to the store.

use alloc::sync::Arc;
use alloc::vec::Vec;

use certificates::Certificates;
use channel::{Class, Links, Ticket};
use configuration::Configuration;
use dkim::SigningKey;
use http::Site;
use machine::{CoreId, Entropy, Machine};
use shards::{Archive, Event};
use sometimes::{buggify, sometimes};
use tls::{Authorities, Certificate};

use crate::common::Common;
use crate::engine::{Engine, budget_of};
use crate::links::Message;
use crate::sizes::Sizes;

/// The most cores of one machine.
pub const CORES_MAX: u8 = net::CORES_MAX as u8;

/// Places in each ring.
const RING_MESSAGES: usize = 256;
/// Places where simulations make rings short.
const RING_MESSAGES_FEW: usize = 2;
/// Messages taken from one ring in one turn.
const MESSAGES_PER_TURN: u32 = 128;

/// What a core's engine is made from: carried to its core, and used there.
pub struct Seed {
    pub(crate) core: CoreId,
    pub(crate) cores: u8,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) site: Site,
    pub(crate) papers: Papers,
    pub(crate) sizes: Sizes,
    /// Known to all cores of the machine, and to nobody else: from it come the keys in which they have to agree.
    pub(crate) secret: [u8; 32],
    pub(crate) links: Links<Message>,
}

/// By what others know the machine, and by what it knows others.
#[derive(Clone, Default)]
pub struct Papers {
    /// For TLS, the one for everybody else first. Without any there is none; with one, the machine gives `randomness` a source before its first turn.
    pub certificates: Vec<Certificate>,
    /// With which letters of our own users are signed, in the order in which their signatures stand above one; without any none is. They need `randomness`, too.
    pub signing_keys: Arc<[SigningKey]>,
    /// Who is believed about the names of other servers.
    pub authorities: Authorities,
    /// The authorities that browsers trust. If they vouch for our certificates, browsers are told
    /// to use TLS alone.
    pub browser_authorities: Authorities,
}

const fn is_carried_to_another_core<T: Send>() {}
const _: () = is_carried_to_another_core::<Seed>();

/// The seeds of a machine with `cores` cores, of which there is at least one and at most [`CORES_MAX`]: the first core's, and the
/// others' in their order.
///
/// `sizes`: of each core. `site`: what is served by HTTP. `secret`: 32 bytes from a cryptographic generator.
pub fn seeds(
    configuration: Configuration,
    site: Site,
    papers: Papers,
    sizes: Sizes,
    cores: u8,
    secret: [u8; 32],
) -> (Seed, Vec<Seed>) {
    assert!((1..=CORES_MAX).contains(&cores), "a machine has 1 to 16 cores");
    let configuration = Arc::new(configuration);
    let seed = |links: Links<Message>| {
        let (configuration, papers) = (Arc::clone(&configuration), papers.clone());
        Seed { core: links.own(), cores, configuration, site, papers, sizes, secret, links }
    };
    let (first, others) = channel::links(cores, ring_messages);
    (seed(first), others.into_iter().map(seed).collect())
}

fn ring_messages() -> usize {
    if buggify!(ShortRing) { RING_MESSAGES_FEW } else { RING_MESSAGES }
}

impl Engine {
    /// Phase 2, from other cores: what they ask for, and what they answer.
    pub(crate) fn messages(&mut self, machine: &mut impl Machine) {
        let mut number = 0;
        while let Some(from) = self.common.links.other(number) {
            let mut budget = budget_of(MESSAGES_PER_TURN);
            while budget.take()
                && let Some(message) = self.common.links.receive(number)
            {
                self.pace.is_quiet = false;
                self.message_arrived(from, message, machine);
            }
            self.pace.unfinished |= budget.is_spent();
            number += 1;
        }
    }

    /// What this core has told itself.
    pub(crate) fn own_messages(&mut self, machine: &mut impl Machine) {
        while let Some(message) = self.common.links.next_own() {
            self.message_arrived(self.core, message, machine);
        }
    }

    // With one core there is none: within the turn it would only be in the way.
    #[inline(never)]
    fn message_arrived(&mut self, from: CoreId, message: Message, machine: &mut impl Machine) {
        match message {
            Message::Net(message) => {
                let mut arrived =
                    self.common.connections.message_arrived(self.common.turn.now, message, &mut self.buffers.events);
                self.handle_events(arrived.bytes_mut());
                if let Some(frame) = self.common.connections.message_handled(arrived) {
                    machine.give_back(frame);
                }
            }
            Message::Parcel(parcel) => self.sending.arrived(from, parcel),
            Message::ParcelSent(parcel) => self.sending.came_home(parcel),
            Message::Upload(upload) => self.services.certificates.upload_arrived(*upload),
            Message::Certificates(shown) => {
                self.let_certificates(|certificates, cx| certificates.arrived(from, shown, cx))
            }
            Message::CertificatesShown => self.let_certificates(Certificates::another_shows),
            Message::Uploaded(frame, replaced) => self.session_certificate_replaced(frame, *replaced),
            Message::Name(message) => {
                self.common.names.message_arrived(from, message);
                self.tell_names();
            }
            Message::Job(message) => {
                self.common.compute.message_arrived(from, message);
                self.jobs_done(machine);
            }
            Message::LoginFailed(failure) => self.common.logins.failed_elsewhere(&failure, self.common.turn.now),
            Message::Shards(message) => {
                if let Some(event) = self.common.store.message_arrived(from, message) {
                    self.heard_of_shards(event, machine);
                }
            }
            Message::ClerksAsked(asked) => self.common.clerks_asked(from, asked),
            Message::ClerksReplied(replied) => self.clerks_replied(from, replied),
            Message::QueueAsked(frame, asked) => self.services.outbound.asked(Ticket { core: from, frame }, *asked),
            Message::QueueTold(frame, told) => self.queue_told(frame, *told, machine),
            Message::Over => self.common.links.end(from),
        }
    }

    /// What has come from another core's stores concerns more than the stores.
    fn heard_of_shards(&mut self, event: Event, entropy: &mut dyn Entropy) {
        match event {
            Event::PasswordChanged(account) => self.end_sessions_of(account),
            Event::PasswordKnown(frame) => self.password_known(frame, entropy),
            Event::Replied(at, reply) => self.session_replied(at.frame, reply),
            Event::Serve => {
                let Common { compute, store, .. } = &mut self.common;
                compute.make_room_for(store.password_hashes());
                self.listen();
            }
            Event::Stop => self.begin_stopping(),
        }
    }

    /// Sends what other cores send through this one, as far as the card has room.
    #[inline(never)]
    pub(crate) fn transmit_for_others(&mut self, machine: &mut impl Machine) {
        let Engine { sending, common, .. } = self;
        sending.transmit_for_others(machine, |from, parcel| {
            common.links.tell(from, Class::Control, Message::ParcelSent(parcel));
        });
    }

    /// Phase 5, to other cores: as much as the rings take.
    pub(crate) fn post(&mut self, machine: &mut impl Machine) {
        let Common { links, logins, compute, .. } = &mut self.common;
        if links.is_alone() {
            return;
        }
        while let Some((core, message)) = compute.next_message() {
            links.tell(core, Class::Answer, Message::Job(message));
        }
        // Clients choose how much of this there is: it waits where it is bounded.
        while links.takes_hearsay()
            && let Some(failure) = logins.next_failure()
        {
            let failure = Arc::new(failure);
            links.tell_others(Class::Hearsay, || Message::LoginFailed(Arc::clone(&failure)));
        }
        // Most turns have nothing to tell.
        self.pace.is_untold = self.has_messages();
        if !self.pace.is_untold {
            return;
        }
        let (sending, Common { links, store, connections, .. }) = (&mut self.sending, &mut self.common);
        links.post(
            |core, class| {
                let of_shards = |store: &mut Archive| store.next_message(core, class).map(Message::Shards);
                match class {
                    Class::Control => {
                        let parcel = sending.next_filled(core).map(Message::Parcel);
                        parcel.or_else(|| of_shards(store))
                    }
                    Class::Bulk => of_shards(store).or_else(|| connections.next_message(core).map(Message::Net)),
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

    /// Whether something waits to be told to another core.
    fn has_messages(&self) -> bool {
        self.common.logins.has_failures()
            || self.common.store.has_messages()
            || self.common.connections.net().has_messages()
            || self.sending.has_filled()
            || self.common.links.has_waiting()
    }
}
