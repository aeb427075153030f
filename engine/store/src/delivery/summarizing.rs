//! The summary of a message, made while its chunks are written.
//!
//! A summary needs the header of the message and the beginning of its text. Usually the first chunk
//! has both. If the header goes on, its shortened form is kept, and each next chunk continues it.
//!
//! Invariants:
//! - The octets of each chunk are examined once.
//! - The summary is known when the last chunk is written. Readers take it from there.

use crate::chunk::{HEADER_BYTES, SHORT_HEADER_BYTES_MAX, SUMMARY_BYTES, Summarizer};
use crate::delivery::Delivery;
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// The progress of a summary.
#[derive(Debug)]
pub(super) enum SummaryProgress {
    /// The header of the first `chunks` chunks, shortened. It goes on in the next chunk.
    Header {
        chunks: u32,
        short: Vec<u8>,
    },
    Done,
}

impl Default for SummaryProgress {
    fn default() -> SummaryProgress {
        SummaryProgress::Header { chunks: 0, short: Vec::new() }
    }
}

impl Delivery {
    /// Whether a shortened header is kept.
    pub(super) fn keeps_header(&self) -> bool {
        matches!(&self.summary_progress, SummaryProgress::Header { short, .. } if !short.is_empty())
    }

    /// Examines a complete chunk that is not the last. `may_keep_header`: whether the message may
    /// keep a shortened header. Otherwise the summary is made of what is known.
    pub(super) fn chunk_completed(&mut self, summarizer: &Summarizer, may_keep_header: bool) {
        match self.summary_progress {
            SummaryProgress::Header { chunks, .. } if chunks <= self.chunks => {}
            _ => return,
        }
        match (summarizer.shorten_header)(&self.beginning()) {
            Some(mut short) if may_keep_header => {
                short.shrink_to_fit();
                assert!(short.len() <= SHORT_HEADER_BYTES_MAX, "a header that was not shortened");
                self.summary_progress = SummaryProgress::Header { chunks: self.chunks + 1, short };
            }
            _ => self.summarize(summarizer),
        }
    }

    /// Examines the last chunk.
    pub(super) fn last_chunk_completed(&mut self, summarizer: &Summarizer) {
        if let SummaryProgress::Header { .. } = self.summary_progress {
            self.summarize(summarizer);
        }
    }

    fn summarize(&mut self, summarizer: &Summarizer) {
        let mut summary = [0; SUMMARY_BYTES];
        let (length, conversation) = (summarizer.summarize)(&self.beginning(), &mut summary);
        let Some(written) = summary.get(..length) else {
            unreachable!("a summary that is larger than its space")
        };
        self.summary.extend_from_slice(written);
        self.conversation = conversation;
        self.summary_progress = SummaryProgress::Done;
    }

    /// The beginning of the message: the shortened header of all earlier chunks, and the chunk in
    /// the buffer if it was not examined before. Leaves out the head, which is last in the buffer.
    fn beginning(&self) -> Cow<'_, [u8]> {
        let SummaryProgress::Header { chunks, short } = &self.summary_progress else {
            unreachable!("a message that is summarized already")
        };
        if *chunks > self.chunks {
            return Cow::Borrowed(short);
        }
        let length = self.length.saturating_sub(self.head.octets() as usize);
        let octets = self
            .staging
            .as_ref()
            .and_then(|staging| staging.get(HEADER_BYTES..HEADER_BYTES + length));
        let Some(octets) = octets else { unreachable!("a complete chunk without octets") };
        if short.is_empty() { Cow::Borrowed(octets) } else { [short, octets].concat().into() }
    }
}
