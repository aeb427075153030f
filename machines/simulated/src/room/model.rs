//! The model of a machine's mail: which messages must exist, may exist and must not exist,
//! according to the data that clients sent and received.
//!
//! The model is the test oracle: plain maps that know nothing of the implementation. Each machine
//! has a model.

use std::collections::BTreeMap;

use chance::Dice;
use sometimes::sometimes;

use super::fixture::{ACCOUNTS, AT_WEBMAIL, DRAFTS, SENT};
use super::message::{CopyState, DeletionMoment, FoundMessage, Message, MessageId, OWN, WRITTEN};
use super::naming::ReportOf;
use super::posted::{PostedId, PostedMessages, octets_near_an_edge};
use super::remote::RemoteMailbox;
use super::uncertain::{RequestedChange, Uncertain};

/// The model of one machine.
pub(super) struct Model {
    pub(super) messages: Vec<Message>,
    /// Each known message, by account, mailbox and unique-id.
    unique_ids: BTreeMap<(usize, u32, String), MessageId>,
    moments: u64,
    /// The user's name in the settings of the webmail account.
    pub(super) name: Uncertain<String>,
    /// The session cookies of webmail clients: `tickets` of sessions that should still be live,
    /// `over` of sessions that have ended.
    pub(super) tickets: Vec<String>,
    pub(super) over: Vec<String>,
    /// The messages for the other server, and the number of the machine that sends them.
    pub(super) posted: PostedMessages,
    pub(super) station: usize,
    /// The number of outbox entries at the last audit.
    pub(super) entries: usize,
    /// Messages about which a client has got a response since the last check of the indexes.
    pub(super) touched: Vec<MessageId>,
    /// Reports by account, mailbox and UID.
    pub(super) reports: BTreeMap<(usize, u32, u32), MessageId>,
}

/// Header fields that a message may have before it is submitted.
const DATED: &str =
    "Date: Fri, 13 Feb 2009 23:31:30 +0000\r\nMessage-ID: <NUMBER.letter@elsewhere.test>\r\n";

impl Default for Model {
    fn default() -> Model {
        let name = Uncertain::certain(String::new());
        Model {
            messages: Vec::new(),
            unique_ids: BTreeMap::new(),
            moments: 0,
            name,
            tickets: Vec::new(),
            over: Vec::new(),
            posted: PostedMessages::default(),
            station: 0,
            entries: 0,
            touched: Vec::new(),
            reports: BTreeMap::new(),
        }
    }
}

impl Model {
    /// A model for the machine `station`.
    pub(super) fn of(station: usize) -> Model {
        Model { station, ..Model::default() }
    }

    /// Makes a new message that `protocol` transfers. Returns its number and its text. Some lines
    /// contain the number.
    pub(super) fn write(
        &mut self,
        recipients: &[usize],
        protocol: &'static str,
        dice: &mut Dice,
    ) -> (MessageId, Vec<u8>) {
        let id = self.messages.len();
        let size = match dice.below(40) {
            0 => dice.below(150_000),
            1..5 => dice.below(30_000),
            _ => dice.below(2_000),
        };
        let is_submitted = protocol.ends_with('A');
        let head = format!("Subject: {id}\r\n");
        // The server adds the missing fields, and removes Bcc.
        let (dated, blind) = match is_submitted {
            true if dice.one_in(2) => {
                (DATED.replace("NUMBER", &id.to_string()), "Bcc: mary@barepost.test\r\n")
            }
            true => (String::new(), "Bcc: mary@barepost.test\r\n"),
            false => (String::new(), ""),
        };
        let mut body = Vec::from(b"\r\n");
        while (body.len() as u64) < size {
            match dice.below(6) {
                0 => body.extend_from_slice(format!("..{id}.\r\n").as_bytes()),
                1 => body.extend_from_slice(b"\r\n"),
                _ => body.extend_from_slice(
                    format!("<{id}> {:x} {:x}\r\n", dice.roll(), dice.roll()).as_bytes(),
                ),
            }
        }
        let kept = [head.as_bytes(), dated.as_bytes(), &body].concat();
        self.messages.push(Message::new(kept, protocol, recipients));
        (MessageId(id), [head.as_bytes(), blind.as_bytes(), dated.as_bytes(), &body].concat())
    }

