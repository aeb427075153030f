//! The store on a test disk, or the stores of several cores. A test runs them turn by turn.

use super::disk::{Cut, TestDisk};
use crate::account::{NewAccount, NewPassword};
use crate::layout::PAGE_BYTES;
use crate::outcome::{OpenRefusal, Outcome, Refusal, State};
use crate::superblock::Format;
use crate::types::{
    AccountId, Closing, INBOX, Limits, MailboxId, MessageInfo, Recipient, Uid, UidRange,
};
use crate::{DeliveryId, DiskReport, Owners, Store, fsck};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use chance::Dice;
use machine::{CoreId, UnixTime};
use tasks::{Continuation, EntryPoint, FrameId};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

pub(crate) fn limits() -> Limits {
    Limits {
        deliveries: 24,
        recipients: 8,
        reads: 8,
        buffer_bytes: 20 * 8 * PAGE_BYTES,
        resident_bytes: 1 << 24,
    }
}

pub(crate) struct Rig {
    pub(crate) store: Store,
    pub(crate) disk: TestDisk,
    pub(crate) outcomes: BTreeMap<u32, Outcome>,
    /// `cores`: the number of cores that get a share of the shards. `clients`: the stores of all
    /// cores but the first, once they have their shares.
    pub(crate) cores: u8,
    pub(crate) clients: Vec<Store>,
    pub(crate) owners: Owners,
    /// The limits of the first core's store, also after a power cut.
    limits: Limits,
    shares: bool,
    next: u32,
    openings: u8,
}

/// A password that replaces the first password of an account, "secret".
pub(crate) fn password<'a>(hash: &'a str, verifier: &'a str) -> NewPassword<'a> {
    NewPassword { hash, verifier, replaced: "secret" }
}

/// The body of a message: octets that depend on `number`, so that no other message has them.
pub(crate) fn body(number: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(number);
    let mut octets = Vec::with_capacity(length + 8);
    octets.extend_from_slice(&number.to_le_bytes());
    while octets.len() < length {
        octets.extend_from_slice(&dice.roll().to_le_bytes());
    }
    octets.truncate(length);
    octets
}

/// The store, which begins to open `disk`, with the format settings of the disk.
fn begun(mut store: Store, disk: &TestDisk) -> Store {
    store.parts_mut().superblock.format = disk.format;
    if disk.is_to_be_converted {
        store.convert();
    }
    store
}

impl Rig {
    pub(crate) fn new(bytes: u64) -> Rig {
        Rig::on(TestDisk::new(bytes, bytes))
    }

    pub(crate) fn of_format(bytes: u64, format: Format) -> Rig {
        Rig::on(TestDisk::new(bytes, bytes).of_format(format))
    }

    pub(crate) fn with_limits(bytes: u64, limits: Limits) -> Rig {
        let disk = TestDisk::new(bytes, bytes);
        let mut rig = Rig::with(begun(Store::new(limits, disk.disk(), [1; 32]), &disk), disk, 0, 1);
        rig.limits = limits;
        rig.settle();
        rig
    }

    /// A store opened on `disk`.
    pub(crate) fn on(disk: TestDisk) -> Rig {
        let mut rig = Rig::opening(disk);
        rig.settle();
        rig
    }

    /// A store that has not read anything yet.
    pub(crate) fn opening(disk: TestDisk) -> Rig {
        let store = begun(Store::new(limits(), disk.disk(), disk.store_seed()), &disk);
        Rig::with(store, disk, 0, 0)
    }

    /// Cuts the power, and opens the disk again.
    pub(crate) fn cut(self, cut: Cut) -> Rig {
        let mut rig = self.cut_while_opening(cut);
        rig.settle();
        rig
    }

    pub(crate) fn cut_while_opening(mut self, cut: Cut) -> Rig {
        self.disk.cut(cut);
        let mut seed = [self.openings.wrapping_add(1); 32];
        seed[..8].copy_from_slice(&self.disk.dice.roll().to_le_bytes());
        let store =
            begun(Store::disk_owner(self.limits, self.disk.disk(), seed, self.cores), &self.disk);
        let mut rig = Rig::with(store, self.disk, self.next, self.openings.wrapping_add(1));
        (rig.cores, rig.limits) = (self.cores, self.limits);
        rig
    }

