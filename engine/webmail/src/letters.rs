//! Letters that come in pieces from the webmail's forms, so that nobody holds more of a large file than a piece.
//!
//! A clerk to whom a letter comes has his place before its first byte is taken, and his number. The core of the connection sends each piece there when he has taken the one before, and
//! takes nothing more from the client meanwhile. Behind the last piece his answer goes back.
//!
//! Invariants:
//! - To a core come at most [`LETTERS_MAX`] at a time, from one account [`LETTERS_OF_ACCOUNT_MAX`], and as many from all strangers together.
//! - Of a letter one piece is on its way at a time.
//! - A letter whose connection is cut before its end is given up, with what the store has of it.

use alloc::collections::{BTreeMap, VecDeque};

use http::{Reply, Status};
use shards::LetterId;
use store::AccountId;
use tasks::FrameId;

use crate::clerk::Piece;
use crate::clerks::Clerks;
use crate::context::Context;

/// Letters that come to a core.
pub(crate) const LETTERS_MAX: usize = 16;

/// Letters that come from one account.
const LETTERS_OF_ACCOUNT_MAX: usize = 4;

/// The clerks of a core to whom letters come, by their numbers.
#[derive(Default)]
pub(crate) struct Letters {
    all: BTreeMap<u64, (AccountId, FrameId)>,
    /// What has come and was not given to them.
    pieces: VecDeque<(u64, Piece)>,
}

impl Letters {
    /// One comes that may.
    pub(crate) fn begin(&mut self, number: u64, account: AccountId, handler: FrameId) {
        assert!(self.may_begin(account), "a message is let in while there is room");
        self.all.insert(number, (account, handler));
    }

    /// Whether one more may come from this account.
    pub(crate) fn may_begin(&self, account: AccountId) -> bool {
        let of_account = self.all.values().filter(|(known, _)| *known == account).count();
        self.all.len() < LETTERS_MAX && of_account < LETTERS_OF_ACCOUNT_MAX
    }

    /// A piece of the letter with this number has come.
    pub(crate) fn piece_arrived(&mut self, number: u64, piece: Piece) {
        self.pieces.push_back((number, piece));
    }

    /// The next piece, and the clerk to whom it comes.
    fn next_piece(&mut self) -> Option<(FrameId, Piece)> {
        loop {
            let (number, piece) = self.pieces.pop_front()?;
            if let Some((_, clerk)) = self.all.get(&number) {
                return Some((*clerk, piece));
            }
        }
    }

    /// The letter with this number is done with: its clerk, if it is one of these.
    pub(crate) fn end(&mut self, number: u64) -> Option<FrameId> {
        self.all.remove(&number).map(|(_, clerk)| clerk)
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }
}

/// What is said to who would send one more.
pub(crate) fn too_many() -> Reply {
    let words =
        "Too many letters are being sent just now. Nothing is lost: go back, and try again when one has gone.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}

impl Clerks {
    /// Clerks to whom pieces have come take them.
    pub(crate) fn take_pieces(&mut self, cx: &mut Context<'_>) {
        while let Some((frame, piece)) = self.letters.next_piece() {
            if piece.is_last && !self.is_known(frame, cx) {
                self.session_of_letter_ended(frame);
            }
            self.step(frame, cx, |job, visitor, under_way, cx| {
                job.piece_arrived(&piece);
                job.go_on(visitor, under_way, cx)
            });
        }
    }

    /// Nobody listens any more to the open reply with this number, or nothing more comes of the letter. What its clerk has asked for comes back to nobody, and a letter that he had begun
    /// is to be given up.
    pub(crate) fn left(&mut self, number: u64) -> Option<LetterId> {
        self.listeners.left(number);
        let frame = self.streams.end(number).or_else(|| self.letters.end(number))?;
        self.gone(frame)
    }
}
