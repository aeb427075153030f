//! The answers so far, for a check that needs several.

use alloc::collections::BTreeMap;

use crate::cache::footprint;
use crate::question::{Answer, Question, Unanswered};

/// Answers to questions. A check that needs several is a plain function of it: it returns the next
/// question ([`Missing`]), and is called again with the answer.
#[derive(Default, Debug)]
pub struct Knowledge {
    known: BTreeMap<Question, Result<Answer, Unanswered>>,
    bytes: usize,
}

/// The question that must be answered first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing(pub Question);

impl Knowledge {
    /// The answer to a question.
    ///
    /// Errors: [`Missing`].
    pub fn of(&self, question: Question) -> Result<Result<&Answer, Unanswered>, Missing> {
        match self.known.get(&question) {
            Some(known) => Ok(known.as_ref().map_err(|why| *why)),
            None => Err(Missing(question)),
        }
    }

    /// Takes in the result of a question.
    pub fn learn(&mut self, question: Question, answer: Result<Answer, Unanswered>) {
        let records = answer.as_ref().map_or(&[][..], |answer| &answer.records);
        self.bytes += footprint(&question, records);
        self.known.insert(question, answer);
    }

    /// Its approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
