//! The engine's life: opening the store, making the accounts that the configuration asks for, serving, stopping.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write;

use certificates::{Certificates, ReadSoFar};
use channel::Class;
use connections::Handshakes;
use machine::{CoreId, Instant, Machine, Micros, SERVICES, Security};
use net::{Address, Counter, Service};
use outbound::Outbound;
use store::{Owners, State};
use tasks::FrameId;

use crate::clock;
use crate::common::Common;
use crate::engine::Engine;
use crate::links::Message;
use crate::session::Session;

/// How long open sessions get to end when the machine is asked to stop.
const FAREWELL: Micros = Micros::from_secs(5);
/// How long those who have not ended by then get to hear so, and the disk to come to rest. Nothing acknowledged depends
/// on it.
const REST: Micros = Micros::from_secs(2);

/// How often a disk that has failed is tried again.
const DISK_AGAIN: Micros = Micros::from_secs(60);
/// The time after which a read is repeated that failed while the machine starts.
pub(crate) const READ_AGAIN: Micros = Micros::from_secs(1);

/// The frame of the engine itself: no connection has it.
pub(crate) const ENGINE: FrameId = FrameId::new(u32::MAX, 0);

/// Where in its life the engine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// The store is being opened, and recovered. A core that does not own it waits to be told to serve.
    Opening,
    /// The accounts of the configuration are looked up and made: see `making`.
    MakingAccounts,
    /// The store makes an account.
    AccountMade,
    /// The certificates that took the place of others are read.
    ReadingCertificates,
    /// The other cores take over their shares of the shards: nobody knows of how many yet, or these many cores own some.
    Sharing(Option<Owners>),
    /// The other cores begin to listen.
    Assembling,
    /// Mail is taken and given.
    Serving,
    /// Sessions end, until this time at the latest.
    Stopping { until: Instant },
    /// Connections are closed, and the disk comes to rest, until this time at the latest.
    Leaving { until: Instant },
    /// The other cores may ask for something, until this time at the latest.
    AwaitingOthers { until: Instant },
    /// It is over.
    Stopped(Ending),
}

/// A disk that fails.
#[derive(Default)]
pub(crate) struct DiskTrouble {
    /// It has failed, which the console says, and is tried again then.
    pub(crate) again_at: Option<Instant>,
    /// Whether the console has said that it cannot read a sector.
    is_unreadable_told: bool,
}

/// Why an engine stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Somebody asked it to, and everything acknowledged is on the disk.
    Asked,
    /// The disk can't be served from; the console says why.
    Refused,
}

impl Life {
    pub(crate) fn next_deadline(self) -> Option<Instant> {
        match self {
            Life::Stopping { until } | Life::Leaving { until } | Life::AwaitingOthers { until } => Some(until),
            _ => None,
        }
    }
}

impl Engine {
    /// Goes on from one part of life to the next when its time has come.
    pub(crate) fn live(&mut self, machine: &mut impl Machine) {
        self.look_after_disk();
        match self.life {
            Life::Opening => self.look_at_store(machine),
            Life::MakingAccounts => self.make_accounts(machine),
            Life::ReadingCertificates => self.read_certificates(),
            Life::Sharing(owners) => self.share_out(owners),
            Life::Assembling => self.serve_when_all_do(),
            Life::AccountMade | Life::Serving | Life::Stopped(_) => {}
            Life::Stopping { until } => self.leave_when_told(until),
            Life::Leaving { until } => self.leave_at_rest(until),
            Life::AwaitingOthers { until } => self.stop_after_others(until),
        }
        let may_stop = matches!(
            self.life,
            Life::Opening
                | Life::MakingAccounts
                | Life::AccountMade
                | Life::ReadingCertificates
                | Life::Sharing(_)
                | Life::Assembling
                | Life::Serving
        );
        if may_stop && self.core == CoreId::FIRST && machine.stop_requested() {
            self.begin_stopping();
        }
    }

    /// Whether the next turn has something to do that no event announces.
    pub(crate) fn is_hurried(&self) -> bool {
        match self.life {
            Life::MakingAccounts => self.making.is_to_go_on(self.common.turn.now),
            Life::ReadingCertificates => self.services.certificates.is_to_be_read(self.common.turn.now),
            Life::Stopping { .. } => self.is_alone(),
            Life::Leaving { .. } => self.has_nothing_left(),
            Life::AwaitingOthers { .. } => self.are_others_over(),
            Life::Opening
            | Life::AccountMade
            | Life::Sharing(_)
            | Life::Assembling
            | Life::Serving
            | Life::Stopped(_) => false,
        }
    }

    pub(crate) fn announce_address(&mut self, address: Option<Address>) {
        match address {
            Some(own) => self.common.console.print(format_args!("net: {}/{}", own.address, own.prefix_bits)),
            None => self.common.console.print(format_args!("net: no address")),
        }
    }

