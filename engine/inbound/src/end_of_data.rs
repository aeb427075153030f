//! The end of a message: the steps between its last byte and its commit.
//!
//! ```text
//!   Revising ─ missing fields ▸ Proving ─ origin ▸ Asking ─ verdict ┬▸ FinalFields ─▸ Committed
//!      └─ space ─┘  │              └─ names, gate ─┘ └─ filter ─┘   │        └─ space ─┘
//!                   └─ submitted ▸ Signing ─ signatures ────────────┘
//!                                     └─ the gate ─┘
//! ```
//! If an account submits a message of another author, the message is refused in `Revising`, unless
//! the account resends it.
//!
//! Invariant: each message is committed or given up exactly once, even if the client disconnects in
//! the meantime.

use alloc::string::String;
use alloc::vec::Vec;

use connections::{Caller, TransportEvent};
use filter::{Filter, FilterQuery, FilterVerdict};
use message::{AuthResultsWriter, LongLines, return_path};
use relay::envelope;
use resolver::{Known, QuestionNumber};
use signing::Signing;
use smtp::MessageRefusal;
use store::{AccountId, HeadSize};

use super::context::SmtpContext;
use super::dmarc_check::{DmarcCheck, Judgement};
use super::host::{ClientStatus, SmtpHost};
use super::incoming::{EndOfData, FinalFields, IncomingMessage, message_refusal};
use super::lists::Listings;
use super::trace::Trace;
use super::transaction::InboundTransaction;
use super::waiting::{InboundWaitPoint, signed};

/// The result of a step.
enum Step {
    Done(EndOfData),
    /// The step waits for an event.
    Waits,
}

/// Begins the end of the message: its last byte has arrived.
pub(super) fn begin(host: &mut SmtpHost<'_, '_>) -> Result<(), MessageRefusal> {
    let caller = host.caller;
    let (message, _, cx) = host.message()?;
    message.ending = EndOfData::Revising;
    if let Some(proof) = &mut message.proof {
        proof.ended(caller, cx);
    }
    go_on(host)
}

/// The store has buffer space: continues a message that waits for it.
pub(super) fn room_found(session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) {
    if host.message().is_ok_and(|(message, ..)| message.ending.waits_for_room()) {
        go_on_later(session, host);
    }
}

/// The session's turn has come: verifies a signature, asks the filter, or takes a finished
/// signature.
pub(super) fn resumed(session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) {
    let caller = host.caller;
    let Ok((message, inbound, cx)) = host.message() else { return };
    match (&message.ending, &mut message.proof, &mut message.signing) {
        (EndOfData::Proving, Some(proof), _) => proof.verify(caller, &inbound.checks, cx),
        // The question to the filter may begin now.
        (EndOfData::Asking, ..) => {}
        (EndOfData::Signing, _, Some(signing)) => {
            if !signing.take_signature(cx.compute) {
                return;
            }
        }
        _ => return,
    }
    go_on_later(session, host);
}

/// Takes name servers' answer to a question about the message. Returns the answer if it belongs to
/// another question.
pub(super) fn name_known(
    number: QuestionNumber,
    known: Known,
    session: &mut smtp::Session,
    host: &mut SmtpHost<'_, '_>,
) -> Option<Known> {
    let caller = host.caller;
    let Ok((message, _, cx)) = host.message() else { return Some(known) };
    let known = match (&message.ending, &mut message.inquiry) {
        (EndOfData::Asking, Some(inquiry)) => inquiry.name_known(number, known),
        _ => Some(known),
    };
    let Some(known) = known else {
        go_on_later(session, host);
        return None;
    };
    let Some(proof) = &mut message.proof else { return Some(known) };
    let others = proof.name_known(number, known);
    if others.is_none() {
        match message.ending {
            EndOfData::Proving => go_on_later(session, host),
            _ => proof.ask_open_questions(caller, cx),
        }
    }
    others
}

/// The connection to the filter has an event.
pub(super) fn filter_event(
    event: TransportEvent,
    session: &mut smtp::Session,
    host: &mut SmtpHost<'_, '_>,
) {
    if let Ok((message, _, cx)) = host.message()
        && let (EndOfData::Asking, Some(inquiry)) = (&message.ending, &mut message.inquiry)
    {
        inquiry.transport_event(event, &mut cx.for_filter());
        go_on_later(session, host);
    }
}

