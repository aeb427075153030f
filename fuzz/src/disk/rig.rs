//! A store on an image. After each request the store runs until it is idle. Every write completes
//! at once and is durable.

use std::collections::BTreeMap;

use machine::{
    Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, SECTOR_BYTES, Sector, UnixTime,
};
use store::{
    AccountId, INBOX, Limits, MessageInfo, NewAccount, Outcome, PAGE_BYTES, ReadSectors, Recipient,
    Refusal, Store, Uid, UnreadableSectors,
};
use tasks::{Continuation, EntryPoint, FrameId};

use super::image::{Image, SECTORS};

/// A store with more disk requests than this is in an endless loop: a disk of 1 MiB has 256 pages.
pub(super) const REQUESTS_MAX: u32 = 20_000;
/// The most turns that a store may take until it is idle. In some of them it repeats reads that
/// failed.
const TURNS_MAX: u32 = 1000;
/// The longest body that is read to its end.
const BODY_OCTETS: usize = 1 << 20;
const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

/// The reason why a body was not read to its end.
#[derive(Debug)]
pub(super) enum Stopped {
    Refused(Refusal),
    /// The body is longer than every stored message.
    Long,
}

pub(super) struct Rig {
    pub(super) store: Store,
    image: Image,
    unreadable: Vec<u64>,
    /// The number of disk writes.
    pub(super) writes: u32,
    /// The number of disk requests since the store was last idle.
    requests: u32,
    /// The outcomes of the store's requests, by number.
    outcomes: BTreeMap<u32, Outcome>,
    /// The number of the last request to the store.
    last: u32,
}

fn limits() -> Limits {
    Limits {
        deliveries: 4,
        recipients: 2,
        reads: 2,
        buffer_bytes: 16 * 8 * PAGE_BYTES,
        resident_bytes: 1 << 20,
    }
}

impl Rig {
    /// A store that has read `image`, or refused it.
    pub(super) fn open(image: Image, unreadable: Vec<u64>, life: u8) -> Rig {
        let store = Store::new(limits(), Disk { sectors: SECTORS, durable: true }, [life; 32]);
        let outcomes = BTreeMap::new();
        let mut rig = Rig { store, image, unreadable, writes: 0, requests: 0, outcomes, last: 0 };
        rig.settle();
        assert!(rig.store.state() != store::State::Opening, "opening ends");
        rig
    }

    pub(super) fn image(&self) -> &Image {
        &self.image
    }

    pub(super) fn power_off(self) -> (Image, Vec<u64>) {
        (self.image, self.unreadable)
    }

    /// Runs turns of the store until it is idle.
    fn settle(&mut self) {
        self.requests = 0;
        for _ in 0..TURNS_MAX {
            let mut is_idle = true;
            self.store.turn_ended();
            while let Some(request) = self.store.next_request() {
                is_idle = false;
                self.requests += 1;
                assert!(self.requests < REQUESTS_MAX, "the store is in an endless loop");
                let completion = self.carry_out(request);
                self.store.disk_completed(completion);
            }
            while let Some(wake) = self.store.next_wake() {
                self.outcomes.insert(wake.continuation.frame.index() as u32, wake.outcome);
            }
            if is_idle && self.store.unreadable().is_none() {
                return;
            }
            self.store.read_again();
        }
    }

    fn carry_out(&mut self, request: DiskRequest) -> DiskCompletion {
        let DiskRequest { token, operation, sector, mut buffer } = request;
        let sectors = sector.0..sector.0 + (buffer.len() / SECTOR_BYTES) as u64;
        assert!(sectors.end <= SECTORS, "a request beyond the disk");
        let result = match operation {
            DiskOperation::Read if self.unreadable.iter().any(|bad| sectors.contains(bad)) => {
                Err(DiskError::Failed)
            }
            DiskOperation::Read => {
                buffer.copy_from_slice(self.image.sectors(&sectors));
                Ok(())
            }
            DiskOperation::Write => {
                self.writes += 1;
                self.unreadable.retain(|bad| !sectors.contains(bad));
                self.image.sectors_mut(&sectors).copy_from_slice(&buffer);
                Ok(())
            }
            DiskOperation::Flush => Ok(()),
        };
        DiskCompletion { token, operation, result, buffer }
    }

