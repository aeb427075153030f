//! Operations of callers on the store: queries of the index, deliveries, and reads of bodies.

use crate::account::AccountInfo;
use crate::body::Body;
use crate::capacity::{BodySpace, Capacity, CoreUse, Fill};
use crate::conversations::Conversations;
use crate::delivery::DeliveryId;
use crate::finding::{Finding, Names};
use crate::index_shares::IndexShare;
use crate::mailbox::Mailbox;
use crate::outbox::OutboxEntry;
use crate::outcome::{Refusal, State};
use crate::parts::StoreParts;
use crate::quotas::Usage;
use crate::store::Store;
use crate::types::{
    AccountId, Closing, DRAFTS, DatePlace, DiskSpace, Flags, Guid, MailboxId, MailboxInfo,
    MessageInfo, Recipient, SentId, Uid,
};
use machine::{Sector, UnixTime};
use tasks::Continuation;

/// The most messages that are compared to find the newest message of a conversation in one mailbox.
const CONVERSATION_MAX: usize = 50;

impl Names for Store {
    fn address(&self, account: AccountId) -> Option<&str> {
        Some(self.parts.indexes.account(account)?.texts().address).filter(|name| !name.is_empty())
    }

    fn mailbox(&self, account: AccountId, mailbox: MailboxId) -> Option<&str> {
        self.known(account, mailbox).map(Mailbox::name)
    }
}

