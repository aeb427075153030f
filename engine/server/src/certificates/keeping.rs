//! A certificate on its way into the log, and from there to all cores.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use channel::Class;
use store::{AccountId, DeliveryId, INBOX, Outcome, Recipient, Refusal, Uid, UidRange};
use tasks::Continuation;
use tls::Day;

use crate::engine::Engine;
use crate::life::ENGINE;
use crate::links::Message;

use super::Point;
use super::{Certificates, Entry, Expect, Obstacle, Origin, Shown, Upload, described, read};

const KEPT: Continuation = Continuation { frame: ENGINE, entry: Point::Kept.entry() };
const REMOVED: Continuation = Continuation { frame: ENGINE, entry: Point::Removed.entry() };

/// A certificate that the store takes.
pub(super) struct Keeping {
    upload: Upload,
    account: AccountId,
    letter: DeliveryId,
    /// Octets of it that the store has taken.
    taken: usize,
    /// What is shown once it is kept.
    next: Shown,
}

impl Engine {
    /// A certificate was sent: it begins to be kept, unless something is wrong with it.
    pub(super) fn begin_keeping(&mut self, upload: Upload, account: AccountId) {
        let now = self.common.turn.wall;
        let checked = read(&upload.pem).and_then(|certificate| {
            certificate.check(now).map_err(|error| error.to_string())?;
            self.certificates.shown.with(Entry { certificate, since: now, origin: Origin::Arriving })
        });
        let next = match checked {
            Ok(next) => next,
            Err(why) => return self.give_up(&upload, Obstacle::Unfit, &why),
        };
        match self.common.store.own.store.begin(&[Recipient::inbox(account)]) {
            Err(refusal) => self.refused(&upload, refusal),
            Ok(letter) => {
                self.certificates.expect = Expect::Kept(Box::new(Keeping { upload, account, letter, taken: 0, next }));
                self.keep_on();
            }
        }
    }

    /// Gives the store as much as it takes, and when that is all, has it kept.
    fn keep_on(&mut self) {
        let Expect::Kept(keeping) = &mut self.certificates.expect else { return };
        let store = &mut self.common.store.own.store;
        let rest = keeping.upload.pem.get(keeping.taken..).unwrap_or_default();
        let letter = keeping.letter;
        let result = store.append(letter, rest, KEPT).and_then(|taken| {
            keeping.taken += taken;
            if taken < rest.len() { Ok(()) } else { store.commit(letter, self.common.turn.wall, KEPT) }
        });
        if let Err(refusal) = result {
            store.abort(letter);
            self.not_kept(refusal);
        }
    }

    /// The store has room for more of it, or has it, or refuses it.
    #[cold]
    #[inline(never)]
    pub(super) fn certificate_kept(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Room => self.keep_on(),
            Outcome::Delivered => self.show_kept(),
            Outcome::Refused(refusal) => self.not_kept(refusal),
            other => self.common.store.forget(other),
        }
    }

    fn not_kept(&mut self, refusal: Refusal) {
        if let Expect::Kept(keeping) = core::mem::replace(&mut self.certificates.expect, Expect::Upload) {
            self.common.store.own.store.abort(keeping.letter);
            self.refused(&keeping.upload, refusal);
        }
    }

    /// It is durable: from here on it counts.
    fn show_kept(&mut self) {
        let Expect::Kept(keeping) = core::mem::replace(&mut self.certificates.expect, Expect::Upload) else { return };
        let Keeping { upload, account, mut next, .. } = *keeping;
        let letters = self.common.store.own.store.messages(account, INBOX);
        let uid = letters.map(|letter| letter.uid).last().unwrap_or(Uid(0));
        for entry in next.all.iter_mut().filter(|entry| entry.origin == Origin::Arriving) {
            entry.origin = Origin::Letter(uid);
            let (names, until) = (entry.certificate.names(), Day(entry.certificate.valid_until()));
            let names = names.collect::<Vec<_>>().join(", ");
            self.common.console.print(format_args!("tls: there is a new certificate for {names}, valid until {until}"));
        }
        let next = Arc::new(next);
        self.show(Arc::clone(&next));
        let left = self.common.links.tell_others(Class::Answer, || Message::Certificates(Arc::clone(&next)));
        self.certificates.expect = Expect::Shown { ticket: upload.ticket, left };
        self.remove_what_is_not_shown(account);
        self.answer_when_shown();
    }

    /// Another core shows what it was told to.
    pub(crate) fn certificates_shown(&mut self) {
        if let Expect::Shown { left, .. } = &mut self.certificates.expect {
            *left -= 1;
        }
        self.answer_when_shown();
    }

    fn answer_when_shown(&mut self) {
        if let Expect::Shown { ticket, left: 0 } = self.certificates.expect {
            self.certificates.expect = Expect::Upload;
            let text = described(self.common.connections.tls().certificates());
            self.answer_upload(ticket, Ok(text));
        }
    }

    /// Removes stored certificates that are not in force any more, but none that the disk could not
    /// read. Those that cannot be removed now go with the next ones; newer ones take precedence.
    fn remove_what_is_not_shown(&mut self, account: AccountId) {
        let store = &mut self.common.store.own.store;
        let Certificates { shown, unread, .. } = &self.certificates;
        let letters = store.messages(account, INBOX).map(|letter| letter.uid);
        let counts = |uid: &Uid| shown.has_letter(*uid) || unread.contains(uid);
        let gone = letters.filter(|uid| !counts(uid)).map(|uid| UidRange { first: uid, last: uid });
        let gone: Vec<UidRange> = gone.take(UIDS_MAX).collect();
        if !gone.is_empty() {
            let _ = store.remove(account, INBOX, &gone, REMOVED);
        }
    }

    fn refused(&mut self, upload: &Upload, refusal: Refusal) {
        let (obstacle, why) = match refusal {
            Refusal::DiskFull | Refusal::IndexFull => (Obstacle::NoSpace, "the disk is full"),
            Refusal::ReadOnly | Refusal::WriteFailed => (Obstacle::Later, "the disk has failed"),
            _ => (Obstacle::Later, "the store is busy"),
        };
        self.give_up(upload, obstacle, why);
    }

    fn give_up(&mut self, upload: &Upload, obstacle: Obstacle, why: &str) {
        self.common.console.print(format_args!("tls: a certificate that was sent is not taken: {why}"));
        self.answer_upload(upload.ticket, Err((obstacle, format!("{why}\n"))));
    }
}

/// Letters that are removed at a time.
const UIDS_MAX: usize = 64;
