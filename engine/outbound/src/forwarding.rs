//! Forwarded messages: mail for an account that wants it at other addresses.
//!
//! Such a message is delivered into the account's outbox in the same way as into an inbox: with
//! `Return-Path` on top, and without an envelope. So the message is either stored, or not accepted
//! from the client. The delivery attempt for this entry puts the message into the account's inbox,
//! if the account keeps a copy. For each forwarding address, the attempt puts the message into the
//! same outbox once more, with a new envelope. This new entry is then sent like any other.
//!
//! How the parts of the message are treated:
//!
//! - The forwarding account: `Delivered-To:` above the message names it, for people and other
//!   servers. A mark names it for this server (`relay::loops`). A message that has the account's
//!   mark already is in a loop, and is not forwarded again.
//! - The reverse path: if the sender is authenticated (`authentic`), it becomes an address at the
//!   account's domain that stands for the sender (`relay::srs`). An empty path stays empty, and an
//!   address that this server made stays unchanged. The account's own address replaces a sender
//!   that is not authenticated, is too long or has quotes.
//! - The check results: they stay above the message, and are copied into the ARC set (`sealing`).
//! - Failure reports: they go to the sender, if it is authenticated, through the same outbox.
//!   Otherwise they go into the account's inbox. So no address gets reports about mail that it did
//!   not send, and no accepted message is lost silently.
//!
//! Invariants:
//! - Each recipient has a bit: bit 0 for the account, and then one for each forwarding address, in
//!   the order of the configuration. Each recipient gets the message by a delivery with its own
//!   origin, and is then marked, as in `delivery_attempt`. So no recipient gets the message twice,
//!   even if the power fails.
//! - A message in Junk is never forwarded. Servers that get mail from this machine trust it to
//!   filter that mail, and would blame it for forwarded spam (`inbound::end_of_data`).
//! - A message is not forwarded if its author is at a domain of this server and the message fails
//!   that domain's DMARC policy. Such a message goes only into the account's inbox. A forwarded
//!   copy would have a reverse path at that domain and come from its host, so the copy would pass
//!   DMARC elsewhere.
//! - If an account has stopped forwarding its mail, its waiting messages go into its inbox.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use accounts::entries::{domain_of, entries_for, envelope_of};
use configuration::Keep;
use message::header::Header;
use relay::loops::{self, LoopMark};
use relay::report::{self, ReportKind};
use relay::srs::{self, Restored};
use relay::{ContentWidth, Envelope, Script, envelope};
use store::{AccountId, Recipient, Refusal};

use super::attempt_context::AttemptCx;
use super::authentic::{is_authentic, unproved_author};
use super::context::OutboundContext;
use super::entry::{Entry, EntryKind, OpenedEntry};
use super::head::EntryExtent;
use super::stages::DeliveryKind;

/// The most bytes of a header that are examined.
const HEADER_BYTES_MAX: usize = 128 * 1024;

/// The bit of the account that forwards its mail.
pub(super) const OWN: u8 = 0;

/// Opens a message that came for a forwarding account. `beginning`: the bytes that were read. The
/// recipients are known once these bytes contain the whole header.
pub(super) fn arrival(
    beginning: &[u8],
    extent: EntryExtent,
    cx: &AttemptCx<'_, '_>,
) -> OpenedEntry {
    let end = memchr::memmem::find(beginning, b"\r\n\r\n").map(|at| at + 2);
    if end.is_none() && extent == EntryExtent::Beginning && beginning.len() < HEADER_BYTES_MAX {
        return OpenedEntry::Partial;
    }
    let header = beginning.get(..end.unwrap_or(beginning.len())).unwrap_or_default();
    let (OutboundContext { store, directory, .. }, hostname) =
        (&*cx.parts, cx.queue.config.hostname());
    let Some(own) = store.account(cx.place.0).map(|account| account.address) else {
        return OpenedEntry::Gone;
    };
    let (reverse_path, message_at) = reverse_path(header);
    let forwarding = directory.forwarding(own);
    let others = forwarding.into_iter().flat_map(|forwarding| &forwarding.addresses);
    let addresses: Vec<String> =
        core::iter::once(own).chain(others.map(|to| to.as_str())).map(String::from).collect();
    let (all, kept) = ((1u32 << addresses.len()) - 1, 1 << OWN);
    let mark = mark_of(own, header, cx.parts);
    let is_back = forwarding.is_some() && has_mark(mark, header);
    let is_forged = || {
        unproved_author(header, hostname)
            .is_some_and(|author| directory.is_aligned(&author, hostname))
    };
    let wanted = match forwarding.map(|forwarding| forwarding.keep) {
        None => kept,
        _ if is_back || is_forged() => kept,
        Some(Keep::Copy) => all,
        Some(Keep::Nothing) => all & !kept,
    };
    let script = if header.is_ascii() { Script::Ascii } else { Script::Utf8 };
    let recipients = addresses.into_iter().enumerate().map(|(number, address)| {
        relay::OutgoingRecipient { number: number as u16, address, notify: None, original: None }
    });
    let envelope =
        Envelope { recipients: recipients.collect(), script, ..envelope_of(reverse_path, &[]) };
    let kind = if is_back { EntryKind::Looped } else { EntryKind::Arrived(mark) };
    let message = header.get(message_at..).unwrap_or_default();
    let entry = Entry::arrived(cx.place.0, envelope, kind, wanted as u16, message);
    OpenedEntry::Whole { entry, signatures: 0, message_at: message_at as u32 }
}

