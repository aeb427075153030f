//! Certificates that take the place of others while the machine serves: checked as those of the configuration are, kept in the log, shown on all cores.
//!
//! A certificate that an administrator sends is a letter in an account of the machine's own, with its chain and its key, in PEM as it came. One core owns that account and is the
//! only one that replaces anything, one certificate at a time:
//!
//! ```text
//!   a session, on any core ── the PEM ──▸ the owner: is it right?  ─▸ a letter, durable ─▸ all cores show it ─▸ letters that no longer count go
//!                          ◂── why not, or what there is now ─────────────────────────────────────────┘
//! ```
//!
//! **The rule.** The new one is shown in place of every other for the names that both are for. It stands before the first that it shares a name with; those all of whose names it
//! is for are gone. Where it shares none it is the last. So who takes a name of the first takes its place, which is shown to everybody who asks for no name that another has. After
//! a restart the same is done again with the certificates of the configuration, letter by letter; but one of the configuration whose validity began after a letter came is newer than
//! that letter, and stays.
//!
//! Invariants:
//! - Nobody is told that a certificate is shown before it is durable, and all cores show it.
//! - A letter is removed only after the one is durable that takes its place: a power cut finds the old one or the new one.
//! - Lists of certificates have versions, and a core never goes back to an older one.

mod asking;
mod keeping;
mod reading;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use channel::{Class, Ticket};
use configuration::CERTIFICATES_MAX;
use http::Remembered;
use machine::{CoreId, UnixTime};
use store::{Outcome, Uid};
use tls::{Certificate, Day};

use crate::cores::Message;
use crate::engine::Engine;
use crate::expiry::Expiry;
use crate::subsystem::Subsystem;

use keeping::Keeping;
use reading::Reading;

pub use asking::CERTIFICATE_PATH;
pub(crate) use asking::{METHODS, UPLOAD_BYTES_MAX, Wish, reply_to, unknown};

tasks::points! {
    /// Where the engine waits for the store with a certificate.
    pub(crate) enum Point of Subsystem::Certificates;
    /// One that was kept is read.
    Read,
    /// One is kept.
    Kept,
    /// One that no longer counts is removed.
    Removed,
}

/// The account whose letters are certificates. No address is like it, and so nobody can send anything to it or log in.
const ACCOUNT: &str = "certificates";

/// Certificates that wait for their turn.
const UPLOADS_MAX: usize = 8;

/// Why a certificate does not count, in few words; the reason goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Obstacle {
    /// It is not to be used.
    Unfit,
    /// There is no space to keep it.
    NoSpace,
    /// It may be tried again.
    Later,
}

/// What came of a certificate that was sent: what there is now, or why there is no change.
pub(crate) type Replaced = Result<String, (Obstacle, String)>;

/// A certificate that is to take the place of others.
pub(crate) struct Upload {
    /// The session that sent it.
    pub(crate) ticket: Ticket,
    /// With its chain and its key.
    pub(crate) pem: Vec<u8>,
}

/// The certificates that are shown, the one for everybody else first.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    version: u32,
    all: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    certificate: Certificate,
    /// Since when it counts: since it came, or, of the configuration's, since it is valid.
    since: UnixTime,
    origin: Origin,
}

/// Where a certificate is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Configuration,
    /// A letter that is on its way into the store.
    Arriving,
    Letter(Uid),
}

/// What a core knows of all this.
pub(crate) struct Certificates {
    shown: Arc<Shown>,
    /// Those that are to take the place of others, the first one first.
    pub(crate) uploads: VecDeque<Upload>,
    expect: Expect,
    /// The account was asked for.
    is_account_made: bool,
    /// Stored certificates that the disk could not read. They may be in force, and are not removed.
    unread: Vec<Uid>,
}

/// What the replacing waits for.
enum Expect {
    /// A certificate.
    Upload,
    /// Letters of former lives.
    Letters(Box<Reading>),
    /// The store, which keeps one.
    Kept(Box<Keeping>),
    /// Other cores, so many of them, to show one.
    Shown { ticket: Ticket, left: usize },
}

impl Certificates {
    /// `configured`: the one for everybody else first.
    pub(crate) fn new(configured: Vec<Certificate>) -> Certificates {
        let entry = |certificate: Certificate| Entry {
            since: certificate.valid_from(),
            certificate,
            origin: Origin::Configuration,
        };
        let shown = Shown { version: 0, all: configured.into_iter().map(entry).collect() };
        Certificates {
            shown: Arc::new(shown),
            uploads: VecDeque::new(),
            expect: Expect::Upload,
            is_account_made: false,
            unread: Vec::new(),
        }
    }

    pub(crate) fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }

    /// Whether certificates are to take the place of others.
    pub(crate) fn has_uploads(&self) -> bool {
        !self.uploads.is_empty()
    }

    /// The store could not make the account, and is asked again.
    pub(crate) fn make_account_again(&mut self) {
        self.is_account_made = false;
    }
}

