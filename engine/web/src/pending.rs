//! A request that waits on the core of its connection.

use alloc::boxed::Box;
use alloc::string::String;

use accounts::logins::LoginAttempt;
use certificates::{CertificateAction, unknown};
use http::{HandlerRequest, Reply, Status};
use sasl::{Credentials, Proof};
use webmail::{Destination, Draft, PasswordChange, ProofFailure, Request};

use super::context::HttpCall;
use super::passwords::PasswordPreparation;

/// A request, by the event that it waits for.
#[expect(clippy::large_enum_variant, reason = "a session has it in a box")]
pub(super) enum PendingRequest {
    /// The session's turn, in which a body of this many bytes is admitted.
    Admission(usize),
    /// The decision of the account's core whether a form is admitted.
    FormAdmission {
        /// The length of the form in bytes.
        bytes: usize,
    },
    /// The decision of the account's core whether a message upload is admitted. `bytes`: the
    /// maximum length of the upload. `memory`: the memory for it, in bytes.
    UploadAdmission { bytes: u64, memory: usize },
    /// The result of a login.
    Login {
        /// The login.
        attempt: LoginAttempt,
        /// The action after the login.
        purpose: LoginPurpose,
    },
    /// The preparation of a new password.
    NewPassword(Box<PasswordPreparation>),
}

/// The purpose of a login.
pub(super) enum LoginPurpose {
    /// Access to the certificates.
    Certificates(CertificateAction),
    /// A password change.
    Password(Box<PasswordChange>),
    /// A webmail session.
    Webmail {
        /// The name in the form.
        name: String,
        /// A short description of the client's program.
        program: String,
        /// The page that the client gets after the login.
        next: Destination,
        /// The message that the client was writing.
        draft: Option<Box<Draft>>,
    },
}

impl PendingRequest {
    /// Begins a request that has arrived. `None`: the request was queued for the core of the
    /// account, which will reply.
    ///
    /// Errors: the reply, if it is known at once.
    #[cold]
    #[inline(never)]
    pub(super) fn begin(
        question: &HandlerRequest<'_>,
        call: &mut HttpCall<'_>,
    ) -> Result<Option<PendingRequest>, Reply> {
        if webmail::is_path(question.path.as_bytes()) {
            return PendingRequest::webmail(question, call);
        }
        let (action, name, password) = CertificateAction::of(question, call.caller.channel)?;
        let credentials = Credentials { name: &name, proof: Proof::Password(&password) };
        let attempt = call.log_in(credentials);
        let purpose = LoginPurpose::Certificates(action);
        Ok(Some(PendingRequest::Login { attempt, purpose }))
    }

    /// The memory of the request in bytes, without the [`PendingRequest`] itself.
    pub(super) fn kept_bytes(&self) -> usize {
        match self {
            PendingRequest::Admission(_)
            | PendingRequest::FormAdmission { .. }
            | PendingRequest::UploadAdmission { .. } => 0,
            PendingRequest::Login { attempt, purpose } => {
                attempt.kept_bytes() + purpose.kept_bytes()
            }
            PendingRequest::NewPassword(making) => {
                size_of::<PasswordPreparation>() + making.kept_bytes()
            }
        }
    }

    /// Whether the core of the account decides on the admission of a body.
    pub(super) fn awaits_admission(&self) -> bool {
        matches!(
            self,
            PendingRequest::FormAdmission { .. } | PendingRequest::UploadAdmission { .. }
        )
    }

    /// Whether the answer is known but delayed until the deadline.
    pub(super) fn is_held_back(&self) -> bool {
        matches!(self, PendingRequest::Login { attempt, .. } if attempt.is_held_back())
    }
}

/// The result of a failed login.
pub(super) enum Refused {
    /// The reply to the client.
    Reply(Reply),
    /// The request that the core of the account must answer.
    Ask(Request),
}

impl LoginPurpose {
    /// The memory of the purpose in bytes, without the [`LoginPurpose`] itself.
    fn kept_bytes(&self) -> usize {
        match self {
            LoginPurpose::Certificates(_) => 0,
            LoginPurpose::Password(new) => new.kept_bytes(),
            LoginPurpose::Webmail { name, program, next, draft } => {
                let draft_bytes = draft.as_ref().map_or(0, |draft| draft.kept_bytes());
                name.len() + program.len() + next.as_str().len() + draft_bytes
            }
        }
    }

    /// The result if the login fails.
    pub(super) fn refused(&self, why: ProofFailure, hostname: &str) -> Refused {
        Refused::Reply(match self {
            LoginPurpose::Password(new) => {
                return Refused::Ask(Request::SetPassword(
                    new.ticket.clone(),
                    new.token.clone(),
                    Err(why),
                ));
            }
            LoginPurpose::Certificates(_) => match why {
                ProofFailure::Wrong => unknown(),
                ProofFailure::TooMany => Reply::refusal(Status::TooManyRequests),
                ProofFailure::NotReady => Reply::refusal(Status::ServiceUnavailable),
            },
            LoginPurpose::Webmail { name, next, draft, .. } => {
                let why = why.at_login();
                let draft = draft.as_ref().map_or_else(String::new, |draft| draft.to_text());
                webmail::login_page(hostname, name, next, Some(why), &draft)
            }
        })
    }
}
