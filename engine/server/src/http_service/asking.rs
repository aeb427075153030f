//! Questions that the machine answers itself, on their way to a reply.
//!
//! A session has one question with us at a time. What it waits for here stands in its conversation, and goes on when the session's turn has come; what waits elsewhere, a certificate
//! for the core that keeps them, comes back as a reply.
//!
//! Invariant: what senders of bodies may hold of this core's memory at once is bounded (`bodies_max`).

use alloc::boxed::Box;
use alloc::string::String;

use connections::Caller;
use http::{Admission, Question, Reply, Status};
use sasl::{Credentials, Proof};
use store::AccountId;
use webmail::{Arrival, Destination, Draft, NewPassword, NotProved, PasswordMark, Visit};

use crate::certificates::{UPLOAD_BYTES_MAX, Wish, described, unknown};
use crate::common::Common;
use crate::logins::{Attempt, AttemptState, Decision};

use super::Conversation;
use super::passwords::Making;

/// Bytes of bodies above which no further certificate is let in: those who read and write mail need the room more.
const CERTIFICATES_BYTES_MAX: usize = 8 * UPLOAD_BYTES_MAX;

/// What is said while too much is under way.
const BUSY: &str = "The machine has too much to do just now. Nothing is lost: go back, and try again in a moment.\n";

/// What a question waits for.
pub(super) enum Errand {
    /// Its turn: what is said to it is known.
    Turn(Reply),
    /// The same: so many bytes of a body may come.
    Admission(usize),
    /// Whether a form may come, as those say whom it is for.
    Knock {
        /// Bytes of it.
        bytes: usize,
    },
    /// Whether a letter may come, which is told with its number: so many bytes, for so much memory.
    Letter { bytes: u64, memory: usize },
    /// Whether he who asks is who he says.
    Login {
        /// His login.
        attempt: Attempt,
        /// What for.
        purpose: Purpose,
    },
    /// A new password is made ready, for this account.
    Making(AccountId, Box<Making>),
}

/// What somebody says for who he is.
pub(super) enum Purpose {
    /// He wants something with the certificates.
    Certificates(Wish),
    /// He wants another password for this account.
    Password(AccountId, Box<NewPassword>),
    /// He wants to read his mail.
    Webmail {
        /// The name that he said.
        name: String,
        /// The program that said it.
        program: String,
        /// Where he goes then.
        next: Destination,
        /// The letter that he was writing.
        kept: Option<Box<Draft>>,
    },
}

impl Errand {
    /// Something was asked. The session's turn is asked for.
    #[cold]
    #[inline(never)]
    pub(super) fn begin(question: &Question<'_>, caller: Caller, common: &mut Common) -> Option<Errand> {
        if webmail::is_path(question.path.as_bytes()) {
            return Errand::webmail(question, caller, common);
        }
        let errand = match Wish::of(question, caller.channel) {
            Err(reply) => {
                common.connections.resume(caller.connection.0);
                Errand::Turn(reply)
            }
            Ok((wish, name, password)) => {
                let credentials = Credentials { name: &name, proof: Proof::Password(&password) };
                let (logins, mut cx) = common.logins();
                let attempt = logins.begin(credentials, caller, &mut cx);
                Errand::Login { attempt, purpose: Purpose::Certificates(wish) }
            }
        };
        Some(errand)
    }

    /// There is no memory for what the client wants.
    #[cold]
    pub(super) fn busy(caller: Caller, common: &mut Common) -> Errand {
        common.connections.resume(caller.connection.0);
        Errand::Turn(Reply::text(Status::ServiceUnavailable, BUSY.into()))
    }

    /// Bytes of memory that it takes beside its own size.
    pub(super) fn kept_bytes(&self) -> usize {
        match self {
            Errand::Turn(reply) => reply.kept_bytes() + reply.body_bytes(),
            Errand::Admission(_) | Errand::Knock { .. } | Errand::Letter { .. } => 0,
            Errand::Login { attempt, purpose } => attempt.kept_bytes() + purpose.kept_bytes(),
            Errand::Making(_, making) => size_of::<Making>() + making.kept_bytes(),
        }
    }

