//! Where the webmail is worked on: the clerks of a core, who work on the mail of the accounts that the core owns.
//!
//! Who is logged in at the webmail may be connected to any core. His requests go to the core that owns his account, as *visits*; there a clerk (crate `webmail`) does
//! what is wanted, with the store of that core alone, and the answer goes back. So work goes to where the mail is, and nothing of it needs a lock.
//!
//! Invariants:
//! - A visit gets one answer, also while the machine stops.
//! - There are at most [`CLERKS_MAX`] clerks, beside those whose replies have begun (`streams.rs`) or
//!   to whom letters come (`letters.rs`). Visits that find all of them at work wait, and accounts
//!   take turns (`waiting.rs`).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use channel::Ticket;
use http::{End, Reply};
use machine::CoreId;
use outbound::QueueTold;
use shards::LetterId;
use signing::Signing;
use store::{AccountId, AccountInfo, Outcome, Store};
use tasks::{Continuation, FrameId, FrameTable};

use crate::clerk::{Clerk, Piece};
use crate::context::{Context, JobContext, Point, QueueQuestion};
use crate::letters::{self, LETTERS_MAX, Letters};
use crate::listeners::{Listeners, number_of};
use crate::sessions::{Digest, Sessions};
use crate::step::{self, Progress};
use crate::stream::Stream;
use crate::streams::{self, STREAMS_MAX, Streams};
use crate::told::{Answer, Told};
use crate::visit::{self, Reception, Visit};
use crate::waiting::Waiting;

/// Clerks of a core.
const CLERKS_MAX: usize = 64;

/// Sessions of which a core remembers what the store does not know: some two hundred bytes each.
const SESSIONS_MAX: usize = 4096;

/// A clerk whom there never is.
const NOBODY: FrameId = FrameId::new(u32::MAX, 0);

/// The clerks of a core.
pub struct Clerks {
    sessions: Sessions,
    at_work: FrameTable<Working>,
    /// Those who found the store busy.
    again: Vec<FrameId>,
    waiting: Waiting,
    answers: VecDeque<(Ticket, Answer)>,
    /// Pages that are told of changes.
    pub(crate) listeners: Listeners,
    /// Clerks whose replies have begun.
    pub(crate) streams: Streams,
    /// Clerks to whom letters come.
    pub(crate) letters: Letters,
    /// Replies that stayed open, and letters that came, so far.
    numbered: u64,
    /// What is told on those that are open.
    news: VecDeque<(Ticket, Told)>,
    /// What is asked about the queue.
    questions: VecDeque<QueueQuestion>,
}

/// A clerk at work.
struct Working {
    visitor: Ticket,
    /// Bytes of the form that he works on.
    form_bytes: usize,
    clerk: Box<Clerk>,
    /// The letter that he has on its way.
    letter: Option<LetterId>,
    /// What signs it, if that is wanted: then all of its form is there, and it goes on whoever leaves.
    signing: Option<Box<Signing>>,
    /// Cores that have not heard what he told them, or not answered what he asked.
    unheard: u8,
    /// What they have told of the queue.
    told: Vec<QueueTold>,
    /// The number of his reply, once that has begun, or of the letter that comes to him.
    number: Option<u64>,
}

impl Default for Clerks {
    fn default() -> Clerks {
        Clerks {
            sessions: Sessions::new(SESSIONS_MAX),
            at_work: FrameTable::with_capacity(CLERKS_MAX + STREAMS_MAX + LETTERS_MAX),
            again: Vec::with_capacity(CLERKS_MAX),
            waiting: Waiting::default(),
            answers: VecDeque::new(),
            listeners: Listeners::default(),
            streams: Streams::default(),
            letters: Letters::default(),
            numbered: 0,
            news: VecDeque::new(),
            questions: VecDeque::new(),
        }
    }
}

impl Clerks {
    /// Somebody comes.
    pub fn visited(&mut self, visitor: Ticket, visit: Box<Visit>) {
        self.waiting.push(visitor, visit);
    }

