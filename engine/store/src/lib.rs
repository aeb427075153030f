//! The mail store: every account, mailbox and message of a Barepost machine, in an append-only log
//! on a raw disk.
//!
//! `docs/format.md` defines the format: every byte, every invariant and every power cut. In short:
//! superblocks in four slots say where the journal of each of the 64 shards begins. A journal is a
//! chain of hashed blocks, each written twice. Message bodies are in segments. A segment consists
//! of chunks, and each chunk names its own contents and its own place. One flush commits the
//! changes of a whole turn. No caller gets an answer before that flush.
//!
//! The store never waits. It hands out [`machine::DiskRequest`]s ([`Store::next_request`]) and
//! takes their completions ([`Store::disk_completed`]). Each operation that was requested ends as a
//! [`Wake`] ([`Store::next_wake`]).
//!
//! | where | what |
//! |---|---|
//! | `layout`, `superblock`, `block` | the format of the disk and of journals: parse and emit |
//! | `chunk`, `frame`, `record` | the format of bodies and records: parse and emit |
//! | `outbox`, `types`, `body`, `outcome` | values from callers, and results for them |
//! | `format3`, `format4` | how each format stores outbox entries |
//! | `messages`, `notes`, `quotas`, `conversations` | parts of an account in memory |
//! | `mailbox`, `account`, `index` | the index; only durable records change it |
//! | `backing`, `pool` | requests in flight, buffers in memory |
//! | `segment`, `segments` | space on the disk |
//! | `indexes`, `journal`, `journals` | all shards: indexes and gathered records |
//! | `metadata_changes`, `group` | pending metadata changes, groups in flight |
//! | `capacity` | how full the disk and the index are |
//! | `disk_requests`, `disk_owner` | the core that owns the disk, and its client cores |
//! | `index_shares` | how the cores share the limit of the index |
//! | `parts` | all of these together, for the files below |
//! | `writing`, `checkpoint`, `sealing` | appending to journals, checkpoints, group commit |
//! | `retry` | service after a failed write |
//! | `delivery`, `reading`, `cleaning` | arriving messages, reads of bodies, compaction |
//! | `lanes`, `replay`, `rebuild`, `opening` | building the index from a disk |
//! | `condition`, `store` | the public interface, and the traffic with disk and cores |
//! | `fsck`, `beginning` | helpers that work on a store from outside |
//!
//! A file imports only files that are above it in this table.
//!
//! Invariants:
//! - Nothing is visible, and no caller is answered, before it is durable.
//! - A page that holds acknowledged data is not overwritten before everything in it is dead.
//! - Nothing read from the disk is trusted without its keyed hash, and no disk content can make the
//!   store panic.
//! - In steady operation the store allocates memory only where the index grows.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod backing;
mod beginning;
mod block;
mod body;
mod bytes;
mod capacity;
mod checkpoint;
mod chunk;
mod cleaning;
mod condition;
mod conversations;
mod delivery;
mod digest;
mod disk_owner;
mod disk_requests;
mod finding;
mod format3;
mod format4;
mod frame;
mod fsck;
mod group;
mod hash;
mod index;
mod index_shares;
mod indexes;
mod journal;
mod journals;
mod lanes;
mod layout;
mod mailbox;
mod messages;
mod metadata_changes;
mod notes;
mod opening;
mod outbox;
mod outcome;
mod parts;
mod pending;
mod pool;
mod quotas;
mod reading;
mod rebuild;
mod record;
mod replay;
mod retry;
mod sealing;
mod segment;
mod segments;
mod shards;
mod store;
mod superblock;
#[cfg(test)]
mod tests;
mod types;
mod walk;
mod writing;

pub use account::{AccountInfo, NewAccount, NewPassword};
pub use beginning::PartialMessage;
pub use body::Body;
pub use capacity::{BodySpace, Capacity, Fill};
pub use chunk::{
    BODY_OCTETS_MAX, CHUNK_OCTETS, SHORT_HEADER_BYTES_MAX, SHORT_HEADERS_BYTES_MAX, SUMMARY_BYTES,
    Summarizer,
};
pub use delivery::DeliveryId;
pub use disk_requests::{ClientRequest, OwnerNotice};
pub use finding::{Damage, Finding, NamedFinding, Names};
pub use fsck::{AccountReport, DiskReport, MailboxReport, ReadSectors, UnreadableSectors, fsck};
pub use index::{RESIDENT_BYTES_PER_MESSAGE, RESIDENT_BYTES_PLACED};
pub use layout::{CRASH_SECTOR, CRASH_SECTORS, PAGE_BYTES, SHARDS};
pub use metadata_changes::{MAILBOX_NAME_MAX, MAILBOXES_MAX};
pub use notes::{
    ARRIVALS_MAX, ARRIVALS_OF_MESSAGE_MAX, NOTE_BYTES_MAX, NOTE_KEY_MAX, NOTES_BYTES_MAX,
    NOTES_MAX, NoteChange,
};
pub use outbox::{
    EntryChange, EntrySource, EntryState, OutboxEntry, Packing, RESIDENT_BYTES_QUEUED,
};
pub use outcome::{OpenRefusal, Outcome, Refusal, State, Wake, WhyReadOnly};
pub use quotas::{OUTBOX_PART, Usage};
pub use store::{Owners, Share, Store};
pub use superblock::FORMAT_VERSION;
pub use types::{
    ARCHIVE, AccountId, BUILT_IN, Closing, DRAFTS, DatePlace, DiskSpace, Filed, Flags, Guid,
    HeadSize, INBOX, JUNK, Limits, MailboxId, MailboxInfo, MarkChange, Marks, MessageInfo, Modseq,
    OUTBOX, Recipient, SENT, SentId, TRASH, Uid, UidRange,
};
