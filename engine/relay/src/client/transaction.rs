//! A mail transaction: the envelope, the message, and the outcomes.
//!
//! Implements: RFC 5321 sections 3.3, 4.1.1 and 4.3.2; RFC 1870 section 6; RFC 2920 section 3.1;
//! RFC 3461 section 4; RFC 6152 section 3; RFC 6531 section 3.4.

use alloc::vec::Vec;
use core::fmt::Write as _;
use core::mem;

use message::report::Enhanced;

use super::{Action, SentCommand, SmtpClient, State};
use crate::outcome::{Cause, DeliveryFailure, DeliveryOutcome, Lost, Stage};
use crate::outgoing_message::{
    ContentWidth, OutgoingMessage, OutgoingRecipient, Script, is_forward_path, is_parameter,
    is_reverse_path, write_report_parameters,
};
use crate::reply::Reply;

/// The message that is being sent.
#[derive(Debug)]
pub(super) struct ClientTransaction {
    message: OutgoingMessage,
    progress: Vec<RecipientProgress>,
    /// Whether the peer has the transaction open.
    is_open: bool,
    /// Whether the message was inspected, and all of it is ASCII.
    is_inspected: bool,
}

/// The state of a recipient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecipientProgress {
    /// The peer has not replied yet.
    Open,
    /// RCPT was accepted.
    Accepted,
    /// The outcome was returned to the caller.
    Reported,
}

impl ClientTransaction {
    pub(super) fn new(message: OutgoingMessage) -> ClientTransaction {
        let progress =
            message.envelope.recipients.iter().map(|_| RecipientProgress::Open).collect();
        ClientTransaction { message, progress, is_open: false, is_inspected: false }
    }

    /// The index of the first recipient with this progress, from the index `from` on.
    fn first(&self, wanted: RecipientProgress, from: usize) -> Option<usize> {
        self.progress
            .iter()
            .skip(from)
            .position(|progress| *progress == wanted)
            .map(|index| from + index)
    }
}

impl SmtpClient {
    /// Begins the transaction. The opening is complete, and no command is under way.
    pub(super) fn begin_transaction(&mut self) {
        self.state = State::Envelope;
        self.end_impossible_recipients();
        let Some(first) = self.next(RecipientProgress::Open, 0) else {
            return self.transaction_over();
        };
        if !self.extensions.eight_bit && !self.is_inspected() {
            (self.state, self.is_body_asked) = (State::Inspection, false);
            return;
        }
        self.say_mail();
        if !self.extensions.pipelining {
            return;
        }
        let mut next = Some(first);
        while let Some(index) = next {
            self.say_recipient(index);
            next = self.next(RecipientProgress::Open, index + 1);
        }
        self.ask(SentCommand::Data, "DATA");
    }

    /// Reports a failure for recipients without asking the peer, if the peer cannot accept the
    /// message, or an address is not valid.
    fn end_impossible_recipients(&mut self) {
        let Some(transaction) = &self.transaction else { return };
        let (bytes, envelope, extensions) =
            (transaction.message.bytes, &transaction.message.envelope, self.extensions);
        let is_sender_valid = is_reverse_path(&envelope.reverse_path);
        let cause = match extensions.size {
            _ if !is_sender_valid => Some(Cause::BadAddress),
            Some(most @ 1..) if bytes > most => Some(Cause::TooLarge(most)),
            _ if envelope.script == Script::Utf8 && !extensions.utf8 => Some(Cause::Utf8Header),
            _ if !envelope.reverse_path.is_ascii() && !extensions.utf8 => Some(Cause::Utf8Address),
            _ => None,
        };
        if let Some(cause) = cause {
            let reason = DeliveryFailure { stage: Stage::Sender, cause };
            return self.report_outcome(RecipientProgress::Open, &DeliveryOutcome::Never(reason));
        }
        let of_recipient = |recipient: &OutgoingRecipient| match () {
            () if !is_forward_path(&recipient.address) => Some(Cause::BadAddress),
            () if !recipient.address.is_ascii() && !extensions.utf8 => Some(Cause::Utf8Address),
            () => None,
        };
        let causes: Vec<_> = envelope.recipients.iter().map(of_recipient).collect();
        for (index, cause) in causes.into_iter().enumerate() {
            if let Some(cause) = cause {
                self.report_one(
                    index,
                    DeliveryOutcome::Never(DeliveryFailure { stage: Stage::Recipient, cause }),
                );
            }
        }
    }