    fn continuation(&mut self) -> Continuation {
        self.last += 1;
        Continuation { frame: FrameId::new(self.last, 0), entry: EntryPoint(0) }
    }

    /// Runs the store until it is idle, and returns the outcome of the last request.
    fn answer(&mut self) -> Outcome {
        self.settle();
        self.outcomes.remove(&self.last).expect("the request has an outcome")
    }

    /// The account of an address. Creates the account if it does not exist.
    pub(super) fn account(&mut self, address: &str) -> Result<AccountId, Refusal> {
        if let Some(account) = self.store.find(address) {
            return Ok(account);
        }
        let continuation = self.continuation();
        let new = NewAccount { address, aliases: &[], password_hash: "secret", verifier: "" };
        self.store.create_account(&new, NOW, continuation)?;
        match self.answer() {
            Outcome::AccountCreated(account) => Ok(account),
            Outcome::Refused(refusal) => Err(refusal),
            other => panic!("the creation of an account ended with {other:?}"),
        }
    }

    pub(super) fn uids(&self, account: AccountId) -> Vec<Uid> {
        self.store.messages(account, INBOX).map(|message| message.uid).collect()
    }

    pub(super) fn deliver(&mut self, account: AccountId, body: &[u8]) -> Result<(), Refusal> {
        let delivery = self.store.begin(&[Recipient::inbox(account)])?;
        let mut taken = 0;
        while taken < body.len() {
            let continuation = self.continuation();
            let count = match self.store.append(delivery, &body[taken..], continuation) {
                Ok(count) => count,
                Err(refusal) => {
                    self.store.abort(delivery);
                    self.settle();
                    return Err(refusal);
                }
            };
            taken += count;
            if taken < body.len() {
                assert!(matches!(self.answer(), Outcome::DeliveryReady), "the store has room");
            }
        }
        let continuation = self.continuation();
        self.store.commit(delivery, NOW, continuation)?;
        match self.answer() {
            Outcome::Delivered => Ok(()),
            Outcome::Refused(refusal) => Err(refusal),
            other => panic!("a delivery ended with {other:?}"),
        }
    }

    pub(super) fn remove(&mut self, account: AccountId, uid: Uid) {
        let continuation = self.continuation();
        let removed = self.store.remove(account, INBOX, &[store::UidRange::one(uid)], continuation);
        assert!(removed.is_ok() && matches!(self.answer(), Outcome::Changed));
    }

    /// Reads a whole body, part by part.
    pub(super) fn read(
        &mut self,
        account: AccountId,
        message: &MessageInfo,
    ) -> Result<Vec<u8>, Stopped> {
        let mut body = Vec::new();
        loop {
            let continuation = self.continuation();
            let requested =
                self.store.read(account, INBOX, message.uid, body.len() as u32, continuation);
            requested.map_err(Stopped::Refused)?;
            match self.answer() {
                Outcome::Body(part) => {
                    let is_progress = !part.bytes().is_empty() || message.octets == 0;
                    body.extend_from_slice(part.bytes());
                    self.store.give_back(part);
                    assert!(is_progress, "a part of a body without an octet");
                }
                Outcome::Refused(refusal) => return Err(Stopped::Refused(refusal)),
                other => panic!("a read ended with {other:?}"),
            }
            if body.len() >= message.octets as usize {
                return Ok(body);
            }
            if body.len() > BODY_OCTETS {
                return Err(Stopped::Long);
            }
        }
    }
}

/// An image as the check of a disk reads it.
pub(super) struct Offline<'a> {
    pub(super) image: &'a Image,
    pub(super) unreadable: &'a [u64],
    pub(super) reads_left: u32,
}

impl ReadSectors for Offline<'_> {
    fn sectors(&self) -> u64 {
        SECTORS
    }

    fn read(&mut self, sector: Sector, bytes: &mut [u8]) -> Result<(), UnreadableSectors> {
        self.reads_left = self.reads_left.checked_sub(1).expect("the check ends");
        let sectors = sector.0..sector.0 + (bytes.len() / SECTOR_BYTES) as u64;
        if sectors.end > SECTORS || self.unreadable.iter().any(|bad| sectors.contains(bad)) {
            return Err(UnreadableSectors);
        }
        bytes.copy_from_slice(self.image.sectors(&sectors));
        Ok(())
    }
}
