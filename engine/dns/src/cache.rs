//! The cache of answers.
//!
//! Invariant: all answers together take at most the bytes of the limit. The oldest answer is
//! evicted first, even if it is still valid. A frequent question soon fetches the answer again.

use alloc::collections::BTreeMap;

use machine::{Instant, Micros};

use crate::question::{Answer, Question, Record};

/// The memory of an answer's entries in both trees, in bytes, without its records and names.
const OVERHEAD: usize = 192;
/// One answer may take at most the limit divided by this number.
const LARGEST_SHARE: usize = 64;

struct CachedAnswer {
    answer: Answer,
    true_until: Instant,
    footprint: usize,
    learned: u64,
}

pub(crate) struct AnswerCache {
    known: BTreeMap<Question, CachedAnswer>,
    /// The questions of the cached answers, oldest first.
    learned: BTreeMap<u64, Question>,
    answers: u64,
    bytes: usize,
    bytes_max: usize,
}

impl AnswerCache {
    pub(crate) fn new(bytes_max: usize) -> AnswerCache {
        AnswerCache {
            known: BTreeMap::new(),
            learned: BTreeMap::new(),
            answers: 0,
            bytes: 0,
            bytes_max,
        }
    }

    /// The answer to a question, if it is cached and still valid.
    pub(crate) fn find(&self, question: &Question, now: Instant) -> Option<&Answer> {
        self.known.get(question).filter(|known| now < known.true_until).map(|known| &known.answer)
    }

    /// Caches an answer for `ttl` seconds, unless it is too large.
    pub(crate) fn remember(
        &mut self,
        question: &Question,
        answer: &Answer,
        ttl: u32,
        now: Instant,
    ) {
        self.forget(question);
        let footprint = footprint(question, &answer.records);
        if ttl == 0 || footprint > self.bytes_max / LARGEST_SHARE {
            return;
        }
        while self.bytes + footprint > self.bytes_max {
            let Some((_, first)) = self.learned.pop_first() else { return };
            self.forget(&first);
        }
        self.bytes += footprint;
        self.answers += 1;
        self.learned.insert(self.answers, question.clone());
        let true_until = now + Micros::from_secs(ttl.into());
        self.known.insert(
            question.clone(),
            CachedAnswer { answer: answer.clone(), true_until, footprint, learned: self.answers },
        );
    }

    fn forget(&mut self, question: &Question) {
        if let Some(known) = self.known.remove(question) {
            self.bytes -= known.footprint;
            self.learned.remove(&known.learned);
        }
    }

    /// The memory of all answers, in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        assert_eq!(self.known.len(), self.learned.len());
        self.known.iter().map(|(question, known)| footprint(question, &known.answer.records)).sum()
    }
}

/// The memory of a cached answer with these records, in bytes, including its question.
pub(crate) fn footprint(question: &Question, records: &[Record]) -> usize {
    let records = records.iter().map(|record| size_of::<Record>() + record.footprint());
    OVERHEAD + 2 * question.name.as_str().len() + records.sum::<usize>()
}