    /// Those who can go on do.
    pub fn work(&mut self, cx: &mut Context<'_>) {
        for frame in core::mem::take(&mut self.again) {
            self.step(frame, cx, |clerk, cx| clerk.go_on(cx));
        }
        while let Some(frame) = self.streams.next_wanted() {
            self.go_on_with_reply(frame, cx);
        }
        self.take_pieces(cx);
        while self.has_room()
            && let Some((visitor, visit)) = self.waiting.pop(|account| of_account(&self.at_work, account))
        {
            let mut secret = [0; 32];
            cx.entropy.random(&mut secret);
            let form_bytes = visit.form_bytes();
            let at_work = &self.at_work;
            let office = visit::Office {
                is_changing: &|account| {
                    at_work.iter().any(|(_, one)| one.clerk.account() == account && one.clerk.changes_password())
                },
                sessions: &mut self.sessions,
                store: &mut cx.archive.own.store,
                nobody: Continuation { frame: NOBODY, entry: Point::Asked.entry() },
                host: cx.hostname,
                administrators: cx.directory.administrators(),
                now: cx.turn.wall,
            };
            match visit::receive(*visit, secret, office) {
                Reception::Answered(reply) => self.answer(visitor, Told::Reply(reply), form_bytes),
                Reception::Admitted => self.answer(visitor, Told::Admitted, form_bytes),
                Reception::Stranger => self.answer(visitor, Told::Stranger, form_bytes),
                Reception::Awaited(clerk) => self.letter_comes(visitor, clerk, cx.archive.core()),
                Reception::Listens(account, session) => {
                    let number = self.next_number(cx.archive.core());
                    let (reply, gone) =
                        self.listeners.begin(visitor, (account, session), number, &cx.archive.own.store);
                    self.news.extend(gone);
                    self.answer(visitor, Told::Reply(reply), form_bytes);
                }
                Reception::Taken(clerk) => {
                    if let Ok(frame) = self.at_work.insert(Working::begin(visitor, form_bytes, clerk)) {
                        self.step(frame, cx, |clerk, cx| clerk.go_on(cx));
                    }
                }
            }
        }
        self.tell_listeners(cx);
    }

    /// Those who listen are told what has changed; those whose session has ended, that this was all.
    fn tell_listeners(&mut self, cx: &mut Context<'_>) {
        let (sessions, news, now) = (&self.sessions, &mut self.news, cx.turn.wall);
        let is_known = |account: &AccountInfo<'_>, session: &Digest| sessions.is_known(account, session, now);
        let tell = |visitor, told| news.push_back((visitor, told));
        self.listeners.look(&mut cx.archive.own.store, is_known, tell);
    }

    /// A letter is to come to this clerk.
    fn letter_comes(&mut self, visitor: Ticket, clerk: Box<Clerk>, core: CoreId) {
        let (number, account) = (self.next_number(core), clerk.account());
        let begun = self.at_work.insert(Working { number: Some(number), ..Working::begin(visitor, 0, clerk) });
        let told = match begun {
            Ok(frame) if self.letters.begin(number, account, frame) => Told::Awaited(number),
            Ok(frame) => {
                self.at_work.remove(frame);
                Told::Reply(letters::too_many())
            }
            Err(_) => Told::Reply(letters::too_many()),
        };
        self.answer(visitor, told, 0);
    }

    /// The session is over by which the letter comes to this clerk.
    pub(crate) fn session_of_letter_ended(&mut self, frame: FrameId) {
        if let Some(working) = self.at_work.get_mut(frame) {
            working.clerk.session_ended();
        }
    }

    /// Whether the session still stands by whose request this clerk works.
    pub(crate) fn is_known(&mut self, frame: FrameId, cx: &Context<'_>) -> bool {
        let Some(working) = self.at_work.get_mut(frame) else { return false };
        let account = cx.archive.own.store.account(working.clerk.account());
        account.is_some_and(|account| self.sessions.is_known(&account, &working.clerk.session(), cx.turn.wall))
    }

