//! Carries out the actions of an SMTP session on the connection, the directory and the store.

use alloc::string::String;

use connections::Channel;
use filter::FilterQuery;
use machine::Micros;
use mail::RateLimitedAction;
use message::{Assurance, LongLines, Origin, Received, Revision, return_path};
use relay::QueueId;
use sasl::{Credentials, Puzzle};
use shards::DeliveryHandle;
use smtp::{
    Extensions, Haste, Holds, Mail, MessageRefusal, MessageStart, RecipientRefusal, SenderRefusal,
    SmtpPath, SmtpSettings, SmtpTls,
};
use sometimes::buggify;
use store::{Refusal, State};

use super::dmarc_check::DmarcCheck;
use super::external_clients::is_local;
use super::host::{ClientStatus, SmtpHost};
use super::incoming::{EndOfData, IncomingMessage, message_refusal};
use super::transaction::InboundTransaction;
use super::waiting::{InboundWaitPoint, name_known_at};
use super::{end_of_data, login, recipients};

/// A message with this many `Received:` fields is in a loop (RFC 5321 section 6.3).
const HOPS_MAX: u16 = 100;

/// A message with more header fields than this is not accepted: its checks and its signature cost
/// work for each field.
const FIELDS_MAX: u16 = 1_000;

/// The longest hold of a submitted message: 60 days.
const HOLD_SECONDS_MAX: u32 = 60 * 24 * 60 * 60;

/// The bytes of replies that a client may leave unread before its next command is processed. So
/// clients that never read cannot exhaust the memory.
const UNREAD_BYTES_MAX: usize = 16 * 1024;

impl sasl::Host for SmtpHost<'_, '_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        self.cx.logins.puzzle(name, self.cx.directory, self.cx.store)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl smtp::Actions for SmtpHost<'_, '_> {
    fn settings(&self) -> SmtpSettings {
        let tls = match (self.caller.channel, self.cx.connections.tls()) {
            (Channel::Tls, _) => SmtpTls::Spoken,
            (_, secure) if !secure.serves(self.caller.service) => SmtpTls::Absent,
            (_, secure) if !secure.may_begin() => SmtpTls::Busy,
            _ => SmtpTls::Offered,
        };
        let (login, mut settings) = (login::setting(self), self.inbound.settings);
        settings.message_bytes_max = settings.message_bytes_max.min(self.cx.store.octets_max());
        if login == smtp::LoginPolicy::Absent {
            // For external mail, the answer at the end of the message is final: the message is in a
            // mailbox, or it is not accepted. So this server offers no reports (DSN).
            let extensions = settings.extensions.without(Extensions::DSN);
            let haste = if self.cx.inbound_policy_applies(self.caller) {
                Haste::Refused
            } else {
                Haste::Tolerated
            };
            return SmtpSettings { tls, login, haste, extensions, ..settings };
        }
        let holds = Some(Holds { seconds_max: HOLD_SECONDS_MAX, now: self.cx.turn.wall });
        SmtpSettings { tls, login, holds, ..settings }
    }

    fn send_room(&self) -> usize {
        self.cx.connections.send_room_within(self.caller, UNREAD_BYTES_MAX)
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.cx.connections.say(self.cx.turn.now, self.caller, bytes);
    }

    fn hostname(&self) -> &str {
        &self.inbound.trace.hostname
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        login::check_sender(&mail.reverse_path, self)?;
        match self.cx.store.state() {
            State::Serving => {}
            State::ReadOnly(_) => return Err(SenderRefusal::DiskFailed),
            State::Opening | State::Refused(_) => return Err(SenderRefusal::Busy),
        }
        self.cx.store.check_space(mail.declared_bytes.unwrap_or(0)).map_err(sender_refusal)?;
        if buggify!(NoTransaction) {
            return Err(SenderRefusal::Busy);
        }
        if !self.may_do(RateLimitedAction::Message) {
            return Err(SenderRefusal::TooOften);
        }
        let mut transaction = self.inbound.transactions.pop().ok_or(SenderRefusal::Busy)?;
        transaction.reverse_path.extend(self.cx.directory.complete(&mail.reverse_path));
        transaction.posting.note(mail);
        transaction.declared = mail.declared_bytes;
        *self.transaction = Some(transaction);
        Ok(())
    }