    pub(crate) fn announce_ipv6_addresses(&mut self) {
        let mut text = String::new();
        for own in self.common.connections.net().ipv6_addresses() {
            let separator = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{}/{}", own.address, own.prefix_bits);
        }
        if text.is_empty() {
            text.push_str("no IPv6 address");
        }
        self.common.console.print(format_args!("net: {text}"));
    }

    /// Says once that the disk has failed, tries it again every minute, and says once that it works
    /// again.
    fn look_after_disk(&mut self) {
        if self.core != CoreId::FIRST {
            return;
        }
        if self.life == Life::Opening {
            return self.read_disk_again();
        }
        match (self.common.store.own.store.state(), self.disk_trouble.again_at) {
            (State::ReadOnly(why), None) => {
                self.common.console.print(format_args!("store: {why}"));
                self.disk_trouble.again_at = Some(self.common.turn.now + DISK_AGAIN);
            }
            (State::ReadOnly(_), Some(at)) if self.common.turn.now >= at => {
                self.disk_trouble.again_at = Some(self.common.turn.now + DISK_AGAIN);
                if self.life == Life::Serving {
                    self.common.store.own.store.retry();
                }
            }
            (State::Serving, Some(_)) => {
                self.common.console.print(format_args!("store: the disk works again; mail is accepted"));
                self.disk_trouble.again_at = None;
            }
            _ => {}
        }
    }

    /// Repeats reads that failed while the disk is opened, every second. The console says so once.
    fn read_disk_again(&mut self) {
        let store = &mut self.common.store.own.store;
        let Some(sector) = store.unreadable() else { return self.disk_trouble.again_at = None };
        if !core::mem::replace(&mut self.disk_trouble.is_unreadable_told, true) {
            self.common
                .console
                .print(format_args!("store: the disk cannot read sector {}; trying again every second", sector.0));
        }
        match self.disk_trouble.again_at {
            Some(at) if self.common.turn.now < at => return,
            Some(_) => store.read_again(),
            None => {}
        }
        self.disk_trouble.again_at = Some(self.common.turn.now + READ_AGAIN);
    }

    fn look_at_store(&mut self, machine: &mut impl Machine) {
        if self.core != CoreId::FIRST {
            return;
        }
        let own = &self.common.store.own;
        match own.store.state() {
            State::Opening => {}
            State::Refused(reason) => {
                self.common.console.print(format_args!("store: {reason}"));
                self.life = Life::Stopped(Ending::Refused);
            }
            State::Serving | State::ReadOnly(_) => {
                if own.store.is_new() {
                    let kib = own.store.space().bytes >> 10;
                    self.common
                        .console
                        .print(format_args!("store: the disk was blank; a new store of {kib} KiB was made on it"));
                }
                for finding in own.store.findings() {
                    self.common.console.print(format_args!("store: {finding}"));
                }
                let told = (machine.wall_clock(), machine.program_date());
                clock::announce(&mut self.common.console, told, self.common.turn.wall, own.store.newest_date());
                // What the disk alone knows makes the addresses the same at each start.
                let secret = own.store.secret(b"IPv6 addresses");
                self.common.connections.begin_ipv6(self.common.turn.now, &secret);
                self.life = Life::MakingAccounts;
                self.make_accounts(machine);
            }
        }
    }

    /// All accounts that the configuration asks for are there.
    pub(crate) fn accounts_are_made(&mut self) {
        self.common.store.note_accounts();
        let hashes = self.common.store.own.store.accounts().map(|account| account.password_hash());
        self.common.compute.make_room_for(hashes);
        self.let_certificates(|certificates, cx| certificates.begin_reading(cx));
        self.life = Life::ReadingCertificates;
        self.read_certificates();
    }

    /// Reads what was kept of certificates. Once all is read, the shards are shared out.
    fn read_certificates(&mut self) {
        if self.let_certificates(Certificates::read_on) == ReadSoFar::All {
            self.life = Life::Sharing(None);
            self.share_out(None);
        }
    }

    /// Hands over to the other cores what they are to own; once all have it, they are told to serve.
    fn share_out(&mut self, owners: Option<Owners>) {
        let Common { store, links, .. } = &mut self.common;
        let Some(owners) = owners.or_else(|| store.share_out(links.cores())) else { return };
        self.life = Life::Sharing(Some(owners));
        if store.is_taken_over(owners) {
            let shown = self.services.certificates.shown();
            links.tell_others(Class::Answer, || Message::Certificates(Arc::clone(shown)));
            store.begin_serving(owners);
            self.life = Life::Assembling;
            self.serve_when_all_do();
        }
    }

