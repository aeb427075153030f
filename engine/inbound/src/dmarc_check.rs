//! Checks the origin of an external message. It answers three questions: whether the message's
//! signatures are valid (DKIM, crate `dkim`), whether the forwarding hosts saw the same message
//! (ARC, the same crate), and which policy the author's domain publishes for messages without proof
//! of origin (DMARC, crate `dmarc`).
//!
//! The domain's DMARC policy is applied, with one exception: a trusted forwarder has found that the
//! message came from the author's domain. A later change by a forwarder, such as a mailing list,
//! may have destroyed the proof.
//!
//! Name servers are asked as soon as the header has arrived, so the answers are usually known when
//! the message ends. Bodies are hashed as they arrive.
//!
//! Invariants:
//! - A complete message waits at most [`PATIENCE`]. A fact without an answer by that time is
//!   unknown, and no message is refused for that.
//! - If a limit of ours leaves a fact unknown and the result depends on that fact, the message is
//!   deferred. So a sender cannot weaken the check of its own messages, or of other messages.
//! - Each message has [`LEAST_BYTES`] for its header and the answers of its check. More memory
//!   comes from a pool for all messages of a core, which addresses and networks share (`budget`).
//!   One piece of the message and one answer may exceed the limit.
//! - A session has at most [`KEY_QUESTIONS_MAX`] questions for keys under way. It also has one
//!   question for the policy of the author's domain, which does not wait for the others.
//! - Signatures are verified behind a gate, one a turn: first those of the message, then those of
//!   its ARC chain.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use budget::{Charge, MemoryBudget};
use connections::{Caller, TurnGate};
use dkim::{ChainVerdict, SIGNATURES_MAX, SignatureOutcome};
use dmarc::{DmarcPolicy, MessageOrigins};
use dns::{Knowledge, Missing, Name, Question, Unanswered};
use machine::{Instant, Micros, UnixTime};
use message::{AuthResultsWriter, SenderDomain};
use resolver::{Known, QuestionNumber};
use signing::{Author, LEAST_BYTES};
use smtp::MessageRefusal;

use super::context::SmtpContext;
use super::waiting::name_known_at;

/// The longest time that name servers may take after the message is complete.
const PATIENCE: Micros = Micros::from_secs(20);
/// The most questions for the keys of one message that may be under way. The limit lets other
/// messages ask too.
const KEY_QUESTIONS_MAX: usize = 8;
/// The most bytes of answers that are kept for one message.
const KNOWN_BYTES_MAX: usize = 32 * 1024;

/// The checks of senders and messages of a core.
pub(super) struct Checks {
    /// The number of senders that are being checked.
    pub(super) under_way: usize,
    /// The memory of messages and senders that are being checked.
    pub(super) kept: MemoryBudget,
    /// Domains with ARC results that we trust.
    trusted_arc_domains: Vec<Name>,
}

impl Checks {
    /// `pool_bytes`: the memory of all messages above [`LEAST_BYTES`] each. `key` is random.
    pub(super) fn new(trusted_arc_domains: Vec<Name>, pool_bytes: usize, key: [u8; 16]) -> Checks {
        Checks { under_way: 0, kept: MemoryBudget::new(pool_bytes, key), trusted_arc_domains }
    }
}

/// The check of a message's origin.
pub(super) struct DmarcCheck {
    sender: SpfResult,
    stage: Stage,
    author: Author,
    knowledge: Knowledge,
    /// The questions that are not answered.
    asked: Vec<(QuestionNumber, Question)>,
    /// The verdicts on the message's signatures so far, from the top.
    verdicts: Vec<dkim::SignatureVerdict>,
    /// The number of steps of the ARC chain that were verified.
    chain_step: usize,
    /// The verdict on the ARC chain, once it is known.
    chain: Option<ChainVerdict>,
    /// The trusted forwarder that found the message to be from its author's domain.
    trusted_forwarder: Option<Name>,
    /// The memory of this check, in [`Checks::kept`].
    charge: Charge,
    /// Whether a fact is unknown because of a limit of ours.
    is_limited: bool,
    /// The end of the wait, set at the end of the message.
    until: Option<Instant>,
    asks: Asks,
    /// Whether the check waits at the gate for verifications, or has its turn there.
    is_at_gate: bool,
}

/// The result of the SPF check of the sender.
pub(super) struct SpfResult {
    pub(super) spf: spf::SpfVerdict,
    /// Whether the verdict is `temperror` because of a limit of ours.
    pub(super) is_limited: bool,
    /// The domain that was checked.
    pub(super) domain: Box<str>,
    /// Whether `domain` is from the reverse path. Otherwise it is the EHLO name.
    pub(super) is_in_path: bool,
}

