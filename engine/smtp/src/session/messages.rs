//! The handlers of [`Expect::MessageData`] and [`Expect::ChunkData`]: the bytes of a message
//! arrive.
//!
//! A refused message is read to its end. Otherwise the session would take the rest of the message
//! for commands. A client that sends more than twice the size limit is disconnected.
//!
//! Implements: RFC 5321 sections 4.1.1.4 and 4.5.2, RFC 1870 section 6.1, RFC 3030 section 2.

use crate::actions::{Actions, MessageRefusal};
use crate::command::ChunkPlace;
use crate::content::{ContentRun, Dots, Position, next_run};
use crate::reply::{self, Reply};

use super::{
    ContentHandling, Expect, InputProgress, MessageInput, MessageState, PlannedEnd, Session,
    SmtpWaitsFor,
};

impl Session {
    pub(super) fn message_data_arrived(
        &mut self,
        mut incoming: MessageInput,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> InputProgress {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            let run = next_run(incoming.position, rest, Dots::Stuffed);
            if let ContentRun::End(count) = run {
                self.message_completed(incoming, actions);
                return InputProgress::AndGoOn(taken + count);
            }
            let offered = run_bytes(run);
            let count = self.run_arrived(&mut incoming, run, rest, actions);
            taken += count;
            if self.end_if_flood(&incoming, actions) {
                return InputProgress::AndGoOn(taken);
            }
            self.expect = Expect::MessageData(incoming);
            if count < offered {
                return InputProgress::AndWait(taken, SmtpWaitsFor::MessageRoom);
            }
        }
        InputProgress::AndGoOn(taken)
    }

