//! The certificates that took the place of others in former lives: read from the log before anybody is served.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{Instant, UnixTime};
use store::{AccountId, INBOX, NewAccount, Outcome, Refusal, Uid};
use tasks::Continuation;

use crate::engine::Engine;
use crate::life::{ENGINE, Life, READ_AGAIN};
use crate::making;

use super::Point;
use super::{ACCOUNT, Entry, Expect, Origin, read};

const READ: Continuation = Continuation { frame: ENGINE, entry: Point::Read.entry() };
const MADE: Continuation = Continuation { frame: ENGINE, entry: making::Point::Made.entry() };

/// How often a part is read again that the disk could not read.
const TRIES: u8 = 10;

/// What is read.
pub(super) struct Reading {
    account: AccountId,
    /// The oldest first.
    letters: VecDeque<Letter>,
    /// What of the first of them is there.
    pem: Vec<u8>,
    is_under_way: bool,
    /// How often the disk could not read the next part, and when it is read again.
    failed: u8,
    again: Option<Instant>,
}

struct Letter {
    uid: Uid,
    octets: usize,
    date: UnixTime,
}

impl super::Certificates {
    /// Whether a part of a stored certificate is to be read now.
    pub(crate) fn is_to_be_read(&self, now: Instant) -> bool {
        let waits = |reading: &Reading| reading.is_under_way || reading.again.is_some_and(|at| now < at);
        matches!(&self.expect, Expect::Letters(reading) if !waits(reading))
    }

    /// The machine stops: no part is read again.
    pub(crate) fn stop_reading(&mut self) {
        if let Expect::Letters(reading) = &mut self.expect {
            reading.again = None;
        }
    }

    /// When a part is read again that the disk could not read.
    pub(crate) fn read_again_at(&self) -> Option<Instant> {
        match &self.expect {
            Expect::Letters(reading) => reading.again,
            _ => None,
        }
    }
}

impl Engine {
    /// Whether the account is to be made in which certificates are kept. It is tried once.
    pub(crate) fn is_without_account_of_certificates(&mut self) -> bool {
        self.common.connections.tls().is_there()
            && self.common.store.own.store.find(ACCOUNT).is_none()
            && !core::mem::replace(&mut self.certificates.is_account_made, true)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn make_account_of_certificates(&mut self) {
        let account = NewAccount { address: ACCOUNT, aliases: &[], password_hash: "", verifier: "" };
        match self.common.store.own.store.create_account(&account, self.common.turn.wall, MADE) {
            Ok(_) => self.life = Life::AccountMade,
            Err(refusal) => self.account_refused(refusal),
        }
    }

    pub(crate) fn begin_reading_certificates(&mut self) {
        let store = &self.common.store.own.store;
        let Some(account) = store.find(ACCOUNT).filter(|_| self.common.connections.tls().is_there()) else { return };
        let letters = store.messages(account, INBOX);
        let letter = |letter: store::MessageInfo| Letter {
            uid: letter.uid,
            octets: letter.octets as usize,
            date: letter.internal_date,
        };
        let letters = letters.map(letter).collect();
        let reading = Reading { account, letters, pem: Vec::new(), is_under_way: false, failed: 0, again: None };
        self.certificates.expect = Expect::Letters(Box::new(reading));
    }

    /// Goes on reading; when all is read, the shards are shared out.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_next_certificate(&mut self) {
        let is_to_be_read = self.certificates.is_to_be_read(self.common.turn.now);
        let Expect::Letters(reading) = &mut self.certificates.expect else { return self.begin_sharing() };
        if !is_to_be_read {
            return;
        }
        reading.again = None;
        let Some(letter) = reading.letters.front() else {
            self.certificates.expect = Expect::Upload;
            return self.begin_sharing();
        };
        if reading.pem.len() >= letter.octets {
            return self.letter_is_read();
        }
        let offset = reading.pem.len() as u32;
        match self.common.store.own.store.read(reading.account, INBOX, letter.uid, offset, READ) {
            Ok(()) => reading.is_under_way = true,
            Err(Refusal::Busy) => {}
            Err(refusal) => self.letter_is_lost(refusal),
        }
    }

    /// A part of a letter is there, or cannot be read.
    #[cold]
    #[inline(never)]
    pub(super) fn certificate_read(&mut self, outcome: Outcome) {
        if let Expect::Letters(reading) = &mut self.certificates.expect {
            reading.is_under_way = false;
            match &outcome {
                Outcome::Body(body) => {
                    reading.failed = 0;
                    reading.pem.extend_from_slice(body.bytes());
                }
                // The disk may be away for a while only.
                Outcome::Refused(Refusal::Unreadable) if reading.failed < TRIES => {
                    reading.failed += 1;
                    reading.again = Some(self.common.turn.now + READ_AGAIN);
                }
                Outcome::Refused(refusal) => self.letter_is_lost(*refusal),
                _ => {}
            }
        }
        self.common.store.forget(outcome);
    }

    fn letter_is_read(&mut self) {
        let Expect::Letters(reading) = &mut self.certificates.expect else { return };
        let pem = core::mem::take(&mut reading.pem);
        let Some(Letter { uid, date, .. }) = reading.letters.pop_front() else { return };
        let next = read(&pem).and_then(|certificate| {
            self.certificates.shown.with(Entry { certificate, since: date, origin: Origin::Letter(uid) })
        });
        match next {
            Ok(next) => self.show(Arc::new(next)),
            Err(why) => {
                self.common.console.print(format_args!("tls: a certificate that was sent does not count: {why}"))
            }
        }
    }

    fn letter_is_lost(&mut self, refusal: Refusal) {
        if let Expect::Letters(reading) = &mut self.certificates.expect {
            reading.failed = 0;
            reading.pem.clear();
            let lost = reading.letters.pop_front().filter(|_| refusal == Refusal::Unreadable);
            self.certificates.unread.extend(lost.map(|letter| letter.uid));
            self.common.console.print(format_args!("tls: a certificate that was sent cannot be read: {refusal:?}"));
        }
    }
}
