//! Many cores: each is a machine of its own, with an engine of its own, and they tell each other what they must.
//!
//! [`seeds`] makes a [`Seed`] for each core, on the first one. A seed is carried to its core, and [`Engine::new`] makes there
//! whatever the core has for itself: network, connections, sessions, deadlines, pools, logins. Between each two cores lie two
//! rings (crate `rings`), one a direction; a core's ends of them are its [`Lane`]s. There is nothing else between cores: no
//! lock, no shared table. What is shared is never written: the site, and the accounts.
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
//! - **The store**: each core owns the shards of some accounts, and what concerns others is asked of their owners: see `archive`.
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
//! - **Letters that are put off** (greylisting): all cores are told of them, and of who is known, so that it does not matter to which core they come again.
//!
//! Invariants:
//! - With one core there is no lane and no message, and nothing of this costs anything.
//! - A core never waits for another. Whatever it asks for, its sessions go on when the answer comes.
//! - Everything that travels goes home: pages and maildrops to who made them, bodies to the store.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use compute::JobMessage;
use configuration::Configuration;
use dkim::SigningKey;
use http::Site;
use machine::{CoreId, Entropy, Machine};
use mail::{Greylist, Met};
use net::NetMessage;
use resolver::NameMessage;
use rings::{Receiver, Sender};
use sometimes::{buggify, sometimes};
use store::{Answer, Errand};
use tasks::FrameId;
use tls::{Authorities, Certificate};

use crate::archive::{News, Request};
use crate::certificates::{Replaced, Shown, Upload};
use crate::common::Common;
use crate::engine::{Engine, budget_of};
use crate::logins::Failure;
use crate::sending::{Parcel, Parcels};
use crate::sizes::Sizes;
use crate::visitor::Visitor;

/// The most cores of one machine.
pub const CORES_MAX: u8 = net::CORES_MAX as u8;

/// Places in each ring.
const RING_MESSAGES: usize = 256;
/// Places where simulations make rings short.
const RING_MESSAGES_FEW: usize = 2;
/// Messages taken from one ring in one turn.
const MESSAGES_PER_TURN: u32 = 128;
/// Behind no more messages to a core than these it is told what was learnt of letters that are put off.
const MET_BEHIND_MAX: usize = 64;

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
    pub(crate) lanes: Vec<Lane>,
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
    let seed = |core: u8, lanes| {
        let (configuration, papers) = (Arc::clone(&configuration), papers.clone());
        Seed { core: CoreId(core), cores, configuration, site, papers, sizes, secret, lanes }
    };
    let mut lanes = lanes(cores).into_iter();
    let first = seed(0, lanes.next().unwrap_or_default());
    (first, (1..cores).zip(lanes).map(|(core, lanes)| seed(core, lanes)).collect())
}

/// One core's ends of the two rings between it and another.
pub(crate) struct Lane {
    /// The other one.
    core: CoreId,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    /// Parcels to go home, failed logins and certificates to be told: what has no queue where it comes from.
    pub(crate) waiting: VecDeque<Message>,
    /// Nobody listens there any more.
    is_over: bool,
}

/// What one core tells another.
pub(crate) enum Message {
    /// To the owner of accounts.
    Request(Request),
    /// From the owner of accounts.
    News(News),
    /// To the first core, which has the disk.
    Errand(Errand),
    /// From the first core, which has the disk.
    Answer(Answer),
    /// From network to network.
    Net(NetMessage),
    /// A frame to be sent, from a core that has no queue of the card's.
    Parcel(Box<Parcel>),
    /// It was sent, and comes home.
    ParcelSent(Box<Parcel>),
    /// A certificate, to the core that keeps them.
    Upload(Box<Upload>),
    /// From the core that keeps them: these certificates are shown from now on.
    Certificates(Arc<Shown>),
    /// They are.
    CertificatesShown,
    /// From the core that keeps them: what came of a certificate that the session of this frame has sent.
    Uploaded(FrameId, Box<Replaced>),
    /// A question to name servers, to the first core, or what came of it.
    Name(NameMessage),
    /// A login has failed: the throttle of each core knows of the failures on all.
    LoginFailed(Arc<Failure>),
    /// A letter was put off, or an origin of letters is known.
    Met(Met),
    /// A password hash or a signature is to be computed, was computed, or is not needed any more.
    Job(JobMessage),
}

const _: () = assert!(size_of::<Message>() <= 80, "there are a quarter of a thousand places for them in each ring");

