//! The body of a question whose sender was admitted: kept until all of it is there, or handed over as it comes.
//!
//! Of one that is handed over a piece is with the program at a time. What comes meanwhile is kept, and no more of it can come than the client may send: in HTTP/1.1 nothing is taken,
//! in HTTP/2 the stream's window opens only for what the program was given.
//!
//! Invariant: it never takes more memory than was admitted.

use alloc::vec::Vec;

use crate::actions::Actions;
use crate::answer::Answer;
use crate::question::Asked;
use crate::types::Announced;

/// Bytes after which memory for them is asked for, when nobody knows how many there will be.
const BYTES_AT_FIRST: usize = 4096;

/// Bytes of a body that are a piece of it.
pub(crate) const PIECE_BYTES: usize = 32 * 1024;

/// The most bytes of a body that wait to be a piece: what a stream's window lets come, and a frame that was counted before it came.
pub const PIECE_BYTES_MAX: usize = 80 * 1024;

/// How a body may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// How many bytes it may have.
    pub bytes: u64,
    /// How many bytes of memory are kept free for it.
    pub memory: usize,
    /// By which the program names it, if it wants it as it comes.
    pub number: Option<u64>,
}

impl Admission {
    /// It is kept until all of it is there.
    pub fn whole(bytes: usize) -> Admission {
        Admission { bytes: bytes as u64, memory: bytes, number: None }
    }

    /// The body does not come, or not any more.
    pub(crate) fn give_up(&self, actions: &mut impl Actions) {
        actions.released(self.memory);
        self.number.into_iter().for_each(|number| actions.left(number));
    }

    /// There is more of the body than may come: what is answered to what was asked.
    pub(crate) fn refuse(&self, asked: &Asked, actions: &mut impl Actions) -> Answer {
        self.give_up(actions);
        let reply = actions.too_large(&asked.question(Announced::Something), self.bytes);
        Answer::to_question(asked, reply, actions)
    }
}

/// A body that comes.
#[derive(Debug)]
pub(crate) struct Upload {
    bytes: Vec<u8>,
    admission: Admission,
    /// How many bytes have come.
    came: u64,
    is_too_large: bool,
    /// Whether a piece is with the program.
    is_with_program: bool,
}

impl Upload {
    /// `announced`: how many bytes it is to have, if that is known.
    pub(crate) fn begin(admission: Admission, announced: Option<u64>) -> Upload {
        let announced = announced.unwrap_or(0);
        let is_too_large = announced > admission.bytes;
        let at_once =
            if admission.number.is_some() { announced.min(PIECE_BYTES as u64) } else { announced };
        let bytes = if is_too_large { Vec::new() } else { Vec::with_capacity(at_once as usize) };
        Upload { bytes, admission, came: 0, is_too_large, is_with_program: false }
    }

    /// Keeps a part of it, unless it goes beyond the limit.
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

    /// Gives the program a piece, if there is one and it has none.
    pub(crate) fn hand_over(&mut self, actions: &mut impl Actions) {
        if let Some(number) = self.admission.number
            && self.bytes.len() >= PIECE_BYTES
            && !self.is_with_program
        {
            self.is_with_program = true;
            actions.piece_arrived(number, core::mem::take(&mut self.bytes));
        }
    }

    /// The program has taken a piece of the body with this number. Whether it is this one.
    pub(crate) fn piece_taken(&mut self, number: u64) -> bool {
        let is_this = self.admission.number == Some(number);
        self.is_with_program &= !is_this;
        is_this
    }

    /// All of it has come.
    pub(crate) fn end(self, asked: &Asked, actions: &mut impl Actions) {
        actions.released(self.admission.memory);
        match self.admission.number {
            Some(number) => actions.pieces_ended(number, self.bytes),
            None => {
                let bytes = self.bytes.len() as u64;
                let announced =
                    if bytes == 0 { Announced::Nothing } else { Announced::Bytes(bytes) };
                actions.body_arrived(&asked.question(announced), self.bytes);
            }
        }
    }

    /// Bytes that may come until there is a piece.
    pub(crate) fn room(&self) -> usize {
        if self.admission.number.is_some() {
            PIECE_BYTES.saturating_sub(self.bytes.len())
        } else {
            usize::MAX
        }
    }

    /// Bytes that are kept of what comes in pieces.
    pub(crate) fn waiting_bytes(&self) -> usize {
        if self.admission.number.is_some() { self.bytes.len() } else { 0 }
    }

    /// Whether a piece is with the program.
    pub(crate) fn is_with_program(&self) -> bool {
        self.is_with_program
    }

    /// Whether there is more of it than was admitted.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// What was admitted.
    pub(crate) fn admission(&self) -> Admission {
        self.admission
    }
}