    /// Whether it is known what is said, and the deadline is awaited that was set for it.
    pub(super) fn is_held_back(&self) -> bool {
        matches!(self, Errand::Login { attempt, .. } if attempt.state == AttemptState::Refused)
    }
}

/// What comes of a login that failed.
enum Refused {
    /// This is said.
    Reply(Reply),
    /// Those say it who have the account.
    Visit(AccountId, Visit),
}

impl Purpose {
    /// Bytes of memory that it takes beside its own size.
    fn kept_bytes(&self) -> usize {
        match self {
            Purpose::Certificates(_) => 0,
            Purpose::Password(_, new) => new.kept_bytes(),
            Purpose::Webmail { name, program, next, kept } => {
                let kept = kept.as_ref().map_or(0, |draft| draft.kept_bytes());
                name.len() + program.len() + next.as_str().len() + kept
            }
        }
    }

    /// What comes of it for who is not who he says.
    fn refused(&self, has_too_many: bool, common: &Common) -> Refused {
        Refused::Reply(match self {
            Purpose::Password(account, new) => {
                let why = if has_too_many { NotProved::TooMany } else { NotProved::Wrong };
                let visit = Visit::SetPassword(new.ticket.clone(), new.token.clone(), Err(why));
                return Refused::Visit(*account, visit);
            }
            Purpose::Certificates(_) if has_too_many => Reply::refusal(Status::TooManyRequests),
            Purpose::Certificates(_) => unknown(),
            Purpose::Webmail { name, next, kept, .. } => {
                let why = match has_too_many {
                    true => "Too many people try to log in from your address just now. Try again in a moment.",
                    false => "The address or the password is wrong.",
                };
                let kept = kept.as_ref().map_or_else(String::new, |draft| draft.kept());
                webmail::login_page(&common.hostname, name, next, Some(why), &kept)
            }
        })
    }
}

impl Conversation {
    /// The session's turn has come.
    #[cold]
    #[inline(never)]
    pub(crate) fn resumed(&mut self, caller: Caller, common: &mut Common) {
        self.errand_resumed(caller, common);
        self.settle(caller, common);
    }

    fn errand_resumed(&mut self, caller: Caller, common: &mut Common) {
        let decision = match self.errand.as_deref_mut() {
            None => return,
            Some(Errand::Turn(_) | Errand::Admission(_)) => None,
            Some(Errand::Making(account, making)) => {
                let account = *account;
                if let Some(visit) = making.step(caller, common) {
                    self.errand = None;
                    common.visit(account, caller.connection.0, visit);
                }
                return;
            }
            Some(Errand::Knock { .. } | Errand::Letter { .. }) => return,
            Some(Errand::Login { attempt, .. }) => {
                let (logins, mut cx) = common.logins();
                match logins.decide(attempt, caller, &mut cx) {
                    Some(Decision::HeldBack) | None => return,
                    decision => decision,
                }
            }
        };
        let errand = self.errand.take();
        match errand.map(|errand| *errand) {
            Some(Errand::Turn(reply)) => self.replied(reply, caller, common),
            Some(Errand::Admission(bytes)) => self.admit(Admission::whole(bytes), caller, common),
            Some(Errand::Login { attempt, purpose }) => {
                common.logins.end(&attempt, common.turn.now);
                match (decision, purpose) {
                    (Some(Decision::Granted(account)), Purpose::Certificates(wish)) => {
                        let is_administrator = common.directory.is_administrator(&common.store, account);
                        self.granted(wish, is_administrator, caller, common);
                    }
                    (Some(Decision::Granted(account)), Purpose::Webmail { program, next, kept, .. }) => {
                        let hash = common.store.account(account).map_or("", |known| known.password_hash);
                        let arrival = Arrival { password: PasswordMark::of(hash), from: caller.address, program };
                        common.visit(account, caller.connection.0, Visit::Begin(account, arrival, next, kept));
                    }
                    (Some(Decision::Granted(_)), Purpose::Password(account, new)) => {
                        let hash = common.store.account(account).map_or("", |known| known.password_hash);
                        let making = Box::new(Making::begin(new, PasswordMark::of(hash), caller, common));
                        self.errand = Some(Box::new(Errand::Making(account, making)));
                    }
                    (decision, purpose) => {
                        let has_too_many = matches!(decision, Some(Decision::TooMany));
                        self.refused(&purpose, has_too_many, caller, common);
                    }
                }
            }
            Some(Errand::Knock { .. } | Errand::Letter { .. } | Errand::Making(..)) | None => {}
        }
    }