/// The lanes of each core.
fn lanes(cores: u8) -> Vec<Vec<Lane>> {
    let mut all: Vec<Vec<Lane>> = (0..cores).map(|_| Vec::new()).collect();
    for high in 1..cores {
        for low in 0..high {
            let (to_high, from_low) = rings::ring(ring_messages());
            let (to_low, from_high) = rings::ring(ring_messages());
            let lane =
                |core, sender, receiver| Lane { core, sender, receiver, waiting: VecDeque::new(), is_over: false };
            let ends = [(low, lane(CoreId(high), to_high, from_high)), (high, lane(CoreId(low), to_low, from_low))];
            for (own, lane) in ends {
                if let Some(lanes) = all.get_mut(usize::from(own)) {
                    lanes.push(lane);
                }
            }
        }
    }
    all
}

fn ring_messages() -> usize {
    if buggify!(ShortRing) { RING_MESSAGES_FEW } else { RING_MESSAGES }
}

impl Engine {
    /// Phase 2, from other cores: what they ask for, and what they answer.
    pub(crate) fn messages(&mut self, machine: &mut impl Machine) {
        for index in 0..self.lanes.len() {
            let mut budget = budget_of(MESSAGES_PER_TURN);
            while budget.take() {
                let Some(lane) = self.lanes.get_mut(index) else { break };
                let Some(message) = lane.receiver.receive() else { break };
                let from = lane.core;
                self.is_quiet = false;
                self.message_arrived(from, message, machine);
            }
            self.unfinished |= budget.is_spent();
        }
    }

    // With one core there is none: within the turn it would only be in the way.
    #[inline(never)]
    fn message_arrived(&mut self, from: CoreId, message: Message, machine: &mut impl Machine) {
        match message {
            Message::Net(message) => {
                let mut arrived =
                    self.common.connections.message_arrived(self.common.turn.now, message, &mut self.events);
                self.handle_events(arrived.bytes_mut());
                if let Some(frame) = self.common.connections.message_handled(arrived) {
                    machine.give_back(frame);
                }
            }
            Message::Parcel(parcel) => self.to_transmit.push_back((from, parcel)),
            Message::ParcelSent(parcel) => {
                if let Some(parcels) = &mut self.parcels {
                    parcels.came_home(parcel);
                }
            }
            Message::Upload(upload) => self.common.uploads.push_back(Upload { core: Some(from), ..*upload }),
            Message::Certificates(shown) => self.certificates_arrived(from, shown),
            Message::CertificatesShown => self.certificates_shown(),
            Message::Uploaded(frame, replaced) => self.session_certificate_replaced(frame, *replaced),
            Message::Name(message) => {
                self.common.names.message_arrived(from, message);
                self.tell_names();
            }
            Message::Met(met) => {
                if let Some(greylist) = self.services.inbound.greylist() {
                    greylist.told(met, self.common.turn.now);
                }
            }
            Message::Job(message) => {
                self.common.compute.message_arrived(from, message);
                self.jobs_done(machine);
            }
            Message::LoginFailed(failure) => self.common.logins.failed_elsewhere(&failure, self.common.turn.now),
            Message::Request(request) => {
                if self.core == CoreId::FIRST && matches!(request, Request::Left) {
                    self.lanes.iter_mut().filter(|lane| lane.core == from).for_each(|lane| lane.is_over = true);
                }
                match request {
                    Request::Visit(frame, visit) => {
                        self.common.clerks.visited(Visitor { core: Some(from), frame }, visit);
                    }
                    Request::ReplyLeft(number) => self.common.left(number),
                    Request::PieceArrived(number, piece) => self.common.clerks.letters.piece_arrived(number, piece),
                    Request::ReplyWanted(number) => self.common.clerks.streams.wanted(number),
                    Request::QueueAsked(frame, asked) => {
                        self.outbound.asked(Visitor { core: Some(from), frame }, *asked);
                    }
                    Request::PasswordKnown(frame) => self.password_known(frame, machine),
                    request => self.common.store.own.requested(from, request),
                }
            }
            Message::News(news) => self.news_arrived(from, news, machine),
            Message::Errand(errand) => self.common.store.own.store.errand_arrived(from, errand),
            Message::Answer(answer) => self.common.store.own.store.answer_arrived(answer),
        }
    }

    fn news_arrived(&mut self, from: CoreId, news: News, entropy: &mut dyn Entropy) {
        let Some(elsewhere) = self.common.store.elsewhere() else { return };
        match news {
            News::PageDone(page) => elsewhere.distant.page_done(page),
            News::Woken(purpose, wake) => elsewhere.distant.woken(purpose, wake),
            News::Prepared(letter) => elsewhere.distant.prepared(letter),
            News::VisitAnswered(frame, answer) => {
                elsewhere.distant.visit_answered();
                self.session_visit_answered(frame, *answer);
            }
            News::ReplyGoesOn(frame, told) => self.session_reply_goes_on(frame, *told),
            News::QueueTold(frame, told) => self.queue_told(frame, *told, entropy),
            News::Password(frame, changed) => {
                let account = elsewhere.password_changed(changed);
                self.end_sessions_of(account);
                self.common.store.ask(from, Request::PasswordKnown(frame));
            }
            News::Status(status) => elsewhere.distant.status_changed(from, status),
            News::Replied(at, reply) => self.session_replied(at.frame, reply),
            News::Share(share) => {
                self.common.store.own.store.take_over(share);
                self.common.store.ask(from, Request::TookOver);
            }
            News::Serve(accounts, owners, shown) => {
                self.common.compute.make_room_for(accounts.password_hashes());
                elsewhere.accounts = accounts;
                self.common.store.served_by(owners);
                self.show(shown);
                self.listen();
                self.common.store.ask(from, Request::Serving);
            }
            News::Stop => self.begin_stopping(),
        }
    }