impl Entry {
    /// The kind of delivery that brings a forwarded message to a recipient.
    pub(super) fn delivery_for(&self, bit: u8) -> DeliveryKind {
        if bit == OWN {
            DeliveryKind::Message(bit, self.account())
        } else {
            DeliveryKind::Forward(bit)
        }
    }

    /// The outbox entry that forwards the message to a recipient, and the octets above the message
    /// in that entry. `seal`: the fields of its ARC set.
    pub(super) fn forwarded(
        &self,
        bit: u8,
        seal: &str,
        cx: &AttemptCx<'_, '_>,
    ) -> Result<(Recipient, Vec<u8>), Refusal> {
        let (came_in, to) = (self.envelope(), self.recipient(bit).ok_or(Refusal::NoSuchMessage)?);
        let own = self.address(OWN);
        let script = if to.address.is_ascii() { came_in.script } else { Script::Utf8 };
        let reverse_path = self.forwarded_reverse_path(&came_in.reverse_path, cx);
        let addresses = core::slice::from_ref(&to.address);
        // The content was not checked, so it may have 8-bit bytes.
        let envelope = Envelope {
            content: ContentWidth::EightBit,
            script,
            ..envelope_of(&reverse_path, addresses)
        };
        let (entry, mut above) = posted(self.account(), &envelope)?;
        let EntryKind::Arrived(mark) = self.kind() else {
            unreachable!("only an arrived message that is not in a loop is forwarded")
        };
        above.extend_from_slice([&delivered_to(own), &mark.field(), seal].concat().as_bytes());
        Ok((entry, above))
    }

    /// The reverse path for the forwarded copy of a message with this reverse path.
    fn forwarded_reverse_path(&self, reverse_path: &str, cx: &AttemptCx<'_, '_>) -> String {
        let is_ours = restored(reverse_path, cx.parts).is_some();
        if reverse_path.is_empty() || is_ours {
            return reverse_path.to_string();
        }
        let own = self.address(OWN);
        let key = srs::SrsKey::new(cx.parts.store.secret_of_paths());
        let rewritten = key.rewrite(reverse_path, &domain_of(own), cx.parts.turn.wall);
        // A bounce to the rewritten address goes to the sender that the address stands for.
        let is_authentic = |path: &String| {
            restored(path, cx.parts).is_some_and(|sender| self.is_sender_authentic(&sender, cx))
        };
        rewritten.filter(is_authentic).unwrap_or_else(|| own.to_string())
    }

    /// The sender at another server that gets the reports about a forwarded message. `None`: the
    /// reports go into the inbox of the account.
    pub(super) fn reports_to(&self, cx: &AttemptCx<'_, '_>) -> Option<String> {
        let path = &self.envelope().reverse_path;
        let sender =
            restored(path, cx.parts).or_else(|| (!self.is_posted()).then(|| path.clone()))?;
        (!sender.is_empty() && self.is_sender_authentic(&sender, cx)).then_some(sender)
    }

    /// Whether the message came from the sender in its reverse path (`authentic`).
    fn is_sender_authentic(&self, sender: &str, cx: &AttemptCx<'_, '_>) -> bool {
        let (directory, hostname) = (cx.parts.directory, cx.queue.config.hostname());
        let is_local = sender.rsplit_once('@').is_some_and(|(_, domain)| directory.serves(domain));
        is_authentic(self.header(), sender, hostname, is_local)
    }