    fn with(store: Store, disk: TestDisk, next: u32, openings: u8) -> Rig {
        let (outcomes, clients) = (BTreeMap::new(), Vec::new());
        let (owners, limits) = (Owners::ONE, limits());
        Rig {
            store,
            disk,
            outcomes,
            cores: 1,
            clients,
            owners,
            limits,
            shares: true,
            next,
            openings,
        }
    }

    /// Stores of several cores on a disk. Until sharing begins, the first store has all shards.
    pub(crate) fn of_cores(disk: TestDisk, cores: u8) -> Rig {
        Rig::of_cores_with(disk, cores, limits())
    }

    /// The same with other limits of each store.
    pub(crate) fn of_cores_with(disk: TestDisk, cores: u8, limits: Limits) -> Rig {
        let store = begun(Store::disk_owner(limits, disk.disk(), disk.store_seed(), cores), &disk);
        let mut rig = Rig::with(store, disk, 0, 0);
        rig.limits = limits;
        rig.settle();
        rig.cores = cores;
        rig.shares = false;
        rig
    }

    pub(crate) fn begin_to_share(&mut self) {
        self.shares = true;
        self.settle();
    }

    /// The store of the core that owns an account.
    pub(crate) fn at(&mut self, account: AccountId) -> &mut Store {
        self.of(self.owners.of(account).index())
    }

    fn of(&mut self, core: usize) -> &mut Store {
        match core {
            0 => &mut self.store,
            core => &mut self.clients[core - 1],
        }
    }

    /// Gives the other cores their shares as soon as that is possible.
    fn share_out(&mut self) {
        if self.cores == 1 || !self.shares || !self.clients.is_empty() {
            return;
        }
        if let Some((owners, shares)) = self.store.share_out(self.cores) {
            self.owners = owners;
            for (share, core) in shares.into_iter().zip(1..) {
                let mut client = Store::client(self.limits, [self.openings ^ core << 4; 32]);
                client.take_over(share);
                self.clients.push(client);
            }
            // Cores without a share have no store, so they do not count any longer.
            self.cores = owners.count();
        }
    }

    /// Delivers some of the requests and notices between cores, which dice select. Later calls
    /// deliver the others.
    fn carry(&mut self) {
        for (client, core) in self.clients.iter_mut().zip(1..) {
            while !self.disk.dice.one_in(8)
                && let Some(request) = client.next_client_request()
            {
                self.store.client_request_arrived(CoreId(core), request);
            }
            while !self.disk.dice.one_in(8)
                && let Some(notice) = self.store.next_owner_notice(CoreId(core))
            {
                client.owner_notice_arrived(notice);
            }
        }
        // Drops the notices to cores without shards.
        if self.clients.len() + 1 == usize::from(self.cores) {
            (self.cores..16)
                .for_each(|core| while self.store.next_owner_notice(CoreId(core)).is_some() {});
        }
    }

    fn is_idle(&self) -> bool {
        self.disk.is_idle()
            && !self.store.has_owner_notices()
            && !self.clients.iter().any(Store::has_client_requests)
    }

    pub(crate) fn continuation(&mut self) -> (u32, Continuation) {
        self.next += 1;
        (self.next, Continuation { frame: FrameId::new(self.next, 0), entry: EntryPoint(0) })
    }

    /// Passes the requests of the stores to the disk, and their wakes to `outcomes`.
    pub(crate) fn exchange(&mut self) {
        self.carry();
        while let Some(request) = self.store.next_request() {
            self.disk.request(request);
        }
        for store in core::iter::once(&mut self.store).chain(&mut self.clients) {
            while let Some(wake) = store.next_wake() {
                self.outcomes.insert(wake.continuation.frame.index() as u32, wake.outcome);
            }
        }
    }

    /// One turn in which at most `completions` requests complete.
    pub(crate) fn turn(&mut self, completions: usize) {
        for _ in 0..completions {
            let Some(completion) = self.disk.complete() else { break };
            self.store.disk_completed(completion);
            self.exchange();
        }
        self.share_out();
        self.store.turn_ended();
        self.clients.iter_mut().for_each(Store::turn_ended);
        self.exchange();
    }

