//! The types that callers use to talk to the store.

use crate::layout::{SHARDS, ShardId};
use crate::outbox::OutboxEntry;
use machine::UnixTime;

/// The sizes of a store in memory, fixed at its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Deliveries in progress at a time.
    pub deliveries: usize,
    /// Recipients of one delivery.
    pub recipients: usize,
    /// Reads of bodies in progress at a time, including those with a [`crate::Body`] that was not
    /// given back yet.
    pub reads: usize,
    /// Bytes of buffers for bodies of more than a page, at least 256 KiB.
    pub buffer_bytes: usize,
    /// Bytes that messages may take in the index. Each message takes
    /// [`crate::RESIDENT_BYTES_PER_MESSAGE`]. A message that was moved or has more than 32 KiB
    /// takes [`crate::RESIDENT_BYTES_PLACED`] more, and 4 bytes for each 32 KiB. Each outbox entry
    /// takes [`crate::RESIDENT_BYTES_QUEUED`]. Above the limit, deliveries are refused. With
    /// several cores, this is the even share of a core: the cores share the sum.
    pub resident_bytes: u64,
}

/// The disk's space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskSpace {
    /// Bytes of the whole store.
    pub bytes: u64,
    /// Bytes of segments that are free.
    pub free_bytes: u64,
    /// Bytes of pages with message bodies.
    pub body_bytes: u64,
    /// Bytes of journal segments.
    pub journal_bytes: u64,
    /// Free bytes that are reserved for deletions, checkpoints and compaction.
    pub reserve_bytes: u64,
}

/// A message's number in its mailbox (RFC 9051 §2.3.1.1): never 0, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Uid(pub u32);

/// UIDs from `first` to `last`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UidRange {
    /// The lowest UID.
    pub first: Uid,
    /// The highest UID.
    pub last: Uid,
}

impl UidRange {
    /// The range of just this UID.
    pub const fn one(uid: Uid) -> UidRange {
        UidRange { first: uid, last: uid }
    }
}

/// Identifies an account: the keyed hash of its canonical address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(pub(crate) u64);

impl AccountId {
    /// The id as a number.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`AccountId::to_bits`].
    pub const fn from_bits(bits: u64) -> AccountId {
        AccountId(bits)
    }

    pub(crate) fn shard(self) -> ShardId {
        ShardId((self.0 % SHARDS as u64) as u8)
    }
}

/// A mailbox within its account.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MailboxId(pub u32);

/// A mailbox, and a UID in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub(crate) mailbox: u32,
    pub(crate) uid: u32,
}

/// The mailbox for new mail.
pub const INBOX: MailboxId = MailboxId(1);
/// Messages that are not sent yet (RFC 6154).
pub const DRAFTS: MailboxId = MailboxId(2);
/// Messages that were sent.
pub const SENT: MailboxId = MailboxId(3);
/// Messages that are kept after use.
pub const ARCHIVE: MailboxId = MailboxId(4);
/// Unwanted messages.
pub const JUNK: MailboxId = MailboxId(5);
/// Messages to be removed.
pub const TRASH: MailboxId = MailboxId(6);
/// Messages that are being sent or forwarded. Each has an [`OutboxEntry`].
pub const OUTBOX: MailboxId = MailboxId(7);

/// The mailboxes that every account always has, and their names.
pub const BUILT_IN: [(MailboxId, &str); 7] = [
    (INBOX, "INBOX"),
    (DRAFTS, "Drafts"),
    (SENT, "Sent"),
    (ARCHIVE, "Archive"),
    (JUNK, "Junk"),
    (TRASH, "Trash"),
    (OUTBOX, "Outbox"),
];

/// A modification sequence (RFC 7162).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Modseq(pub u64);

/// A globally unique, permanent id of a message: the upper half is the store's, the lower half the
/// message's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guid(pub u128);

