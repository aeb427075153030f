//! A message that is written anew for other servers: with short lines, or in ASCII.
//!
//! Most servers accept messages as our users submit them. Some messages have lines that are longer
//! than SMTP permits, and some servers accept ASCII only. Which part of a message has a long line
//! is known only after its beginning is on the disk. So such a message is stored as it came. If it
//! has long lines, a line above it marks this (`head`). Its entry in the outbox is then *replaced*:
//! the attempt reads the message, writes it anew (`message::Reencoder`), signs it, and delivers it
//! into the same outbox. The new entry is sent like any other. An 8-bit message is replaced when a
//! host turns out not to support 8BITMIME. Local recipients get the message as it came.
//!
//! Only messages of our own users are written anew: messages that this server has signed, or has
//! marked when they were submitted. A forwarded message is never written anew. A message that an
//! account resends is not marked.
//!
//! Invariants:
//! - The replacement is a local delivery with an origin (`arrivals`). When it is durable, all
//!   recipients of the old entry are marked, so each recipient gets the message by one of the
//!   entries. If the power fails before they are marked, the next attempt finds the note.
//! - The replacement is as old as the entry that it replaces (`QueueIndex::arrived`). So the
//!   message is not tried for a second lifetime.
//! - The signed bytes are the stored bytes.
//! - Memory holds one part of the message that the store has read, and the header until the message
//!   is signed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use machine::UnixTime;
use message::{Reencoder, RequiredForm};
use signing::Signing;
use store::{Closing, HeadSize, Refusal};

use super::OutboundWaitPoint;
use super::attempt_context::AttemptCx;
use super::reader::EntryReader;

/// A message that is written anew.
pub(super) struct Rewriting {
    form: RequiredForm,
    stage: RewritingStage,
    signing: Box<Signing>,
    /// The time at which the message arrived, which is also the date of the replacement.
    arrived: UnixTime,
}

enum RewritingStage {
    /// The message is read. `is_read`: whether the reader has bytes of it that were not written.
    Writing { encoder: Reencoder, is_read: bool },
    /// Signatures are computed.
    Signing,
    /// The replacement has a head of this size.
    Over(HeadSize),
}

/// The result of a step of writing a message anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RewritingStep {
    /// The reader has bytes for the store.
    Bytes,
    /// More of the message is being read, or a signature is being computed.
    Waits,
    /// All bytes were written.
    Over(Closing),
    /// The message cannot be written in the required form. The delivery must be given up.
    Impossible,
}

impl Rewriting {
    pub(super) fn new(form: RequiredForm, arrived: UnixTime, cx: &AttemptCx<'_, '_>) -> Rewriting {
        let encoder = Reencoder::new(form);
        let stage = RewritingStage::Writing { encoder, is_read: false };
        let signing = cx.parts.signer.begin(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        Rewriting { form, stage, signing, arrived }
    }

    /// Takes the next step. The store has taken all bytes so far.
    pub(super) fn go_on(
        &mut self,
        reader: &mut EntryReader,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<RewritingStep, Refusal> {
        match &mut self.stage {
            RewritingStage::Writing { is_read, .. } => {
                if reader.read_on(cx)? {
                    *is_read = true;
                    return Ok(RewritingStep::Waits);
                }
                Ok(self.written(reader, cx))
            }
            RewritingStage::Signing => Ok(self.sign(reader, cx)),
            RewritingStage::Over(head) => {
                Ok(RewritingStep::Over(Closing { date: self.arrived, head: *head, mailbox: None }))
            }
        }
    }

    /// Writes the bytes of the message that were read.
    pub(super) fn write_read(&mut self, reader: &mut EntryReader) {
        let RewritingStage::Writing { encoder, is_read } = &mut self.stage else { return };
        if core::mem::take(is_read) {
            let (octets, mut out) = (reader.take_octets(), Vec::new());
            encoder.bytes_arrived(&octets, &mut out);
            self.signing.arrived(&out);
            reader.put(out);
        }
    }

    /// Ends the message, and begins to sign it.
    fn written(&mut self, reader: &mut EntryReader, cx: &mut AttemptCx<'_, '_>) -> RewritingStep {
        let stage = core::mem::replace(&mut self.stage, RewritingStage::Signing);
        let RewritingStage::Writing { encoder, .. } = stage else {
            unreachable!("the message was written before")
        };
        let mut out = Vec::new();
        let is_ascii = encoder.ended(&mut out);
        if self.form == RequiredForm::SevenBit && !is_ascii {
            return RewritingStep::Impossible;
        }
        self.signing.arrived(&out);
        self.signing.ended(|domain| cx.parts.directory.has_domain(domain));
        reader.put(out);
        RewritingStep::Bytes
    }

    /// Asks for the next signature, or writes all of them.
    fn sign(&mut self, reader: &mut EntryReader, cx: &mut AttemptCx<'_, '_>) -> RewritingStep {
        let (at, wall) = (cx.continuation(OutboundWaitPoint::Signed), cx.parts.turn.wall);
        if self.signing.ask(at, cx.parts.signer, cx.parts.compute, wall) {
            return RewritingStep::Waits;
        }
        let head = self.signing.head(&[], &[]);
        self.stage = RewritingStage::Over(HeadSize::of(head.len()).unwrap_or(HeadSize::NONE));
        reader.put(head);
        RewritingStep::Bytes
    }

    /// Takes the requested signature.
    pub(super) fn signature_made(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.signing.take_signature(cx.parts.compute);
    }
}
