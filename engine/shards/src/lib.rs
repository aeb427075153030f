//! The store as sessions see it: the same calls on every core, whoever owns the account.
//!
//! A core owns the shards of some accounts, and has a store of these: [`Owned`]. What concerns
//! other accounts is asked of the cores that own them: `distant` answers at once what has to be
//! answered at once, from what they have told, and sends the rest through the ring to the owner.
//! What comes of it comes back, and from there on is the same [`store::Wake`] that the owner's own
//! sessions get. A message for accounts of several cores is one message for each of them:
//! `spread`.
//!
//! | file | story |
//! |---|---|
//! | `archive`, `letters` | the calls of a core's clients, and where each goes |
//! | `distant`, `desk` | requests to other owners, and those of other cores here |
//! | `spread` | messages for accounts of several cores |
//! | `serving` | what cores tell each other by themselves: shares, passwords, the end |
//! | `messages`, `purpose`, `point` | what travels, and where something waits for it |
//! | `ask`, `question` | questions to the owner of an account or fact; the list of them |
//! | `usage`, `sending`, `opening`, `greylisting` | one question each, and its reply |
//! | `calling` | the questions about a destination of mail, and what its owner tells |
//! | `owned`, `allowances`, `maildrop` | what an owner has of accounts |
//! | `facts` | what an owner knows of hosts elsewhere |
//! | `known` | what all cores know of accounts |
//!
//! The disk has one queue for us, so one core keeps it: the first. It opens the disk, makes the
//! accounts, and hands over to the others their shares of the shards; their stores run errands to
//! it from then on (crate `store`).
//!
//! | | for an account of this core | for one of another |
//! |---|---|---|
//! | who is who | a snapshot that all cores share | the same |
//! | a letter's octets | into the store's buffer | into a page, which travels and comes home |
//! | a body's octets | in the store's buffer | in the owner's buffer, which travels and comes home |
//! | a maildrop | locked | locked by the owner, and sent |
//!
//! Invariants:
//! - What waits to be sent is bounded: by the pages, letters, reads and sessions that there are.
//! - Requests to a core keep their order. So the owner hears of a message's end after all of its
//!   octets.
//! - With one core nobody is asked: each call is the store's own.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allowances;
mod archive;
mod ask;
mod calling;
mod desk;
mod distant;
mod facts;
mod greylisting;
mod known;
mod letters;
mod maildrop;
mod messages;
mod opening;
mod owned;
mod point;
mod purpose;
mod question;
mod sending;
mod serving;
mod spread;
mod usage;

pub use allowances::{Daily, Met, Occurrence, Verdict};
pub use archive::Archive;
pub use ask::{GiveBack, Question, Subject};
pub use calling::{CallEvent, CallTold, DomainPolicy};
pub use facts::{CONNECTIONS_MAX, Facts};
pub use greylisting::{Greylisted, MayCome};
pub use known::KnownAccount;
pub use maildrop::{Maildrop, Maildrops, NotOpened};
pub use messages::{Event, Letter, LetterId, Limits, Message};
pub use opening::{OpenMaildrop, Opened};
pub use owned::Owned;
pub use question::{Asked, Reply};
pub use sending::{MaySend, Permitted};
pub use usage::{UsageOf, Used};
