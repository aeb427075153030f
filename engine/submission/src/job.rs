//! A message that was held leaves: it is delivered to each recipient, and then goes into Sent.
//!
//! It stays one message all the while, in Drafts until all recipients have it, and its flags say
//! how far it has come. Each step begins when the one before it is durable:
//!
//! | flags | what is known | what is done |
//! |---|---|---|
//! | `HELD` | no recipient has it | its recipients are read; it is marked `LEAVING` |
//! | `LEAVING` | nothing takes it back; some may have it | it is delivered to one local recipient after the other, and for all others into its writer's outbox; then it is marked `LEFT` |
//! | `LEFT` | all have it | the message that it answers is marked so; the notes of its arrivals are forgotten; then it is filed into Sent, which takes the mark away |
//!
//! Invariants:
//! - After a power cut a job does what the flags say, from the beginning. A recipient that has the
//!   message refuses it a second time, by the note that came with it ([`Refusal::Arrived`]), and
//!   the notes go only when no job delivers it any more. So each gets it once.
//! - A message with a recipient that cannot get it does not leave: it is a draft again. Once it
//!   leaves that is not asked any more.
//! - A local recipient without room for it gets it by an entry of its own in the outbox, for which
//!   couriers try again and again. That entry is noted as others are. So the recipient does not get
//!   it twice where there is room for it after a power cut.
//! - One thing is under way at a time.
//! - The signatures of a message stand above the draft, and above each copy: they are appended last
//!   there, too. They say nothing of `Bcc`.
//!
//! Which message it answers is known only in this life of the machine: after a power cut that is
//! not marked. Marked before, it would be so for a message that was taken back.

use alloc::string::String;
use alloc::vec::Vec;

use accounts::entries::Posting;
use message::header::{Address, Header};
use store::{
    AccountId, Beginning, Body, CHUNK_OCTETS, Closing, DRAFTS, Flags, Guid, Head, MailboxId,
    MarkChange, MessageInfo, Origin, Outcome, Recipient, Refusal, SENT, Uid, UidRange,
};

use super::context::JobHost;

/// Bits of a message's number; above them an origin says which entry of the outbox it is of.
const GUID_BITS: u32 = 48;

/// With this above them an origin says for which of those who are here an entry is.
const WAITS: u128 = 1 << 15;

/// Brings one message to all its recipients.
#[derive(Debug)]
pub(super) struct SubmissionJob {
    account: AccountId,
    uid: Uid,
    answers: Option<(MailboxId, Uid)>,
    stage: Stage,
    /// Those who are here, and their addresses.
    recipients: Vec<(AccountId, String)>,
    /// The addresses of those who are elsewhere.
    elsewhere: Vec<String>,
    /// The one who is next, or the entry of the outbox.
    next: usize,
    /// The next one has no room for it.
    is_to_wait: bool,
    /// Its beginning without its signatures: all of its header.
    beginning: Beginning,
    /// How much of the letter was read, what signs it last, and what of it is not taken yet.
    offset: u32,
    rest: Vec<u8>,
    is_waiting: bool,
}

