//! The SPF check of an external sender, before the message begins: whether the domain of the
//! reverse path authorizes the client to send for it (crate `spf`).
//!
//! DATA, or the first BDAT, waits for the check. With greylisting, RCPT waits for it too. The check
//! asks name servers one question at a time, and none before the client has named a local
//! recipient. The result goes into the trace, and is used by the check of the message
//! (`dmarc_check`). No message is refused for the SPF result alone.
//!
//! Invariants:
//! - Mail waits at most [`PATIENCE`] for name servers. After that time, or if a limit of ours was
//!   reached, the verdict is `temperror`. If a limit was the cause, the check of the message
//!   (`dmarc_check`) knows this. Such a verdict does not count against the domain, and does not let
//!   a message through.
//! - If no name server is known, nothing is checked and no result is written.
//! - For each sender, [`KNOWN_BYTES_MAX`] and one answer are kept, from the memory budget of
//!   message checks.

use alloc::boxed::Box;

use budget::Charge;
use connections::Caller;
use dns::{Knowledge, Missing, Question, Unanswered};
use machine::{Instant, Micros};
use message::SenderDomain;
use resolver::{Known, QuestionNumber};
use signing::LEAST_BYTES;
use spf::SpfVerdict;

use super::context::SmtpContext;
use super::dmarc_check::{Checks, SpfResult};
use super::external_clients::is_external;
use super::waiting::name_known_at;

/// The shortest limit for a check that RFC 7208 section 4.6.4 allows.
const PATIENCE: Micros = Micros::from_secs(20);
/// The bytes of answers that are kept for one sender.
const KNOWN_BYTES_MAX: usize = 32 * 1024;

/// The state of the SPF check.
#[derive(Default)]
pub(super) enum SpfState {
    /// Not begun.
    #[default]
    NotSought,
    /// Under way.
    Sought(Box<Check>),
    /// Complete, with this verdict.
    Found(SpfVerdict),
    /// Ended because a limit of ours was reached: `temperror`.
    Limited,
    /// Not needed, or not possible.
    Nothing,
}

/// A check that is under way.
pub(super) struct Check {
    knowledge: Knowledge,
    /// The question that is not answered.
    asked: Option<(QuestionNumber, Question)>,
    until: Instant,
    charge: Charge,
    /// Whether an answer is unknown because too many questions wait.
    is_limited: bool,
}

impl SpfState {
    /// Whether the check is complete, or not needed. If not, continues the check.
    pub(super) fn is_known(
        &mut self,
        (reverse_path, greeting_name): (&str, &str),
        is_logged_in: bool,
        caller: Caller,
        checks: &mut Checks,
        cx: &mut SmtpContext<'_>,
    ) -> bool {
        if matches!(self, SpfState::NotSought) {
            *self =
                if is_logged_in { SpfState::Nothing } else { SpfState::begin(caller, checks, cx) };
        }
        let SpfState::Sought(check) = self else { return true };
        let local_part =
            reverse_path.rsplit_once('@').map_or("postmaster", |(local_part, _)| local_part);
        let (SenderDomain::Path(domain) | SenderDomain::Greeting(domain)) =
            domain_of(reverse_path, greeting_name);
        // An address literal is not a domain, so no domain authorizes it.
        let domain = if domain.starts_with('[') { "" } else { domain };
        let sender =
            spf::SpfSender { address: caller.address, hello: greeting_name, local_part, domain };
        let known = check.knowledge.bytes();
        let is_kept = checks.kept.charge(&mut check.charge, caller.address, known).is_ok();
        let spf_state = match spf::check(&sender, &check.knowledge) {
            Ok(SpfVerdict::TempError) if check.is_limited => SpfState::Limited,
            Ok(verdict) => SpfState::Found(verdict),
            Err(_) if !is_kept || known > KNOWN_BYTES_MAX => SpfState::Limited,
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
        self.settle(spf_state, caller, checks);
        true
    }

    /// Begins the check of an external sender.
    fn begin(caller: Caller, checks: &mut Checks, cx: &mut SmtpContext<'_>) -> SpfState {
        if !is_external(caller, cx.connections.net()) || !cx.names.can_be_asked() {
            return SpfState::Nothing;
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
        SpfState::Sought(Box::new(check))
    }

    /// Takes an answer of name servers. Returns false if the check does not wait for this answer.
    pub(super) fn name_known(
        &mut self,
        number: QuestionNumber,
        known: Known,
        caller: Caller,
        checks: &mut Checks,
    ) -> bool {
        let SpfState::Sought(check) = self else { return false };
        let Some((_, question)) = check.asked.take_if(|(asked, _)| *asked == number) else {
            return false;
        };
        match known {
            Err(Unanswered::NoServer) => self.settle(SpfState::Nothing, caller, checks),
            known => {
                check.is_limited |= known == Err(Unanswered::Busy);
                check.knowledge.learn(question, known);
            }
        }
        true
    }

    /// Ends the check with `temperror`, since the deadline has passed. Returns false if no check
    /// was under way.
    pub(super) fn give_up(&mut self, caller: Caller, checks: &mut Checks) -> bool {
        let is_sought = matches!(self, SpfState::Sought(_));
        if is_sought {
            self.settle(SpfState::Found(SpfVerdict::TempError), caller, checks);
        }
        is_sought
    }

    /// Ends the check, since the transaction is over.
    pub(super) fn forget(&mut self, caller: Caller, checks: &mut Checks) {
        self.settle(SpfState::NotSought, caller, checks);
    }

    fn settle(&mut self, spf_state: SpfState, caller: Caller, checks: &mut Checks) {
        if let SpfState::Sought(mut check) = core::mem::replace(self, spf_state) {
            checks.under_way -= 1;
            checks.kept.release(&mut check.charge, caller.address);
        }
    }

    /// The domain of the reverse path, if the check has found that it authorizes the client.
    pub(super) fn authorized_domain<'a>(&self, reverse_path: &'a str) -> Option<&'a str> {
        let (_, domain) = reverse_path.rsplit_once('@')?;
        matches!(self, SpfState::Found(SpfVerdict::Pass)).then_some(domain)
    }

    /// The result, if there is one.
    pub(super) fn sender(&self, (reverse_path, greeting_name): (&str, &str)) -> Option<SpfResult> {
        let (spf, is_limited) = match *self {
            SpfState::Found(verdict) => (verdict, false),
            SpfState::Limited => (SpfVerdict::TempError, true),
            SpfState::NotSought | SpfState::Sought(_) | SpfState::Nothing => return None,
        };
        let (domain, is_in_path) = match domain_of(reverse_path, greeting_name) {
            SenderDomain::Path(domain) => (domain, true),
            SenderDomain::Greeting(name) => (name, false),
        };
        Some(SpfResult { spf, is_limited, domain: domain.into(), is_in_path })
    }
}

/// The domain that a message is sent for.
fn domain_of<'a>(reverse_path: &'a str, greeting_name: &'a str) -> SenderDomain<'a> {
    match reverse_path.rsplit_once('@') {
        Some((_, domain)) => SenderDomain::Path(domain),
        None => SenderDomain::Greeting(greeting_name),
    }
}
