//! Stores an uploaded certificate, and then puts it into force on all cores.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{AccountId, INBOX, Outcome, Recipient, Refusal, Uid, UidRange};
use tasks::Continuation;
use tls::Day;

use super::rollout::Rollout;
use super::shown::{
    CertificateOrigin, CertificateUpload, ListVersion, Obstacle, ShownCertificate, described, read,
};
use super::state::{
    CertificateContext, CertificateEvent, CertificateWaitPoint, Certificates, Expect, FRAME,
    Keeping,
};

const KEPT: Continuation = Continuation { frame: FRAME, entry: CertificateWaitPoint::Kept.entry() };
const REMOVED: Continuation =
    Continuation { frame: FRAME, entry: CertificateWaitPoint::Removed.entry() };

impl Certificates {
    /// Starts to store an uploaded certificate, unless it is invalid.
    pub(super) fn begin_keeping(
        &mut self,
        upload: CertificateUpload,
        account: AccountId,
        cx: &mut CertificateContext<'_>,
    ) {
        let now = cx.turn.wall;
        let checked = read(&upload.pem).and_then(|certificate| {
            certificate.check(now).map_err(|error| error.to_string())?;
            self.shown.with(ShownCertificate {
                certificate,
                since: now,
                origin: CertificateOrigin::Arriving,
            })
        });
        let next = match checked {
            Ok(next) => next,
            Err(why) => return self.give_up(&upload, Obstacle::Unfit, &why, cx),
        };
        match cx.store.own.store.begin(&[Recipient::inbox(account)]) {
            Err(refusal) => self.refused(&upload, refusal, cx),
            Ok(delivery) => {
                self.expect =
                    Expect::Kept(Box::new(Keeping { upload, account, delivery, taken: 0, next }));
                self.keep_on(cx);
            }
        }
    }

    /// Gives the store as much as it accepts. After the last byte, asks it to commit.
    fn keep_on(&mut self, cx: &mut CertificateContext<'_>) {
        let Expect::Kept(keeping) = &mut self.expect else {
            unreachable!("no certificate is being kept")
        };
        let store = &mut cx.store.own.store;
        let rest = keeping.upload.pem.get(keeping.taken..).unwrap_or_default();
        let delivery = keeping.delivery;
        let result = store.append(delivery, rest, KEPT).and_then(|taken| {
            keeping.taken += taken;
            if taken < rest.len() { Ok(()) } else { store.commit(delivery, cx.turn.wall, KEPT) }
        });
        if let Err(refusal) = result {
            self.not_kept(refusal, cx);
        }
    }

    /// Takes the store's answer: it has space for more, has committed the certificate, or refuses
    /// it.
    #[cold]
    #[inline(never)]
    pub(super) fn was_kept(&mut self, outcome: Outcome, cx: &mut CertificateContext<'_>) {
        match outcome {
            Outcome::DeliveryReady => self.keep_on(cx),
            Outcome::Delivered => self.show_kept(cx),
            Outcome::Refused(refusal) => self.not_kept(refusal, cx),
            other => unreachable!("{other:?} does not answer a delivery"),
        }
    }

    /// Gives up a certificate that the store has refused. The delivery is aborted, because the next
    /// delivery uses the same continuation.
    fn not_kept(&mut self, refusal: Refusal, cx: &mut CertificateContext<'_>) {
        let keeping = self.kept();
        cx.store.own.store.abort(keeping.delivery);
        self.refused(&keeping.upload, refusal, cx);
    }

    /// Takes the certificate that was being stored. The next upload may begin.
    fn kept(&mut self) -> Box<Keeping> {
        let Expect::Kept(keeping) = core::mem::replace(&mut self.expect, Expect::Upload) else {
            unreachable!("no certificate is being kept")
        };
        keeping
    }

