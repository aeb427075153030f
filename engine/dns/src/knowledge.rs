//! The answers that a check with several questions has got so far.

use alloc::collections::BTreeMap;

use crate::cache::footprint;
use crate::question::{Answer, Question, Unanswered};

/// The answers that a check has got so far. A check with several questions is a pure function of
/// its knowledge. It returns the next question ([`Missing`]), and the caller calls it again with
/// the answer.
#[derive(Default, Debug)]
pub struct Knowledge {
    known: BTreeMap<Question, Result<Answer, Unanswered>>,
    bytes: usize,
}

/// The question that must be answered before the check can continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing(pub Question);

impl Knowledge {
    /// The answer to a question.
    ///
    /// Errors: [`Missing`] if the question has no result yet.
    pub fn of(&self, question: Question) -> Result<Result<&Answer, Unanswered>, Missing> {
        match self.known.get(&question) {
            Some(known) => Ok(known.as_ref().map_err(|why| *why)),
            None => Err(Missing(question)),
        }
    }

    /// Stores the result of a question.
    pub fn learn(&mut self, question: Question, answer: Result<Answer, Unanswered>) {
        let records = answer.as_ref().map_or(&[][..], |answer| &answer.records);
        self.bytes += footprint(&question, records);
        self.known.insert(question, answer);
    }

    /// The approximate memory of all answers, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
