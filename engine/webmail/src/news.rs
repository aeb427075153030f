//! The state of the mailboxes as a server-sent event.
//!
//! An event has the whole state and not only the change. So a client that misses an event has the
//! full state again after the next event.
//!
//! Implements: the HTML Standard section 9.2 (server-sent events).

use alloc::string::String;
use core::fmt::Write;

use http::{OpenReply, Reply, ReplyField, ReplyPace};
use machine::Micros;
use store::{AccountId, OUTBOX, Store};

use crate::assets::digest;

/// The maximum number of mailboxes in an event.
const MAILBOXES_MAX: usize = 64;

/// The silence after which a comment is sent. Proxies may close a connection that is silent for a
/// minute.
const SILENCE: Micros = Micros::from_secs(25);

/// The comment that is sent after a silence.
const SIGN_OF_LIFE: &[u8] = b":\n\n";

/// The state of an account's mailboxes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailboxEvent(String);

impl MailboxEvent {
    /// The current state: for each mailbox the number of unread messages and the highest
    /// modification sequence. An empty outbox is left out, as in the side bar.
    pub fn of(store: &Store, account: AccountId) -> MailboxEvent {
        let mut text = String::from("data: {");
        let known = store.account(account);
        for (id, _) in known.iter().flat_map(|known| known.mailboxes()).take(MAILBOXES_MAX) {
            let comma = if text.ends_with('{') { "" } else { "," };
            if let Some(info) =
                store.mailbox(account, id).filter(|info| id != OUTBOX || info.messages > 0)
            {
                // Writing to a string cannot fail.
                let _ =
                    write!(text, "{comma}\"{}\":[{},{}]", id.0, info.unseen, info.highest_modseq.0);
            }
        }
        text.push_str("}\n\n");
        MailboxEvent(text)
    }

    /// A digest of the state, to detect changes.
    pub fn digest(&self) -> u64 {
        digest(self.0.as_bytes())
    }

    /// The bytes of the event.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The open reply with this number, which begins with this event.
    pub fn reply(self, number: u64) -> Reply {
        let open = OpenReply {
            number,
            pace: ReplyPace::Handler { silence: SILENCE, sign_of_life: SIGN_OF_LIFE },
        };
        Reply::open("text/event-stream", self.0.into_bytes(), open)
            .with(ReplyField::CacheControl, "no-store")
            .with(ReplyField::XContentTypeOptions, "nosniff")
    }
}
