//! What is found out about a sender before a message from a stranger begins: whether the domain of
//! its reverse path lets this host send (SPF, crate `spf`).
//!
//! DATA, or the first BDAT, waits for that. So a connection has at most one question under way, and
//! none before it has named a recipient here. The result goes into the trace, and counts in the
//! check of the message itself (`proof`). Nothing is refused for it alone.
//!
//! Invariants:
//! - Mail does not wait for longer than [`PATIENCE`], whatever name servers do: then, or where a
//!   limit of ours was reached, the verdict is `temperror`. Of the latter the check of the message
//!   knows (`proof`): it is not held against the domain, and nothing is let through for it.
//! - Where no name server is known nothing is found out, and nothing is said.
//! - Of each sender [`KNOWN_BYTES_MAX`] and one answer are kept, from the budget that checks of
//!   messages have.

use alloc::boxed::Box;

use budget::Charge;
use connections::Caller;
use dns::{Knowledge, Missing, Question, Unanswered};
use machine::{Instant, Micros};
use message::SenderDomain;
use resolver::{Known, QuestionNumber};
use signing::LEAST_BYTES;
use spf::Verdict;

use super::context::Context;
use super::proof::{Checks, Sender};
use super::strangers::is_strange;
use super::waiting::name_known_at;

/// As long as RFC 7208 section 4.6.4 wants a check to be able to take at least.
const PATIENCE: Micros = Micros::from_secs(20);
/// Bytes of answers that are kept for one of them.
const KNOWN_BYTES_MAX: usize = 32 * 1024;

/// What is known of who sends.
#[derive(Default)]
pub(super) enum Finding {
    /// Nothing yet.
    #[default]
    NotSought,
    /// Something is being found out.
    Sought(Box<Check>),
    /// This.
    Found(Verdict),
    /// Nothing, since a limit of ours was reached: `temperror`.
    Limited,
    /// That there is nothing to be found out.
    Nothing,
}

/// Something that is being found out.
pub(super) struct Check {
    knowledge: Knowledge,
    /// What was asked, and is not answered.
    asked: Option<(QuestionNumber, Question)>,
    until: Instant,
    charge: Charge,
    /// Whether an answer is unknown because too many questions wait.
    is_limited: bool,
}

impl Finding {
    /// Whether all is known that is to be. Goes on with finding it out.
    pub(super) fn is_known(
        &mut self,
        (reverse_path, greeting_name): (&str, &str),
        is_logged_in: bool,
        caller: Caller,
        checks: &mut Checks,
        cx: &mut Context<'_>,
    ) -> bool {
        if matches!(self, Finding::NotSought) {
            *self =
                if is_logged_in { Finding::Nothing } else { Finding::begin(caller, checks, cx) };
        }
        let Finding::Sought(check) = self else { return true };
        let local_part =
            reverse_path.rsplit_once('@').map_or("postmaster", |(local_part, _)| local_part);
        let (SenderDomain::Path(domain) | SenderDomain::Greeting(domain)) =
            domain_of(reverse_path, greeting_name);
        // An address is no domain: nobody speaks for it.
        let domain = if domain.starts_with('[') { "" } else { domain };
        let sender =
            spf::Sender { address: caller.address, hello: greeting_name, local_part, domain };
        let known = check.knowledge.bytes();
        let is_kept = checks.kept.charge(&mut check.charge, caller.address, known).is_ok();
        let finding = match spf::check(&sender, &check.knowledge) {
            Ok(Verdict::TempError) if check.is_limited => Finding::Limited,
            Ok(verdict) => Finding::Found(verdict),
            Err(_) if !is_kept || known > KNOWN_BYTES_MAX => Finding::Limited,
            Err(Missing(question)) => {
                let number = cx.names.ask_about(
                    caller.address,
                    name_known_at(caller.connection.0),
                    question.clone(),
                );
                check.asked = Some((number, question));
                let left = check.until.since(cx.turn.now);
                cx.connections.set_deadline(cx.turn.now, caller.connection, Some(left));
                return false;
            }
        };
        self.settle(finding, caller, checks);
        true
    }

    /// Begins to find something out about the sender, if it is a stranger.
    fn begin(caller: Caller, checks: &mut Checks, cx: &mut Context<'_>) -> Finding {
        if !is_strange(caller, cx.connections.net()) || !cx.names.can_be_asked() {
            return Finding::Nothing;
        }
        checks.under_way += 1;
        let (until, charge) = (cx.turn.now + PATIENCE, Charge::new(LEAST_BYTES));
        let check = Check {
            knowledge: Knowledge::default(),
            asked: None,
            until,
            charge,
            is_limited: false,
        };
        Finding::Sought(Box::new(check))
    }

    /// The result of a question. False: a later one was asked here, and nothing waits for this.
    pub(super) fn name_known(
        &mut self,
        number: QuestionNumber,
        known: Known,
        caller: Caller,
        checks: &mut Checks,
    ) -> bool {
        let Finding::Sought(check) = self else { return false };
        let Some((_, question)) = check.asked.take_if(|(asked, _)| *asked == number) else {
            return false;
        };
        match known {
            Err(Unanswered::NoServer) => self.settle(Finding::Nothing, caller, checks),
            known => {
                check.is_limited |= known == Err(Unanswered::Busy);
                check.knowledge.learn(question, known);
            }
        }
        true
    }

    /// A deadline has passed: nothing more is found out. False when nothing is being found out.
    pub(super) fn give_up(&mut self, caller: Caller, checks: &mut Checks) -> bool {
        let is_sought = matches!(self, Finding::Sought(_));
        if is_sought {
            self.settle(Finding::Found(Verdict::TempError), caller, checks);
        }
        is_sought
    }

    /// The transaction is over.
    pub(super) fn forget(&mut self, caller: Caller, checks: &mut Checks) {
        self.settle(Finding::NotSought, caller, checks);
    }

    fn settle(&mut self, finding: Finding, caller: Caller, checks: &mut Checks) {
        if let Finding::Sought(mut check) = core::mem::replace(self, finding) {
            checks.under_way -= 1;
            checks.kept.release(&mut check.charge, caller.address);
        }
    }

    /// The domain of the reverse path, if it is known to let this host send.
    pub(super) fn authorized_domain<'a>(&self, reverse_path: &'a str) -> Option<&'a str> {
        let (_, domain) = reverse_path.rsplit_once('@')?;
        matches!(self, Finding::Found(Verdict::Pass)).then_some(domain)
    }

    /// What was found out about the sender, if anything was.
    pub(super) fn sender(&self, (reverse_path, greeting_name): (&str, &str)) -> Option<Sender> {
        let (spf, is_limited) = match *self {
            Finding::Found(verdict) => (verdict, false),
            Finding::Limited => (Verdict::TempError, true),
            Finding::NotSought | Finding::Sought(_) | Finding::Nothing => return None,
        };
        let (domain, is_in_path) = match domain_of(reverse_path, greeting_name) {
            SenderDomain::Path(domain) => (domain, true),
            SenderDomain::Greeting(name) => (name, false),
        };
        Some(Sender { spf, is_limited, domain: domain.into(), is_in_path })
    }
}

/// The domain in whose name a message comes.
fn domain_of<'a>(reverse_path: &'a str, greeting_name: &'a str) -> SenderDomain<'a> {
    match reverse_path.rsplit_once('@') {
        Some((_, domain)) => SenderDomain::Path(domain),
        None => SenderDomain::Greeting(greeting_name),
    }
}
