//! What is known, for as long as it is true.
//!
//! Invariant: all answers together take at most the bytes that there are for them. What was learned first goes first, true or not any more; what is
//! often asked for is soon learned again.

use alloc::collections::BTreeMap;

use machine::{Instant, Micros};

use crate::question::{Answer, Question, Record};

/// Bytes that an answer takes beside its records and its name: its places in both trees.
const OVERHEAD: usize = 192;
/// The share of all bytes that one answer may take.
const LARGEST_SHARE: usize = 64;

struct Known {
    answer: Answer,
    true_until: Instant,
    footprint: usize,
    learned: u64,
}

pub(crate) struct Cache {
    known: BTreeMap<Question, Known>,
    /// The same, in the order in which they were learned.
    learned: BTreeMap<u64, Question>,
    answers: u64,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { known: BTreeMap::new(), learned: BTreeMap::new(), answers: 0, bytes: 0, bytes_max }
    }

    pub(crate) fn find(&self, question: &Question, now: Instant) -> Option<&Answer> {
        self.known.get(question).filter(|known| now < known.true_until).map(|known| &known.answer)
    }

    /// Remembers an answer for so many seconds, unless it is larger than any should be.
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
            Known { answer: answer.clone(), true_until, footprint, learned: self.answers },
        );
    }

    fn forget(&mut self, question: &Question) {
        if let Some(known) = self.known.remove(question) {
            self.bytes -= known.footprint;
            self.learned.remove(&known.learned);
        }
    }

    /// Bytes that all take.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        assert_eq!(self.known.len(), self.learned.len());
        self.known.iter().map(|(question, known)| footprint(question, &known.answer.records)).sum()
    }
}

/// Bytes that an answer of these records takes, its question counted in.
pub(crate) fn footprint(question: &Question, records: &[Record]) -> usize {
    let records = records.iter().map(|record| size_of::<Record>() + record.footprint());
    OVERHEAD + 2 * question.name.as_str().len() + records.sum::<usize>()
}
