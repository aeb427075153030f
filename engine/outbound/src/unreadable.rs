//! Handles an entry with a head that cannot be read: its recipients are not known.
//!
//! Such an entry comes from a fault of this server or of its disk, never from a sender. The server
//! has accepted the message, so the message must not be lost silently. A line on the console names
//! the entry, the queue page shows it, and its account gets a notice. The entry stays until an
//! administrator deletes it, and is read again in the machine's next life.
//!
//! Invariants:
//! - The notice is delivered once, whenever the power fails: it has its own origin, and is marked
//!   after its delivery.
//! - Nothing else is done with the entry: it is not removed, and no recipient gets it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;
use message::date_time;
use store::{OutboxEntry, Refusal};

use super::attempt_context::AttemptCx;
use super::context::OutboundContext;
use super::failure::FailureReason;

/// The progress of an attempt with an entry that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// The account is to get the notice.
    Wanted,
    /// The store has refused the notice in this round.
    Deferred,
    /// The note of the notice's arrival was looked up.
    LookedFor,
}

/// The next step for an unreadable entry, when all earlier results are durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoticeStep {
    /// The notice is delivered.
    Deliver,
    /// The note of the notice's arrival is removed, if there is one.
    ForgetNote,
    /// The notice is delivered when there is space for it.
    WaitForRoom,
    /// The entry is read again later.
    ReadAgain,
}

impl Notice {
    /// The next step for the entry with this record.
    pub(super) fn next(&mut self, record: OutboxEntry) -> NoticeStep {
        match self {
            Notice::Wanted if !record.is_damage_reported() => NoticeStep::Deliver,
            Notice::Wanted => {
                *self = Notice::LookedFor;
                NoticeStep::ForgetNote
            }
            Notice::Deferred => NoticeStep::WaitForRoom,
            Notice::LookedFor => NoticeStep::ReadAgain,
        }
    }

    /// Whether the account has the notice, and the mark of its delivery is durable.
    pub(super) fn is_delivered(self) -> bool {
        self == Notice::LookedFor
    }
}

/// Tells the operator that the entry cannot be sent, and why. The line appears once in this life of
/// the machine.
pub(super) fn tell_operator(why: &FailureReason, cx: &mut AttemptCx<'_, '_>) {
    let (account, uid) = cx.place;
    let OutboundContext { console, store, .. } = &mut *cx.parts;
    if cx.queue.index.must_tell_operator(cx.place) {
        let (own, why) =
            (store.own.store.account(account).map_or("", |own| own.address()), why.words());
        console.print(format_args!(
            "queue: message {} in the outbox of {own} cannot be sent: {why}",
            uid.0
        ));
    }
}

/// The notice to the account, as a message.
pub(super) fn notice_text(
    why: &FailureReason,
    cx: &mut AttemptCx<'_, '_>,
) -> Result<Vec<u8>, Refusal> {
    let (info, why) = (cx.info()?, why.words());
    let to = cx.parts.store.own.store.account(cx.place.0).ok_or(Refusal::NoSuchAccount)?.address();
    let queue_id = cx.queue.queue_ids.draw();
    let hostname = cx.queue.config.hostname();
    let queue_id = core::str::from_utf8(queue_id.as_bytes()).unwrap_or_default();
    let (now, arrived) = (date(cx.parts.turn.wall), date(info.internal_date));
    let text = format!(
        "Date: {now}\r\n\
             From: Mail delivery <postmaster@{hostname}>\r\n\
             To: <{to}>\r\n\
             Subject: A message in your outbox cannot be sent\r\n\
             Message-ID: <{queue_id}.notice@{hostname}>\r\n\
             Auto-Submitted: auto-generated\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: 8bit\r\n\
             \r\n\
             A message in your outbox cannot be sent:\r\n\
             {why}.\r\n\
             \r\n\
             {hostname} accepted it on {arrived}.\r\n\
             Its size is {} bytes, with its envelope.\r\n\
             \r\n\
             It stays in the queue, where the administrators of this server can see it.\r\n\
             If it is important, send it again.\r\n",
        info.octets
    );
    Ok(text.into_bytes())
}

fn date(time: UnixTime) -> String {
    String::from_utf8_lossy(&date_time(time)).into_owned()
}
