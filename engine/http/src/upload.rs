//! The body of a request, after its sender was admitted. It is kept until it is complete, or passed
//! on piece by piece.
//!
//! With pieces, the handler holds one piece at a time. What arrives meanwhile is kept, and the
//! client can send only a bounded amount: in HTTP/1.1 nothing more is taken, and in HTTP/2 the
//! window of the stream opens only for bytes that the handler was given.
//!
//! Invariant: it never takes more memory than was admitted.

use alloc::vec::Vec;

use crate::actions::Actions;
use crate::answer::PendingResponse;
use crate::handler_request::QueuedRequest;
use crate::reply::Reply;
use crate::types::Announced;

/// Bytes of the first allocation if the length of the body is unknown.
const BYTES_AT_FIRST: usize = 4096;

/// Bytes of one piece of a body.
pub(crate) const PIECE_BYTES: usize = 32 * 1024;

/// The most bytes of a body that wait for the handler: the window of a stream, plus one frame that
/// was counted before it arrived.
pub const PIECE_BYTES_MAX: usize = 80 * 1024;

/// How a body may arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyAdmission {
    /// The most bytes that the body may have.
    pub bytes: u64,
    /// Bytes of memory that are reserved for it.
    pub memory: usize,
    /// The handler's name for the body, if it wants the body piece by piece.
    pub number: Option<u64>,
}

impl BodyAdmission {
    /// The body is kept until it is complete.
    pub fn whole(bytes: usize) -> BodyAdmission {
        BodyAdmission { bytes: bytes as u64, memory: bytes, number: None }
    }

    /// The body does not arrive, or no more of it.
    pub(crate) fn give_up(&self, actions: &mut impl Actions) {
        actions.released(self.memory);
        self.number.into_iter().for_each(|number| actions.left(number));
    }

    /// The body is larger than admitted. Returns the answer to the request.
    pub(crate) fn refuse(
        &self,
        asked: &QueuedRequest,
        actions: &mut impl Actions,
    ) -> PendingResponse {
        self.give_up(actions);
        let reply = actions.too_large(&asked.question(Announced::Something), self.bytes);
        PendingResponse::from_reply(asked, reply, actions)
    }
}

/// A body that is arriving.
#[derive(Debug)]
pub(crate) struct ArrivingBody {
    bytes: Vec<u8>,
    admission: BodyAdmission,
    /// Bytes that have arrived.
    came: u64,
    is_too_large: bool,
    /// Whether the handler holds a piece.
    is_with_handler: bool,
}

impl ArrivingBody {
    /// `announced`: the length of the body in bytes, if the client announced it.
    pub(crate) fn begin(admission: BodyAdmission, announced: Option<u64>) -> ArrivingBody {
        let announced = announced.unwrap_or(0);
        let is_too_large = announced > admission.bytes;
        let at_once =
            if admission.number.is_some() { announced.min(PIECE_BYTES as u64) } else { announced };
        let bytes = if is_too_large { Vec::new() } else { Vec::with_capacity(at_once as usize) };
        ArrivingBody { bytes, admission, came: 0, is_too_large, is_with_handler: false }
    }

    /// Keeps a part of the body, unless it exceeds the limit.
    pub(crate) fn keep(&mut self, part: &[u8]) {
        self.came += part.len() as u64;
        let whole = self.bytes.len() + part.len();
        let most =
            if self.admission.number.is_some() { PIECE_BYTES_MAX } else { self.admission.memory };
        if self.is_too_large || self.came > self.admission.bytes || whole > most {
            (self.is_too_large, self.bytes) = (true, Vec::new());
            return;
        }
        if whole > self.bytes.capacity() {
            let wanted = whole.max(2 * self.bytes.capacity()).max(BYTES_AT_FIRST).min(most);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(part);
    }

    /// Gives the handler a piece, if there is one and the handler holds none.
    pub(crate) fn hand_over(&mut self, actions: &mut impl Actions) {
        if let Some(number) = self.admission.number
            && self.bytes.len() >= PIECE_BYTES
            && !self.is_with_handler
        {
            self.is_with_handler = true;
            actions.piece_arrived(number, core::mem::take(&mut self.bytes));
        }
    }

    /// The handler has taken a piece of the body with this number. Returns whether it is this body.
    pub(crate) fn piece_taken(&mut self, number: u64) -> bool {
        let is_this = self.admission.number == Some(number);
        self.is_with_handler &= !is_this;
        is_this
    }

    /// The body is complete. Returns the reply if the handler knows it at once.
    pub(crate) fn end(self, asked: &QueuedRequest, actions: &mut impl Actions) -> Option<Reply> {
        actions.released(self.admission.memory);
        match self.admission.number {
            Some(number) => {
                actions.pieces_ended(number, self.bytes);
                None
            }
            None => {
                let bytes = self.bytes.len() as u64;
                let announced =
                    if bytes == 0 { Announced::Nothing } else { Announced::Bytes(bytes) };
                actions.body_arrived(&asked.question(announced), self.bytes)
            }
        }
    }

    /// Bytes that may arrive until there is a piece.
    pub(crate) fn room(&self) -> usize {
        if self.admission.number.is_some() {
            PIECE_BYTES.saturating_sub(self.bytes.len())
        } else {
            usize::MAX
        }
    }

    /// Bytes of a body in pieces that are kept.
    pub(crate) fn waiting_bytes(&self) -> usize {
        if self.admission.number.is_some() { self.bytes.len() } else { 0 }
    }

    /// Whether the handler holds a piece.
    pub(crate) fn is_with_handler(&self) -> bool {
        self.is_with_handler
    }

    /// Whether the body is larger than was admitted.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The admission of this body.
    pub(crate) fn admission(&self) -> BodyAdmission {
        self.admission
    }
}