/// The system flags of a message (RFC 9051 §2.3.2), and internal flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// `\Seen`.
    pub const SEEN: Flags = Flags(1);
    /// `\Answered`.
    pub const ANSWERED: Flags = Flags(2);
    /// `\Flagged`.
    pub const FLAGGED: Flags = Flags(4);
    /// `\Deleted`.
    pub const DELETED: Flags = Flags(8);
    /// `\Draft`.
    pub const DRAFT: Flags = Flags(16);
    /// Internal: the message will be sent, and its sending can still be cancelled.
    pub const HELD: Flags = Flags(32);
    /// Internal: the message is being sent, and its sending cannot be cancelled.
    pub const LEAVING: Flags = Flags(64);
    /// Internal: the message has been handed over for all its recipients.
    pub const LEFT: Flags = Flags(128);

    /// The internal flags of a delayed send. A message loses them when it is moved to another
    /// mailbox.
    pub(crate) const ON_ITS_WAY: Flags = Flags(Flags::HELD.0 | Flags::LEAVING.0 | Flags::LEFT.0);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The union of both sets.
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    /// The set without `flags`.
    pub const fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }

    /// Whether the set has an internal flag of a delayed send.
    pub const fn are_on_their_way(self) -> bool {
        self.0 & Flags::ON_ITS_WAY.0 != 0
    }
}

/// A change of a message's marks: its flags and keywords. First some marks are cleared, then some
/// are set. The change does not touch any other mark. So another change at the same time keeps its
/// effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MarkChange {
    /// The marks to clear.
    pub clear: Marks,
    /// The marks to set.
    pub set: Marks,
}

/// Flags and keywords, one bit each. The account defines the names of keywords.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// Flags.
    pub flags: Flags,
    /// Keywords.
    pub keywords: u16,
}

impl MarkChange {
    /// A change that sets these flags.
    pub const fn set(flags: Flags) -> MarkChange {
        MarkChange::of(Flags(0), flags)
    }

    /// A change that clears these flags.
    pub const fn clear(flags: Flags) -> MarkChange {
        MarkChange::of(flags, Flags(0))
    }

    /// A change that clears some flags and sets others.
    pub const fn of(clear: Flags, set: Flags) -> MarkChange {
        MarkChange {
            clear: Marks { flags: clear, keywords: 0 },
            set: Marks { flags: set, keywords: 0 },
        }
    }

    /// The marks after the change.
    pub const fn applied(self, Marks { flags, keywords }: Marks) -> Marks {
        let flags = flags.without(self.clear.flags).with(self.set.flags);
        Marks { flags, keywords: keywords & !self.clear.keywords | self.set.keywords }
    }
}

/// The counters of a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailboxInfo {
    /// UIDVALIDITY (RFC 9051 §2.3.1.1).
    pub uid_validity: u32,
    /// A lower bound for the UID of the next message.
    pub uid_next: Uid,
    /// HIGHESTMODSEQ (RFC 7162 §3.1.2.1).
    pub highest_modseq: Modseq,
    /// The number of messages.
    pub messages: u32,
    /// The number of messages without the flag `\\Seen`.
    pub unseen: u32,
    /// The octets of all messages.
    pub octets: u64,
}

/// The properties of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageInfo {
    /// The number of the message in its mailbox.
    pub uid: Uid,
    /// The size of the message as it was delivered.
    pub octets: u32,
    /// The length of the head: octets at the start of the message that are read separately.
    pub head: u32,
    /// The time of delivery, in whole seconds.
    pub internal_date: UnixTime,
    /// The MODSEQ of the last change.
    pub modseq: Modseq,
    /// The flags.
    pub flags: Flags,
    /// The keywords, one bit each. The account defines their names.
    pub keywords: u16,
    /// The permanent id of the message.
    pub guid: Guid,
    /// The number of the message's conversation.
    pub conversation: u64,
}

/// The place of a message in the order of dates. Of its fields, only the UID depends on the
/// mailbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DatePlace {
    /// INTERNALDATE, in seconds since 1970.
    pub date: u32,
    /// The lower half of the GUID.
    pub guid: u64,
    /// The UID.
    pub uid: u32,
}

impl DatePlace {
    /// The place in the order of a mailbox in which UIDs ascend with dates.
    pub(crate) fn by_uid(self) -> (u32, u32) {
        (self.date, self.uid)
    }