    /// Takes turns until nothing is in flight.
    pub(crate) fn settle(&mut self) {
        let mut idle = 0;
        for _ in 0..1_000_000 {
            self.turn(4);
            let is_shared = self.cores == 1 || !self.shares || !self.clients.is_empty();
            if self.disk.is_idle() && self.store.unreadable().is_some() {
                self.store.read_again();
                self.exchange();
            }
            idle = if is_shared && self.is_idle() { idle + 1 } else { 0 };
            // The last turn may have delivered notices, which need another turn.
            if idle > usize::from(!self.clients.is_empty()) {
                return;
            }
        }
        panic!("the store never becomes idle");
    }

    /// Takes turns only until the store serves. Work that opening has begun may be in flight.
    pub(crate) fn until_serving(&mut self) {
        while !self.serving() {
            self.turn(1);
            self.store.read_again();
            self.exchange();
        }
    }

    pub(crate) fn serving(&self) -> bool {
        self.store.state() == State::Serving
    }

    /// Whether the stores of all cores serve.
    pub(crate) fn all_serve(&self) -> bool {
        core::iter::once(&self.store)
            .chain(&self.clients)
            .all(|store| store.state() == State::Serving)
    }

    /// The number of pages that operations in progress have pinned, on all cores.
    pub(crate) fn pinned_pages(&self) -> u32 {
        core::iter::once(&self.store)
            .chain(&self.clients)
            .map(|store| store.parts().segments.pinned_pages())
            .sum()
    }

    pub(crate) fn create(&mut self, address: &str) -> AccountId {
        let (number, continuation) = self.continuation();
        let new = NewAccount { address, aliases: &[], password_hash: "secret", verifier: "" };
        let id = self.store.create_account(&new, NOW, continuation).unwrap();
        self.settle();
        assert!(
            matches!(self.outcomes.remove(&number), Some(Outcome::AccountCreated(created)) if created == id)
        );
        id
    }

    /// Appends all octets, turn by turn.
    pub(crate) fn append(&mut self, delivery: DeliveryId, octets: &[u8]) -> Result<(), Refusal> {
        self.append_at(0, delivery, octets)
    }