    /// Makes a new message that is composed at the webmail. Returns its number and its text. The
    /// subject and each line of the text contain the number.
    pub(super) fn compose(
        &mut self,
        recipients: &[usize],
        remote: &[RemoteMailbox],
        dice: &mut Dice,
    ) -> (MessageId, String) {
        let id = self.messages.len();
        let size = match remote {
            [] if dice.one_in(10) => dice.below(10_000),
            [] => dice.below(600),
            _ => octets_near_an_edge(1, dice),
        };
        let mut text = String::new();
        while (text.len() as u64) <= size {
            text += &format!("<{id}> {:x} {:x}\r\n", dice.roll(), dice.roll());
        }
        let copies: Vec<usize> = recipients.iter().copied().chain([OWN]).collect();
        let mut message = Message::new(text.clone().into_bytes(), WRITTEN, &copies);
        // The sender's copy of a message may stay a draft until every recipient has the message.
        message.copies[OWN].place = if recipients.is_empty() && remote.is_empty() {
            Uncertain::certain(DRAFTS)
        } else {
            Uncertain::between(vec![DRAFTS, SENT])
        };
        message.is_for_others = !remote.is_empty();
        self.messages.push(message);
        if !remote.is_empty() {
            self.post(id, AT_WEBMAIL, text.clone().into_bytes(), remote);
        }
        (MessageId(id), text)
    }

    /// Makes a new message from `account` to `mailboxes` of the other server. Returns its id and
    /// its content. Each line of the body contains the message's number.
    pub(super) fn write_posted(
        &mut self,
        account: usize,
        mailboxes: &[RemoteMailbox],
        dice: &mut Dice,
    ) -> (PostedId, Vec<u8>) {
        let number = self.posted.next_number();
        let sender = ACCOUNTS[account];
        let head = format!(
            "From: <{sender}>\r\nSubject: Elsewhere\r\nDate: Fri, 13 Feb 2009 23:31:30 +0000\r\n\
             Message-ID: <{number}.posted@elsewhere.test>\r\n\r\n"
        );
        let octets = octets_near_an_edge(2, dice);
        let mut content = head.into_bytes();
        while (content.len() as u64) < octets {
            content.extend_from_slice(format!("<{number}> {:x}\r\n", dice.roll()).as_bytes());
        }
        (self.post(number, account, content.clone(), mailboxes), content)
    }

    /// Adds a message for the other server, and the reports about that message that may arrive.
    fn post(
        &mut self,
        number: usize,
        sender: usize,
        content: Vec<u8>,
        mailboxes: &[RemoteMailbox],
    ) -> PostedId {
        let report = |mailbox: &RemoteMailbox| {
            (*mailbox, self.expect_report(ReportOf { number, mailbox: Some(*mailbox) }, sender))
        };
        let recipients: Vec<(RemoteMailbox, MessageId)> = mailboxes.iter().map(report).collect();
        let delay = self.expect_report(ReportOf { number, mailbox: None }, sender);
        self.posted.add((number, sender), content, &recipients, delay)
    }

    fn set_state(&mut self, id: MessageId, fate: CopyState) {
        let message = &mut self.messages[id.0];
        message.recipients.iter().for_each(|copy| message.copies[*copy].set_state(fate));
    }

    /// Notes that a sector went bad that holds part of the message with this number.
    pub(super) fn harm(&mut self, number: usize) {
        if let Some(message) = self.messages.get_mut(number) {
            message.is_harmed = true;
        }
        self.posted.harm(number);
    }

    /// The number of messages that may be unreadable.
    pub(super) fn harmed(&self) -> usize {
        self.messages.iter().filter(|message| message.is_harmed).count()
    }

    /// Notes that the client has sent the whole message.
    pub(super) fn sent(&mut self, id: MessageId) {
        self.set_state(id, CopyState::PerhapsDelivered);
    }

    /// Notes that the server has told the client that the message is being sent or held, and that a
    /// copy is saved.
    pub(super) fn promised(&mut self, id: MessageId) {
        self.touched.push(id);
        let message = &mut self.messages[id.0];
        assert!(
            message.copies[OWN].fate != CopyState::Absent,
            "message {} was accepted for sending, and a power cut has lost it",
            id.0
        );
        message.copies[OWN].mark_present();
    }

    /// Notes that the server has acknowledged the message. A reader may have deleted the message
    /// before the acknowledgment arrives.
    pub(super) fn delivered(&mut self, id: MessageId) {
        self.touched.push(id);
        let message = &mut self.messages[id.0];
        for copy in &message.recipients {
            let copy = &mut message.copies[*copy];
            assert!(
                copy.fate != CopyState::Absent,
                "message {} was acknowledged, and a power cut has lost it",
                id.0
            );
            copy.mark_present();
        }
    }

    /// Notes that a machine with a working disk has refused the message: the message is not stored,
    /// and never will be.
    pub(super) fn refused(&mut self, id: MessageId) {
        self.touched.push(id);
        let copies = &self.messages[id.0].copies;
        let is_seen = copies
            .iter()
            .any(|copy| !matches!(copy.fate, CopyState::Absent | CopyState::PerhapsDelivered));
        assert!(!is_seen, "message {} was refused, and a client has seen it", id.0);
        self.set_state(id, CopyState::Absent);
        self.posted.message_answered(id, false);
    }