    /// Tells another core something that has no queue where it comes from.
    pub(crate) fn tell_core(&mut self, core: CoreId, message: Message) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.core == core) {
            lane.waiting.push_back(message);
        }
    }

    /// Sends what other cores send through this one, as far as the card has room.
    pub(crate) fn transmit_for_others(&mut self, machine: &mut impl Machine) {
        while let Some((from, parcel)) = self.to_transmit.front_mut() {
            if !parcel.transmit(machine) {
                sometimes!(ParcelWaits);
                return;
            }
            sometimes!(ParcelSent);
            let from = *from;
            let lane = self.lanes.iter_mut().find(|lane| lane.core == from);
            if let (Some(lane), Some((_, parcel))) = (lane, self.to_transmit.pop_front()) {
                lane.waiting.push_back(Message::ParcelSent(parcel));
            }
        }
    }

    /// Phase 5, to other cores: as much as the rings take.
    pub(crate) fn post(&mut self, machine: &mut impl Machine) {
        if self.lanes.is_empty() {
            return;
        }
        while let Some(failure) = self.common.logins.next_failure() {
            let failure = Arc::new(failure);
            self.lanes.iter_mut().for_each(|lane| lane.waiting.push_back(Message::LoginFailed(Arc::clone(&failure))));
        }
        while let Some((core, message)) = self.common.compute.next_message() {
            self.tell_core(core, Message::Job(message));
        }
        // Strangers choose how much of this there is: it goes behind no more than so many others, and else waits where it is bounded.
        while self.lanes.iter().all(|lane| lane.waiting.len() < MET_BEHIND_MAX)
            && let Some(met) = self.services.inbound.greylist().and_then(Greylist::next_news)
        {
            self.lanes.iter_mut().for_each(|lane| lane.waiting.push_back(Message::Met(met)));
        }
        // Most turns have nothing to tell.
        self.is_untold = self.has_messages();
        if !self.is_untold {
            return;
        }
        for lane in &mut self.lanes {
            if lane.is_over {
                while lane.next_message(&mut self.parcels, &mut self.common).is_some() {}
                continue;
            }
            let mut posted = false;
            while lane.sender.has_room()
                && let Some(message) = lane.next_message(&mut self.parcels, &mut self.common)
            {
                let sent = lane.sender.send(message);
                assert!(sent.is_ok(), "a ring that has room takes a message");
                posted = true;
            }
            if posted {
                machine.wake(lane.core);
            }
        }
        self.is_untold = self.has_messages();
        if self.is_untold {
            sometimes!(RingFull);
        }
    }
}

impl Lane {
    /// What is to be told to the other core next.
    fn next_message(&mut self, parcels: &mut Option<Parcels>, common: &mut Common) -> Option<Message> {
        if let Some(parcels) = parcels
            && parcels.sender == self.core
            && let Some(parcel) = parcels.next_filled()
        {
            return Some(Message::Parcel(parcel));
        }
        self.waiting.pop_front().or_else(|| common.next_message(self.core))
    }
}

impl Engine {
    /// Whether something waits to be told to another core.
    fn has_messages(&self) -> bool {
        self.services.inbound.has_news()
            || self.common.store.has_messages()
            || self.common.connections.net().has_messages()
            || self.parcels.as_ref().is_some_and(Parcels::has_filled)
            || self.lanes.iter().any(|lane| !lane.waiting.is_empty())
    }
}

impl Common {
    /// What is to be told to `core` next.
    fn next_message(&mut self, core: CoreId) -> Option<Message> {
        let own = &mut self.store.own;
        let errand = if core == CoreId::FIRST { own.store.next_errand() } else { None };
        let of_disk = errand.map(Message::Errand).or_else(|| own.store.next_answer(core).map(Message::Answer));
        let of_store = of_disk.or_else(|| own.next_news(core).map(Message::News)).or_else(|| {
            let request = self.store.elsewhere()?.distant.next_request(core)?;
            Some(Message::Request(request))
        });
        of_store.or_else(|| self.connections.next_message(core).map(Message::Net))
    }
}