    /// A place before all messages of the same second.
    pub fn start_of_second(self) -> DatePlace {
        DatePlace { guid: 0, uid: 0, ..self }
    }

    /// A place after all messages of the same second.
    pub fn end_of_second(self) -> DatePlace {
        DatePlace { guid: u64::MAX, uid: u32::MAX, ..self }
    }
}

impl MessageInfo {
    /// The place of the message in the order of dates.
    pub fn date_place(&self) -> DatePlace {
        let date = u32::try_from(self.internal_date.seconds()).unwrap_or(u32::MAX);
        DatePlace { date, guid: self.guid.0 as u64, uid: self.uid.0 }
    }
}

/// A recipient of a message, and the mailbox of its delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recipient {
    /// The account that gets the message.
    pub account: AccountId,
    /// One of the [`BUILT_IN`] mailboxes.
    pub mailbox: MailboxId,
    /// The initial flags.
    pub flags: Flags,
    /// The initial keywords.
    pub keywords: u16,
    /// The outbox entry of the message, only if `mailbox` is the outbox.
    pub entry: Option<OutboxEntry>,
    /// If set, the message is delivered only once, even if delivery is attempted several times. The
    /// arrival of this message is remembered until
    /// [`Store::forget_arrival`](crate::Store::forget_arrival).
    pub once: Option<SentId>,
}

impl Recipient {
    /// New mail for `account`.
    pub const fn inbox(account: AccountId) -> Recipient {
        Recipient { account, mailbox: INBOX, flags: Flags(0), keywords: 0, entry: None, once: None }
    }
}

/// The size of a message's head, in units of eight octets, so that it fits into a byte. The head is
/// the start of the message, but the caller appends it last. So on the disk it is at the end. A
/// reader gets the head first, separately from the other octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeadSize(pub(crate) u8);

impl HeadSize {
    /// No head: the octets are in the order in which they were appended.
    pub const NONE: HeadSize = HeadSize(0);
    /// The number of octets of a head is a multiple of this.
    pub const UNIT: usize = 8;
    /// The octets of the longest head.
    pub const OCTETS_MAX: usize = u8::MAX as usize * HeadSize::UNIT;

    /// The size of a head of `octets`. `None` if no head can have that size.
    pub const fn of(octets: usize) -> Option<HeadSize> {
        if octets.is_multiple_of(HeadSize::UNIT) && octets <= HeadSize::OCTETS_MAX {
            Some(HeadSize((octets / HeadSize::UNIT) as u8))
        } else {
            None
        }
    }

    pub(crate) fn octets(self) -> u32 {
        u32::from(self.0) * HeadSize::UNIT as u32
    }
}

/// The facts about a message that are known when it is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closing {
    /// The arrival time of the message.
    pub date: UnixTime,
    /// The size of the head: the octets that were appended last, but are the first of the message.
    pub head: HeadSize,
    /// One of the [`BUILT_IN`] mailboxes. If set, the message is delivered to this mailbox as new
    /// mail, instead of to the mailbox given when the delivery began. If this mailbox accepts no
    /// mail, the message goes to the mailbox given at the beginning.
    pub mailbox: Option<MailboxId>,
}

/// A message that arrived at this time, with its octets in the order in which they were appended.
impl From<UnixTime> for Closing {
    fn from(date: UnixTime) -> Closing {
        Closing { date, head: HeadSize::NONE, mailbox: None }
    }
}

/// Identifies a sent message for its recipients: the account of the sender, and the GUID number of
/// the sender's own copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentId {
    pub(crate) account: AccountId,
    pub(crate) number: u64,
}

impl SentId {
    /// The origin of the message `guid` of `account`.
    pub const fn of(account: AccountId, Guid(guid): Guid) -> SentId {
        SentId { account, number: guid as u64 }
    }
}

/// Messages that were moved to another mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filed {
    /// All requested messages up to this UID were moved. The messages above it did not fit into the
    /// operation, and must be requested again.
    pub last: Uid,
    /// The number of moved messages.
    pub count: u32,
    /// The new UIDs of the messages, in the order of the old UIDs.
    pub now: UidRange,
}
