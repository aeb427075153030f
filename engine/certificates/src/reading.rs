//! Certificates that were uploaded before a restart. They are read from the log before any client
//! is served.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{Instant, Micros};
use store::{INBOX, Outcome, Refusal};
use tasks::Continuation;

use super::shown::{CertificateOrigin, ShownCertificate, read};
use super::state::{
    ACCOUNT, CertificateContext, CertificateLoading, CertificateWaitPoint, Certificates, Expect,
    FRAME, StoredCertificate,
};

const READ: Continuation = Continuation { frame: FRAME, entry: CertificateWaitPoint::Read.entry() };

/// The time after which a part that the disk could not read is read again.
const AGAIN: Micros = Micros::from_secs(1);

/// The maximum number of times that a part is read again after the disk could not read it.
const RETRIES_MAX: u8 = 10;

/// The progress of reading the stored certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadSoFar {
    /// A part is still to be read.
    Part,
    /// All stored certificates are read.
    All,
}

impl Certificates {
    /// Whether a part of a stored certificate must be read now.
    pub fn is_to_be_read(&self, now: Instant) -> bool {
        let waits = |reading: &CertificateLoading| {
            reading.is_under_way || reading.again.is_some_and(|at| now < at)
        };
        matches!(&self.expect, Expect::Stored(reading) if !waits(reading))
    }

    /// Makes a read that waits to be repeated due now, since the machine stops.
    pub fn stop_reading(&mut self) {
        if let Expect::Stored(reading) = &mut self.expect {
            reading.again = None;
        }
    }

    /// Starts to read the certificates stored before the restart, if TLS is configured.
    pub fn begin_reading(&mut self, cx: &CertificateContext<'_>) {
        let store = &cx.store.own.store;
        let Some(account) = store.find(ACCOUNT).filter(|_| cx.connections.tls().has_certificates())
        else {
            return;
        };
        let messages = store.messages(account, INBOX);
        let stored = |message: store::MessageInfo| StoredCertificate {
            uid: message.uid,
            octets: message.octets as usize,
            date: message.internal_date,
        };
        let messages = messages.map(stored).collect();
        let reading = CertificateLoading {
            account,
            messages,
            pem: Vec::new(),
            is_under_way: false,
            failed: 0,
            again: None,
        };
        self.expect = Expect::Stored(Box::new(reading));
    }

    /// Continues to read the stored certificates.
    #[cold]
    #[inline(never)]
    pub fn read_on(&mut self, cx: &mut CertificateContext<'_>) -> ReadSoFar {
        let is_to_be_read = self.is_to_be_read(cx.turn.now);
        let Expect::Stored(reading) = &mut self.expect else { return ReadSoFar::All };
        if !is_to_be_read {
            return ReadSoFar::Part;
        }
        reading.again = None;
        let Some(message) = reading.messages.front() else {
            self.expect = Expect::Upload;
            return ReadSoFar::All;
        };
        if reading.pem.len() >= message.octets {
            self.message_was_read(cx);
            return ReadSoFar::Part;
        }
        let offset = reading.pem.len() as u32;
        match cx.store.own.store.read(reading.account, INBOX, message.uid, offset, READ) {
            Ok(()) => reading.is_under_way = true,
            Err(Refusal::Busy) => {}
            Err(refusal) => self.message_is_lost(refusal, cx),
        }
        ReadSoFar::Part
    }

    /// Takes the store's answer: a part of a message, or the refusal to read it.
    #[cold]
    #[inline(never)]
    pub(super) fn was_read(&mut self, outcome: Outcome, cx: &mut CertificateContext<'_>) {
        let reading = self.reading();
        reading.is_under_way = false;
        match &outcome {
            Outcome::Body(body) => {
                reading.failed = 0;
                reading.pem.extend_from_slice(body.bytes());
            }
            // The disk may be unavailable for a short time only.
            Outcome::Refused(Refusal::Unreadable) if reading.failed < RETRIES_MAX => {
                reading.failed += 1;
                reading.again = Some(cx.turn.now + AGAIN);
            }
            Outcome::Refused(refusal) => self.message_is_lost(*refusal, cx),
            _ => unreachable!("a read gives a part of a message, or is refused"),
        }
        cx.store.forget(outcome);
    }

    /// The state of reading.
    fn reading(&mut self) -> &mut CertificateLoading {
        let Expect::Stored(reading) = &mut self.expect else {
            unreachable!("no certificate is being read")
        };
        reading
    }

    fn message_was_read(&mut self, cx: &mut CertificateContext<'_>) {
        let reading = self.reading();
        let pem = core::mem::take(&mut reading.pem);
        let Some(StoredCertificate { uid, date, .. }) = reading.messages.pop_front() else {
            unreachable!("the message that was read is the first one")
        };
        let next = read(&pem).and_then(|certificate| {
            self.shown.with(ShownCertificate {
                certificate,
                since: date,
                origin: CertificateOrigin::Stored(uid),
            })
        });
        match next {
            Ok(next) => self.show(Arc::new(next), cx),
            Err(why) => cx.console.print(format_args!("tls: uploaded certificate ignored: {why}")),
        }
    }

    fn message_is_lost(&mut self, refusal: Refusal, cx: &mut CertificateContext<'_>) {
        let reading = self.reading();
        reading.failed = 0;
        reading.pem.clear();
        let lost = reading.messages.pop_front().filter(|_| refusal == Refusal::Unreadable);
        self.unread.extend(lost.map(|message| message.uid));
        cx.console.print(format_args!("tls: uploaded certificate cannot be read: {refusal:?}"));
    }
}