enum Stage {
    Arriving(dkim::MessageReader),
    Arrived(Box<dkim::CompleteMessage>),
}

/// Whether name servers may be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    Yes,
    /// The time is over: facts without an answer stay unknown.
    NoMore,
    /// No name server is configured: of the results, only that of SPF is written.
    Nobody,
}

/// The decision about a message.
pub(super) enum Judgement {
    Accept,
    /// The message is suspicious, for this reason.
    Suspect(String),
    /// The author's domain wants the message to be refused.
    Refuse,
    /// A limit of ours was reached before the origin of the message was known.
    Defer,
}

impl DmarcCheck {
    pub(super) fn new(sender: SpfResult) -> Box<DmarcCheck> {
        Box::new(DmarcCheck {
            is_limited: sender.is_limited,
            sender,
            stage: Stage::Arriving(dkim::MessageReader::to_verify()),
            author: Author::Unknown,
            knowledge: Knowledge::default(),
            asked: Vec::new(),
            verdicts: Vec::new(),
            chain_step: 0,
            chain: None,
            trusted_forwarder: None,
            charge: Charge::new(LEAST_BYTES),
            until: None,
            asks: Asks::Yes,
            is_at_gate: false,
        })
    }

    /// Takes the next bytes of the message, as they came.
    ///
    /// Errors: there is no memory to check the message now.
    pub(super) fn arrived(
        &mut self,
        bytes: &[u8],
        caller: Caller,
        checks: &mut Checks,
        cx: &mut SmtpContext<'_>,
    ) -> Result<(), MessageRefusal> {
        let Stage::Arriving(reading) = &mut self.stage else { return Ok(()) };
        reading.arrived(bytes);
        if matches!(self.author, Author::Unknown) {
            if let Some(header) = reading.header() {
                self.author = Author::of(header, reading.is_cut());
                self.ask_open_questions(caller, cx);
            }
            self.count(caller, checks)?;
        }
        Ok(())
    }

    /// The last byte of the message has arrived.
    pub(super) fn ended(&mut self, caller: Caller, cx: &mut SmtpContext<'_>) {
        self.until = Some(cx.turn.now + PATIENCE);
        if let Stage::Arriving(reading) = &mut self.stage {
            let message = core::mem::replace(reading, dkim::MessageReader::to_verify()).ended();
            if matches!(self.author, Author::Unknown) {
                self.author = Author::of(message.header(), message.is_cut());
            }
            self.chain = message.chain_at_once(cx.turn.wall);
            self.stage = Stage::Arrived(Box::new(message));
        }
        self.ask_open_questions(caller, cx);
    }

    /// Continues the check of a complete message. Returns whether the check is complete.
    ///
    /// Errors: there is no memory to check the message now.
    pub(super) fn is_known(
        &mut self,
        caller: Caller,
        checks: &mut Checks,
        cx: &mut SmtpContext<'_>,
    ) -> Result<bool, MessageRefusal> {
        self.ask_open_questions(caller, cx);
        self.count(caller, checks)?;
        if !self.asked.is_empty() {
            let left = self.until.map_or(PATIENCE, |until| until.since(cx.turn.now));
            cx.connections.set_deadline(cx.turn.now, caller.connection, Some(left));
            return Ok(false);
        }
        if self.is_verified() {
            return Ok(true);
        }
        cx.connections.set_deadline(cx.turn.now, caller.connection, None);
        if !core::mem::replace(&mut self.is_at_gate, true) {
            cx.connections.enter(TurnGate::Verification, caller.connection.0);
        }
        Ok(false)
    }

    /// Verifies one signature, if its turn has come.
    pub(super) fn verify(&mut self, caller: Caller, checks: &Checks, cx: &mut SmtpContext<'_>) {
        if !cx.connections.has_entered(TurnGate::Verification, caller.connection.0) {
            return;
        }
        self.leave_gate(caller, cx);
        let Stage::Arrived(message) = &self.stage else { return };
        if self.verdicts.len() < signatures(message) {
            self.verdicts
                .extend(message.verify(self.verdicts.len(), &self.knowledge, cx.turn.wall).ok());
        } else if let Ok(verdict) =
            message.judge_chain(self.chain_step, &self.knowledge, cx.turn.wall)
        {
            (self.chain, self.chain_step) = (verdict, self.chain_step + 1);
            let is_trusted = |name: &Name| {
                checks.trusted_arc_domains.iter().any(|trusted| name.is_within(trusted))
            };
            let is_chain_usable =
                verdict.is_some_and(|verdict| verdict == ChainVerdict::Pass || verdict.is_open());
            self.trusted_forwarder =
                message.trusted_forwarder(is_trusted).filter(|_| is_chain_usable).cloned();
        }
    }

