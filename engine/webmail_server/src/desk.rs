//! What a clerk works with, as the webmail asks for it: the store of this core, the way of letters to all others, and what all cores know of the queue.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use machine::{CoreId, Micros, UnixTime};
use store::{AccountId, Closing, Guid, MailboxId, Origin, Recipient, Refusal, Store, Uid};
use tasks::{Continuation, Subsystem};
use webmail::{Desk, Excess, Posting, QueueAsked, QueueTold, Which, WrittenRows};

use crate::clerks::{At, Office, QueueQuestion};

tasks::points! {
    /// Where a request handler of the webmail waits for the store.
    pub enum Point of Subsystem::Webmail;
    /// Something was asked for.
    Asked,
    /// A signature is computed.
    Signed,
}

/// All letters that are written here share what one client's may have.
const WEBMAIL: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

impl Desk for At<'_, '_> {
    fn store(&self) -> &Store {
        &self.office.archive.own.store
    }

    fn store_mut(&mut self) -> &mut Store {
        &mut self.office.archive.own.store
    }

    fn rows(&mut self) -> &mut WrittenRows {
        self.office.rows
    }

    fn continuation(&self) -> Continuation {
        self.continuation
    }

    fn now(&self) -> UnixTime {
        self.office.turn.wall
    }

    fn random(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.office.entropy.random(&mut bytes);
        bytes
    }

    fn host(&self) -> &str {
        self.office.hostname
    }

    fn recipient(&self, address: &str) -> Option<AccountId> {
        submission::recipient(address, self.office.directory, self.office.archive)
    }

    fn may_post(&self, address: &str) -> bool {
        submission::may_post(address, self.office.directory, self.office.archive)
    }

    fn may_send(&mut self, account: AccountId, elsewhere: Vec<String>) -> Result<(), Excess> {
        let Office { archive, directory, console, turn, .. } = &mut *self.office;
        accounts::may_send(account, elsewhere, turn.wall, directory, archive, console)
    }

    fn posting(&self, account: AccountId, addresses: &[String]) -> Posting {
        submission::posting(account, addresses, &self.office.archive.own.store)
    }

    fn begin_letter(&mut self, recipients: &[Recipient]) -> Result<(), Refusal> {
        *self.letter = Some(self.office.archive.begin(recipients)?);
        Ok(())
    }

    fn begin_signing(&mut self) {
        let signer = &self.office.signer;
        *self.signing = signer.has_keys().then(|| signer.begin(WEBMAIL));
    }

    fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal> {
        let letter = self.letter.ok_or(Refusal::NoSuchDelivery)?;
        let taken = self.office.archive.append(letter, octets, self.continuation)?;
        if let Some(signing) = self.signing {
            signing.arrived(octets.get(..taken).unwrap_or_default());
            signing.count(self.office.signer).map_err(|_| Refusal::TooMany)?;
        }
        Ok(taken)
    }

    fn signatures(&mut self) -> Option<Vec<u8>> {
        let Some(signing) = self.signing else { return Some(Vec::new()) };
        let directory = self.office.directory;
        signing.ended(|domain| directory.has_domain(domain));
        let at = Continuation { entry: Point::Signed.entry(), ..self.continuation };
        if signing.ask(at, self.office.signer, self.office.compute, self.office.turn.wall) {
            return None;
        }
        let head = signing.head(&[]);
        self.stop_signing();
        Some(head)
    }

    fn guid(&self) -> Option<Guid> {
        self.office.archive.guid((*self.letter)?)
    }

    fn commit(&mut self, closing: Closing) -> Result<(), Refusal> {
        let letter = self.letter.take().ok_or(Refusal::NoSuchDelivery)?;
        self.office.archive.commit(letter, closing, self.continuation)
    }

    fn forget_arrival(&mut self, account: AccountId, origin: Origin) -> Result<(), Refusal> {
        self.office.archive.forget_arrival(account, origin, self.continuation)
    }

    fn may_hold(&self) -> bool {
        self.office.submission.has_room()
    }

    fn hold(&mut self, account: AccountId, uid: Uid, answers: Option<(MailboxId, Uid)>, until: UnixTime) {
        let after = Micros(until.0.saturating_sub(self.office.turn.wall.0));
        self.office.submission.hold((account, uid), answers, self.office.turn.now, after);
    }

    fn take_back(&mut self, account: AccountId, uid: Uid) -> Option<Option<(MailboxId, Uid)>> {
        self.office.submission.take_back((account, uid))
    }

    fn letter_octets_max(&self) -> u64 {
        self.office.letter_octets_max
    }

    fn tell_password(&mut self, account: AccountId) -> bool {
        *self.unheard = self.office.archive.tell_password(account, self.continuation.frame);
        *self.unheard > 0
    }

    fn ask_queue(&mut self, asked: &QueueAsked) {
        let archive = &self.office.archive;
        let owners: Vec<CoreId> = match asked {
            QueueAsked::Handle(_, Which::One(posted)) => [archive.owner(posted.account)].into(),
            QueueAsked::Look(_) | QueueAsked::Handle(_, Which::Domain(_)) => archive.all_owners().collect(),
        };
        *self.unheard = owners.len() as u8;
        let frame = self.continuation.frame;
        self.questions.extend(owners.into_iter().map(|owner| QueueQuestion { owner, frame, asked: asked.clone() }));
    }

    fn queue_told(&mut self) -> Vec<QueueTold> {
        core::mem::take(self.told)
    }

    fn abort(&mut self) {
        self.stop_signing();
        if let Some(letter) = self.letter.take() {
            self.office.archive.abort(letter);
        }
    }
}

impl At<'_, '_> {
    fn stop_signing(&mut self) {
        if let Some(mut signing) = self.signing.take() {
            signing.forget(self.office.signer, self.office.compute);
        }
    }
}