    /// Notes that a client has requested the deletion of this copy.
    pub(super) fn perhaps_deleted(&mut self, id: MessageId, copy: usize) {
        let copy = &mut self.messages[id.0].copies[copy];
        if !matches!(copy.fate, CopyState::Deleted(_)) {
            copy.set_state(CopyState::PerhapsDeleted);
        }
    }

    /// Notes that the server has acknowledged the deletion of this copy.
    pub(super) fn deleted(&mut self, id: MessageId, copy: usize) {
        self.touched.push(id);
        let now = self.next_moment();
        let (number, copy) = (copy, &mut self.messages[id.0].copies[copy]);
        assert!(
            matches!(copy.fate, CopyState::PerhapsDeleted | CopyState::Deleted(_)),
            "message {} was deleted with an acknowledgment, and is {:?} again in {number}",
            id.0,
            copy.fate
        );
        copy.set_state(CopyState::Deleted(now));
    }

    /// Returns a moment that is later than all earlier ones.
    pub(super) fn next_moment(&mut self) -> DeletionMoment {
        self.moments += 1;
        DeletionMoment(self.moments)
    }

    /// The moment of the last known deletion.
    pub(super) fn moment(&self) -> DeletionMoment {
        DeletionMoment(self.moments)
    }

    /// Notes that a client found a message in `account`. The client listed the messages at the
    /// moment `listed`. Returns the message's number and which copy this is.
    pub(super) fn found(
        &mut self,
        account: usize,
        found: &FoundMessage,
        listed: DeletionMoment,
    ) -> (MessageId, usize) {
        let id = self.identify(&found.message);
        let copy = self.copy_in(id, account, found.mailbox);
        match self.messages[id.0].copies[copy].fate {
            CopyState::PerhapsDelivered => self.messages[id.0].copies[copy].mark_present(),
            CopyState::Present | CopyState::PerhapsDeleted => {}
            // A client that listed the message before its deletion may read it later.
            CopyState::Deleted(moment) if moment > listed => {}
            fate => panic!("message {} is {fate:?} and was found in {account}", id.0),
        }
        self.check_unique_id((account, found.mailbox, found.unique_id.clone()), id);
        (id, copy)
    }

    /// The number of the copy of a message that is in this mailbox.
    pub(super) fn copy_in(&self, id: MessageId, account: usize, mailbox: u32) -> usize {
        let has = |copy| self.messages[id.0].recipients.contains(&copy);
        let is_own = account == AT_WEBMAIL
            && has(OWN)
            && (matches!(mailbox, DRAFTS | SENT) || !has(account));
        if is_own { OWN } else { account }
    }

    /// Identifies a message. Panics if the message differs from the sent message, or if its trace
    /// fields do not name the protocol.
    pub(super) fn identify(&self, message: &[u8]) -> MessageId {
        if let Some(of) = ReportOf::read(message).unwrap_or_else(|wrong| panic!("{wrong}")) {
            return self.posted.report(of);
        }
        let (trace, body) = parts(message);
        let subject = body.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let number = String::from_utf8_lossy(subject)
            .strip_prefix("Subject: ")
            .and_then(|id| id.parse().ok());
        let id: usize = number.unwrap_or_else(|| {
            panic!("not a message of this room: {:?}", String::from_utf8_lossy(body))
        });
        let Message { body: sent, protocol, .. } = &self.messages[id];
        if *protocol == WRITTEN {
            assert!(text_of(body) == sent, "message {id} differs from the composed text");
            return MessageId(id);
        }
        let body =
            if protocol.ends_with('A') { without_additions(body, sent) } else { body.to_vec() };
        assert!(*sent == body, "message {id} differs from the sent one");
        let trace = String::from_utf8_lossy(trace);
        assert!(
            trace.contains(&format!(" with {protocol} id ")),
            "message {id} was sent by {protocol}: {trace}"
        );
        MessageId(id)
    }

    /// The indexes of the accepted messages for the other server that wait for another attempt,
    /// except those on bad sectors.
    pub(super) fn posted_waiting(&self) -> Vec<usize> {
        self.posted.waiting(|report| self.has_arrived(report))
    }

    /// Notes that a client requests an undo of the send.
    pub(super) fn undo_requested(&mut self, id: MessageId) -> RequestedChange<bool> {
        self.messages[id.0].departure.undo_requested()
    }