    pub(super) fn chunk_data_arrived(
        &mut self,
        mut chunk: MessageInput,
        mut bytes_left: u64,
        place: ChunkPlace,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> InputProgress {
        let within =
            usize::try_from(bytes_left).ok().and_then(|left| bytes.get(..left)).unwrap_or(bytes);
        let mut taken = 0;
        while let Some(rest) = within.get(taken..).filter(|rest| !rest.is_empty()) {
            let run = next_run(chunk.position, rest, Dots::Plain);
            let has_room = if run == ContentRun::MissingCr {
                self.content_arrived(&mut chunk, b"\r", Position::AfterCr, actions) > 0
            } else {
                let count = self.run_arrived(&mut chunk, run, rest, actions);
                taken += count;
                bytes_left = bytes_left.saturating_sub(count as u64);
                count == run_bytes(run)
            };
            if self.end_if_flood(&chunk, actions) {
                return InputProgress::AndGoOn(taken);
            }
            self.expect = Expect::ChunkData { chunk, bytes_left, place };
            if !has_room {
                return InputProgress::AndWait(taken, SmtpWaitsFor::MessageRoom);
            }
        }
        if bytes_left == 0 {
            self.chunk_completed(chunk, place, actions);
        }
        InputProgress::AndGoOn(taken)
    }

    /// Passes a run of a message to the host, or discards it. Returns the number of bytes taken.
    fn run_arrived(
        &mut self,
        incoming: &mut MessageInput,
        run: ContentRun,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> usize {
        match run {
            ContentRun::Content(count, position) => {
                return self.content_arrived(
                    incoming,
                    bytes.get(..count).unwrap_or(bytes),
                    position,
                    actions,
                );
            }
            ContentRun::BareLineEnd(count, position) => {
                // If several faults occur in the message, the first one is the reason for the
                // refusal, however the message is cut into pieces.
                self.refuse_if_nul(incoming, bytes.get(..count).unwrap_or(bytes), actions);
                self.refuse_if_too_big(incoming, count, actions);
                self.refuse(incoming, reply::BARE_LINE_END_IN_MESSAGE, actions);
                incoming.bytes = incoming.bytes.saturating_add(count as u64);
                incoming.position = position;
            }
            ContentRun::Dropped(_, position) => incoming.position = position,
            ContentRun::End(_) | ContentRun::MissingCr => {}
        }
        run_bytes(run)
    }

    fn content_arrived(
        &mut self,
        incoming: &mut MessageInput,
        content: &[u8],
        position: Position,
        actions: &mut impl Actions,
    ) -> usize {
        self.refuse_if_nul(incoming, content, actions);
        self.refuse_if_too_big(incoming, content.len(), actions);
        let mut count = content.len();
        if incoming.handling == ContentHandling::Kept {
            match actions.message_bytes(content) {
                Ok(taken) => count = taken.min(count),
                Err(refusal) => {
                    self.set_message(MessageState::NotBegun);
                    incoming.handling = ContentHandling::Refused(reply::message_refusal(refusal));
                }
            }
        }
        incoming.bytes = incoming.bytes.saturating_add(count as u64);
        if count == content.len() {
            incoming.position = position;
        } else if let Some(&last) = content.get(..count).and_then(|taken| taken.last()) {
            incoming.position = Position::after(last);
        }
        count
    }

    /// The end of data has arrived.
    fn message_completed(&mut self, incoming: MessageInput, actions: &mut impl Actions) {
        match incoming.handling {
            ContentHandling::Refused(reply) => {
                actions.reply(reply);
                self.message_answered(actions);
            }
            ContentHandling::Kept => match end(actions) {
                Ok(()) => {
                    self.set_message(MessageState::Whole);
                    self.expect = Expect::Stored;
                    self.waits_for = SmtpWaitsFor::Stored;
                }
                Err(refusal) => {
                    self.set_message(MessageState::NotBegun);
                    reply::message_refused(refusal, actions);
                    self.message_answered(actions);
                }
            },
        }
    }

    /// The last byte of a chunk has arrived.
    pub(super) fn chunk_completed(
        &mut self,
        mut chunk: MessageInput,
        place: ChunkPlace,
        actions: &mut impl Actions,
    ) {
        if place == ChunkPlace::Last && chunk.position == Position::AfterCr {
            self.refuse(&mut chunk, reply::BARE_LINE_END_IN_MESSAGE, actions);
        }
        match (chunk.handling, place) {
            (ContentHandling::Kept, ChunkPlace::NotLast) => {
                self.set_message(MessageState::BetweenChunks(chunk));
                actions.reply(reply::CHUNK_OK);
                self.expect = Expect::Command;
                self.stop_if_stopping(actions);
            }
            // A refused message is answered even if more chunks follow. Since the transaction ends,
            // these chunks are refused too.
            _ => self.message_completed(chunk, actions),
        }
    }

    /// Ends the transaction after its message was answered.
    pub(super) fn message_answered(&mut self, actions: &mut impl Actions) {
        self.transaction_over(actions);
        self.expect = Expect::Command;
        self.waits_for = SmtpWaitsFor::Bytes;
        self.stop_if_stopping(actions);
    }

    /// Ends the session if it was to end after this message or login.
    pub(super) fn stop_if_stopping(&mut self, actions: &mut impl Actions) {
        match self.stopping {
            PlannedEnd::No => {}
            PlannedEnd::AfterMessage => self.end(reply::STOPPING, actions),
            PlannedEnd::PasswordChanged => self.end(reply::PASSWORD_CHANGED, actions),
        }
    }

    /// Refuses a message with a NUL (RFC 5321 section 2.3.8 excludes it). A later server that drops
    /// NUL could find an end of data where this server found none.
    fn refuse_if_nul(
        &mut self,
        incoming: &mut MessageInput,
        content: &[u8],
        actions: &mut impl Actions,
    ) {
        if let Some(at) = memchr::memchr(0, content) {
            self.refuse_if_too_big(incoming, at, actions);
            self.refuse(incoming, reply::NUL_IN_MESSAGE, actions);
        }
    }

    /// Refuses a message that `more` bytes make too large.
    fn refuse_if_too_big(
        &mut self,
        incoming: &mut MessageInput,
        more: usize,
        actions: &mut impl Actions,
    ) {
        if incoming.bytes.saturating_add(more as u64) > actions.settings().message_bytes_max {
            self.refuse(incoming, reply::TOO_BIG, actions);
        }
    }

    /// Discards the message so far, and its later bytes. If the message is refused already, the
    /// first reason stays.
    pub(super) fn refuse(
        &mut self,
        incoming: &mut MessageInput,
        reply: Reply,
        actions: &mut impl Actions,
    ) {
        if incoming.handling == ContentHandling::Kept {
            incoming.handling = ContentHandling::Refused(reply);
            self.set_message(MessageState::NotBegun);
            actions.message_abort();
        }
    }

    /// Ends the session if the client has sent more than twice the size limit of a refused message.
    /// Returns whether the session has ended.
    fn end_if_flood(&mut self, incoming: &MessageInput, actions: &mut impl Actions) -> bool {
        let ContentHandling::Refused(reply) = incoming.handling else { return false };
        let flood = incoming.bytes > actions.settings().message_bytes_max.saturating_mul(2);
        if flood {
            self.end(reply, actions);
        }
        flood
    }

    pub(super) fn set_message(&mut self, message: MessageState) {
        if let Some(transaction) = &mut self.transaction {
            transaction.message = message;
        }
    }
}

/// Passes the end of the message to the host. The client has no deadline while it waits for the
/// server.
fn end(actions: &mut impl Actions) -> Result<(), MessageRefusal> {
    actions.set_deadline(None);
    actions.message_end()
}

fn run_bytes(run: ContentRun) -> usize {
    match run {
        ContentRun::Content(count, _)
        | ContentRun::Dropped(count, _)
        | ContentRun::BareLineEnd(count, _)
        | ContentRun::End(count) => count,
        ContentRun::MissingCr => 0,
    }
}
