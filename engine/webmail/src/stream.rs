//! A document that is sent in pieces while it is read. A large document is never in memory as a
//! whole.
//!
//! A document that fits into one piece is one reply with a known length. The first piece of a
//! longer document begins an open reply.

use alloc::vec::Vec;

use http::{OpenReply, Reply, ReplyEnd, ReplyPace};

use crate::answer;
use crate::answer::Title;
use crate::step::JobProgress;

/// The size of a piece in bytes. The next piece is read after the client has taken this one.
pub const PIECE_BYTES: usize = 16 * 1024;

/// The first piece of a document.
#[derive(Debug)]
pub(crate) struct DocumentStart {
    title: Title,
    first: Vec<u8>,
}

/// The progress of sending a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum StreamStage {
    /// No piece was sent yet.
    #[default]
    Nothing,
    /// The first piece was sent, and more follow.
    Begun,
    /// The whole document was sent.
    All,
}

impl DocumentStart {
    /// The open reply with this number, which begins with this piece.
    pub(crate) fn reply(self, number: u64) -> Reply {
        let length = if let Title::File { length, .. } = self.title { length } else { None };
        answer::document_begins(
            &self.title,
            self.first,
            OpenReply { number, pace: ReplyPace::Client { length } },
        )
    }
}

impl StreamStage {
    /// The next step of sending a document. `bytes`: the octets since the last piece. `end`: the
    /// end of the document, if it was reached. The caller never calls this function for a document
    /// that is cut before its first piece.
    pub(crate) fn next(
        &mut self,
        bytes: Vec<u8>,
        end: Option<ReplyEnd>,
        title: impl FnOnce() -> Title,
    ) -> JobProgress {
        match (*self, end) {
            (StreamStage::Nothing, Some(_)) => {
                *self = StreamStage::All;
                JobProgress::Reply(answer::document(&title(), bytes))
            }
            (StreamStage::Nothing, None) => {
                *self = StreamStage::Begun;
                JobProgress::Begin(DocumentStart { title: title(), first: bytes })
            }
            (StreamStage::Begun, Some(ReplyEnd::Cut)) => JobProgress::End(ReplyEnd::Cut),
            (StreamStage::Begun, Some(ReplyEnd::Whole)) if bytes.is_empty() => {
                JobProgress::End(ReplyEnd::Whole)
            }
            (StreamStage::Begun, _) => JobProgress::Piece(bytes),
            (StreamStage::All, _) => JobProgress::End(ReplyEnd::Whole),
        }
    }
}