    /// Nobody waits any more for what this clerk does. The letter that he had begun.
    pub(crate) fn gone(&mut self, frame: FrameId) -> Option<LetterId> {
        self.at_work.remove(frame)?.letter
    }

    /// What the clerk of this frame has asked the store for has come, or is done.
    pub fn woken(&mut self, frame: FrameId, outcome: Outcome, cx: &mut Context<'_>) {
        self.step(frame, cx, |clerk, cx| clerk.woken(outcome, cx));
    }

    /// Whether a clerk works in this frame.
    pub fn has(&self, frame: FrameId) -> bool {
        self.at_work.get(frame).is_some()
    }

    /// A piece of the message with this number has come.
    pub fn piece_arrived(&mut self, number: u64, piece: Piece) {
        self.letters.piece_arrived(number, piece);
    }

    /// The client wants more of the reply with this number.
    pub fn reply_wanted(&mut self, number: u64) {
        self.streams.wanted(number);
    }

    /// Pages that are told of changes.
    pub fn listeners(&self) -> usize {
        self.listeners.count()
    }

    /// The next answer to a visit.
    pub fn next_answer(&mut self) -> Option<(Ticket, Answer)> {
        self.answers.pop_front()
    }

    /// What is told next on a reply that stays open.
    pub fn next_news(&mut self) -> Option<(Ticket, Told)> {
        self.news.pop_front()
    }

    /// The next question about the queue.
    pub fn next_question(&mut self) -> Option<QueueQuestion> {
        self.questions.pop_front()
    }

    /// The signature that a request handler waits for was computed.
    pub fn sign(&mut self, frame: FrameId, cx: &mut Context<'_>) {
        let Some(signing) = self.at_work.get_mut(frame).and_then(|working| working.signing.as_mut()) else { return };
        if signing.take_signature(cx.compute) {
            self.step(frame, cx, |clerk, cx| clerk.woken(Outcome::Room, cx));
        }
    }

    pub(crate) fn step(
        &mut self,
        frame: FrameId,
        cx: &mut Context<'_>,
        step: impl FnOnce(&mut Clerk, &mut JobContext<'_, '_>) -> Progress,
    ) {
        let Some(working) = self.at_work.get_mut(frame) else { return };
        let Working { visitor, form_bytes, clerk, letter, signing, unheard, told, number } = working;
        let continuation = Continuation { frame, entry: Point::Asked.entry() };
        let questions = &mut self.questions;
        match step(clerk, &mut JobContext { cx, continuation, letter, signing, unheard, told, questions }) {
            Progress::Waiting => {}
            Progress::Yield => self.again.push(frame),
            Progress::Taken => {
                let taken = number.map(|number| (*visitor, Told::Taken(number)));
                self.news.extend(taken);
            }
            Progress::Reply(reply) => self.done(frame, reply),
            Progress::Redirect(path, said) => {
                let reply = step::redirect(&path, said, &clerk.session(), &mut self.sessions);
                self.done(frame, reply);
            }
            Progress::Begin(stream) => {
                let (visitor, form_bytes, account) = (*visitor, *form_bytes, clerk.account());
                self.reply_begins(frame, stream, (visitor, form_bytes, account), cx.archive.core());
            }
            Progress::Piece(bytes) => {
                let more = number.map(|number| (*visitor, Told::More(number, bytes)));
                self.news.extend(more);
            }
            Progress::End(end) => self.end_reply(frame, end),
        }
    }

    /// A clerk has his reply.
    fn done(&mut self, frame: FrameId, reply: Reply) {
        let Some(Working { visitor, form_bytes, number, .. }) = self.at_work.remove(frame) else { return };
        match number.and_then(|number| self.letters.end(number)) {
            // His visit was answered when the letter was let in.
            Some(_) => self.news.push_back((visitor, Told::Reply(reply))),
            None => self.answer(visitor, Told::Reply(reply), form_bytes),
        }
    }

