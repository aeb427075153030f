//! RETR and TOP: sends a message from the disk to the client with dot-stuffing.
//!
//! `+OK` is sent only once the host has delivered the first bytes. So for a message that cannot be
//! read, the client gets an error instead of a part of the message. If reading fails later, the
//! connection ends without the final dot. So the client does not take the message for complete.
//!
//! Implements: RFC 1939 sections 3, 5 (RETR) and 7 (TOP).

use crate::actions::{Actions, ReadError};
use crate::cut::Cut;
use crate::number::MessageNumber;
use crate::reply::{self, ReplyText};
use crate::stuffing::{StuffingPosition, bytes_before_dot};

use super::{AUTOLOGOUT, Expect, Pop3WaitsFor, Session};

/// Bytes of buffer space that stay free for the end of a message: a line end, and the line of one
/// dot.
const TAIL_BYTES: usize = 5;

/// A message that is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Retrieval {
    response: Response,
    position: StuffingPosition,
    /// The end of TOP's response.
    cut: Option<Cut>,
}

/// Whether the response has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Response {
    /// The response has not begun. For RETR, its first line will have the message's size, `bytes`.
    NotBegun {
        bytes: Option<u64>,
    },
    Begun,
}

impl Retrieval {
    /// The response to RETR, for a message of this size.
    pub(super) fn whole(bytes: u64) -> Retrieval {
        Retrieval {
            response: Response::NotBegun { bytes: Some(bytes) },
            position: StuffingPosition::LineStart,
            cut: None,
        }
    }

    /// The response to TOP, up to the end that `cut` finds.
    pub(super) fn until(cut: Cut) -> Retrieval {
        Retrieval {
            response: Response::NotBegun { bytes: None },
            position: StuffingPosition::LineStart,
            cut: Some(cut),
        }
    }

    /// Sends the first line of the response, unless it was sent already.
    fn begin_response(&mut self, actions: &mut impl Actions) {
        match core::mem::replace(&mut self.response, Response::Begun) {
            Response::NotBegun { bytes: Some(bytes) } => {
                ReplyText::new().put(b"+OK ").put_decimal(bytes).put(b" octets\r\n").send(actions);
            }
            Response::NotBegun { bytes: None } => actions.reply(reply::OK),
            Response::Begun => {}
        }
    }

    /// Sends as many of `bytes` as there is space for, with dot-stuffing. Returns the number of
    /// bytes taken.
    fn send(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            // Before each reply, the free space is read again: over TLS a reply takes more space
            // than its bytes.
            let room = actions.send_room().saturating_sub(TAIL_BYTES);
            let count = bytes_before_dot(self.position, rest).min(room);
            if let Some(run) = rest.get(..count).filter(|run| !run.is_empty()) {
                actions.reply(run);
                self.position = self.position.after(run);
            } else if room >= 2 {
                // A dot at the start of a line: both dots are sent together, so that no state is
                // needed between them.
                actions.reply(b"..");
                self.position = StuffingPosition::InLine;
                sent += 1;
                continue;
            } else {
                break;
            }
            sent += count;
        }
        sent
    }
}

impl Session {
    pub(super) fn begin_retrieval(
        &mut self,
        retrieval: Retrieval,
        message: MessageNumber,
        actions: &mut impl Actions,
    ) {
        self.expect = Expect::Message(retrieval);
        self.waits_for = Pop3WaitsFor::Message;
        actions.read(message);
    }

    /// Restarts the client's deadline during a read, because the server is the reason for the
    /// delay.
    pub fn renew_deadline(&self, actions: &mut impl Actions) {
        if matches!(self.expect, Expect::Message(_)) {
            actions.set_deadline(Some(AUTOLOGOUT));
        }
    }

    /// Handles the next bytes, as stored, of the message that [`Actions::read`] asked for. Returns
    /// the number of bytes taken. The caller offers the rest again, with the bytes that follow,
    /// when there is more buffer space. If all bytes were taken and [`Session::waits_for`] is not
    /// [`Pop3WaitsFor::Message`], the session needs no more bytes.
    pub fn message_bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let Expect::Message(mut retrieval) = self.expect else { return bytes.len() };
        if bytes.is_empty() {
            return 0;
        }
        retrieval.begin_response(actions);
        let (wanted, _) =
            retrieval.cut.map_or((bytes.len(), Cut::after(0)), |cut| cut.advance(bytes));
        let sent = retrieval.send(bytes.get(..wanted).unwrap_or(bytes), actions);
        if let Some(cut) = &mut retrieval.cut {
            *cut = cut.advance(bytes.get(..sent).unwrap_or(bytes)).1;
        }
        self.expect = Expect::Message(retrieval);
        if sent > 0 {
            actions.set_deadline(Some(AUTOLOGOUT));
        }
        if retrieval.cut.is_some_and(Cut::is_done) {
            actions.stop_reading();
            self.message_completed(&retrieval, actions);
            return bytes.len();
        }
        self.waits_for =
            if sent < bytes.len() { Pop3WaitsFor::SendRoom } else { Pop3WaitsFor::Message };
        sent
    }

    /// The session has taken all bytes of the message, or the message could not be read.
    pub fn message_ended(&mut self, result: Result<(), ReadError>, actions: &mut impl Actions) {
        let Expect::Message(mut retrieval) = self.expect else { return };
        match (result, retrieval.response) {
            (Ok(()), _) => {
                retrieval.begin_response(actions);
                self.message_completed(&retrieval, actions);
            }
            (Err(error), Response::NotBegun { .. }) => {
                actions.reply(reply::read_error(error));
                self.command_answered(actions);
            }
            (Err(_), Response::Begun) => {
                // The read has ended. `finish` must not stop it again.
                self.expect = Expect::Transaction;
                self.finish(actions);
            }
        }
    }

    fn message_completed(&mut self, retrieval: &Retrieval, actions: &mut impl Actions) {
        actions.reply(retrieval.position.line_end());
        actions.reply(reply::END);
        self.command_answered(actions);
    }
}