    fn append_at(
        &mut self,
        core: usize,
        delivery: DeliveryId,
        octets: &[u8],
    ) -> Result<(), Refusal> {
        let mut taken = 0;
        while taken < octets.len() {
            let (number, continuation) = self.continuation();
            let end = octets.len().min(taken + 10_000);
            let count = self.of(core).append(delivery, &octets[taken..end], continuation)?;
            taken += count;
            self.exchange();
            if taken < end {
                for _ in 0..1000 {
                    if self.outcomes.remove(&number).is_some() {
                        break;
                    }
                    self.turn(1);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn deliver(&mut self, to: &[AccountId], octets: &[u8]) -> Result<(), Refusal> {
        let recipients: Vec<Recipient> =
            to.iter().map(|account| Recipient::inbox(*account)).collect();
        self.deliver_to(&recipients, octets)
    }

    pub(crate) fn deliver_to(&mut self, to: &[Recipient], octets: &[u8]) -> Result<(), Refusal> {
        self.deliver_closed(to, octets, NOW.into())
    }

    pub(crate) fn deliver_closed(
        &mut self,
        to: &[Recipient],
        octets: &[u8],
        closing: Closing,
    ) -> Result<(), Refusal> {
        let core = self.owners.of(to[0].account).index();
        let delivery = self.of(core).begin(to)?;
        if let Err(refusal) = self.append_at(core, delivery, octets) {
            self.of(core).abort(delivery);
            return Err(refusal);
        }
        let (number, continuation) = self.continuation();
        self.of(core).commit(delivery, closing, continuation)?;
        self.settle();
        match self.outcomes.remove(&number) {
            Some(Outcome::Delivered) => Ok(()),
            Some(Outcome::Refused(refusal)) => Err(refusal),
            other => panic!("a delivery ended with {other:?}"),
        }
    }

    pub(crate) fn remove(&mut self, account: AccountId, uids: &[u32]) -> Result<(), Refusal> {
        self.remove_in(account, INBOX, uids)
    }

    pub(crate) fn remove_in(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uids: &[u32],
    ) -> Result<(), Refusal> {
        let (number, continuation) = self.continuation();
        let ranges: Vec<UidRange> = uids.iter().map(|uid| UidRange::one(Uid(*uid))).collect();
        self.at(account).remove(account, mailbox, &ranges, continuation)?;
        self.settle();
        match self.outcomes.remove(&number) {
            Some(Outcome::Changed) => Ok(()),
            other => panic!("a removal ended with {other:?}"),
        }
    }

    pub(crate) fn list(&self, account: AccountId) -> Vec<MessageInfo> {
        self.list_in(account, INBOX)
    }

    pub(crate) fn list_in(&self, account: AccountId, mailbox: MailboxId) -> Vec<MessageInfo> {
        match self.owners.of(account).index() {
            0 => self.store.messages(account, mailbox).collect(),
            core => self.clients[core - 1].messages(account, mailbox).collect(),
        }
    }

    /// The outcome of the change with this number.
    pub(crate) fn outcome(&mut self, number: u32) -> Outcome {
        self.settle();
        self.outcomes.remove(&number).expect("a change that never ends")
    }

    /// Moves messages. Returns the outcome.
    pub(crate) fn file(
        &mut self,
        account: AccountId,
        from: MailboxId,
        uids: &[u32],
        to: MailboxId,
    ) -> Outcome {
        let (number, continuation) = self.continuation();
        let ranges: Vec<UidRange> = uids.iter().map(|uid| UidRange::one(Uid(*uid))).collect();
        self.at(account).file(account, from, &ranges, to, continuation).unwrap();
        self.outcome(number)
    }

    pub(crate) fn remove_without_waiting(&mut self, account: AccountId, uid: u32) {
        let (_, continuation) = self.continuation();
        self.store.remove(account, INBOX, &[UidRange::one(Uid(uid))], continuation).unwrap();
        self.store.turn_ended();
        self.exchange();
    }

    /// Reads a whole body, chunk by chunk.
    pub(crate) fn read(
        &mut self,
        account: AccountId,
        message: &MessageInfo,
    ) -> Result<Vec<u8>, Refusal> {
        self.read_in(account, INBOX, message)
    }

    pub(crate) fn read_in(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        message: &MessageInfo,
    ) -> Result<Vec<u8>, Refusal> {
        let mut octets = Vec::new();
        loop {
            octets.extend(self.read_from(account, mailbox, message, octets.len() as u32)?);
            if octets.len() >= message.octets as usize {
                return Ok(octets);
            }
        }
    }

    /// The result of one read.
    pub(crate) fn read_from(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        message: &MessageInfo,
        offset: u32,
    ) -> Result<Vec<u8>, Refusal> {
        let (number, continuation) = self.continuation();
        self.at(account).read(account, mailbox, message.uid, offset, continuation)?;
        self.exchange();
        while !self.outcomes.contains_key(&number) {
            assert!(!self.is_idle(), "a read that never ends");
            self.turn(1);
        }
        match self.outcomes.remove(&number) {
            Some(Outcome::Body(body)) => {
                let octets = body.bytes().to_vec();
                self.at(account).give_back(body);
                Ok(octets)
            }
            Some(Outcome::Refused(refusal)) => Err(refusal),
            other => panic!("a read ended with {other:?}"),
        }
    }

    pub(crate) fn fsck(&self) -> DiskReport {
        fsck(&mut self.disk.clone())
    }
}

/// The reason why the disk is refused. Checks that nothing is written to it, and that fsck gives
/// the same reason.
pub(crate) fn refused(disk: &TestDisk) -> OpenRefusal {
    let mut rig = Rig::opening(disk.clone());
    rig.settle();
    assert!(
        rig.disk.same_as(disk) && rig.disk.writes == disk.writes,
        "a refused disk was written to"
    );
    let State::Refused(reason) = rig.store.state() else { panic!("{:?}", rig.store.state()) };
    assert_eq!(rig.fsck().refused, Some(reason));
    assert!(!rig.store.is_new());
    reason
}