impl Shown {
    /// The list with `new` in it. Errors: why not.
    fn with(&self, new: Entry) -> Result<Shown, String> {
        let is_newer = |own: &Entry| own.origin == Origin::Configuration && own.since > new.since;
        if self.all.iter().any(|own| is_newer(own) && own.certificate.covers(&new.certificate)) {
            return Err("the configuration has one for the same names whose validity began later".into());
        }
        let shares = |own: &Entry| !is_newer(own) && own.certificate.shares_a_name_with(&new.certificate);
        let stays = |own: &&Entry| is_newer(own) || !new.certificate.covers(&own.certificate);
        let place = self.all.iter().position(shares).unwrap_or(self.all.len());
        let (before, behind) = self.all.split_at_checked(place).unwrap_or_default();
        let behind = behind.iter().filter(stays);
        let all: Vec<Entry> = before.iter().chain([&new]).chain(behind).cloned().collect();
        let of_letters = all.iter().filter(|own| own.origin != Origin::Configuration).count();
        if of_letters > CERTIFICATES_MAX {
            return Err(format!("there are {CERTIFICATES_MAX} for other names already"));
        }
        Ok(Shown { version: self.version + 1, all })
    }

    fn certificates(&self) -> Vec<Certificate> {
        self.all.iter().map(|entry| entry.certificate.clone()).collect()
    }

    /// Whether the letter of this number is shown.
    fn has_letter(&self, uid: Uid) -> bool {
        self.all.iter().any(|entry| entry.origin == Origin::Letter(uid))
    }
}

/// The certificates, for people: a paragraph each.
pub(crate) fn described(certificates: &[Certificate]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let names: Vec<&str> = certificate.names().collect();
        let (until, fingerprint) = (Day(certificate.valid_until()), certificate.fingerprint());
        let separator = if text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}names: {}\nvalid until: {until}\nSHA-256: {fingerprint}\n", names.join(", "));
    }
    text
}

/// Reads what was sent, or kept.
///
/// Errors: why it is not to be used.
fn read(pem: &[u8]) -> Result<Certificate, String> {
    let certificate = Certificate::parse(pem, pem).map_err(|error| error.to_string())?;
    if certificate.names().next().is_none() {
        return Err("the certificate is for no name: no DNS name is among its subject's alternative names".into());
    }
    Ok(certificate)
}

impl Engine {
    /// Whether a certificate is there, and nothing keeps it from being looked at.
    pub(crate) fn has_upload_to_take_up(&self) -> bool {
        self.certificates.has_uploads() && matches!(self.certificates.expect, Expect::Upload)
    }

    /// The next certificate goes to the core that keeps them, or is looked at if that is this one.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_up_upload(&mut self) {
        while self.certificates.uploads.len() > UPLOADS_MAX {
            let Some(upload) = self.certificates.uploads.pop_back() else { return };
            self.answer_upload(upload.ticket, Err((Obstacle::Later, "too many at a time\n".into())));
        }
        if !self.has_upload_to_take_up() {
            return;
        }
        let Some(upload) = self.certificates.uploads.pop_front() else { return };
        match self.common.store.find(ACCOUNT) {
            None => {
                let why = "the machine has no account to keep it in\n";
                self.answer_upload(upload.ticket, Err((Obstacle::Later, why.into())));
            }
            Some(account) if self.common.store.owner(account) == self.core => self.begin_keeping(upload, account),
            Some(account) => {
                let keeper = self.common.store.owner(account);
                self.common.links.tell(keeper, Class::Answer, Message::Upload(Box::new(upload)));
            }
        }
    }

    /// The store has done what was asked of it with a certificate.
    pub(crate) fn certificate_woken(&mut self, entry: tasks::Entry, outcome: Outcome) {
        match Point::of(entry) {
            Some(Point::Read) => self.certificate_read(outcome),
            Some(Point::Kept) => self.certificate_kept(outcome),
            Some(Point::Removed) | None => {}
        }
    }

    /// Tells the session that sent a certificate what came of it.
    fn answer_upload(&mut self, ticket: Ticket, replaced: Replaced) {
        let uploaded = Message::Uploaded(ticket.frame, Box::new(replaced));
        self.common.links.tell(ticket.core, Class::Answer, uploaded);
    }

    /// Shows these certificates from now on, unless what is shown is newer.
    pub(crate) fn show(&mut self, shown: Arc<Shown>) {
        if shown.version <= self.certificates.shown.version {
            return;
        }
        let certificates = shown.certificates();
        if self.core == CoreId::FIRST {
            self.expiry = Expiry::of(&certificates);
        }
        self.common.connections.tls_mut().show(certificates);
        self.certificates.shown = shown;
        self.judge_certificates();
    }

    /// Finds out whether browsers may be told to use TLS alone. Cached responses say so: they are
    /// dropped when that changes.
    pub(crate) fn judge_certificates(&mut self) {
        if self.common.connections.tls_mut().judge_certificates(self.common.turn.wall) {
            self.common.pages = Remembered::nothing();
        }
    }

    /// The core that keeps them has replaced one.
    pub(crate) fn certificates_arrived(&mut self, from: CoreId, shown: Arc<Shown>) {
        self.show(shown);
        self.common.links.tell(from, Class::Answer, Message::CertificatesShown);
    }
}
