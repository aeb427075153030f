//! A submission job: delivers a held message to each recipient, and then files it into Sent.
//!
//! The message stays in Drafts until all recipients have it, and its flags record the progress.
//! Each step begins when the previous step is durable:
//!
//! - `HELD`: no recipient has the message. Its recipients are read, and it is flagged `LEAVING`.
//! - `LEAVING`: the message cannot be taken back, and some recipients may have it. It is delivered
//!   to one local recipient after the other, then into its author's outbox for all others, and then
//!   flagged `LEFT`.
//! - `LEFT`: all recipients have the message. The message that it answers is flagged as answered,
//!   and the notes of its arrivals are removed. Last, it is filed into Sent, which clears the flag.
//!
//! Invariants:
//! - After a power cut a job resumes at the beginning of the step that the flags show. A recipient
//!   with a note of the message's arrival refuses another copy ([`Refusal::Arrived`]). Notes are
//!   removed only when no job will deliver the message again. So each recipient gets it once.
//! - A message is not sent if one of its recipients cannot get it: it becomes a draft again, and
//!   its writer gets a notice. Once the message is `LEAVING`, this is not checked again.
//! - A local recipient without free quota gets the message by a separate outbox entry, which is
//!   tried again and again. That entry has an arrival note too. So the recipient does not get the
//!   message twice if it has free quota after a power cut.
//! - A message that cannot be read, or that an account has no place for, is tried [`TRIES_MAX`]
//!   times in a life of the machine. If all fail, its writer gets a notice, and it becomes a draft
//!   again (`notice`). If it was `LEAVING`, some recipients may have it.
//! - One store request is in progress at a time.
//! - A message's signatures are its head. They are appended last to each copy. They do not cover
//!   `Bcc`.
//!
//! The reference to the answered message is not persisted, so after a power cut that message is not
//! flagged. It is not flagged earlier, because the user may still take the held message back.

use alloc::string::String;
use alloc::vec::Vec;

use accounts::entries::OutboxDelivery;
use message::header::{Address, Header};
use store::{
    AccountId, Body, CHUNK_OCTETS, Closing, DRAFTS, Flags, Guid, HeadSize, MailboxId, MarkChange,
    MessageInfo, Outcome, PartialMessage, Recipient, Refusal, SENT, SentId, Uid, UidRange,
};

use super::context::JobHost;
use super::notice::{self, GUID_BITS, Hindrance};

/// The bit in an origin that marks the outbox entry of a local recipient without free quota.
const NO_QUOTA: u128 = 1 << 15;

/// A message is given up when this many of its jobs were hindered in one life of the machine.
const TRIES_MAX: u8 = 5;

/// Delivers one message to all its recipients.
#[derive(Debug)]
pub(super) struct SubmissionJob {
    account: AccountId,
    uid: Uid,
    answers: Option<(MailboxId, Uid)>,
    stage: Stage,
    /// The number of earlier jobs that ended as [`SubmissionEnd::Hindered`].
    hindered: u8,
    /// Why the message is given up, if it is.
    given_up: Option<Hindrance>,
    /// The origin of the notice to the writer, until the note of the notice's arrival is removed.
    notice: Option<SentId>,
    /// Local recipients, and their addresses.
    recipients: Vec<(AccountId, String)>,
    /// Remote addresses.
    remote: Vec<String>,
    /// The index of the next recipient or outbox entry.
    next: usize,
    /// Whether the next recipient has no free quota for the message.
    goes_by_outbox: bool,
    /// The beginning of the message after its signatures, with the whole header.
    beginning: PartialMessage,
    /// The number of octets that were read, with the signatures counted last. `rest`: octets that
    /// the delivery has not taken yet.
    offset: u32,
    rest: Vec<u8>,
    is_waiting: bool,
}

/// The next step, or the step in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Read the recipients.
    ReadRecipients,
    /// Make the message a draft again.
    ReturnToDrafts,
    /// Flag the message `LEAVING`: it can no longer be taken back.
    MarkLeaving,
    /// Begin the delivery to the next recipient.
    BeginDelivery,
    /// Append the message to the delivery.
    Append,
    /// The delivery is being committed.
    Commit,
    /// Flag the message `LEFT`: all recipients have it.
    MarkLeft,
    /// Flag the answered message.
    MarkAnswered,
    /// Remove the note of the next recipient's arrival.
    ForgetArrivals,
    /// File the message into Sent.
    File,
    /// The job is over.
    Over(SubmissionEnd),
}

