//! Reports to the sender of a message: that a recipient does not get it, that a recipient has it,
//! or that delivery is delayed.
//!
//! A failure report is about all recipients of a message that fail together, and a delay report
//! about all that do not have the message yet (`joint_reports`). A success report is about all
//! recipients of an entry that have it. A failure or success report has an origin for each
//! recipient, and a delay report one for each entry (`arrivals`). So each is delivered only once.
//! Reports go into the inbox of the account that sent the message, whichever of its addresses is
//! the reverse path. A report about a forwarded message goes to the sender, if the sender is
//! authenticated. Otherwise it goes into the inbox of the account that forwards the message. That
//! account also gets the reports about bounces, which have no sender (`forwarding`).
//!
//! Success is reported only if the sender asks for it. The report says that a local recipient has
//! the message, or that a remote host that sends no reports has accepted it. If a host can report
//! success, this server tells it which reports the sender wants, and the host sends its own.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use dns::Name;
use relay::report::{self, RecipientReport, Report, ReportKind, ReportTo, Returned};
use relay::{Enhanced, OutgoingRecipient, Reply, Return};
use store::{OutboxEntry, Refusal};

use super::attempt_context::AttemptCx;
use super::entry::Entry;
use super::failure::FailureReason;
use super::forwarding::account_address;
use super::reader::EntryReader;
use super::round::{JoinedEntry, JoinedRecipients, Round};
use super::stages::bits;

/// The size in bytes of the largest message that is returned as a whole.
const RETURNED_OCTETS_MAX: u32 = 1 << 20;

/// The status for a message that was relayed to a host that sends no reports (RFC 3886).
const RELAYED: Enhanced = Enhanced { class: 2, subject: 1, detail: 9 };

/// The status for a recipient of a joined entry that is delayed. The index remembers only the
/// reason, as text.
const DELAYED: Enhanced = Enhanced { class: 4, subject: 0, detail: 0 };

/// The status for a message that was delivered.
const DELIVERED: Enhanced = Enhanced { class: 2, subject: 0, detail: 0 };

/// The part of a report about one recipient.
struct ReportedRecipient<'a> {
    recipient: &'a OutgoingRecipient,
    status: Enhanced,
    /// The reason, without a full stop.
    words: String,
    host: Option<String>,
    reply: Option<&'a Reply>,
}

impl<'a> ReportedRecipient<'a> {
    /// The part about a recipient that does not get the message, with the reason.
    fn of(
        recipient: &'a OutgoingRecipient,
        why: &'a FailureReason,
        class: u8,
    ) -> ReportedRecipient<'a> {
        ReportedRecipient {
            recipient,
            status: why.status(class),
            words: why.words(),
            host: why.host(),
            reply: why.reply(),
        }
    }
}

/// The sources from which reports are written.
pub(super) struct ReportWriter<'a> {
    pub(super) entry: &'a Entry,
    pub(super) round: &'a Round,
    pub(super) reader: &'a EntryReader,
}