    fn recipient(&mut self, named: &smtp::RcptTo<'_>) -> Result<(), RecipientRefusal> {
        recipients::name(named, self)
    }

    fn may_answer(&mut self, path: &SmtpPath<'_>, greeting_name: &str) -> bool {
        recipients::may_answer(path, greeting_name, self)
    }

    fn reason(&self) -> &str {
        let of_filter = self.transaction.as_ref().map(|transaction| transaction.reason.as_str());
        of_filter
            .filter(|reason| !reason.is_empty())
            .or_else(|| self.listings()?.refusal())
            .unwrap_or_default()
    }

    fn may_begin(&mut self, greeting_name: &str) -> bool {
        if !self.is_sender_known(greeting_name) {
            return false;
        }
        let account = self.account();
        let (Some(account), Some(transaction)) = (account, self.transaction.as_deref_mut()) else {
            return true;
        };
        let InboundTransaction { permission, posting, .. } = transaction;
        permission.is_known(account, || posting.remote_addresses(), self.caller, self.cx)
    }

    fn transaction_end(&mut self) {
        let (now, lists) = (self.cx.turn.now, &mut self.inbound.lists);
        if let Some(ClientStatus::External(listings)) = self.client.as_deref_mut() {
            listings.forget(lists, now);
        }
        if let Some(transaction) = self.transaction.as_deref_mut() {
            transaction.spf_state.forget(self.caller, &mut self.inbound.checks);
        }
        // If the message stayed open, it could wait for space although its client has disconnected.
        self.abort_message();
        if let Some(mut transaction) = self.transaction.take() {
            transaction.clear();
            self.inbound.transactions.push(transaction);
        }
    }

    fn message_begin(&mut self, envelope: &MessageStart<'_>) -> Result<(), MessageRefusal> {
        let account = self.account();
        let origin = match account {
            Some(_) => Origin::Submitted,
            None if is_local(self.caller.address, self.cx.connections.net()) => Origin::Relayed,
            None => Origin::External,
        };
        let submitter = account.and_then(|account| self.cx.store.account(account));
        let author = submitter.map_or_else(String::new, |submitter| submitter.address.into());
        let transaction = self.transaction.as_mut().ok_or(MessageRefusal::TryLater)?;
        transaction.permission.check()?;
        transaction.check_copies(transaction.declared.unwrap_or(0), self.cx.store)?;
        let (delivery, head) = transaction.begin(account, self.cx.store)?;
        let queue_id = self.inbound.queue_ids.draw();
        let proof = transaction
            .spf_state
            .sender((&transaction.reverse_path, envelope.greeting_name))
            .map(DmarcCheck::new);
        let inquiry = (self.inbound.filter.is_some()
            && account.is_none()
            && self.cx.inbound_policy_applies(self.caller))
        .then(|| {
            FilterQuery::begin(
                envelope.greeting_name,
                self.caller,
                name_known_at(self.caller.connection.0),
            )
        });
        let revision = Revision::new(origin);
        let signing =
            (origin == Origin::Submitted).then(|| self.cx.signer.begin(self.caller.address));
        let ending = EndOfData::NotYet;
        let message = IncomingMessage {
            delivery,
            octets: 0,
            head,
            queue_id,
            author,
            revision,
            long_lines: LongLines::default(),
            long_lines_field: &[],
            proof,
            inquiry,
            signing,
            ending,
        };
        transaction.message = Some(message);
        trace(self, envelope, delivery, queue_id).inspect_err(|_| self.abort_message())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        let (continuation, caller) = (self.continuation(InboundWaitPoint::Room), self.caller);
        let (incoming, inbound, cx) = self.message()?;
        let taken = incoming.put(bytes, &mut inbound.trace, cx, continuation);
        let taken = match &incoming.revision {
            revision if revision.hops() >= HOPS_MAX => Err(MessageRefusal::Loop),
            revision if revision.fields() > FIELDS_MAX => Err(MessageRefusal::TooManyFields),
            _ => taken,
        };
        let taken = taken.and_then(|taken| {
            let looked_at = bytes.get(..taken).unwrap_or(bytes);
            let proof = incoming.proof.as_mut();
            let checked = proof
                .map_or(Ok(()), |proof| proof.arrived(looked_at, caller, &mut inbound.checks, cx));
            checked.map(|()| taken)
        });
        if let (Ok(taken), Some(inquiry), Some(filter)) =
            (taken, &mut incoming.inquiry, &mut inbound.filter)
        {
            inquiry.arrived(bytes.get(..taken).unwrap_or(bytes), filter);
        }
        taken.inspect_err(|_| self.abort_message())
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        end_of_data::begin(self)
    }