/// What is to be done next, or is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Whom it is for is to be read.
    Sealed,
    /// It is to be a draft again.
    Returned,
    /// It is to be marked: nothing takes it back any more.
    Marked,
    /// It is to be brought to the next one.
    Brought,
    /// He is given what it says.
    Handed,
    /// He has all, and it is on its way to the disk.
    Delivered,
    /// It is to be marked: everybody has it.
    Left,
    /// What it answers is to be marked so.
    Answered,
    /// That the next one has it is to be forgotten.
    Forgotten,
    /// It is to go into Sent.
    Filed,
    /// That was all.
    Over(SubmissionEnd),
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmissionEnd {
    /// There is nothing more to be done.
    Wholly,
    /// Something was refused: from here on it is to be tried again some time.
    NotYet,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmissionProgress {
    /// The job waits for what it has asked for.
    Woken,
    /// The store has too much to do: the job tries again in the next turn.
    Turn,
    /// It has ended.
    Over(SubmissionEnd),
}

impl SubmissionJob {
    /// A job for a draft of the account. `answers`: the message that it answers, if that is known.
    pub(super) fn new(
        account: AccountId,
        uid: Uid,
        answers: Option<(MailboxId, Uid)>,
    ) -> SubmissionJob {
        SubmissionJob {
            account,
            uid,
            answers,
            stage: Stage::Sealed,
            recipients: Vec::new(),
            elsewhere: Vec::new(),
            next: 0,
            is_to_wait: false,
            beginning: Beginning::default(),
            offset: 0,
            rest: Vec::new(),
            is_waiting: false,
        }
    }

    /// Goes on as far as it can without waiting.
    pub(super) fn go_on(&mut self, host: &mut JobHost<'_, '_>) -> SubmissionProgress {
        while !self.is_waiting {
            let asked = match self.stage {
                Stage::Over(carried) => {
                    host.abort();
                    return SubmissionProgress::Over(carried);
                }
                Stage::Sealed => self.open(host),
                Stage::Returned => self.mark(MarkChange::clear(Flags::HELD), host),
                Stage::Marked => self.mark(MarkChange::of(Flags::HELD, Flags::LEAVING), host),
                Stage::Brought => self.bring(host),
                Stage::Handed => self.hand(host),
                Stage::Delivered => unreachable!("a delivery is awaited that is over"),
                Stage::Left => {
                    self.mark(MarkChange::of(Flags(u8::MAX), Flags::SEEN.with(Flags::LEFT)), host)
                }
                Stage::Answered => self.mark_answered(host),
                Stage::Forgotten => self.forget(host),
                Stage::Filed => {
                    let (continuation, uids) = (host.continuation, [UidRange::one(self.uid)]);
                    let asked =
                        host.store_mut().file(self.account, DRAFTS, &uids, SENT, continuation);
                    asked.map(|()| self.is_waiting = true)
                }
            };
            match asked {
                Ok(()) => {}
                Err(Refusal::Busy) => return SubmissionProgress::Turn,
                Err(refusal) => self.refused(refusal, host),
            }
        }
        SubmissionProgress::Woken
    }

    /// What it has asked for has come, or is done. Then it goes on. It asks for one thing at a
    /// time, and gives a delivery up only when the store has refused it. So nothing else comes.
    pub(super) fn woken(
        &mut self,
        outcome: Outcome,
        host: &mut JobHost<'_, '_>,
    ) -> SubmissionProgress {
        assert!(self.is_waiting, "the store answers what it was asked");
        self.is_waiting = false;
        match (outcome, self.stage) {
            (Outcome::Body(body), Stage::Sealed | Stage::Handed) => {
                self.body_arrived(&body, host);
                host.store_mut().give_back(body);
            }
            (Outcome::Changed, Stage::Returned) => self.stage = Stage::Over(SubmissionEnd::Wholly),
            (Outcome::Changed, Stage::Marked) => self.stage = Stage::Brought,
            (Outcome::Changed, Stage::Left) => (self.stage, self.next) = (Stage::Answered, 0),
            (Outcome::Changed, Stage::Answered) => self.stage = Stage::Forgotten,
            (Outcome::Changed, Stage::Forgotten) => self.next += 1,
            (Outcome::Room, Stage::Handed) => {}
            (Outcome::Delivered, Stage::Delivered) => self.came(),
            (Outcome::Filed(_), Stage::Filed) => self.stage = Stage::Over(SubmissionEnd::Wholly),
            (Outcome::Refused(refusal), _) => self.refused(refusal, host),
            (_, stage) => unreachable!("at {stage:?} the store was not asked for this"),
        }
        self.go_on(host)
    }

    fn refused(&mut self, refusal: Refusal, host: &mut JobHost<'_, '_>) {
        match (self.stage, refusal) {
            (Stage::Brought | Stage::Handed | Stage::Delivered, Refusal::Arrived) => {
                host.abort();
                self.came();
            }
            (
                Stage::Brought | Stage::Handed | Stage::Delivered,
                Refusal::OverQuota | Refusal::LargerThanQuota,
            ) => {
                host.abort();
                (self.stage, self.is_to_wait) = (Stage::Brought, true);
            }
            // It may be gone; the mark matters less than the letter.
            (Stage::Answered, _) => self.stage = Stage::Forgotten,
            (Stage::Forgotten, Refusal::NoSuchNote) => self.next += 1,
            _ => self.stage = Stage::Over(SubmissionEnd::NotYet),
        }
    }

    /// The next one has it.
    fn came(&mut self) {
        (self.stage, self.next, self.is_to_wait) = (Stage::Brought, self.next + 1, false);
    }

    fn info(&self, host: &JobHost<'_, '_>) -> Result<MessageInfo, Refusal> {
        host.store().message(self.account, DRAFTS, self.uid).ok_or(Refusal::NoSuchMessage)
    }

    /// Looks whether it is still to leave, and reads more of its beginning.
    fn open(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some(info) = self.info(host).ok().filter(|info| info.flags.are_on_their_way()) else {
            self.stage = Stage::Over(SubmissionEnd::Wholly);
            return Ok(());
        };
        if self.beginning.octets().is_empty() {
            self.beginning = Beginning::from(info.head);
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

    /// Reads the next part: the head is a part by itself and comes last, as it is appended.
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

    /// A part of the message: of its beginning, until all recipients are known, and then what is
    /// handed on.
    fn body_arrived(&mut self, body: &Body, host: &JobHost<'_, '_>) {
        let bytes = body.bytes();
        if self.stage == Stage::Sealed {
            self.beginning.arrived(bytes);
            self.look_at_beginning(host);
            return;
        }
        self.rest = bytes.to_vec();
        self.offset = self.offset.saturating_add(bytes.len() as u32);
    }

    /// Looks for the recipients, if all of the header is there. A draft's header fits a chunk
    /// (see the webmail's `writing`).
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
            // A field of it may name recipients that nobody else is to see.
            _ if is_too_long => Stage::Returned,
            _ if flags.contains(Flags::LEFT) => Stage::Answered,
            _ if flags.contains(Flags::LEAVING) => Stage::Brought,
            true => Stage::Marked,
            false => Stage::Returned,
        };
    }

    /// Begins a letter to the next one who has none.
    fn bring(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some((recipient, head)) = self.next_one(host)? else {
            self.stage = Stage::Left;
            return Ok(());
        };
        host.begin(&[recipient])?;
        // Recipients in Bcc are for nobody else.
        let beginning = self.beginning.octets();
        let (before, behind) = Header::new(beginning).around("Bcc");
        (self.offset, self.rest) = (beginning.len() as u32, [&head, before, behind].concat());
        self.stage = Stage::Handed;
        Ok(())
    }

    /// The next local recipient or entry of the outbox, each with its own origin and fields above.
    fn next_one(&self, host: &JobHost<'_, '_>) -> Result<Option<(Recipient, Vec<u8>)>, Refusal> {
        let Guid(guid) = self.info(host)?.guid;
        let origin = |guid| Some(Origin::of(self.account, Guid(guid)));
        let Some(entry) = self.next.checked_sub(self.recipients.len()) else {
            let Some((account, address)) = self.recipients.get(self.next) else { return Ok(None) };
            let waiting =
                Origin::of(self.account, Guid(guid ^ (WAITS | self.next as u128) << GUID_BITS));
            if !self.is_to_wait && !host.store().has_arrived(self.account, waiting) {
                return Ok(Some((
                    Recipient { once: origin(guid), ..Recipient::inbox(*account) },
                    Vec::new(),
                )));
            }
            let Posting { head, entries } =
                host.posting(self.account, core::slice::from_ref(address));
            let entry = entries.first().ok_or(Refusal::NoSuchMessage)?;
            return Ok(Some((Recipient { once: Some(waiting), ..*entry }, head)));
        };
        let Posting { head, entries } = host.posting(self.account, &self.elsewhere);
        let once = origin(guid ^ (entry as u128 + 1) << GUID_BITS);
        Ok(entries.get(entry).map(|recipient| (Recipient { once, ..*recipient }, head)))
    }

    /// Hands on what was read, or reads on; what is complete is delivered.
    fn hand(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        if !self.rest.is_empty() {
            let taken = host.append(&self.rest).map_err(Refusal::of_begun_delivery)?;
            self.rest.drain(..taken);
            // The store wakes us when it takes more.
            self.is_waiting = !self.rest.is_empty();
            return Ok(());
        }
        let info = self.info(host)?;
        if self.offset < info.octets {
            return self.read_on(host);
        }
        let head = Head::of(info.head as usize).unwrap_or(Head::NONE);
        host.commit(Closing { head, ..host.cx.turn.wall.into() })
            .map_err(Refusal::of_begun_delivery)?;
        (self.stage, self.is_waiting) = (Stage::Delivered, true);
        Ok(())
    }

    fn mark_answered(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some((mailbox, uid)) = self.answers else {
            self.stage = Stage::Forgotten;
            return Ok(());
        };
        let (continuation, change) = (host.continuation, MarkChange::set(Flags::ANSWERED));
        host.store_mut().mark(self.account, mailbox, uid, change, continuation)?;
        self.is_waiting = true;
        Ok(())
    }

    fn forget(&mut self, host: &mut JobHost<'_, '_>) -> Result<(), Refusal> {
        let Some((Recipient { account, once: Some(origin), .. }, _)) = self.next_one(host)? else {
            self.stage = Stage::Filed;
            return Ok(());
        };
        host.forget_arrival(account, origin)?;
        self.is_waiting = true;
        Ok(())
    }

    /// Finds the accounts it is for, each once, and addresses elsewhere. False: one cannot get it.
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
                None if self.elsewhere.contains(&mailbox.address) => {}
                None if host.may_post(&mailbox.address) => self.elsewhere.push(mailbox.address),
                None => can_all = false,
            }
        }
        can_all
    }
}