    fn say_mail(&mut self) {
        let Some(transaction) = &self.transaction else { return };
        let (bytes, envelope, extensions) =
            (transaction.message.bytes, &transaction.message.envelope, self.extensions);
        let is_ascii = envelope.reverse_path.is_ascii()
            && envelope.recipients.iter().all(|to| to.address.is_ascii());
        let mut line = alloc::format!("MAIL FROM:<{}>", envelope.reverse_path);
        // Writing to a string never fails.
        let _ = extensions.size.map(|_| write!(line, " SIZE={bytes}"));
        if extensions.eight_bit && envelope.content == ContentWidth::EightBit {
            line.push_str(" BODY=8BITMIME");
        }
        if extensions.utf8 && (envelope.script == Script::Utf8 || !is_ascii) {
            line.push_str(" SMTPUTF8");
        }
        if extensions.dsn {
            envelope.returned.iter().for_each(|returned| line.extend([" RET=", returned.word()]));
            let identifier =
                envelope.envelope_id.iter().filter(|identifier| is_parameter(identifier));
            identifier.for_each(|identifier| line.extend([" ENVID=", identifier]));
        }
        self.ask(SentCommand::Mail, &line);
    }

    fn say_recipient(&mut self, index: usize) {
        let recipients =
            self.transaction.as_ref().map(|transaction| &transaction.message.envelope.recipients);
        let Some(recipient) = recipients.and_then(|recipients| recipients.get(index)) else {
            return;
        };
        let mut line = alloc::format!("RCPT TO:<{}>", recipient.address);
        if self.extensions.dsn {
            write_report_parameters(recipient, &mut line);
        }
        self.ask(SentCommand::Recipient(index), &line);
    }