    fn message_abort(&mut self) {
        self.abort_message();
    }

    fn abandon_login(&mut self) {
        login::drop_attempt(self);
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.cx.connections.set_deadline(self.cx.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.cx.connections.close(self.cx.turn.now, self.caller);
    }
}

/// The SMTP error for a message that finds no space.
fn sender_refusal(refusal: Refusal) -> SenderRefusal {
    match refusal {
        Refusal::DiskFull => SenderRefusal::StorageFull,
        Refusal::IndexFull => SenderRefusal::IndexFull,
        Refusal::TooLarge => SenderRefusal::TooBig,
        _ => SenderRefusal::Busy,
    }
}

/// Writes our trace fields above the message: `Return-Path:` and `Received:`. `Return-Path:` is
/// left out in two cases: check results or signatures will be written above the message at its end,
/// or the message goes to the queue.
fn trace(
    host: &mut SmtpHost<'_, '_>,
    envelope: &MessageStart<'_>,
    delivery: DeliveryHandle,
    queue_id: QueueId,
) -> Result<(), MessageRefusal> {
    let continuation = host.continuation(InboundWaitPoint::Room);
    let assurance = match (host.caller.channel, host.account()) {
        (Channel::Plain, None) => Assurance::None,
        (Channel::Plain, Some(_)) => Assurance::Login,
        (Channel::Tls, None) => Assurance::Tls,
        (Channel::Tls, Some(_)) => Assurance::TlsAndLogin,
    };
    let Some(transaction) = host.transaction.as_mut() else { return Err(MessageRefusal::TryLater) };
    let (inbound, cx) = (&mut *host.inbound, &mut *host.cx);
    let received = Received {
        greeting_name: envelope.greeting_name,
        peer: host.caller.address,
        hostname: &inbound.trace.hostname,
        protocol: match envelope.protocol {
            smtp::TransmissionType::Smtp => message::WithProtocol::Smtp,
            smtp::TransmissionType::Esmtp => message::WithProtocol::Esmtp,
            smtp::TransmissionType::Utf8Smtp => message::WithProtocol::Utf8Smtp,
        },
        assurance,
        identifier: queue_id.as_bytes(),
        recipient: (envelope.recipients == 1).then_some(transaction.first_recipient.as_str()),
        at: inbound.trace.date_now.at(cx.turn.wall),
    };
    let trace = inbound.trace.buffer.as_mut_slice();
    let message = transaction.message.as_ref();
    let has_final_fields = message.is_some_and(|message| {
        message.inbound_policy_applies() || message.signing.is_some() && cx.signer.has_keys()
    });
    let is_elsewhere = transaction.posting.goes_to_queue();
    let above = if has_final_fields || is_elsewhere {
        Some(0)
    } else {
        return_path(&transaction.reverse_path, trace)
    };
    let length = above
        .and_then(|start| Some(start + received.write(trace.get_mut(start..)?)?))
        .ok_or(MessageRefusal::TryLater)?;
    let trace = inbound.trace.buffer.get(..length).unwrap_or_default();
    if let Some(message) = transaction.message.as_mut().filter(|message| !message.head.is_empty()) {
        message.head.extend_from_slice(trace);
        return Ok(());
    }
    let taken = cx.store.append(delivery, trace, continuation).map_err(message_refusal)?;
    // The remaining fields are stored with the first bytes of the message, when the store has
    // buffer space.
    if let (Some(message), Some(rest)) = (&mut transaction.message, trace.get(taken..)) {
        message.head.extend_from_slice(rest);
    }
    Ok(())
}