    /// Notes the server's response to the undo: the message is a draft again, or it is too late.
    pub(super) fn undo_answered(
        &mut self,
        id: MessageId,
        requested: &RequestedChange<bool>,
        is_back: bool,
    ) {
        self.touched.push(id);
        let message = &mut self.messages[id.0];
        if message.departure.undo_answered(requested, is_back) {
            message.return_to_drafts(id);
            self.posted.message_answered(id, false);
        }
    }

    /// Whether the message was composed at the webmail and has recipients, so that its send may be
    /// undone.
    pub(super) fn is_sent_by_webmail(&self, id: MessageId) -> bool {
        self.messages[id.0].is_sent_by_webmail()
    }

    /// The messages that were still being sent at the last audit of the disk.
    pub(super) fn on_their_way(&self) -> Vec<MessageId> {
        let is_on_its_way = |id: &MessageId| self.messages[id.0].departure.is_on_its_way();
        (0..self.messages.len()).map(MessageId).filter(is_on_its_way).collect()
    }

    /// Whether the sending of all messages is finished, except of those on bad sectors.
    pub(super) fn all_have_left(&self) -> bool {
        self.on_their_way().iter().all(|id| self.messages[id.0].is_harmed)
    }

    /// Notes that a report may arrive.
    fn expect_report(&mut self, of: ReportOf, account: usize) -> MessageId {
        self.messages.push(Message::report(of, account));
        MessageId(self.messages.len() - 1)
    }

    /// Whether a report has arrived, even if it was deleted since.
    pub(super) fn has_arrived(&self, report: MessageId) -> bool {
        let mut copies = self.messages[report.0].copies.iter();
        copies.any(|copy| !matches!(copy.fate, CopyState::Absent | CopyState::PerhapsDelivered))
    }

    /// Notes that a report is in the machine's index, and therefore on its disk.
    pub(super) fn report_listed(&mut self, of: ReportOf, account: usize, places: &[(u32, u32)]) {
        let id = self.posted.report(of);
        self.posted.reported(of, account);
        if !self.has_arrived(id) {
            sometimes!(ReportStored);
        }
        self.messages[id.0].copies[account].mark_present();
        for (mailbox, uid) in places {
            self.reports.insert((account, *mailbox, *uid), id);
        }
    }

    /// The report with this UID in a mailbox of an account.
    pub(super) fn report_at(&self, account: usize, mailbox: u32, uid: u32) -> Option<MessageId> {
        self.reports.get(&(account, mailbox, uid)).copied()
    }

    /// Whether the message is a report. No client searches for a report, because a report does not
    /// contain its number in the model.
    pub(super) fn is_report(&self, id: MessageId) -> bool {
        self.messages[id.0].report.is_some()
    }

    /// Whether both messages are reports about the same message. These are one conversation, and so
    /// one row of a list.
    pub(super) fn share_a_conversation(&self, one: MessageId, other: MessageId) -> bool {
        let about = |id: MessageId| self.messages[id.0].report.map(|of| of.number);
        about(one).is_some() && about(one) == about(other)
    }

    /// Checks that a unique-id always names the same message.
    fn check_unique_id(&mut self, place: (usize, u32, String), id: MessageId) {
        let known = self.unique_ids.entry(place.clone()).or_insert(id);
        assert_eq!(*known, id, "the unique-id {place:?} names two messages");
    }
}

/// The composed text: the part of a message below the first empty line.
fn text_of(message: &[u8]) -> &[u8] {
    let at = message.windows(4).position(|window| window == b"\r\n\r\n");
    &message[at
        .unwrap_or_else(|| panic!("not a message: {:?}", String::from_utf8_lossy(message)))
        + 4..]
}

/// Removes from a submitted message the From, Date and Message-ID fields that the server added. The
/// result is the message as the client sent it.
fn without_additions(body: &[u8], sent: &[u8]) -> Vec<u8> {
    let text = text_of(body);
    let head = String::from_utf8_lossy(&body[..body.len() - text.len()]);
    let sent = String::from_utf8_lossy(sent);
    let mut lines: Vec<&str> = head.split_inclusive("\r\n").collect();
    let end = lines.pop().unwrap_or_default();
    for name in ["Message-ID: ", "Date: ", "From: "] {
        if !sent.contains(&format!("\r\n{name}")) {
            let added = lines.pop().unwrap_or_default();
            assert!(added.starts_with(name), "{name} was not added: {head:?}");
        }
    }
    [lines.concat().as_bytes(), end.as_bytes(), text].concat()
}

/// Splits a message into its trace fields and the rest, which begins with the subject.
fn parts(message: &[u8]) -> (&[u8], &[u8]) {
    let at = message.windows(11).position(|window| window == b"\r\nSubject: ");
    message.split_at(
        at.unwrap_or_else(|| panic!("not a message: {:?}", String::from_utf8_lossy(message))) + 2,
    )
}