    /// Takes an answer of name servers. Returns the answer if it belongs to another question.
    pub(super) fn name_known(&mut self, number: QuestionNumber, known: Known) -> Option<Known> {
        let Some(place) = self.asked.iter().position(|(asked, _)| *asked == number) else {
            return Some(known);
        };
        let (_, question) = self.asked.swap_remove(place);
        match known {
            Err(Unanswered::NoServer) => self.give_up(Asks::Nobody),
            known => {
                self.is_limited |= known == Err(Unanswered::Busy);
                self.knowledge.learn(question, known);
            }
        }
        None
    }

    /// The time limit has passed: facts without an answer stay unknown.
    pub(super) fn time_is_up(&mut self) {
        self.give_up(Asks::NoMore);
    }

    fn give_up(&mut self, asks: Asks) {
        self.asks = asks;
        self.asked.clear();
    }

    /// Releases the memory of this check.
    pub(super) fn forget(&mut self, caller: Caller, checks: &mut Checks, cx: &mut SmtpContext<'_>) {
        self.leave_gate(caller, cx);
        checks.kept.release(&mut self.charge, caller.address);
    }

    fn leave_gate(&mut self, caller: Caller, cx: &mut SmtpContext<'_>) {
        if core::mem::take(&mut self.is_at_gate) {
            cx.connections.leave(TurnGate::Verification, caller.connection.0);
        }
    }

    /// Asks the questions of [`DmarcCheck::open_questions`].
    pub(super) fn ask_open_questions(&mut self, caller: Caller, cx: &mut SmtpContext<'_>) {
        if self.knowledge.bytes() > KNOWN_BYTES_MAX || !cx.names.can_be_asked() {
            self.is_limited = true;
            self.give_up(if self.asks == Asks::Yes { Asks::NoMore } else { self.asks });
        }
        loop {
            let open_questions = self.open_questions(cx.turn.wall);
            if open_questions.is_empty() {
                return;
            }
            for question in open_questions {
                if self.asks == Asks::Yes {
                    let number = cx.names.ask_about(
                        caller.address,
                        name_known_at(caller.connection.0),
                        question.clone(),
                    );
                    self.asked.push((number, question));
                } else {
                    self.knowledge.learn(question, Err(Unanswered::Silence));
                }
            }
        }
    }

    /// The questions that can be asked now: those for the policy and for keys that have no answer,
    /// up to the limit.
    fn open_questions(&self, wall: UnixTime) -> Vec<Question> {
        let mut keys = match &self.stage {
            Stage::Arriving(reading) => reading.missing(&self.knowledge, wall),
            Stage::Arrived(message) => message.missing(&self.knowledge, wall),
        };
        keys.sort_unstable();
        keys.dedup();
        let is_asked = |question: &Question| self.asked.iter().any(|(_, asked)| asked == question);
        let policy = self.dmarc_verdict().err().map(|Missing(question)| question);
        let under_way =
            self.asked.iter().filter(|(_, asked)| policy.as_ref() != Some(asked)).count();
        let room = if self.asks == Asks::Yes {
            KEY_QUESTIONS_MAX.saturating_sub(under_way)
        } else {
            usize::MAX
        };
        let keys = keys
            .into_iter()
            .filter(|key| policy.as_ref() != Some(key) && !is_asked(key))
            .take(room);
        policy.iter().filter(|policy| !is_asked(policy)).cloned().chain(keys).collect()
    }

    /// The DMARC verdict, if the message has exactly one author domain. If answers that name
    /// servers did not give could prove the message, the verdict is a temporary error instead of a
    /// failure.
    fn dmarc_verdict(&self) -> Result<Option<dmarc::DmarcVerdict>, Missing> {
        let Author::Of(author) = &self.author else { return Ok(None) };
        let verdict = self.check(author, &[SignatureOutcome::Pass], &[spf::SpfVerdict::Pass])?;
        let is_unproved = matches!(verdict, dmarc::DmarcVerdict::Fail(_));
        let outcomes = [SignatureOutcome::Pass, SignatureOutcome::TempError];
        let best =
            || self.check(author, &outcomes, &[spf::SpfVerdict::Pass, spf::SpfVerdict::TempError]);
        let may_be_vouched_for =
            self.trusted_forwarder.is_some() && self.chain.is_some_and(|chain| chain.is_open());
        let is_open = is_unproved && (may_be_vouched_for || best()? == dmarc::DmarcVerdict::Pass);
        Ok(Some(if is_open { dmarc::DmarcVerdict::TempError } else { verdict }))
    }