    pub(super) fn mail_answered(&mut self, reply: Reply) {
        match reply.class() {
            2 => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.is_open = true;
                }
                self.say_next(0);
            }
            _ => {
                self.report_outcome(RecipientProgress::Open, &self.refusal(Stage::Sender, reply));
                // The peer still answers the other commands of the same pipeline.
                if self.asked.is_empty() {
                    self.transaction_over();
                }
            }
        }
    }

    pub(super) fn recipient_answered(&mut self, index: usize, reply: Reply) {
        match reply.class() {
            2 => {
                let progress =
                    self.transaction.as_mut().map(|transaction| &mut transaction.progress);
                if let Some(progress @ RecipientProgress::Open) =
                    progress.and_then(|progress| progress.get_mut(index))
                {
                    *progress = RecipientProgress::Accepted;
                }
            }
            _ => {
                let outcome = self.refusal(Stage::Recipient, reply);
                self.report_one(index, outcome);
            }
        }
        self.say_next(index + 1);
    }

    /// Sends the next command of the envelope, if it was not pipelined.
    fn say_next(&mut self, from: usize) {
        if !self.asked.is_empty() {
            return;
        }
        if let Some(index) = self.next(RecipientProgress::Open, from) {
            self.say_recipient(index);
        } else if self.next(RecipientProgress::Accepted, 0).is_some() {
            self.ask(SentCommand::Data, "DATA");
        } else {
            self.transaction_over();
        }
    }

    pub(super) fn data_answered(&mut self, reply: Reply) {
        match reply.class() {
            3 if self.next(RecipientProgress::Accepted, 0).is_some() => {
                self.state = State::Body;
                self.is_body_asked = false;
            }
            // No recipient was accepted, but the peer waits for a message: it gets an empty one
            // (RFC 2920 section 3.1).
            3 => self.end_message(),
            _ => {
                self.report_outcome(RecipientProgress::Accepted, &self.refusal(Stage::Data, reply));
                self.transaction_over();
            }
        }
    }

    /// Takes more of the message. The caller passes the bytes unchanged: it does not double dots.
    /// Returns the number of bytes taken. The caller offers the rest again at the next
    /// [`Action::NeedBody`].
    pub fn body(&mut self, octets: &[u8]) -> usize {
        self.is_body_asked = false;
        match self.state {
            State::Body => return self.output.body(octets),
            State::Inspection if !octets.is_ascii() => {
                let reason = DeliveryFailure { stage: Stage::Sender, cause: Cause::EightBit };
                self.report_outcome(RecipientProgress::Open, &DeliveryOutcome::Never(reason));
                self.transaction_over();
            }
            _ => {}
        }
        octets.len()
    }

    /// Ends the message: the caller has given all of it.
    pub fn body_ended(&mut self) {
        match (self.state, &mut self.transaction) {
            (State::Body, _) => self.end_message(),
            (State::Inspection, Some(transaction)) => {
                transaction.is_inspected = true;
                self.actions.push_back(Action::BodyAnew);
                self.begin_transaction();
            }
            _ => {}
        }
    }

    fn end_message(&mut self) {
        self.state = State::End;
        self.output.end_body();
        self.asked.push_back((SentCommand::End, self.output.end()));
    }

    pub(super) fn message_answered(&mut self, reply: Reply) {
        // If no recipient was accepted, this answer changes no outcome.
        let outcome = match reply.class() {
            2 => DeliveryOutcome::Delivered(reply),
            _ => self.refusal(Stage::MessageEnd, reply),
        };
        self.report_outcome(RecipientProgress::Accepted, &outcome);
        if let Some(transaction) = &mut self.transaction {
            transaction.is_open = false;
        }
        self.transaction_over();
    }

    /// Takes the peer's refusal of the rest of the message. It is unknown where the peer expects
    /// the next command, so the connection ends.
    pub(super) fn refused_early(&mut self, reply: Reply) {
        self.report_outcome(RecipientProgress::Accepted, &self.refusal(Stage::Message, reply));
        self.fail(Cause::Lost(Lost::Closed), DeliveryOutcome::Later);
    }

    /// Ends the transaction: all outcomes are known.
    fn transaction_over(&mut self) {
        match self.transaction.take() {
            Some(ClientTransaction { is_open: true, .. }) => {
                self.state = State::Clearing;
                self.ask(SentCommand::Reset, "RSET");
            }
            _ => self.rest(),
        }
    }

    /// Gives every recipient without an outcome the outcome of the connection, which is over.
    pub(super) fn report_all(&mut self) {
        if let Some(outcome) = self.end.clone() {
            self.report_outcome(RecipientProgress::Open, &outcome);
            self.report_outcome(RecipientProgress::Accepted, &outcome);
        }
        self.transaction = None;
    }

    /// Reports the outcome for all recipients with this progress.
    fn report_outcome(&mut self, progress: RecipientProgress, outcome: &DeliveryOutcome) {
        let mut next = self.next(progress, 0);
        while let Some(index) = next {
            self.report_one(index, outcome.clone());
            next = self.next(progress, index + 1);
        }
    }

    /// Reports the outcome for one recipient, unless an outcome was reported already.
    fn report_one(&mut self, index: usize, outcome: DeliveryOutcome) {
        let Some(transaction) = &mut self.transaction else { return };
        let Some(progress) = transaction.progress.get_mut(index) else { return };
        if let (RecipientProgress::Open | RecipientProgress::Accepted, Some(recipient)) = (
            mem::replace(progress, RecipientProgress::Reported),
            transaction.message.envelope.recipients.get(index),
        ) {
            self.actions.push_back(Action::Done { recipient: recipient.number, outcome });
        }
    }

    fn is_inspected(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.is_inspected)
    }

    fn next(&self, progress: RecipientProgress, from: usize) -> Option<usize> {
        self.transaction.as_ref()?.first(progress, from)
    }

    /// The outcome of a refusal.
    fn refusal(&self, stage: Stage, reply: Reply) -> DeliveryOutcome {
        let may_help = stage == Stage::Recipient && means_too_many_recipients(&reply)
            || self.is_for_lack_of_tls(&reply);
        let outcome = if reply.class() == 5 && !may_help {
            DeliveryOutcome::Never
        } else {
            DeliveryOutcome::Later
        };
        outcome(DeliveryFailure { stage, cause: Cause::Refused(reply) })
    }

    /// Whether the peer demands TLS for this command, and the client could not use the TLS that the
    /// peer offers (RFC 3207 section 4).
    fn is_for_lack_of_tls(&self, reply: &Reply) -> bool {
        reply.code == WANTS_TLS && self.extensions.starttls && !self.is_secured
    }
}

/// The reply to a command that must not be sent in plaintext.
const WANTS_TLS: u16 = 530;

/// Whether a reply means "too many recipients". A server that follows RFC 821 sends 552 to RCPT
/// with the meaning of 452 (RFC 5321 section 4.5.3.1.10). An enhanced code in the reply may give it
/// another meaning.
fn means_too_many_recipients(reply: &Reply) -> bool {
    let says_so = |enhanced: Enhanced| (enhanced.subject, enhanced.detail) == (5, 3);
    reply.code == 552 && reply.enhanced.is_none_or(says_so)
}