impl ReportWriter<'_> {
    /// The failure report up to the message. If the whole message is returned, the second value is
    /// the end of the report, which follows the message.
    pub(super) fn report(
        &self,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Refusal> {
        let mut all = Vec::new();
        for (bit, why) in self.round.failed() {
            all.push(ReportedRecipient::of(self.recipient(*bit)?, why, 5));
        }
        for JoinedEntry { record, recipients, .. } in self.round.joined() {
            let JoinedRecipients::Failed(failed) = recipients else { continue };
            for (bit, why) in failed {
                all.push(ReportedRecipient::of(self.joined_recipient(record, *bit)?, why, 5));
            }
        }
        let envelope = self.entry.envelope();
        let script = (envelope.returned == Some(Return::Full)).then_some(envelope.script);
        let goes_back =
            !self.round.is_damaged() && self.reader.message_octets() <= RETURNED_OCTETS_MAX;
        let script = script.filter(|_| goes_back);
        let (mut text, mut end) = (Vec::new(), Vec::new());
        let secret = self.write(
            ReportKind::Failed,
            &all,
            script.map_or(Returned::Header, Returned::Whole),
            cx,
            &mut text,
        )?;
        report::write_end(secret, &mut end);
        Ok((text, script.map(|_| end)))
    }

    fn recipient(&self, bit: u8) -> Result<&OutgoingRecipient, Refusal> {
        self.entry.recipient(bit).ok_or(Refusal::NoSuchMessage)
    }

    /// The recipient with this bit in a joined entry, which has this record.
    fn joined_recipient(
        &self,
        record: &OutboxEntry,
        bit: u8,
    ) -> Result<&OutgoingRecipient, Refusal> {
        self.entry.of_message(record).get(usize::from(bit)).ok_or(Refusal::NoSuchMessage)
    }

    /// The success report: that local recipients have the message, or that a remote host has it.
    /// The recipients of an entry are at one domain. `first`: the first of them.
    pub(super) fn success_report(
        &self,
        first: u8,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<Vec<u8>, Refusal> {
        let is_here = cx.parts.directory.has_domain_of(self.entry.address(first));
        let (kind, status, words) = if is_here {
            (ReportKind::Delivered, DELIVERED, "the message is in the mailbox")
        } else {
            (ReportKind::Relayed, RELAYED, "the other server accepted the message")
        };
        let mut all = Vec::new();
        for bit in bits(self.round.succeeded()) {
            let taken = self.round.taken(bit);
            all.push(ReportedRecipient {
                recipient: self.recipient(bit)?,
                status,
                words: words.to_string(),
                host: taken.and_then(|taken| taken.host.as_ref()).map(Name::to_string),
                reply: taken.map(|taken| &taken.reply),
            });
        }
        let mut text = Vec::new();
        self.write(kind, &all, Returned::Header, cx, &mut text)?;
        Ok(text)
    }

    /// The delay report, for all waiting recipients about which the sender wants one.
    pub(super) fn delay_report(&self, cx: &mut AttemptCx<'_, '_>) -> Result<Vec<u8>, Refusal> {
        let Self { entry, round, .. } = self;
        let kind = entry.delayed(cx.info()?);
        let done = cx.record().map_or(0, |record| record.done(entry.packing()));
        let waiting = bits(entry.all() & !done).filter(|bit| entry.wants_report(*bit, kind, cx));
        let why = |bit| round.why_later(bit).unwrap_or(&FailureReason::Busy);
        let mut all = Vec::new();
        for bit in waiting.filter(|bit| round.not_failed(1 << bit) != 0) {
            all.push(ReportedRecipient::of(self.recipient(bit)?, why(bit), 4));
        }
        for JoinedEntry { place, record, recipients, .. } in round.joined() {
            let JoinedRecipients::Delayed(delayed) = recipients else { continue };
            let busy = || FailureReason::Busy.words();
            let words = cx.queue.index.words(*place).map_or_else(busy, String::from);
            for bit in bits(*delayed) {
                let recipient = self.joined_recipient(record, bit)?;
                let (status, words) = (DELAYED, words.clone());
                all.push(ReportedRecipient { recipient, status, words, host: None, reply: None });
            }
        }
        let mut text = Vec::new();
        self.write(kind, &all, Returned::Header, cx, &mut text)?;
        Ok(text)
    }

    /// Writes a report. It contains the part of the message that `returned` says. Returns the
    /// secret in the boundary of its parts.
    fn write(
        &self,
        kind: ReportKind,
        all: &[ReportedRecipient<'_>],
        returned: Returned,
        cx: &mut AttemptCx<'_, '_>,
        text: &mut Vec<u8>,
    ) -> Result<u128, Refusal> {
        let (info, entry) = (cx.info()?, self.entry);
        let (to, reader) = match (entry.reports_to(cx), account_address(cx)) {
            (Some(sender), _) => (sender, ReportTo::Sender),
            (None, Some(own)) if entry.is_forwarded(cx) => (own.to_string(), ReportTo::Forwarder),
            (None, _) => (entry.envelope().reverse_path.clone(), ReportTo::Sender),
        };
        let queue_id = cx.queue.queue_ids.draw();
        let hostname = cx.queue.config.hostname();
        let queue_id = core::str::from_utf8(queue_id.as_bytes()).unwrap_or_default();
        let recipients: Vec<RecipientReport<'_>> = all
            .iter()
            .map(|ReportedRecipient { recipient, status, words, host, reply }| RecipientReport {
                recipient,
                status: *status,
                words,
                reply: *reply,
                host: host.as_deref(),
            })
            .collect();
        let secret = u128::from_le_bytes(cx.parts.store.own.store.secret(queue_id.as_bytes()));
        let report = Report {
            kind,
            hostname,
            from: &["postmaster@", hostname].concat(),
            to: &to,
            reader,
            date: cx.parts.turn.wall,
            message_id: &[queue_id, ".report@", hostname].concat(),
            secret,
            arrived: info.internal_date,
            envelope_id: entry.envelope().envelope_id.as_deref(),
            recipients: &recipients,
            header: entry.header(),
            returned,
        };
        report::write(&report, text);
        Ok(secret)
    }
}
