//! The words in which the store is spoken to.

use crate::layout::{SHARDS, ShardId};
use crate::outbox::OutboxEntry;
use machine::UnixTime;

/// The sizes of a store in memory, given once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Deliveries under way at a time.
    pub deliveries: usize,
    /// Recipients of one delivery.
    pub recipients: usize,
    /// Reads of bodies under way at a time, those included whose [`Body`] was not given back yet.
    pub reads: usize,
    /// Bytes of buffers for bodies of more than a page; at least 256 KiB are taken.
    pub buffer_bytes: usize,
    /// Bytes that messages may take in the index ([`crate::RESIDENT_BYTES_PER_MESSAGE`] each,
    /// [`crate::RESIDENT_BYTES_PLACED`] more for each that was filed or has more than 32 KiB, and 4
    /// for each 32 KiB of it; [`crate::RESIDENT_BYTES_QUEUED`] for each entry of an outbox). Above
    /// it deliveries are refused.
    pub resident_bytes: u64,
}

/// A message's number in its mailbox (RFC 9051 §2.3.1.1): never 0, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Uid(pub u32);

/// UIDs from `first` to `last`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UidRange {
    /// The lowest.
    pub first: Uid,
    /// The highest.
    pub last: Uid,
}

impl UidRange {
    /// Just this one.
    pub const fn one(uid: Uid) -> UidRange {
        UidRange { first: uid, last: uid }
    }
}

/// Names an account: the keyed hash of its canonical address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(pub(crate) u64);

impl AccountId {
    /// The id in one number.
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

/// The mailbox that deliveries go to.
pub const INBOX: MailboxId = MailboxId(1);
/// Letters that are not sent yet (RFC 6154).
pub const DRAFTS: MailboxId = MailboxId(2);
/// Letters that were sent.
pub const SENT: MailboxId = MailboxId(3);
/// What is done with, and kept.
pub const ARCHIVE: MailboxId = MailboxId(4);
/// What nobody asked for.
pub const JUNK: MailboxId = MailboxId(5);
/// What is to be removed.
pub const TRASH: MailboxId = MailboxId(6);
/// What is on its way to others. Each message has an [`OutboxEntry`](crate::OutboxEntry).
pub const OUTBOX: MailboxId = MailboxId(7);

/// The mailboxes that every account has from its beginning to its end, and their names.
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

/// Names a message for ever and everywhere: the store's half, then the message's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guid(pub u128);

/// The flags of a message that all clients know (RFC 9051 §2.3.2).
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
    /// No client's: it is to leave, and may still be taken back.
    pub const HELD: Flags = Flags(32);
    /// The same: it leaves, and nothing takes it back.
    pub const LEAVING: Flags = Flags(64);
    /// The same: everybody whom it is for has it.
    pub const LEFT: Flags = Flags(128);

    /// What says that a letter is on its way. No message has any of it that was filed into another mailbox.
    pub(crate) const ON_ITS_WAY: Flags = Flags(Flags::HELD.0 | Flags::LEAVING.0 | Flags::LEFT.0);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those.
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    /// These without those.
    pub const fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }

    /// Whether they say that a letter is on its way.
    pub const fn are_on_their_way(self) -> bool {
        self.0 & Flags::ON_ITS_WAY.0 != 0
    }
}

/// What becomes of a message's marks: those are taken away, then these set. All others stay as they are, whatever somebody else does with them in the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MarkChange {
    /// What is taken away.
    pub clear: Marks,
    /// What is set.
    pub set: Marks,
}

/// Flags and keywords, a bit each; what keywords are called is the account's affair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// Flags.
    pub flags: Flags,
    /// Keywords.
    pub keywords: u16,
}

impl MarkChange {
    /// These flags are set.
    pub const fn set(flags: Flags) -> MarkChange {
        MarkChange::of(Flags(0), flags)
    }

    /// These flags are taken away.
    pub const fn clear(flags: Flags) -> MarkChange {
        MarkChange::of(flags, Flags(0))
    }

    /// Those are taken away, these are set.
    pub const fn of(clear: Flags, set: Flags) -> MarkChange {
        MarkChange {
            clear: Marks { flags: clear, keywords: 0 },
            set: Marks { flags: set, keywords: 0 },
        }
    }

