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
pub(crate) mod shown;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use channel::{Class, Ticket};
use machine::CoreId;
use store::{Outcome, Uid};
use tls::{Certificate, Day};

use crate::engine::Engine;
use crate::expiry::Expiry;
use crate::links::Message;
use crate::subsystem::Subsystem;

use keeping::Keeping;
use reading::Reading;
use shown::{Entry, Origin};

pub use asking::CERTIFICATE_PATH;
pub(crate) use asking::{METHODS, UPLOAD_BYTES_MAX, Wish, reply_to, unknown};
pub(crate) use shown::{Obstacle, Replaced, Shown, Upload};

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
            self.services.web.forget_pages();
        }
    }

    /// The core that keeps them has replaced one.
    pub(crate) fn certificates_arrived(&mut self, from: CoreId, shown: Arc<Shown>) {
        self.show(shown);
        self.common.links.tell(from, Class::Answer, Message::CertificatesShown);
    }
}