impl Store {
    /// Whether the disk was blank when it was opened, and was formatted.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Requests the conversion of the disk to the newest format, [`crate::FORMAT_VERSION`]. To be
    /// called before the disk is open. Without this call the disk keeps its format, unless an
    /// earlier conversion was interrupted.
    pub fn convert(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.convert();
        }
    }

    /// Whether the disk had an earlier format when it was opened, and has the newest format now.
    pub fn is_converted(&self) -> bool {
        self.is_converted
    }

    /// The format of the disk. Undefined before the disk is open.
    pub fn format(&self) -> u32 {
        self.parts.superblock.format.version()
    }

    /// The disk's space, counted over all segments.
    pub fn space(&self) -> DiskSpace {
        self.parts.segments.space()
    }

    /// Bytes of the whole store, used or not.
    pub fn disk_bytes(&self) -> u64 {
        self.parts.segments.geometry().bytes()
    }

    /// Whether half of the disk is in use.
    pub fn is_half_full(&self) -> bool {
        self.parts.role.is_half_full(&self.parts.segments)
    }

    /// The space for one more body. With this, a caller can refuse a message before the client
    /// sends its body.
    pub fn room(&self) -> BodySpace {
        match self.state() {
            State::Opening | State::Refused(_) => BodySpace::NONE,
            State::Serving | State::ReadOnly(_) => {
                BodySpace::of(&self.parts.segments, &self.parts.indexes)
            }
        }
    }

    /// Notes for the operator that a message was refused, because [`Store::room`] has no space.
    pub fn message_refused(&mut self) {
        let StoreParts { role, segments, .. } = &mut self.parts;
        role.message_refused(segments);
    }

    /// How full the disk and the index of the machine are. Only the disk owner knows it.
    pub fn capacity(&self) -> Option<Capacity> {
        let StoreParts { index_share, segments, indexes, .. } = &self.parts;
        let IndexShare::Lender(lender) = index_share else { return None };
        let own = CoreUse::new(segments, indexes.resident_bytes(), indexes.are_full());
        let of_all = lender.use_with(own);
        Some(Capacity {
            disk: of_all.disk(segments.pages()),
            index: Fill {
                used: of_all.index_bytes(),
                limit: lender.total(),
                is_full: of_all.is_index_full(),
            },
        })
    }

    /// The first sector that the opening waits for, because the disk could not read it. The opening
    /// continues when the disk can read it, or after enough calls of [`Store::read_again`].
    pub fn unreadable(&self) -> Option<Sector> {
        self.opening.as_ref()?.unreadable()
    }

    /// Reads a random page. If the disk can read it, the unreadable pages are read again. Must be
    /// called about every second while [`Store::unreadable`] names a sector.
    pub fn read_again(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.read_again(&mut self.parts);
        }
    }

    /// Whether [`Store::next_read_fault`] has a fault to return.
    #[inline]
    pub fn has_read_faults(&self) -> bool {
        self.reads.has_faults()
    }

    /// The next message that a reader could not get. Each such message is returned once.
    pub fn next_read_fault(&mut self) -> Option<Finding> {
        self.reads.next_fault()
    }

    /// The number of further messages that readers could not get, since the last call.
    pub fn take_read_faults_left_out(&mut self) -> u32 {
        self.reads.take_left_out()
    }

    /// The account that gets mail for `address`.
    pub fn find(&self, address: &str) -> Option<AccountId> {
        let id = self.parts.indexes.owner_of(address)?;
        self.account(id).map(|_| id)
    }

    /// A view of an account.
    pub fn account(&self, id: AccountId) -> Option<AccountInfo<'_>> {
        let account = self.parts.indexes.account(id)?;
        account.is_named().then_some(AccountInfo { account })
    }

    /// All accounts, in no particular order.
    pub fn accounts(&self) -> impl Iterator<Item = AccountInfo<'_>> {
        self.parts
            .indexes
            .accounts()
            .filter(|account| account.is_named())
            .map(|account| AccountInfo { account })
    }

    /// The usage of an account; zero for an unknown account.
    pub fn usage(&self, id: AccountId) -> Usage {
        self.parts.indexes.account(id).map_or(Usage::default(), |account| account.quota().usage())
    }

    /// Whether the account has a note of the arrival of the message `origin`.
    pub fn has_arrived(&self, account: AccountId, origin: SentId) -> bool {
        let known = self.parts.indexes.account(account);
        known.is_some_and(|known| known.notes().contains_key(&origin.key()[..]))
    }

    /// The number of arrivals that can still be noted for an account.
    pub fn arrivals_left(&self, account: AccountId) -> usize {
        self.deliveries.arrivals_left(account, None, &self.parts.indexes)
    }

    /// The counters of a mailbox.
    pub fn mailbox(&self, account: AccountId, mailbox: MailboxId) -> Option<MailboxInfo> {
        self.known(account, mailbox).map(Mailbox::info)
    }

    /// The message at `index`, counted from 0 at the lowest UID.
    pub fn message_at(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        index: usize,
    ) -> Option<MessageInfo> {
        let entry = self.known(account, mailbox)?.messages().nth(index)?;
        Some(entry.info(self.parts.superblock.guid_prefix()))
    }

    /// The message with this UID.
    pub fn message(&self, account: AccountId, mailbox: MailboxId, uid: Uid) -> Option<MessageInfo> {
        let entry = self.known(account, mailbox)?.messages().find(uid.0)?;
        Some(entry.info(self.parts.superblock.guid_prefix()))
    }

    /// The entry of the outbox message with this UID. `None`: there is no such message, or a
    /// rebuild has restored it without its entry.
    pub fn outbox_entry(&self, account: AccountId, Uid(uid): Uid) -> Option<OutboxEntry> {
        self.parts.indexes.account(account)?.outbox().get(&uid).copied()
    }

    /// All messages of a mailbox, ascending by UID; none if there is no such mailbox.
    pub fn messages(
        &self,
        account: AccountId,
        mailbox: MailboxId,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.parts.superblock.guid_prefix();
        self.known(account, mailbox)
            .into_iter()
            .flat_map(|mailbox| mailbox.messages().iter())
            .map(move |entry| entry.info(prefix))
    }

    /// The messages from `uid` on, ascending.
    pub fn messages_from(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        Uid(uid): Uid,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.parts.superblock.guid_prefix();
        let entries = self
            .known(account, mailbox)
            .into_iter()
            .flat_map(move |mailbox| mailbox.messages().iter_from(uid));
        entries.map(move |entry| entry.info(prefix))
    }

    /// The messages below `uid`, or all messages, descending.
    pub fn messages_below(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Option<Uid>,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.parts.superblock.guid_prefix();
        let known = self.known(account, mailbox).into_iter();
        let entries =
            known.flat_map(move |mailbox| mailbox.messages().iter_below(uid.map(|Uid(uid)| uid)));
        entries.map(move |entry| entry.info(prefix))
    }

    /// The messages of a conversation, by mailbox and UID.
    pub fn conversation(
        &self,
        account: AccountId,
        conversation: u64,
    ) -> impl DoubleEndedIterator<Item = (MailboxId, Uid)> {
        let places =
            self.conversations(account).map(|known| known.within(conversation, 0, u32::MAX));
        places.into_iter().flatten().map(|place| (MailboxId(place.mailbox), Uid(place.uid)))
    }

    /// The messages of a conversation that are in one mailbox, ascending.
    pub fn conversation_in(
        &self,
        account: AccountId,
        MailboxId(mailbox): MailboxId,
        conversation: u64,
    ) -> impl DoubleEndedIterator<Item = Uid> {
        let places =
            self.conversations(account).map(|known| known.within(conversation, mailbox, mailbox));
        places.into_iter().flatten().map(|place| Uid(place.uid))
    }

    fn conversations(&self, account: AccountId) -> Option<&Conversations> {
        Some(self.parts.indexes.account(account)?.conversations())
    }

    /// The date of the newest message. Drafts with a delayed send do not count, because their date
    /// is the time of sending.
    pub fn newest_date(&self) -> Option<UnixTime> {
        let accounts = self.parts.indexes.accounts();
        let mailboxes = accounts.flat_map(|account| account.mailboxes());
        let entries = mailboxes
            .flat_map(|mailbox| mailbox.messages().iter().map(move |entry| (mailbox.id(), entry)));
        let arrived = entries.filter(|(id, entry)| {
            MailboxId(*id) != DRAFTS || !Flags(entry.flags()).contains(Flags::HELD)
        });
        arrived
            .map(|(_, entry)| entry.date)
            .max()
            .map(|date| UnixTime::from_seconds(u64::from(date)))
    }

    /// At most `most` messages that are older than `place`, or the newest ones, the newest first.
    pub fn older(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        place: Option<DatePlace>,
        most: usize,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.parts.superblock.guid_prefix();
        let known = self.known(account, mailbox).into_iter();
        let entries = known.flat_map(move |mailbox| mailbox.messages().older(place, most));
        entries.map(move |entry| entry.info(prefix))
    }

    /// At most `most` messages that are newer than `place`, the oldest first.
    pub fn newer(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        place: DatePlace,
        most: usize,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.parts.superblock.guid_prefix();
        let known = self.known(account, mailbox).into_iter();
        let entries = known.flat_map(move |mailbox| mailbox.messages().newer(place, most));
        entries.map(move |entry| entry.info(prefix))
    }

    /// The number of messages that are older than `place`.
    pub fn count_older(&self, account: AccountId, mailbox: MailboxId, place: DatePlace) -> u32 {
        self.known(account, mailbox).map_or(0, |mailbox| mailbox.messages().count_older(place))
    }

    /// The newest message of a conversation in one mailbox. If UIDs in this mailbox do not ascend
    /// with dates, only the conversation's messages with the highest UIDs are compared.
    pub fn newest_of_conversation(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        conversation: u64,
    ) -> Option<Uid> {
        let messages = self.known(account, mailbox)?.messages();
        let mut uids = self.conversation_in(account, mailbox, conversation).rev();
        if messages.are_in_order() {
            return uids.next();
        }
        let entries = uids.take(CONVERSATION_MAX).filter_map(|Uid(uid)| messages.find(uid));
        entries.max_by_key(|entry| entry.date_place()).map(|entry| Uid(entry.uid))
    }

    /// Begins the delivery of a message to `recipients`. Each recipient gets it wholly or not at
    /// all.
    ///
    /// Errors: `NotServing`, `ReadOnly`, `IndexFull`, `NoSuchAccount` and `NoSuchMailbox` (of any
    /// recipient: no recipient gets the message), `Busy` for too many deliveries or recipients.
    /// `Arrived` if a recipient with `once` has the message already. `TooMany` if an account has
    /// too many noted arrivals, or a mailbox has no UID left.
    pub fn begin(&mut self, recipients: &[Recipient]) -> Result<DeliveryId, Refusal> {
        self.condition.check_serving()?;
        self.deliveries.begin(recipients, &mut self.parts.indexes)
    }

    /// Lets a message that is delivered to one recipient stand for further messages with these
    /// origins. They count as arrived together with it, as the origin in `once` does.
    ///
    /// Errors: `Arrived` if one of them has arrived; `TooMany` for more than
    /// [`crate::ARRIVALS_OF_MESSAGE_MAX`], or more than [`Store::arrivals_left`].
    pub fn stand_for(&mut self, id: DeliveryId, origins: &[SentId]) -> Result<(), Refusal> {
        self.deliveries.stand_for(id, origins, &self.parts.indexes)
    }

    /// The GUID that the first recipient's message will have.
    pub fn guid(&self, id: DeliveryId) -> Option<Guid> {
        let number = self.deliveries.guid(id)?;
        Some(Guid(u128::from(self.parts.superblock.guid_prefix()) << 64 | u128::from(number)))
    }

    /// Appends octets. Returns the number of octets taken. If some were not taken, `continuation`
    /// is woken with [`crate::Outcome::DeliveryReady`] when the caller may append the rest.
    ///
    /// Errors: the delivery has failed, and must be aborted.
    pub fn append(
        &mut self,
        id: DeliveryId,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        self.condition.check_serving()?;
        let taken = self.deliveries.append(id, octets, continuation, &mut self.parts);
        self.serve_waiting();
        taken
    }

    /// Allocates the space for the rest of a complete message. After that, only a failure of the
    /// disk can prevent the delivery, once the message is committed. Returns false if the store
    /// cannot tell yet whether space is free. Then `continuation` is woken with
    /// [`crate::Outcome::DeliveryReady`], and the caller must call again.
    ///
    /// Errors: the delivery has failed, or there is no space on the disk or in the quota of a
    /// recipient. In each case the delivery is aborted.
    pub fn prepare(&mut self, id: DeliveryId, continuation: Continuation) -> Result<bool, Refusal> {
        self.condition.check_serving()?;
        let prepared = self.deliveries.prepare(id, continuation, &mut self.parts);
        self.serve_waiting();
        prepared
    }

    /// Ends the message. `continuation` is woken with [`crate::Outcome::Delivered`] when the
    /// message is durable for every recipient, or with [`crate::Outcome::Refused`].
    ///
    /// Errors: the delivery has failed or is not complete, and is aborted.
    pub fn commit(
        &mut self,
        id: DeliveryId,
        closing: impl Into<Closing>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.condition.check_serving()?;
        let to_come = self.reads.to_come();
        let committed =
            self.deliveries.commit(id, closing.into(), continuation, to_come, &mut self.parts);
        self.serve_waiting();
        committed
    }

    /// Gives up a delivery. If the delivery is committed and some of its records are gathered, it
    /// is delivered nevertheless, and this call only removes its continuation.
    ///
    /// [`Store::next_wake`] still returns a wake that the delivery has already caused. After an
    /// error or an outcome, the delivery causes no wake. A caller that gives up a delivery at
    /// another time must end its frame, or ignore unexpected wakes.
    pub fn abort(&mut self, id: DeliveryId) {
        self.deliveries.abort(id, &mut self.parts);
        self.serve_waiting();
    }

    /// Reads octets of a message from `offset` on. The read returns at least one octet, unless the
    /// message is empty, and at most the octets that are contiguous on the disk. `continuation` is
    /// woken with [`crate::Outcome::Body`], or with [`crate::Outcome::Refused`]: `Damaged`,
    /// `Unreadable`, `NoSuchMessage`.
    ///
    /// Errors: `NotServing`, `NoSuchMailbox`, `NoSuchMessage`, `PastEnd`, `Busy` for too many
    /// reads.
    pub fn read(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if !self.condition.is_open() {
            return Err(Refusal::NotServing);
        }
        self.reads.read((account, mailbox, uid), offset, continuation, &mut self.parts)
    }

    /// Reads a message's summary. `continuation` is woken as by [`Store::read`].
    ///
    /// Errors: `NotServing`, `NoSuchMailbox`, `NoSuchMessage`, `Busy` for too many reads.
    pub fn read_summary(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Uid,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if !self.condition.is_open() {
            return Err(Refusal::NotServing);
        }
        self.reads.read_summary((account, mailbox, uid), continuation, &mut self.parts)
    }

    /// Takes back the buffer of a body.
    pub fn give_back(&mut self, body: Body) {
        self.reads.give_back(body, &mut self.parts.pool);
        self.serve_waiting();
    }

    fn known(&self, account: AccountId, mailbox: MailboxId) -> Option<&Mailbox> {
        self.parts.indexes.of(account.shard()).mailbox(account, mailbox.0)
    }
}