    /// Whether the account forwards this message. Only a forwarded message has our `Delivered-To:`
    /// field on top. In other entries, the envelope is followed by a `Received:` field, or by the
    /// first field of a webmail message or report.
    pub(super) fn is_forwarded(&self, cx: &AttemptCx<'_, '_>) -> bool {
        let Some(own) = account_address(cx) else { return false };
        !self.is_posted() || self.header().starts_with(delivered_to(own).as_bytes())
    }

    /// Whether the sender gets this kind of report about a recipient.
    pub(super) fn wants_report(&self, bit: u8, kind: ReportKind, cx: &AttemptCx<'_, '_>) -> bool {
        self.recipient(bit).is_some_and(|recipient| self.wants_report_for(recipient, kind, cx))
    }

    /// As [`Self::wants_report`], about a recipient of this or another entry of the message.
    pub(super) fn wants_report_for(
        &self,
        recipient: &relay::OutgoingRecipient,
        kind: ReportKind,
        cx: &AttemptCx<'_, '_>,
    ) -> bool {
        let envelope = self.envelope();
        let is_of_trouble = matches!(kind, ReportKind::Failed | ReportKind::Delayed { .. });
        let is_bounce = || envelope.reverse_path.is_empty() && self.is_forwarded(cx);
        report::is_wanted(envelope, recipient, kind) || is_of_trouble && is_bounce()
    }
}

/// The address of the account that has the outbox.
pub(super) fn account_address<'a>(cx: &'a AttemptCx<'_, '_>) -> Option<&'a str> {
    Some(cx.parts.store.account(cx.place.0)?.address)
}

/// The outbox entry that sends a report from this account to a sender, and the octets above the
/// report.
pub(super) fn reported_to(
    account: AccountId,
    sender: &str,
) -> Result<(Recipient, Vec<u8>), Refusal> {
    let script = if sender.is_ascii() { Script::Ascii } else { Script::Utf8 };
    // The report may show a header that has non-ASCII characters.
    let envelope = Envelope {
        content: ContentWidth::EightBit,
        script,
        ..envelope_of("", &[sender.to_string()])
    };
    posted(account, &envelope)
}

fn posted(account: AccountId, envelope: &Envelope) -> Result<(Recipient, Vec<u8>), Refusal> {
    let mut above = Vec::new();
    envelope::write(envelope, &mut above).map_err(|_| Refusal::NoSuchMessage)?;
    let entry = entries_for(account, envelope).first().copied().ok_or(Refusal::NoSuchMessage)?;
    Ok((entry, above))
}

/// The `Delivered-To:` field on top of a message that an account forwards.
fn delivered_to(own: &str) -> String {
    ["Delivered-To: ", own, "\r\n"].concat()
}

/// The sender that an address of ours stands for (`relay::srs`).
fn restored(path: &str, parts: &OutboundContext<'_>) -> Option<String> {
    let (local_part, domain) = path.rsplit_once('@')?;
    let key = srs::SrsKey::new(parts.store.secret_of_paths());
    match key.restore(local_part, parts.turn.wall) {
        Restored::Of(sender) if parts.directory.serves(domain) => Some(sender),
        _ => None,
    }
}

/// The reverse path in the first line of a message, and the offset of the next line. If that line
/// has no path, the path is empty and the offset is 0.
pub(super) fn reverse_path(header: &[u8]) -> (&str, usize) {
    let end = memchr::memmem::find(header, b"\r\n").unwrap_or(0);
    let line =
        header.get(..end).and_then(|line| core::str::from_utf8(line).ok()).unwrap_or_default();
    let path = line.strip_prefix("Return-Path: <").and_then(|path| path.strip_suffix('>'));
    path.map_or(("", 0), |path| (path, end + 2))
}

/// The mark for a message with this header that the account `own` forwards.
fn mark_of(own: &str, header: &[u8], parts: &OutboundContext<'_>) -> LoopMark {
    let key = srs::SrsKey::new(parts.store.secret_of_paths());
    LoopMark::new(
        &key,
        own,
        Header::new(header).field("Message-ID").map_or(b"", |field| field.value),
    )
}

/// Whether the message was forwarded with this mark before.
fn has_mark(mark: LoopMark, header: &[u8]) -> bool {
    Header::new(header).fields().any(|field| field.is(loops::FIELD) && mark.is_in(field.value))
}