    /// What marks become.
    pub const fn applied(self, Marks { flags, keywords }: Marks) -> Marks {
        let flags = flags.without(self.clear.flags).with(self.set.flags);
        Marks { flags, keywords: keywords & !self.clear.keywords | self.set.keywords }
    }
}

/// What is known of a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailboxInfo {
    /// RFC 9051 §2.3.1.1.
    pub uid_validity: u32,
    /// The UID that the next message gets at least.
    pub uid_next: Uid,
    /// RFC 7162 §3.1.2.1.
    pub highest_modseq: Modseq,
    /// How many messages.
    pub messages: u32,
    /// How many of them are not flagged `\\Seen`.
    pub unseen: u32,
    /// Octets of all of them.
    pub octets: u64,
}

/// What is known of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageInfo {
    /// Its number in the mailbox.
    pub uid: Uid,
    /// Its size as it was delivered.
    pub octets: u32,
    /// So many of its first octets are read by themselves.
    pub head: u32,
    /// When it was delivered, in whole seconds.
    pub internal_date: UnixTime,
    /// When it last changed.
    pub modseq: Modseq,
    /// Its flags.
    pub flags: Flags,
    /// Its keywords, a bit each; what they are called is the account's affair.
    pub keywords: u16,
    /// Its name for ever.
    pub guid: Guid,
    /// The same for all messages of a conversation.
    pub conversation: u64,
}

/// To whom a message is delivered, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recipient {
    /// Who gets it.
    pub account: AccountId,
    /// One of the [`BUILT_IN`] mailboxes.
    pub mailbox: MailboxId,
    /// The flags that it has from the beginning.
    pub flags: Flags,
    /// The keywords, likewise.
    pub keywords: u16,
    /// Its entry, in an outbox alone.
    pub entry: Option<OutboxEntry>,
    /// It is delivered once, however often it is brought: that of this letter it has arrived is kept until [`Store::forget_arrival`](crate::Store::forget_arrival).
    pub once: Option<Origin>,
}

impl Recipient {
    /// New mail for `account`.
    pub const fn inbox(account: AccountId) -> Recipient {
        Recipient { account, mailbox: INBOX, flags: Flags(0), keywords: 0, entry: None, once: None }
    }
}

/// How many of a message's first octets were appended last: in units of eight, so that a byte says it. They lie at the end of what is on the disk, and are read
/// by themselves, before all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head(pub(crate) u8);

impl Head {
    /// The first octet of a message is the one that was appended first.
    pub const NONE: Head = Head(0);
    /// Heads have a number of octets that this divides.
    pub const UNIT: usize = 8;
    /// The octets of the longest head.
    pub const OCTETS_MAX: usize = u8::MAX as usize * Head::UNIT;

    /// A head of so many octets. `None`: there is none such.
    pub const fn of(octets: usize) -> Option<Head> {
        if octets.is_multiple_of(Head::UNIT) && octets <= Head::OCTETS_MAX {
            Some(Head((octets / Head::UNIT) as u8))
        } else {
            None
        }
    }

    pub(crate) fn octets(self) -> u32 {
        u32::from(self.0) * Head::UNIT as u32
    }
}

/// What is said of a message when all of it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closing {
    /// When it came.
    pub date: UnixTime,
    /// How many of the octets that were appended last come first.
    pub head: Head,
    /// One of the [`BUILT_IN`] mailboxes, where it goes as new mail instead of where and as what was said when it began.
    pub mailbox: Option<MailboxId>,
}

/// It came then, and is as it was appended.
impl From<UnixTime> for Closing {
    fn from(date: UnixTime) -> Closing {
        Closing { date, head: Head::NONE, mailbox: None }
    }
}

/// Names a letter for those whom it is for: whose it is, and the GUID number of his own copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub(crate) account: AccountId,
    pub(crate) number: u64,
}

impl Origin {
    /// The letter that is the message `guid` of `account`.
    pub const fn of(account: AccountId, Guid(guid): Guid) -> Origin {
        Origin { account, number: guid as u64 }
    }
}

/// Messages that were filed into another mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filed {
    /// All that were asked for up to this UID were filed; those above it were too many for one go, and are to be asked for again.
    pub last: Uid,
    /// How many.
    pub count: u32,
    /// The UIDs that they have now, in the order of those that they had.
    pub now: UidRange,
}