/// The outcome of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmissionEnd {
    /// Nothing is left to do.
    Done,
    /// A request was refused: another job continues from here later.
    Retry,
    /// A request was refused, as for [`SubmissionEnd::Retry`], but only a few more jobs follow.
    Hindered,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmissionProgress {
    /// The job waits for the store.
    Waiting,
    /// The store is busy: the job tries again in the next turn.
    Yield,
    /// The job is over.
    Over(SubmissionEnd),
}

impl SubmissionJob {
    /// A job for a draft of the account. `answers`: the message that the draft replies to, if
    /// known. `hindered`: the number of earlier jobs that ended as [`SubmissionEnd::Hindered`].
    pub(super) fn new(
        account: AccountId,
        uid: Uid,
        answers: Option<(MailboxId, Uid)>,
        hindered: u8,
    ) -> SubmissionJob {
        SubmissionJob {
            account,
            uid,
            answers,
            stage: Stage::ReadRecipients,
            hindered,
            given_up: None,
            notice: None,
            recipients: Vec::new(),
            remote: Vec::new(),
            next: 0,
            goes_by_outbox: false,
            beginning: PartialMessage::default(),
            offset: 0,
            rest: Vec::new(),
            is_waiting: false,
        }
    }

    /// Runs stages until the job has to wait.
    pub(super) fn go_on(&mut self, host: &mut JobHost<'_, '_>) -> SubmissionProgress {
        while !self.is_waiting {
            let asked = match self.stage {
                Stage::Over(end) => {
                    host.abort();
                    return SubmissionProgress::Over(end);
                }
                Stage::ReadRecipients => self.open(host),
                Stage::ReturnToDrafts => {
                    self.mark(MarkChange::clear(Flags::HELD.with(Flags::LEAVING)), host)
                }
                Stage::MarkLeaving => self.mark(MarkChange::of(Flags::HELD, Flags::LEAVING), host),
                Stage::BeginDelivery => self.begin_delivery(host),
                Stage::Append => self.append_next(host),
                Stage::Commit => unreachable!("a commit in progress is awaited"),
                Stage::MarkLeft => {
                    self.mark(MarkChange::of(Flags(u8::MAX), Flags::SEEN.with(Flags::LEFT)), host)
                }
                Stage::MarkAnswered => self.mark_answered(host),
                Stage::ForgetArrivals => self.forget(host),
                Stage::File => {
                    let (continuation, uids) = (host.continuation, [UidRange::one(self.uid)]);
                    let asked =
                        host.store_mut().file(self.account, DRAFTS, &uids, SENT, continuation);
                    asked.map(|()| self.is_waiting = true)
                }
            };
            match asked {
                Ok(()) => {}
                Err(Refusal::Busy) => return SubmissionProgress::Yield,
                Err(refusal) => self.refused(refusal, host),
            }
        }
        SubmissionProgress::Waiting
    }

    /// Takes the store's answer, and continues the job. A job has one request at a time, and aborts
    /// a delivery only when the store has refused it. So no other answer arrives.
    pub(super) fn woken(
        &mut self,
        outcome: Outcome,
        host: &mut JobHost<'_, '_>,
    ) -> SubmissionProgress {
        assert!(self.is_waiting, "the store answers what it was asked");
        self.is_waiting = false;
        match (outcome, self.stage) {
            (Outcome::Body(body), Stage::ReadRecipients | Stage::Append) => {
                self.body_arrived(&body, host);
                host.store_mut().give_back(body);
            }
            (Outcome::Changed, Stage::ReturnToDrafts) => {
                (self.stage, self.next) = (Stage::ForgetArrivals, 0);
            }
            (Outcome::Changed, Stage::MarkLeaving) => self.stage = Stage::BeginDelivery,
            (Outcome::Changed, Stage::MarkLeft) => {
                (self.stage, self.next) = (Stage::MarkAnswered, 0)
            }
            (Outcome::Changed, Stage::MarkAnswered) => self.stage = Stage::ForgetArrivals,
            (Outcome::Changed, Stage::ForgetArrivals) => self.next += 1,
            (Outcome::DeliveryReady, Stage::Append) => {}
            (Outcome::Delivered, Stage::Commit) => self.delivered(),
            (Outcome::Filed(_), Stage::File) => self.stage = Stage::Over(SubmissionEnd::Done),
            (Outcome::Refused(refusal), _) => self.refused(refusal, host),
            (_, stage) => unreachable!("at {stage:?} the store was not asked for this"),
        }
        self.go_on(host)
    }