    /// The first core is the last one to listen, so that nobody who has heard of it is refused by another.
    fn serve_when_all_do(&mut self) {
        if self.common.store.all_others_serve() {
            self.common.console.print(format_args!("serving {} as {}", self.common.directory, self.common.hostname));
            self.listen();
        }
    }

    /// Callers are heard from now on.
    pub(crate) fn listen(&mut self) {
        self.let_certificates(Certificates::judge);
        let Common { store, directory, .. } = &mut self.common;
        let disk_bytes = store.own.store.disk_bytes();
        store.own.store.set_quotas(|address| directory.quota(address).octets(disk_bytes));
        for (index, service) in SERVICES.iter().enumerate() {
            let number = Service(index as u8);
            if service.security == Security::Implicit && !self.common.connections.tls().serves(number) {
                continue;
            }
            let listening = self.common.connections.listen(service.port, number);
            assert!(listening, "there are fewer services than listeners");
        }
        self.services.submission.begin();
        self.services.outbound.begin();
        self.life = Life::Serving;
    }

    pub(crate) fn begin_stopping(&mut self) {
        self.common
            .console
            .print(format_args!("stopping: {} connections are told", self.common.connections.net().connection_count()));
        if self.core == CoreId::FIRST {
            self.common.store.tell_to_stop();
        }
        SERVICES.iter().for_each(|service| self.common.connections.stop_listening(service.port));
        self.disk_trouble.again_at = None;
        self.services.certificates.stop_reading();
        self.services.submission.stop();
        self.let_outbound(Outbound::stop);
        self.tell_all(Session::stopping);
        self.common.names.stop(&mut self.common.connections);
        self.life = Life::Stopping { until: self.common.turn.now + FAREWELL };
    }

    fn leave_when_told(&mut self, until: Instant) {
        if self.is_alone() || self.common.turn.now >= until {
            self.tell_all(Session::deadline_expired);
            self.life = Life::Leaving { until: self.common.turn.now + REST };
        }
    }

    fn leave_at_rest(&mut self, until: Instant) {
        if self.has_nothing_left() || self.common.turn.now >= until {
            self.tell_all(|session, cx| cx.common.connections.reset(session.caller.connection));
            self.tell_share();
            self.tell_handshakes();
            self.common.store.leave_others();
            // They were told at the same time as this core, and may have more to do.
            let patience = if self.core == CoreId::FIRST { FAREWELL + REST + REST } else { FAREWELL + REST };
            self.life = Life::AwaitingOthers { until: self.common.turn.now + patience };
        }
    }

    /// How the core's handshakes of TLS ended, if there were any.
    fn tell_handshakes(&mut self) {
        let outcomes = self.handshakes();
        if outcomes != Handshakes::default() {
            self.common.console.print(format_args!("{}: {outcomes}", self.core));
        }
    }

    /// Among several, each core says what it had of the load, and how long the frames lay that others handed to it.
    fn tell_share(&mut self) {
        if self.common.links.is_alone() {
            return;
        }
        let counters = self.common.connections.net().counters();
        let (accepted, passed) = (counters.of(Counter::Accepted), counters.of(Counter::PassedIn));
        let each = counters.of(Counter::PassedInMicros) / passed.max(1);
        let most = counters.of(Counter::PassedInMicrosMax);
        let share = format_args!(
            "{accepted} connections, {passed} frames from other cores, on the way {each} us, {most} us at most"
        );
        self.common.console.print(format_args!("{}: {share}", self.core));
    }

    /// No core stops while another may ask it for something, so the first one, which has the disk,
    /// stops last. A core prints its last lines a turn before this: later the machine may be off.
    fn stop_after_others(&mut self, until: Instant) {
        let is_heard = self.sending.under_way() == 0;
        if !(is_heard && self.are_others_over()) && self.common.turn.now < until {
            return;
        }
        if self.core == CoreId::FIRST {
            self.common.console.print(format_args!("stopped"));
        } else {
            self.common.store.leave_first();
            self.common.links.tell_others(Class::Hearsay, || Message::Over);
        }
        self.life = Life::Stopped(Ending::Asked);
    }

    /// Whether no connection is left, and nothing on its way to the disk.
    fn has_nothing_left(&self) -> bool {
        self.is_alone()
            && self.common.store.is_at_rest()
            && self.common.links.unanswered() == 0
            && self.common.clerks.under_way() == 0
            && self.services.submission.under_way() == 0
            && self.services.outbound.under_way() == 0
    }

    /// Whether no other core may ask for something any more, or there is none.
    fn are_others_over(&self) -> bool {
        self.common.store.is_last()
    }

    /// Whether no connection is left.
    fn is_alone(&self) -> bool {
        self.common.connections.net().connection_count() == 0
    }
}
