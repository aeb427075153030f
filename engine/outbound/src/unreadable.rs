//! An entry with a head that cannot be read: nothing says for which recipients it is.
//!
//! Such an entry comes from a fault of this server or of its disk, never from a sender. It was
//! accepted, so it is not lost silently: a line on the console names it, the queue page shows it,
//! and the account in whose outbox it lies gets a notice. It stays until an administrator deletes
//! it, and is read again in the machine's next life.
//!
//! Invariants:
//! - The notice comes once, whenever the power fails: it has an origin of its own, and a mark once
//!   it was delivered.
//! - Nothing else is done with the entry: it is not removed, and no recipient gets it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;
use message::date_time;
use store::{OutboxEntry, Refusal};

use super::attempt::AttemptCx;
use super::context::Context;
use super::courier::Courier;
use super::stages::{Deed, Notice, ROOM_AGAIN, Stage};
use super::why::Why;

impl Courier {
    /// The head of the entry cannot be read, for this reason: that is told.
    pub(super) fn is_unreadable(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let (account, uid) = self.place;
        let Context { console, store, .. } = &mut *cx.parts;
        // Words are there from an earlier attempt in this life.
        if cx.queue.standings.words(self.place).is_none() {
            let own = store.own.store.account(account).map_or("", |own| own.address());
            let why = self.why_unreadable().words();
            console.print(format_args!("queue: message {} in the outbox of {own} cannot be sent: {why}", uid.0));
        }
        (self.notice, self.stage) = (Some(Notice::Wanted), Stage::Sorted);
    }

    pub(super) fn why_unreadable(&self) -> Why {
        if self.round.is_damaged { Why::Damaged } else { Why::Unreadable }
    }

    /// Looks what comes next of such an entry.
    pub(super) fn sort_unreadable(&mut self, notice: Notice, record: OutboxEntry, cx: &mut AttemptCx<'_, '_>) {
        let is_noticed = record.is_damage_reported();
        self.stage = if !self.round.to_mark.is_empty() {
            Stage::Marked
        } else if !self.delivery.arrivals.is_empty() {
            Stage::Forgotten
        } else {
            match notice {
                Notice::Wanted if !is_noticed => Stage::Brought(Deed::Notice),
                Notice::Wanted => {
                    self.notice = Some(Notice::LookedFor);
                    self.delivery.arrivals.extend(self.noted(Deed::Notice, self.place.0, cx));
                    Stage::Sorted
                }
                Notice::PutOff => Stage::Over(Some(cx.parts.turn.now + ROOM_AGAIN)),
                Notice::LookedFor => Stage::Over(Some(self.after_damage(cx))),
            }
        };
    }

    /// Whether the entry is left alone until an administrator does something with it, or the
    /// machine starts again.
    pub(super) fn is_left_unreadable(&self) -> bool {
        self.notice == Some(Notice::LookedFor) && !self.round.is_damaged
    }

    /// What the account is told, as a message.
    pub(super) fn notice_text(&self, cx: &mut AttemptCx<'_, '_>) -> Result<Vec<u8>, Refusal> {
        let info = self.info(cx)?;
        let why = self.why_unreadable().words();
        let to = cx.parts.store.own.store.account(self.place.0).ok_or(Refusal::NoSuchAccount)?.address();
        let queue_id = cx.queue.queue_ids.draw();
        let hostname = cx.queue.config.hostname();
        let queue_id = core::str::from_utf8(queue_id.as_bytes()).unwrap_or_default();
        let (now, came) = (date(cx.parts.turn.wall), date(info.internal_date));
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
             {hostname} accepted it on {came}.\r\n\
             It has {} octets with its envelope.\r\n\
             \r\n\
             It stays in the queue, where the administrators of this server see it.\r\n\
             If it is important, send it again.\r\n",
            info.octets
        );
        Ok(text.into_bytes())
    }
}

fn date(time: UnixTime) -> String {
    String::from_utf8_lossy(&date_time(time)).into_owned()
}
