//! What has been answered so far, for who works something out from several answers.

use alloc::collections::BTreeMap;

use crate::cache::footprint;
use crate::question::{Answer, Question, Unanswered};

/// Answers to questions. Who needs several is a plain function of it: it says what it has to know next ([`Missing`]), and is called again when that is known
/// too.
#[derive(Default, Debug)]
pub struct Knowledge {
    known: BTreeMap<Question, Result<Answer, Unanswered>>,
    bytes: usize,
}

/// This has to be known first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing(pub Question);

impl Knowledge {
    /// What is known of it.
    ///
    /// Errors: [`Missing`].
    pub fn of(&self, question: Question) -> Result<Result<&Answer, Unanswered>, Missing> {
        match self.known.get(&question) {
            Some(known) => Ok(known.as_ref().map_err(|why| *why)),
            None => Err(Missing(question)),
        }
    }

    /// This is what came of a question.
    pub fn learn(&mut self, question: Question, answer: Result<Answer, Unanswered>) {
        let records = answer.as_ref().map_or(&[][..], |answer| &answer.records);
        self.bytes += footprint(&question, records);
        self.known.insert(question, answer);
    }

    /// About how many bytes all of it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