    fn refused(&mut self, refusal: Refusal, host: &mut JobHost<'_, '_>) {
        match (self.stage, refusal) {
            (Stage::BeginDelivery | Stage::Append | Stage::Commit, Refusal::Arrived) => {
                host.abort();
                self.delivered();
            }
            // If the notice cannot be delivered, the message becomes a draft again without it.
            (
                Stage::BeginDelivery | Stage::Append | Stage::Commit,
                Refusal::OverQuota | Refusal::LargerThanQuota | Refusal::TooMany,
            ) if self.given_up.is_some() => {
                host.abort();
                self.stage = Stage::ReturnToDrafts;
            }
            (
                Stage::BeginDelivery | Stage::Append | Stage::Commit,
                Refusal::OverQuota | Refusal::LargerThanQuota,
            ) => {
                host.abort();
                (self.stage, self.goes_by_outbox) = (Stage::BeginDelivery, true);
            }
            (Stage::BeginDelivery | Stage::Append | Stage::Commit, Refusal::TooMany)
                if !self.goes_by_outbox && self.next < self.recipients.len() =>
            {
                host.abort();
                (self.stage, self.goes_by_outbox) = (Stage::BeginDelivery, true);
            }
            // The flag of the answered message, which may be gone, is not important.
            (Stage::MarkAnswered, _) => self.stage = Stage::ForgetArrivals,
            (Stage::ForgetArrivals, Refusal::NoSuchNote) => self.next += 1,
            (Stage::ReadRecipients | Stage::Append, Refusal::Damaged | Refusal::Unreadable) => {
                self.hindered_by(Hindrance::Unreadable, host);
            }
            // Other messages that are arriving at the same account may take all its places for
            // arrivals.
            (Stage::BeginDelivery | Stage::Append | Stage::Commit, Refusal::TooMany) => {
                self.hindered_by(Hindrance::NoPlace, host);
            }
            _ => self.stage = Stage::Over(SubmissionEnd::Retry),
        }
    }

    /// Ends the job, or gives the message up. The hindrance may go away, but usually does not.
    fn hindered_by(&mut self, hindrance: Hindrance, host: &mut JobHost<'_, '_>) {
        host.abort();
        let flags = self.info(host).map_or(Flags::default(), |info| info.flags);
        self.stage = match flags.contains(Flags::LEFT) {
            // All recipients have the message.
            true => Stage::MarkAnswered,
            false if self.hindered + 1 < TRIES_MAX => Stage::Over(SubmissionEnd::Hindered),
            false => self.give_up(hindrance),
        };
    }

    /// Gives the message up. It becomes a draft again once its writer has the notice.
    fn give_up(&mut self, hindrance: Hindrance) -> Stage {
        (self.given_up, self.next) = (Some(hindrance), 0);
        Stage::BeginDelivery
    }

    /// Notes that the next recipient has the message, or that the writer has the notice.
    fn delivered(&mut self) {
        if self.given_up.is_some() {
            self.stage = Stage::ReturnToDrafts;
            return;
        }
        (self.stage, self.next, self.goes_by_outbox) = (Stage::BeginDelivery, self.next + 1, false);
    }

    fn info(&self, host: &JobHost<'_, '_>) -> Result<MessageInfo, Refusal> {
        host.store().message(self.account, DRAFTS, self.uid).ok_or(Refusal::NoSuchMessage)
    }