/// Ends a wait of the message, because its deadline has passed or the machine is about to stop. A
/// message that waits for buffer space is refused. If a message waits for answers, the facts
/// without an answer stay unknown. Returns false if no message waits.
pub(super) fn give_up(session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) -> bool {
    let Ok((message, inbound, cx)) = host.message() else { return false };
    match (&message.ending, &mut message.proof) {
        (EndOfData::Asking, _) => {
            let (Some(inquiry), Some(filter)) = (&mut message.inquiry, &mut inbound.filter) else {
                return false;
            };
            let is_given_up = inquiry.give_up(filter, &mut cx.for_filter());
            cx.console.extend(filter.take_line());
            if !is_given_up {
                return false;
            }
            go_on_later(session, host);
        }
        (EndOfData::Proving, Some(proof)) => {
            proof.time_is_up();
            go_on_later(session, host);
        }
        (EndOfData::Revising | EndOfData::FinalFields(_), _) => {
            refuse(MessageRefusal::TryLater, session, host)
        }
        _ => return false,
    }
    true
}

fn go_on_later(session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) {
    if let Err(refusal) = go_on(host) {
        session.message_stored(Err(refusal), host);
    }
}

fn refuse(refusal: MessageRefusal, session: &mut smtp::Session, host: &mut SmtpHost<'_, '_>) {
    host.abort_message();
    session.message_stored(Err(refusal), host);
}

/// Takes steps until one has to wait.
///
/// Errors: the message is given up.
fn go_on(host: &mut SmtpHost<'_, '_>) -> Result<(), MessageRefusal> {
    loop {
        match check_space(host).and_then(|()| step(host)) {
            Ok(Step::Done(ending)) => host.message()?.0.ending = ending,
            Ok(Step::Waits) => return Ok(()),
            Err(refusal) => {
                host.abort_message();
                return Err(refusal);
            }
        }
    }
}

/// Checks the space for later copies of a message, once its size is known.
fn check_space(host: &mut SmtpHost<'_, '_>) -> Result<(), MessageRefusal> {
    let Some(transaction) = host.transaction.as_deref() else { return Ok(()) };
    match &transaction.message {
        Some(IncomingMessage { ending: EndOfData::FinalFields(_), octets, .. }) => {
            transaction.check_copies(*octets, host.cx.store)
        }
        _ => Ok(()),
    }
}

