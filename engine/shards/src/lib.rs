//! The sharded store client. With it, sessions make the same calls on every core, for accounts of
//! any core.
//!
//! A core owns the shards of some accounts, and has a store for them: [`Owned`]. Operations on
//! other accounts are requests to the cores that own them. `remote` sends such a request to its
//! owner through the ring. If a call needs an immediate answer, `remote` gives it from the owner's
//! last report. The result arrives as a [`store::Wake`], as it does for sessions of the owner. A
//! message for accounts of several cores is divided into one message for each of these cores:
//! `multi_shard`.
//!
//! | file | story |
//! |---|---|
//! | `sharded_store`, `deliveries` | the calls of a core's sessions, and their routing |
//! | `remote`, `server` | requests to other owners, and requests of other cores to this owner |
//! | `multi_shard` | messages for accounts of several cores |
//! | `serving` | messages between cores that no session causes: the start, passwords, the end |
//! | `messages`, `purpose`, `point` | the messages between cores, and the wait points for them |
//! | `ask`, `question` | questions to the owner of an account or fact; the list of them |
//! | `usage`, `sending`, `opening`, `greylisting` | one question each, and its reply |
//! | `destination` | the questions about a destination of mail, and its owner's messages |
//! | `owned`, `allowances`, `maildrop` | the state that an owner keeps of accounts |
//! | `facts` | the state that an owner keeps of external hosts |
//! | `known` | the accounts as all cores know them |
//!
//! The disk has one queue for this machine, so one core owns the disk: the first core. It opens the
//! disk, creates the accounts, and gives the other cores their shares of the shards. After that,
//! the stores of the other cores forward their disk requests to the first core (crate `store`).
//!
//! | | for an account of this core | for an account of another core |
//! |---|---|---|
//! | accounts | a snapshot that all cores share | the same |
//! | a message's octets | into the store's buffer | into a page, which is sent and returned |
//! | a body's octets | in the store's buffer | in the owner's buffer, which is sent and returned |
//! | a maildrop | locked | locked by the owner, and sent |
//!
//! Invariants:
//! - The queues for other cores are bounded by the numbers of pages, messages, reads and sessions.
//! - Requests to a core stay in order. So the owner gets the end of a message after all of its
//!   octets.
//! - With one core there are no requests: each call goes to the local store.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allowances;
mod ask;
mod deliveries;
mod destination;
mod facts;
mod greylisting;
mod known;
mod maildrop;
mod messages;
mod multi_shard;
mod opening;
mod owned;
mod point;
mod purpose;
mod question;
mod remote;
mod sending;
mod server;
mod serving;
mod sharded_store;
mod usage;

pub use allowances::{Daily, Occurrence, ReachedLimit, SendingDecision};
pub use ask::{GiveBack, OwnerQuery, Subject};
pub use destination::{DestinationEvent, DestinationNotice, DomainPolicy};
pub use facts::{CONNECTIONS_MAX, Facts};
pub use greylisting::{GreylistQuery, Greylisted};
pub use known::KnownAccount;
pub use maildrop::{MaildropSnapshot, Maildrops, NotOpened};
pub use messages::{CoreEvent, DeliveryHandle, Limits, RemoteDeliveryId, ShardMessage};
pub use opening::{OpenMaildrop, Opened};
pub use owned::Owned;
pub use question::{OwnerQuestion, Reply};
pub use sending::{MaySend, Permitted};
pub use sharded_store::{SUMMARIZER, ShardedStore};
pub use usage::{UsageOf, Used};
