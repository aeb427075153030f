//! A document that is sent while it is read, a piece at a time. A large document is never in memory
//! as a whole.
//!
//! A document that fits into one piece is one reply with a known length. For all others, the first
//! piece begins the reply.

use alloc::vec::Vec;

use http::{OpenReply, Reply, ReplyEnd, ReplyPace};

use crate::answer;
use crate::answer::Title;
use crate::step::JobProgress;

/// The size of a piece in bytes. No more is read until the client has taken it.
pub const PIECE_BYTES: usize = 16 * 1024;

/// The first piece of a document.
#[derive(Debug)]
pub(crate) struct DocumentStart {
    title: Title,
    first: Vec<u8>,
}

/// How far a document was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum StreamStage {
    #[default]
    Nothing,
    /// Its first piece.
    Begun,
    /// All of it.
    All,
}

impl DocumentStart {
    /// The reply that begins with it and stays open under this number.
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
    /// The next step of a document. `bytes`: the octets since the last piece; `end`: how it ended,
    /// if it did. A document that is cut before its first piece has another reply.
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