fn step(host: &mut SmtpHost<'_, '_>) -> Result<Step, MessageRefusal> {
    tell_filter(host);
    let (room, stored) =
        (host.continuation(InboundWaitPoint::Room), host.continuation(InboundWaitPoint::Stored));
    let (caller, account) = (host.caller, host.account());
    let transaction = host.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
    let (inbound, cx) = (&mut *host.inbound, &mut *host.cx);
    let InboundTransaction { reverse_path, posting, message, reason, .. } = &mut **transaction;
    let reverse_path = &*reverse_path;
    let listings = ClientStatus::listings(host.client.as_deref());
    // An outbox entry has the reverse path in its envelope. The server that makes the final
    // delivery writes the path into the message.
    let is_elsewhere = posting.goes_to_queue();
    let message = message.as_mut().ok_or(MessageRefusal::TryLater)?;
    let delivery = message.delivery;
    match (&mut message.ending, &mut message.proof) {
        (EndOfData::Revising, _) => {
            let is_all = message.complete(&mut inbound.trace, cx, room)?;
            let Some(signing) = message.signing.as_mut().filter(|_| is_all) else {
                return Ok(if is_all { Step::Done(EndOfData::Proving) } else { Step::Waits });
            };
            let is_own = check_authors(signing, account, cx)? == Authorship::Own;
            message.long_lines_field =
                if is_own && is_elsewhere { long_lines_field(message.long_lines) } else { &[] };
            if cx.signer.has_keys() || !message.long_lines_field.is_empty() {
                return Ok(Step::Done(EndOfData::Signing));
            }
            signing.forget(cx.signer, cx.compute);
            Ok(Step::Done(EndOfData::Proving))
        }
        (EndOfData::Signing, _) => {
            let signing = message.signing.as_mut().ok_or(MessageRefusal::TryLater)?;
            if signing.ask(signed(caller.connection.0), cx.signer, cx.compute, cx.turn.wall) {
                return Ok(Step::Waits);
            }
            let path = Some(reverse_path).filter(|_| !is_elsewhere);
            let fields_to_store =
                submitted_fields(signing, path, message.long_lines_field, &mut inbound.trace)?;
            signing.forget(cx.signer, cx.compute);
            Ok(Step::Done(EndOfData::FinalFields(fields_to_store)))
        }
        (EndOfData::Proving, None) => Ok(Step::Done(EndOfData::Asking)),
        (EndOfData::Proving, Some(proof)) => {
            if !proof.is_known(caller, &mut inbound.checks, cx)? {
                return Ok(Step::Waits);
            }
            cx.connections.set_deadline(cx.turn.now, caller.connection, None);
            // The filter is not asked about a message that is refused anyway.
            match proof.judgement() {
                Judgement::Refuse => Err(MessageRefusal::Unproved),
                Judgement::Defer => Err(MessageRefusal::Unchecked),
                Judgement::Accept | Judgement::Suspect(_) => Ok(Step::Done(EndOfData::Asking)),
            }
        }
        (EndOfData::Asking, _) => {
            let Some(verdict) =
                verdict(message.inquiry.as_deref_mut(), inbound.filter.as_mut(), caller, cx)
            else {
                return Ok(Step::Waits);
            };
            let filtered = match verdict {
                FilterVerdict::Clean => None,
                FilterVerdict::Suspect(why) => Some(why),
                FilterVerdict::Later(words) => {
                    *reason = words;
                    return Err(MessageRefusal::Unsure);
                }
                FilterVerdict::Never(words) => {
                    *reason = words;
                    return Err(MessageRefusal::Unwanted);
                }
            };
            let path =
                Some(reverse_path).filter(|_| !is_elsewhere && message.inbound_policy_applies());
            let fields_to_store = final_fields(
                message.proof.as_deref(),
                (listings, filtered.as_deref()),
                path,
                caller,
                &mut inbound.trace,
            )?;
            if let Some(mut proof) = message.proof.take() {
                proof.forget(caller, &mut inbound.checks, cx);
            }
            Ok(Step::Done(EndOfData::FinalFields(fields_to_store)))
        }
        (EndOfData::FinalFields(fields_to_store), _) => {
            let rest = fields_to_store.fields.get(fields_to_store.taken..).unwrap_or_default();
            fields_to_store.taken +=
                cx.store.append(delivery, rest, room).map_err(message_refusal)?;
            if fields_to_store.taken < fields_to_store.fields.len() {
                return Ok(Step::Waits);
            }
            let closing = fields_to_store.closing(cx.turn.wall);
            cx.store.commit(delivery, closing, stored).map_err(message_refusal)?;
            Ok(Step::Done(EndOfData::Committed))
        }
        (EndOfData::NotYet | EndOfData::Committed, _) => Ok(Step::Waits),
    }
}

/// The relation of an account to a message that it has submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Authorship {
    /// The account is the author.
    Own,
    /// The account resends the message of another author.
    Resent,
}

/// The field above the envelope of a message with long lines, or nothing. It is only for an
/// account's own message: a message that the account resends must not be changed.
fn long_lines_field(long_lines: LongLines) -> &'static [u8] {
    if long_lines.is_any() { envelope::LONG_LINES } else { &[] }
}

/// Checks that a submitted message is from its account.
///
/// Errors: the message has no author, or an author that is not the account's.
fn check_authors(
    signing: &mut Signing,
    account: Option<AccountId>,
    cx: &SmtpContext<'_>,
) -> Result<Authorship, MessageRefusal> {
    let authors =
        signing.ended(|domain| cx.directory.has_domain(domain)).ok_or(MessageRefusal::NoAuthor)?;
    let is_theirs = |author: &String| cx.directory.recipient_at(cx.store, author).ok() == account;
    if authors.from.iter().all(is_theirs) {
        return Ok(Authorship::Own);
    }
    // A message that the account has resent keeps its author, and names the account in Resent-From.
    // For such a message, only Resent-From must be an address of the account.
    if !authors.resent_from.is_some_and(|resent_from| resent_from.iter().all(is_theirs)) {
        return Err(MessageRefusal::NotTheirs);
    }
    signing.leave_unsigned();
    Ok(Authorship::Resent)
}

