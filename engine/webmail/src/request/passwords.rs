//! A password change: the form's request, the check on the core of the connection, and the change
//! on the core of the account.
//!
//! The old password is checked in the same way as in any login. A wrong password has the same cost
//! for the client.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use http::{Reply, Status};
use mail::PasswordMark;
use store::NoteChange;

use crate::flash::FlashMessage;
use crate::form::Form;
use crate::handler_reply::HandlerReply;
use crate::jobs::{ALREADY_CHANGED, Job, Secrets, SettingsJob};
use crate::layout::AuthenticatedClient;
use crate::persisted_session::PersistedSession;
use crate::{SessionTicket, answer};

use super::AuthenticatedRequest;

/// The limits of a password. All mail programs can send a password of the maximum size.
const PASSWORD_CHARACTERS_MIN: usize = 8;
const PASSWORD_BYTES_MAX: usize = 200;

/// A request for a password change.
#[derive(Clone)]
pub struct PasswordChange {
    /// The ticket of the client's session.
    pub ticket: SessionTicket,
    /// The token in the form.
    pub token: String,
    /// The wanted password. It is never printed.
    pub wanted: Vec<u8>,
}

impl PasswordChange {
    /// The memory of the request, in bytes.
    pub fn kept_bytes(&self) -> usize {
        size_of::<PasswordChange>() + self.token.len() + self.wanted.len()
    }
}

impl fmt::Debug for PasswordChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PasswordChange")
    }
}

/// The reason why a password was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofFailure {
    /// The password is wrong.
    Wrong,
    /// The client's network has made too many attempts.
    TooMany,
    /// The account is new, and its password is not made yet.
    NotReady,
}

impl ProofFailure {
    /// The text for a user that signs in.
    pub fn at_login(self) -> &'static str {
        match self {
            ProofFailure::Wrong => "Wrong email address or password.",
            ProofFailure::TooMany => {
                "Too many sign-in attempts from your network. Try again in a moment."
            }
            ProofFailure::NotReady => "Your account is being set up. Try again in a minute.",
        }
    }
}

/// The new password that a form asks for. Errors: the text for the user, if the password is not
/// acceptable.
pub(crate) fn wanted<'a>(form: &'a Form<'_>) -> Result<&'a str, &'static str> {
    let [wanted, again] = ["new", "again"].map(|name| form.text(name).unwrap_or_default());
    if wanted != again {
        return Err("The passwords don’t match.");
    }
    if wanted.chars().count() < PASSWORD_CHARACTERS_MIN {
        return Err("Passwords must have at least 8 characters.");
    }
    if wanted.len() > PASSWORD_BYTES_MAX {
        return Err("Passwords can have at most 200 bytes.");
    }
    if wanted.chars().any(char::is_control) {
        return Err("The new password contains a character that mail programs cannot send.");
    }
    Ok(wanted)
}

impl AuthenticatedRequest<'_, '_> {
    /// Replaces the password by the computed secrets, if the client has proved that it knows the
    /// old password. This session stays valid, and all other sessions of the account end.
    pub(super) fn set_password(
        mut self,
        token: &str,
        proved: Result<Secrets, ProofFailure>,
    ) -> Result<(AuthenticatedClient, Job), HandlerReply> {
        if !self.ticket.form_token().is(token) {
            let words = "This form does not belong to your current session.";
            return Err(HandlerReply::Reply(answer::error_page(Status::Forbidden, words)));
        }
        let known = self.cx.store().account(self.account);
        let present = known
            .map_or_else(PasswordMark::default, |known| PasswordMark::of(known.password_hash()));
        let job = match proved {
            Ok(_) if (self.cx.is_changing)(self.account) => {
                self.complaint("Your password is being changed in another window.")
            }
            Ok(secrets) if secrets.replaced != present => self.complaint(ALREADY_CHANGED),
            Ok(secrets) => {
                let mark = PasswordMark::of(&secrets.hash);
                let notes = self.sessions().into_iter().map(|(digest, session)| {
                    match digest == self.session {
                        true => NoteChange::Replace(
                            digest[..].into(),
                            PersistedSession { password: mark, ..session }.to_bytes(),
                        ),
                        false => NoteChange::Remove(digest[..].into()),
                    }
                });
                let notes = notes.collect();
                Job::set_password(secrets, notes)
            }
            Err(ProofFailure::Wrong) => self.complaint("The current password is wrong."),
            Err(why) => self.complaint(why.at_login()),
        };
        Ok((self.client(), job))
    }

    /// The settings page with an error message.
    pub(super) fn complaint(&mut self, why: &str) -> Job {
        self.flash = Some(FlashMessage::failure(why));
        Job::Settings(SettingsJob { sessions: self.sessions(), typed: None })
    }

    /// Replies to a password form for which no secrets were computed, because the new password is
    /// not acceptable.
    pub(super) fn no_password(&mut self, form: &Form<'_>) -> Result<Job, Reply> {
        Ok(self
            .complaint(wanted(form).err().unwrap_or("Your password was not changed. Try again.")))
    }
}