    /// Checks that the message is still to be sent, and reads more of its beginning.
    fn open(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some(info) = self.info(host).ok().filter(|info| info.flags.are_on_their_way()) else {
            self.stage = Stage::Over(SubmissionEnd::Done);
            return Ok(());
        };
        if self.beginning.octets().is_empty() {
            self.beginning = PartialMessage::from(info.head);
        }
        let continuation = host.continuation;
        host.store_mut().read(
            self.account,
            DRAFTS,
            self.uid,
            self.beginning.next(),
            continuation,
        )?;
        self.is_waiting = true;
        Ok(())
    }

    /// Reads the next part. The head (the signatures) is read last, since a copy gets its head
    /// last.
    fn read_on(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let (info, continuation) = (self.info(host)?, host.continuation);
        let behind_head = info.octets.saturating_sub(info.head);
        let at = self.offset.checked_sub(behind_head).unwrap_or(self.offset + info.head);
        host.store_mut().read(self.account, DRAFTS, self.uid, at, continuation)?;
        self.is_waiting = true;
        Ok(())
    }

    fn mark(&mut self, change: MarkChange, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let continuation = host.continuation;
        host.store_mut().mark(self.account, DRAFTS, self.uid, change, continuation)?;
        self.is_waiting = true;
        Ok(())
    }

    /// Takes a part of the message: of its beginning, or of the text to append.
    fn body_arrived(&mut self, body: &Body, host: &JobHost<'_, '_>) {
        let bytes = body.bytes();
        if self.stage == Stage::ReadRecipients {
            self.beginning.arrived(bytes);
            self.look_at_beginning(host);
            return;
        }
        self.rest = bytes.to_vec();
        self.offset = self.offset.saturating_add(bytes.len() as u32);
    }

    /// Reads the recipients once the whole header was read. A draft's header fits one chunk (see
    /// the webmail's `writing`).
    fn look_at_beginning(&mut self, host: &JobHost<'_, '_>) {
        let info = self.info(host).ok();
        let is_header = memchr::memmem::find(self.beginning.octets(), b"\r\n\r\n").is_some();
        let is_all = info.is_none_or(|info| self.beginning.is_all_of(info.octets));
        let is_too_long = !is_header && !is_all && self.beginning.octets().len() >= CHUNK_OCTETS;
        if !is_header && !is_all && !is_too_long {
            return;
        }
        let flags = info.map_or(Flags::default(), |info| info.flags);
        self.stage = match self.look_at_addresses(host) {
            // A field beyond the limit may be `Bcc`, which must not reach others.
            _ if is_too_long => self.give_up(Hindrance::LongHeader),
            _ if flags.contains(Flags::LEFT) => Stage::MarkAnswered,
            _ if flags.contains(Flags::LEAVING) => Stage::BeginDelivery,
            true => Stage::MarkLeaving,
            false => self.give_up(Hindrance::NoRecipient),
        };
    }

    /// Begins the delivery of the notice to the writer.
    fn begin_notice(
        &mut self,
        hindrance: Hindrance,
        host: &mut JobHost<'_, '_>,
    ) -> Result<(), Refusal> {
        let info = self.info(host)?;
        let once = notice::origin(self.account, &info);
        self.notice = Some(once);
        host.begin(&[Recipient { once: Some(once), ..Recipient::inbox(self.account) }])?;
        let text = notice::text(hindrance, self.account, &info, self.beginning.octets(), host)?;
        // The notice does not contain the message, so no more is read.
        (self.offset, self.rest, self.stage) = (info.octets, text, Stage::Append);
        Ok(())
    }

    /// Begins the delivery to the next recipient that does not have the message.
    fn begin_delivery(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        if let Some(hindrance) = self.given_up {
            return self.begin_notice(hindrance, host);
        }
        let Some((recipient, head)) = self.next_one(host)? else {
            self.stage = Stage::MarkLeft;
            return Ok(());
        };
        host.begin(&[recipient])?;
        // `Bcc` is left out of copies.
        let beginning = self.beginning.octets();
        let (before, behind) = Header::new(beginning).around("Bcc");
        (self.offset, self.rest) = (beginning.len() as u32, [&head, before, behind].concat());
        self.stage = Stage::Append;
        Ok(())
    }

