//! News: what a page that is open is told while it is, as server-sent events.
//!
//! An event says how all mailboxes are, and not what has happened: so whoever has missed one has missed nothing when the next one is there.
//!
//! Answers to: the HTML Standard section 9.2 (server-sent events).

use alloc::string::String;
use core::fmt::Write;

use http::{Field, Open, Pace, Reply};
use machine::Micros;
use store::{AccountId, OUTBOX, Store};

use crate::assets::digest;

/// Mailboxes that an event speaks of.
const MAILBOXES_MAX: usize = 64;

/// How long nothing is said. Whoever stands between a browser and us may take a minute of silence for the end.
const SILENCE: Micros = Micros::from_secs(25);

/// A comment.
const SIGN_OF_LIFE: &[u8] = b":\n\n";

/// How the mailboxes of an account are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct News(String);

impl News {
    /// As they are now: of each how many messages were not read, and a number that grows with every change. The outbox is left out while nothing is in it, as beside pages.
    pub fn of(store: &Store, account: AccountId) -> News {
        let mut text = String::from("data: {");
        let known = store.account(account);
        for (id, _) in known.iter().flat_map(|known| known.mailboxes()).take(MAILBOXES_MAX) {
            let comma = if text.ends_with('{') { "" } else { "," };
            if let Some(info) =
                store.mailbox(account, id).filter(|info| id != OUTBOX || info.messages > 0)
            {
                // Writing into a string cannot fail.
                let _ =
                    write!(text, "{comma}\"{}\":[{},{}]", id.0, info.unseen, info.highest_modseq.0);
            }
        }
        text.push_str("}\n\n");
        News(text)
    }

    /// By which it is told from other news.
    pub fn digest(&self) -> u64 {
        digest(self.0.as_bytes())
    }

    /// As it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The reply that begins with them, and stays open under this number.
    pub fn reply(self, number: u64) -> Reply {
        let open =
            Open { number, pace: Pace::Program { silence: SILENCE, sign_of_life: SIGN_OF_LIFE } };
        Reply::open("text/event-stream", self.0.into_bytes(), open)
            .with(Field::CacheControl, "no-store")
            .with(Field::XContentTypeOptions, "nosniff")
    }
}