    /// A clerk has the first piece of his reply.
    fn reply_begins(
        &mut self,
        frame: FrameId,
        stream: Stream,
        (visitor, form_bytes, account): (Ticket, usize, AccountId),
        core: CoreId,
    ) {
        let number = self.next_number(core);
        if !self.streams.begin(number, account, frame) {
            self.at_work.remove(frame);
            return self.answer(visitor, Told::Reply(streams::too_many()), form_bytes);
        }
        if let Some(working) = self.at_work.get_mut(frame) {
            (working.number, working.form_bytes) = (Some(number), 0);
        }
        self.answer(visitor, Told::Reply(stream.reply(number)), form_bytes);
    }

    /// More of this clerk's reply is wanted, and goes on as long as its session.
    fn go_on_with_reply(&mut self, frame: FrameId, cx: &mut Context<'_>) {
        if self.is_known(frame, cx) {
            self.step(frame, cx, |clerk, cx| clerk.go_on(cx));
        } else {
            self.end_reply(frame, End::Cut);
        }
    }

    /// There is no more of this clerk's reply.
    fn end_reply(&mut self, frame: FrameId, end: End) {
        if let Some(Working { visitor, number: Some(number), .. }) = self.at_work.remove(frame) {
            self.streams.end(number);
            self.news.push_back((visitor, Told::NoMore(number, end)));
        }
    }

    fn next_number(&mut self, core: CoreId) -> u64 {
        self.numbered += 1;
        number_of(self.numbered, core)
    }

    fn answer(&mut self, visitor: Ticket, told: Told, form_bytes: usize) {
        self.answers.push_back((visitor, Answer { told, form_bytes }));
    }

    /// Another core has heard what the clerk of this frame told it. Whether all have.
    pub fn heard(&mut self, frame: FrameId) -> bool {
        self.at_work.get_mut(frame).is_some_and(|working| {
            working.unheard = working.unheard.saturating_sub(1);
            working.unheard == 0
        })
    }

    /// A core has told what the clerk of this frame asks about the queue. Whether all have.
    pub fn told(&mut self, frame: FrameId, told: QueueTold) -> bool {
        if let Some(working) = self.at_work.get_mut(frame) {
            working.told.push(told);
        }
        self.heard(frame)
    }

    /// Whether somebody can go on at once, or is to be told of a change.
    pub fn has_work(&self, store: &Store) -> bool {
        !self.again.is_empty() || !self.answers.is_empty() || self.can_go_on() || self.has_news(store)
    }

    fn has_news(&self, store: &Store) -> bool {
        !self.news.is_empty() || self.listeners.has_changes(store)
    }

    /// Whether a visit can be taken up at once, or a piece, a reply go on, or somebody who listens be told more. Who found the store busy waits for a turn that something else brings: the store is busy with something.
    pub fn can_go_on(&self) -> bool {
        self.has_visits() || self.letters.has_pieces() || self.streams.has_wanted() || self.listeners.has_concerned()
    }

    fn has_visits(&self) -> bool {
        self.waiting.count() > 0
            && self.has_room()
            && self.waiting.has_next(|account| of_account(&self.at_work, account))
    }

    /// Whether one more clerk may be at work, beside those whose replies have begun and to whom letters come.
    fn has_room(&self) -> bool {
        self.at_work.len() - self.streams.count() - self.letters.count() < CLERKS_MAX
    }

    /// Visits that have no answer.
    pub fn under_way(&self) -> usize {
        self.at_work.len() + self.waiting.count() + self.answers.len()
    }
}

/// Clerks of this account, as far as they count for [`CLERKS_MAX`].
fn of_account(at_work: &FrameTable<Working>, account: AccountId) -> usize {
    at_work.iter().filter(|(_, one)| one.number.is_none() && one.clerk.account() == account).count()
}

impl Working {
    fn begin(visitor: Ticket, form_bytes: usize, clerk: Box<Clerk>) -> Working {
        Working { visitor, form_bytes, clerk, letter: None, signing: None, unheard: 0, told: Vec::new(), number: None }
    }
}