    /// The next local recipient or outbox entry, with its origin and the fields above the message.
    fn next_one(&self, host: &JobHost<'_, '_>) -> Result<Option<(Recipient, Vec<u8>)>, Refusal> {
        let Guid(guid) = self.info(host)?.guid;
        let origin = |guid| Some(SentId::of(self.account, Guid(guid)));
        let Some(entry) = self.next.checked_sub(self.recipients.len()) else {
            let Some((account, address)) = self.recipients.get(self.next) else { return Ok(None) };
            let waiting =
                SentId::of(self.account, Guid(guid ^ (NO_QUOTA | self.next as u128) << GUID_BITS));
            if !self.goes_by_outbox && !host.store().has_arrived(self.account, waiting) {
                return Ok(Some((
                    Recipient { once: origin(guid), ..Recipient::inbox(*account) },
                    Vec::new(),
                )));
            }
            let OutboxDelivery { head, entries } =
                host.posting(self.account, core::slice::from_ref(address));
            let entry = entries.first().ok_or(Refusal::NoSuchMessage)?;
            return Ok(Some((Recipient { once: Some(waiting), ..*entry }, head)));
        };
        let OutboxDelivery { head, entries } = host.posting(self.account, &self.remote);
        let once = origin(guid ^ (entry as u128 + 1) << GUID_BITS);
        Ok(entries.get(entry).map(|recipient| (Recipient { once, ..*recipient }, head)))
    }

    /// Appends octets that were read, or reads on. At the end, commits the delivery.
    fn append_next(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        if !self.rest.is_empty() {
            let taken = host.append(&self.rest).map_err(Refusal::of_begun_delivery)?;
            self.rest.drain(..taken);
            // The store wakes the job when it takes more.
            self.is_waiting = !self.rest.is_empty();
            return Ok(());
        }
        let info = self.info(host)?;
        if self.offset < info.octets {
            return self.read_on(host);
        }
        let octets = if self.given_up.is_some() { 0 } else { info.head as usize };
        let head = HeadSize::of(octets).unwrap_or(HeadSize::NONE);
        host.commit(Closing { head, ..host.cx.turn.wall.into() })
            .map_err(Refusal::of_begun_delivery)?;
        (self.stage, self.is_waiting) = (Stage::Commit, true);
        Ok(())
    }

    fn mark_answered(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some((mailbox, uid)) = self.answers else {
            self.stage = Stage::ForgetArrivals;
            return Ok(());
        };
        let (continuation, change) = (host.continuation, MarkChange::set(Flags::ANSWERED));
        host.store_mut().mark(self.account, mailbox, uid, change, continuation)?;
        self.is_waiting = true;
        Ok(())
    }

    fn forget(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some((Recipient { account, once: Some(origin), .. }, _)) = self.next_one(host)? else {
            let Some(notice) = self.notice else {
                self.stage = match self.given_up {
                    Some(_) => Stage::Over(SubmissionEnd::Done),
                    None => Stage::File,
                };
                return Ok(());
            };
            host.forget_arrival(self.account, notice)?;
            (self.notice, self.is_waiting) = (None, true);
            return Ok(());
        };
        host.forget_arrival(account, origin)?;
        self.is_waiting = true;
        Ok(())
    }

    /// Finds local accounts, each once, and remote addresses. False: a recipient cannot get mail.
    fn look_at_addresses(&mut self, host: &JobHost<'_, '_>) -> bool {
        let header = Header::new(self.beginning.octets());
        let fields = ["To", "Cc", "Bcc"].into_iter().filter_map(|name| header.field(name));
        let people = fields.flat_map(|field| field.addresses()).flat_map(|address| match address {
            Address::Mailbox(mailbox) => alloc::vec![mailbox],
            Address::Group { mailboxes, .. } => mailboxes,
        });
        let mut can_all = true;
        for mailbox in people {
            match host.recipient(&mailbox.address) {
                Some(account) if self.recipients.iter().any(|(known, _)| *known == account) => {}
                Some(account) => self.recipients.push((account, mailbox.address)),
                None if self.remote.contains(&mailbox.address) => {}
                None if host.may_post(&mailbox.address) => self.remote.push(mailbox.address),
                None => can_all = false,
            }
        }
        can_all
    }
}