/// The filter's verdict on a message, once it is known. A message about which the filter is not
/// asked counts as clean.
fn verdict(
    inquiry: Option<&mut FilterQuery>,
    filter: Option<&mut Filter>,
    caller: Caller,
    cx: &mut SmtpContext<'_>,
) -> Option<FilterVerdict> {
    let (Some(inquiry), Some(filter)) = (inquiry, filter) else {
        return Some(FilterVerdict::Clean);
    };
    let is_known = inquiry.is_known(filter, &mut cx.for_filter());
    cx.console.extend(filter.take_line());
    if !is_known {
        return None;
    }
    cx.connections.set_deadline(cx.turn.now, caller.connection, None);
    Some(inquiry.verdict())
}

/// Adds the envelope of the message to the question to the filter, if the question is about to
/// begin.
fn tell_filter(host: &mut SmtpHost<'_, '_>) {
    let SmtpHost { inbound, cx, transaction: Some(transaction), .. } = host else { return };
    let needs_envelope = |message: &IncomingMessage| {
        matches!(message.ending, EndOfData::Asking)
            && message.inquiry.as_ref().is_some_and(|inquiry| inquiry.needs_envelope())
    };
    if !transaction.message.as_ref().is_some_and(needs_envelope) {
        return;
    }
    let recipients = transaction.named(cx.store);
    let InboundTransaction { reverse_path, message: Some(message), .. } = &mut **transaction else {
        return;
    };
    let queue_id = core::str::from_utf8(message.queue_id.as_bytes()).unwrap_or_default();
    if let (Some(inquiry), Some(filter)) = (&mut message.inquiry, &inbound.filter) {
        inquiry.ended((reverse_path, &recipients), queue_id, filter, cx.turn.now);
    }
}

/// The trace fields of a message with the results of all checks. `path`: the reverse path, or
/// `None` for a message that gets no such fields.
///
/// Errors: the buffer has no space for the fields.
fn final_fields(
    proof: Option<&DmarcCheck>,
    (listings, filtered): (Option<&Listings>, Option<&str>),
    path: Option<&String>,
    caller: Caller,
    trace: &mut Trace,
) -> Result<FinalFields, MessageRefusal> {
    // A message for another server gets no results: that server makes its own checks.
    let Some(reverse_path) = path else { return Ok(FinalFields::NOTHING) };
    let unproved = match proof.map(DmarcCheck::judgement) {
        Some(Judgement::Suspect(reason)) => Some(reason),
        _ => None,
    };
    let listed = listings.into_iter().flat_map(Listings::suspicions);
    let reason = reason(unproved.as_deref().into_iter().chain(listed).chain(filtered));
    let start =
        return_path(reverse_path, trace.buffer.as_mut_slice()).ok_or(MessageRefusal::TryLater)?;
    let mut findings =
        AuthResultsWriter::begin(trace.buffer.as_mut_slice(), start, &trace.hostname);
    findings.keep(reason.as_ref().map_or(0, |reason| reason.len() + REASON_BYTES));
    match proof {
        Some(proof) => proof.write(caller, &mut findings),
        None => findings.nothing(),
    }
    let length = findings.end(reason.as_deref(), HeadSize::UNIT);
    let fields = trace.buffer.get(..length).unwrap_or_default().to_vec();
    Ok(FinalFields { fields, taken: 0, is_suspect: reason.is_some() })
}

/// Why a message is suspicious, in one line. `None`: the message is not suspicious.
fn reason<'a>(reasons: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut all = reasons.collect::<Vec<_>>().join("; ");
    all.truncate(all.floor_char_boundary(REASON_TEXT_BYTES_MAX));
    Some(all).filter(|all| !all.is_empty())
}

/// The fields above a message from a client that has logged in: its signatures, and `Return-Path`
/// if `path` is given. `long_lines_field`: see [`IncomingMessage`].
fn submitted_fields(
    signing: &Signing,
    path: Option<&String>,
    long_lines_field: &[u8],
    trace: &mut Trace,
) -> Result<FinalFields, MessageRefusal> {
    let buffer = trace.buffer.as_mut_slice();
    let length =
        path.map_or(Some(0), |path| return_path(path, buffer)).ok_or(MessageRefusal::TryLater)?;
    let fields = signing.head(trace.buffer.get(..length).unwrap_or_default(), long_lines_field);
    Ok(FinalFields { fields, taken: 0, is_suspect: false })
}

/// The longest reason in bytes. It fits into a line of a header (RFC 5322 section 2.1.1).
const REASON_TEXT_BYTES_MAX: usize = 900;
/// Bytes of the field with the reason for suspicion, without the reason itself and the padding.
const REASON_BYTES: usize = 32;