    /// He who asks is not who he says.
    fn refused(&mut self, purpose: &Purpose, has_too_many: bool, caller: Caller, common: &mut Common) {
        match purpose.refused(has_too_many, common) {
            Refused::Reply(reply) => self.replied(reply, caller, common),
            Refused::Visit(account, visit) => common.visit(account, caller.connection.0, visit),
        }
    }

    /// A body may come, if there is memory for it.
    pub(super) fn admit(&mut self, admission: Admission, caller: Caller, common: &mut Common) {
        if common.bodies + admission.memory > common.bodies_max {
            admission.number.into_iter().for_each(|number| common.reply_left(number));
            return self.replied(Reply::text(Status::ServiceUnavailable, BUSY.into()), caller, common);
        }
        common.bodies += admission.memory;
        self.with(caller, common, |session, hands| session.admitted(admission, hands));
    }

    /// It is known who asks.
    fn granted(&mut self, wish: Wish, is_administrator: bool, caller: Caller, common: &mut Common) {
        let reply = match wish {
            _ if !is_administrator => Reply::refusal(Status::Forbidden),
            Wish::Read => Reply::text(Status::Ok, described(common.connections.tls().certificates())),
            Wish::Replace if common.bodies + UPLOAD_BYTES_MAX > CERTIFICATES_BYTES_MAX => {
                Reply::text(Status::ServiceUnavailable, "too many at a time\n".into())
            }
            Wish::Replace => return self.admit(Admission::whole(UPLOAD_BYTES_MAX), caller, common),
        };
        self.replied(reply, caller, common);
    }

    /// This is the answer to what the session has asked.
    pub(crate) fn replied(&mut self, reply: Reply, caller: Caller, common: &mut Common) {
        let has_room = common.replies + reply.body_bytes() <= common.bodies_max;
        if let Some(number) = reply.number().filter(|_| !has_room) {
            common.reply_left(number);
        }
        let reply = if has_room { reply } else { Reply::text(Status::ServiceUnavailable, BUSY.into()) };
        self.with(caller, common, |session, hands| session.replied(reply, hands));
        self.count_held(common);
    }

    /// Counts the replies that the session holds now.
    #[cold]
    #[inline(never)]
    pub(super) fn count_held(&mut self, common: &mut Common) {
        let held = self.session.held_bytes();
        common.replies = common.replies - self.held + held;
        self.held = held;
    }

    /// A deadline has passed: the session's, or that of an answer that was held back.
    pub(crate) fn deadline_expired(&mut self, caller: Caller, common: &mut Common) {
        let held_back = self.errand.take_if(|errand| errand.is_held_back()).map(|errand| *errand);
        match held_back {
            Some(Errand::Login { attempt, purpose }) => {
                common.logins.end(&attempt, common.turn.now);
                self.refused(&purpose, false, caller, common);
            }
            _ => self.with(caller, common, |session, hands| session.deadline_expired(hands)),
        }
        self.settle(caller, common);
    }

    /// The connection is gone.
    pub(crate) fn ended(&mut self, caller: Caller, common: &mut Common) {
        common.replies -= self.held;
        common.memory.release(&mut self.charge, caller.address);
        match self.errand.take().as_deref() {
            Some(Errand::Login { attempt, .. }) => {
                let Common { logins, compute, turn, .. } = common;
                logins.abandon(attempt, turn.now, compute);
            }
            Some(Errand::Making(_, making)) => making.abandoned(common),
            Some(Errand::Turn(_) | Errand::Admission(_) | Errand::Knock { .. } | Errand::Letter { .. }) | None => {}
        }
    }
}