    /// The DMARC check, with these results of signatures and of the SPF check counted as proof.
    fn check(
        &self,
        author: &Name,
        signatures: &[SignatureOutcome],
        senders: &[spf::SpfVerdict],
    ) -> Result<dmarc::DmarcVerdict, Missing> {
        let sender = Name::of_bytes(self.sender.domain.as_bytes()).ok();
        let proving =
            self.verdicts.iter().filter(|verdict| signatures.contains(&verdict.outcome()));
        let signers: Vec<Name> =
            proving.filter_map(|verdict| Some(verdict.signer.as_ref()?.domain.clone())).collect();
        let sender = sender.as_ref().filter(|_| senders.contains(&self.sender.spf));
        dmarc::check(&MessageOrigins { author, sender, signers: &signers }, &self.knowledge)
    }

    /// Whether all signatures and the ARC chain have verdicts.
    fn is_verified(&self) -> bool {
        match &self.stage {
            Stage::Arrived(message) => {
                self.verdicts.len() >= signatures(message) && self.chain.is_some()
            }
            Stage::Arriving(_) => unreachable!("a message that has not ended is not verified"),
        }
    }

    /// The decision about a completely checked message.
    pub(super) fn judgement(&self) -> Judgement {
        match (&self.author, self.dmarc_verdict()) {
            (Author::Of(_), _) if self.trusted_forwarder.is_some() => Judgement::Accept,
            (Author::Of(_), Ok(Some(dmarc::DmarcVerdict::Fail(DmarcPolicy::Reject)))) => {
                Judgement::Refuse
            }
            (Author::Of(author), Ok(Some(dmarc::DmarcVerdict::Fail(DmarcPolicy::Quarantine)))) => {
                Judgement::Suspect(format!(
                    "DMARC failed for {author}, and its policy is quarantine"
                ))
            }
            (Author::Of(_), Ok(Some(dmarc::DmarcVerdict::TempError))) if self.is_limited => {
                Judgement::Defer
            }
            (Author::Undetermined(reason), _) if self.asks != Asks::Nobody => {
                Judgement::Suspect((*reason).into())
            }
            _ => Judgement::Accept,
        }
    }

    /// Writes the results of the check.
    pub(super) fn write(&self, caller: Caller, findings: &mut AuthResultsWriter<'_>) {
        let domain = &*self.sender.domain;
        let domain = if self.sender.is_in_path {
            SenderDomain::Path(domain)
        } else {
            SenderDomain::Greeting(domain)
        };
        findings.sender(self.sender.spf, domain);
        if self.asks == Asks::Nobody {
            return;
        }
        match (&self.author, self.dmarc_verdict()) {
            (Author::Of(author), Ok(Some(verdict @ dmarc::DmarcVerdict::Fail(_))))
                if self.trusted_forwarder.is_some() =>
            {
                let trusted_forwarder = self
                    .trusted_forwarder
                    .as_ref()
                    .map_or("", |trusted_forwarder| trusted_forwarder.as_str());
                let verdict = format_args!(
                    "{verdict} reason=\"{trusted_forwarder} is a trusted forwarder (ARC)\""
                );
                findings.author(verdict, Some(author.as_str()));
            }
            (Author::Of(author), Ok(Some(verdict))) => {
                findings.author(verdict, Some(author.as_str()))
            }
            _ => findings.author("permerror", None),
        }
        if let Some(chain) = &self.chain {
            findings.chain(chain, caller.address);
        }
        if self.verdicts.is_empty() {
            findings.signature("dkim=none");
        }
        self.verdicts.iter().for_each(|verdict| findings.signature(verdict));
    }

    /// Charges the memory of this check.
    ///
    /// Errors: the memory exceeds the share of its client.
    fn count(&mut self, caller: Caller, checks: &mut Checks) -> Result<(), MessageRefusal> {
        let footprint = match &self.stage {
            Stage::Arriving(reading) => reading.footprint(),
            Stage::Arrived(message) => message.footprint(),
        };
        let bytes = footprint + self.knowledge.bytes();
        let charged = checks.kept.charge(&mut self.charge, caller.address, bytes);
        charged.map_err(|_| MessageRefusal::Unchecked)
    }
}

/// The number of a message's signatures that are verified.
fn signatures(message: &dkim::CompleteMessage) -> usize {
    message.signatures().min(SIGNATURES_MAX)
}
