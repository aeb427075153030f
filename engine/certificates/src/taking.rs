//! Uploads on their way to the core that owns the account, and new lists on their way back to all
//! cores.

use alloc::boxed::Box;
use alloc::sync::Arc;

use channel::Ticket;
use machine::CoreId;
use store::Outcome;

use super::expiry::Expiry;
use super::shown::{CertificateUpload, Obstacle, Replaced, Shown};
use super::state::{
    ACCOUNT, CertificateContext, CertificateEvent, CertificateWaitPoint, Certificates,
};

/// The most uploads that wait for their turn.
const UPLOADS_MAX: usize = 8;

impl Certificates {
    /// Queues an uploaded certificate.
    pub fn upload_arrived(&mut self, upload: CertificateUpload) {
        self.uploads.push_back(upload);
    }

    /// Refuses the newest uploads if more than [`UPLOADS_MAX`] wait. Then passes the next upload to
    /// the owner of the account, or stores it if this core is the owner.
    #[cold]
    #[inline(never)]
    pub(super) fn take_up(&mut self, cx: &mut CertificateContext<'_>) {
        while self.uploads.len() > UPLOADS_MAX {
            let Some(upload) = self.uploads.pop_back() else { return };
            self.answer_upload(
                upload.ticket,
                Err((
                    Obstacle::Later,
                    "Too many certificate uploads at the same time. Try again in a moment.\n"
                        .into(),
                )),
            );
        }
        if !self.can_take_up() {
            return;
        }
        let Some(upload) = self.uploads.pop_front() else { return };
        match cx.store.find(ACCOUNT) {
            None => {
                let why = "The server has no account in which to keep the certificate.\n";
                self.answer_upload(upload.ticket, Err((Obstacle::Later, why.into())));
            }
            Some(account) if cx.store.owner(account) == self.core => {
                self.begin_keeping(upload, account, cx)
            }
            Some(account) => self
                .events
                .push_back(CertificateEvent::Upload(cx.store.owner(account), Box::new(upload))),
        }
    }

    /// Takes the store's answer to a request about a certificate.
    pub fn woken(
        &mut self,
        entry: tasks::EntryPoint,
        outcome: Outcome,
        cx: &mut CertificateContext<'_>,
    ) {
        match CertificateWaitPoint::of(entry) {
            Some(CertificateWaitPoint::Read) => self.was_read(outcome, cx),
            Some(CertificateWaitPoint::Kept) => self.was_kept(outcome, cx),
            // If a certificate could not be removed, the next removal includes it.
            Some(CertificateWaitPoint::Removed) => {}
            None => unreachable!("the store was not asked at {entry:?}"),
        }
    }

    /// Tells the session that uploaded a certificate the result.
    pub(super) fn answer_upload(&mut self, ticket: Ticket, replaced: Replaced) {
        self.events.push_back(CertificateEvent::Replaced(ticket, replaced));
    }

    /// Shows these certificates from now on, unless the list in force has the same or a later
    /// version.
    pub(super) fn show(&mut self, shown: Arc<Shown>, cx: &mut CertificateContext<'_>) {
        if shown.version <= self.shown.version {
            return;
        }
        let certificates = shown.certificates();
        if self.core == CoreId::FIRST {
            self.expiry = Expiry::of(&certificates);
        }
        cx.connections.tls_mut().show(certificates);
        self.shown = shown;
        self.judge(cx);
    }

    /// Decides whether browsers are told to use TLS only. Cached responses contain this decision,
    /// so they are dropped when it changes.
    pub fn judge(&mut self, cx: &mut CertificateContext<'_>) {
        if cx.connections.tls_mut().judge_certificates(cx.turn.wall) {
            self.events.push_back(CertificateEvent::PagesAreOutdated);
        }
    }

    /// Shows a new list from the owner of the account, and reports that to the owner.
    pub fn arrived(&mut self, from: CoreId, shown: Arc<Shown>, cx: &mut CertificateContext<'_>) {
        let version = shown.version;
        self.show(shown, cx);
        self.events.push_back(CertificateEvent::Shows(from, version));
    }
}
