//! A road: from a domain to the hosts that take its mail.

use alloc::collections::VecDeque;
use alloc::string::String;

use configuration::Way as Leaving;
use dns::{Knowledge, Name, Question};
use relay::{Cause, Lost, Outcome, Reason, Stage as Talk};
use resolver::{Known, QuestionNumber};

use super::secrecy::{Barred, Host};
use super::stages::{Come, Reporter, Taken};
use super::why::Why;

/// The way to the hosts that take the mail of a destination.
#[derive(Default)]
pub(super) struct Road {
    /// The key of the destination: the domain, or the smarthost.
    pub(super) destination: String,
    pub(super) leaving: Leaving,
    /// The recipients that it is for, as bits.
    pub(super) together: u16,
    pub(super) random: u64,
    pub(super) knowledge: Knowledge,
    /// The question to name servers that is not answered yet.
    pub(super) asked: Option<(QuestionNumber, Question)>,
    /// The hosts that were not called yet, or why one is not to be called.
    pub(super) hosts: VecDeque<Result<Host, Barred>>,
    /// The result with the hosts that were called.
    pub(super) missed: Option<Come>,
}

impl Road {
    pub(super) fn to(destination: String, leaving: Leaving, together: u16, random: u64) -> Road {
        Road { destination, leaving, together, random, ..Road::default() }
    }

    /// Takes the answer to a question. False: another question was asked.
    pub(super) fn learn(&mut self, number: QuestionNumber, known: Known) -> bool {
        let asked = self.asked.take_if(|(asked, _)| *asked == number);
        let is_asked = asked.is_some();
        asked.into_iter().for_each(|(_, question)| self.knowledge.learn(question, known.clone()));
        is_asked
    }
}

/// No host was there.
pub(super) fn nobody() -> Come {
    Come::Later(Why::Said(Reason { stage: Talk::Greeting, cause: Cause::Lost(Lost::NotMade) }, None))
}

pub(super) fn come_of(outcome: Outcome, host: Option<&Name>, reporter: Reporter) -> Come {
    match outcome {
        Outcome::Delivered(reply) => Come::Delivered(Taken { reply, host: host.cloned(), reporter }),
        Outcome::Later(reason) => Come::Later(Why::Said(reason, host.cloned())),
        Outcome::Never(reason) => Come::Never(Why::Said(reason, host.cloned())),
    }
}
