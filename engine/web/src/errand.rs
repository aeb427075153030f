//! What a question waits for that the machine answers itself.

use alloc::boxed::Box;
use alloc::string::String;

use accounts::logins::Attempt;
use certificates::{Wish, unknown};
use http::{Question, Reply, Status};
use sasl::{Credentials, Proof};
use webmail::{Destination, Draft, NewPassword, NotProved, Request};

use super::context::HttpCall;
use super::passwords::Making;

/// What is said while too much is under way.
pub(super) const BUSY: &str = "The machine has too much to do just now. Nothing is lost: go back, and try again in a moment.\n";

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
    /// A new password is made ready.
    Making(Box<Making>),
}

/// What somebody says for who he is.
pub(super) enum Purpose {
    /// He wants something with the certificates.
    Certificates(Wish),
    /// He wants another password.
    Password(Box<NewPassword>),
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
    pub(super) fn begin(question: &Question<'_>, call: &mut HttpCall<'_>) -> Option<Errand> {
        if webmail::is_path(question.path.as_bytes()) {
            return Errand::webmail(question, call);
        }
        let errand = match Wish::of(question, call.caller.channel) {
            Err(reply) => {
                call.cx.connections.resume(call.caller.connection.0);
                Errand::Turn(reply)
            }
            Ok((wish, name, password)) => {
                let credentials = Credentials { name: &name, proof: Proof::Password(&password) };
                let attempt = call.log_in(credentials);
                Errand::Login { attempt, purpose: Purpose::Certificates(wish) }
            }
        };
        Some(errand)
    }

    /// There is no memory for what the client wants.
    #[cold]
    pub(super) fn busy(call: &mut HttpCall<'_>) -> Errand {
        call.cx.connections.resume(call.caller.connection.0);
        Errand::Turn(Reply::text(Status::ServiceUnavailable, BUSY.into()))
    }

    /// Bytes of memory that it takes beside its own size.
    pub(super) fn kept_bytes(&self) -> usize {
        match self {
            Errand::Turn(reply) => reply.kept_bytes() + reply.body_bytes(),
            Errand::Admission(_) | Errand::Knock { .. } | Errand::Letter { .. } => 0,
            Errand::Login { attempt, purpose } => attempt.kept_bytes() + purpose.kept_bytes(),
            Errand::Making(making) => size_of::<Making>() + making.kept_bytes(),
        }
    }

    /// Whether it is known what is said, and the deadline is awaited that was set for it.
    pub(super) fn is_held_back(&self) -> bool {
        matches!(self, Errand::Login { attempt, .. } if attempt.is_held_back())
    }
}

/// What comes of a login that failed.
pub(super) enum Refused {
    /// This is said.
    Reply(Reply),
    /// The core that owns the account answers this.
    Ask(Request),
}

impl Purpose {
    /// Bytes of memory that it takes beside its own size.
    fn kept_bytes(&self) -> usize {
        match self {
            Purpose::Certificates(_) => 0,
            Purpose::Password(new) => new.kept_bytes(),
            Purpose::Webmail { name, program, next, kept } => {
                let kept = kept.as_ref().map_or(0, |draft| draft.kept_bytes());
                name.len() + program.len() + next.as_str().len() + kept
            }
        }
    }

    /// What comes of it for who is not who he says.
    pub(super) fn refused(&self, has_too_many: bool, hostname: &str) -> Refused {
        Refused::Reply(match self {
            Purpose::Password(new) => {
                let why = if has_too_many { NotProved::TooMany } else { NotProved::Wrong };
                return Refused::Ask(Request::SetPassword(
                    new.ticket.clone(),
                    new.token.clone(),
                    Err(why),
                ));
            }
            Purpose::Certificates(_) if has_too_many => Reply::refusal(Status::TooManyRequests),
            Purpose::Certificates(_) => unknown(),
            Purpose::Webmail { name, next, kept, .. } => {
                let why = match has_too_many {
                    true => {
                        "Too many people try to log in from your address just now. Try again in a moment."
                    }
                    false => "The address or the password is wrong.",
                };
                let kept = kept.as_ref().map_or_else(String::new, |draft| draft.kept());
                webmail::login_page(hostname, name, next, Some(why), &kept)
            }
        })
    }
}
