//! The body of an admitted request. The body is kept until it is complete, or is passed to the
//! handler in pieces.
//!
//! The handler holds one piece at a time. Meanwhile only a bounded number of bytes can arrive and
//! be kept. In HTTP/1.1 the session takes no bytes while the handler holds a piece. In HTTP/2 the
//! window of the stream opens only for bytes that were passed to the handler.
//!
//! Invariant: a body never takes more memory than was admitted.

use alloc::vec::Vec;

use crate::actions::Actions;
use crate::answer::PendingResponse;
use crate::handler_request::QueuedRequest;
use crate::reply::Reply;
use crate::types::Announced;

/// The size of the first allocation in bytes, if the length of the body is unknown.
const BYTES_AT_FIRST: usize = 4096;

/// The size of one piece of a body, in bytes.
pub(crate) const PIECE_BYTES: usize = 32 * 1024;

/// The maximum number of bytes of a body that wait for the handler. It is the window of a stream,
/// plus one frame that was counted before its bytes arrived.
pub const PIECE_BYTES_MAX: usize = 80 * 1024;

/// The limits and the form of an admitted body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyAdmission {
    /// The maximum length of the body, in bytes.
    pub bytes: u64,
    /// The memory that is reserved for the body, in bytes.
    pub memory: usize,
    /// The handler's number for the body, if the handler takes it in pieces.
    pub number: Option<u64>,
}

impl BodyAdmission {
    /// Admits a body of at most `bytes` bytes, which is kept until it is complete.
    pub fn whole(bytes: usize) -> BodyAdmission {
        BodyAdmission { bytes: bytes as u64, memory: bytes, number: None }
    }

    /// Gives the admission back: no more bytes of the body will arrive.
    pub(crate) fn give_up(&self, actions: &mut impl Actions) {
        actions.released(self.memory);
        self.number.into_iter().for_each(|number| actions.left(number));
    }

    /// Refuses a body that is larger than admitted. Returns the answer to the request.
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
    /// The number of bytes that have arrived.
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

    /// Passes a piece to the handler, if a whole piece has arrived and the handler holds none.
    pub(crate) fn hand_over(&mut self, actions: &mut impl Actions) {
        if let Some(number) = self.admission.number
            && self.bytes.len() >= PIECE_BYTES
            && !self.is_with_handler
        {
            self.is_with_handler = true;
            actions.piece_arrived(number, core::mem::take(&mut self.bytes));
        }
    }

    /// The handler has taken a piece of the body `number`. Returns whether this is that body.
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

    /// The number of bytes that may arrive before a piece is complete.
    pub(crate) fn room(&self) -> usize {
        if self.admission.number.is_some() {
            PIECE_BYTES.saturating_sub(self.bytes.len())
        } else {
            usize::MAX
        }
    }

    /// The number of bytes that are kept until the handler takes the next piece.
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