    /// Puts the new certificate into force, since it is durable.
    fn show_kept(&mut self, cx: &mut CertificateContext<'_>) {
        let Keeping { upload, account, mut next, .. } = *self.kept();
        let messages = cx.store.own.store.messages(account, INBOX);
        let uid = messages.map(|message| message.uid).last().unwrap_or(Uid(0));
        for entry in next.all.iter_mut().filter(|entry| entry.origin == CertificateOrigin::Arriving)
        {
            entry.origin = CertificateOrigin::Stored(uid);
            let (names, until) = (entry.certificate.names(), Day(entry.certificate.valid_until()));
            let names = names.collect::<Vec<_>>().join(", ");
            cx.console.print(format_args!("tls: new certificate for {names}, valid until {until}"));
        }
        let next = Arc::new(next);
        self.show(Arc::clone(&next), cx);
        self.expect = Expect::Shown(Rollout::new(upload.ticket, next.version));
        self.events.push_back(CertificateEvent::Show(next));
        self.remove_superseded(account, cx);
    }

    /// Sets the number of other cores that were told to show the new list.
    pub fn others_are_told(&mut self, others: usize, cx: &mut CertificateContext<'_>) {
        let Expect::Shown(rollout) = &mut self.expect else {
            unreachable!("no new certificate is shown")
        };
        rollout.others_are_told(others);
        self.answer_when_shown(cx);
    }

    /// Notes that another core shows the list of this version.
    pub fn another_shows(&mut self, version: ListVersion, cx: &mut CertificateContext<'_>) {
        if let Expect::Shown(rollout) = &mut self.expect {
            rollout.another_shows(version);
        }
        self.answer_when_shown(cx);
    }

    fn answer_when_shown(&mut self, cx: &mut CertificateContext<'_>) {
        if let Expect::Shown(rollout) = &self.expect
            && let Some(ticket) = rollout.to_be_answered()
        {
            self.expect = Expect::Upload;
            let text = described(cx.connections.tls().certificates());
            self.answer_upload(ticket, Ok(text));
        }
    }

    /// Removes stored certificates that are no longer in force, except those that the disk could
    /// not read. If a certificate cannot be removed now, newer certificates still take precedence
    /// over it, and the next removal includes it.
    fn remove_superseded(&mut self, account: AccountId, cx: &mut CertificateContext<'_>) {
        let store = &mut cx.store.own.store;
        let Certificates { shown, unread, .. } = &*self;
        let messages = store.messages(account, INBOX).map(|message| message.uid);
        let counts = |uid: &Uid| shown.has_message(*uid) || unread.contains(uid);
        let gone =
            messages.filter(|uid| !counts(uid)).map(|uid| UidRange { first: uid, last: uid });
        let gone: Vec<UidRange> = gone.take(UIDS_MAX).collect();
        if !gone.is_empty() {
            let _ = store.remove(account, INBOX, &gone, REMOVED);
        }
    }

    fn refused(
        &mut self,
        upload: &CertificateUpload,
        refusal: Refusal,
        cx: &mut CertificateContext<'_>,
    ) {
        let (obstacle, why) = match refusal {
            Refusal::DiskFull => (Obstacle::NoSpace, "the disk is full"),
            Refusal::IndexFull => {
                (Obstacle::NoSpace, "the server has reached its maximum number of messages")
            }
            Refusal::ReadOnly | Refusal::WriteFailed => (Obstacle::Later, "the disk has failed"),
            _ => (Obstacle::Later, "the store is busy"),
        };
        self.give_up(upload, obstacle, why, cx);
    }

    fn give_up(
        &mut self,
        upload: &CertificateUpload,
        obstacle: Obstacle,
        why: &str,
        cx: &mut CertificateContext<'_>,
    ) {
        cx.console.print(format_args!("tls: uploaded certificate rejected: {why}"));
        self.answer_upload(upload.ticket, Err((obstacle, format!("{why}\n"))));
    }
}

/// The most messages that are removed at a time.
const UIDS_MAX: usize = 64;
