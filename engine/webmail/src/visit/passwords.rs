//! A new password: asked for in a form, made of it where the connection is, and put in the place of the old one where the mail is.
//!
//! The old one is proved as in any login, with what that costs who guesses.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use http::{Reply, Status};
use mail::PasswordMark;
use store::NoteChange;

use crate::clerk::{Job, Overview, Secrets};
use crate::form::Form;
use crate::kept::Kept;
use crate::said::Said;
use crate::surroundings::Visitor;
use crate::told::Told;
use crate::{Ticket, answer};

use super::Asking;

/// Bytes of a password: so many at least, and no more than programs can send.
const PASSWORD_BYTES_MIN: usize = 8;
const PASSWORD_BYTES_MAX: usize = 200;

/// Somebody wants another password.
#[derive(Clone)]
pub struct NewPassword {
    /// Who he is, as he says.
    pub ticket: Ticket,
    /// What his form carries.
    pub token: String,
    /// The password that he wants. Never printed.
    pub wanted: Vec<u8>,
}

impl NewPassword {
    /// Bytes of memory that it takes.
    pub fn kept_bytes(&self) -> usize {
        size_of::<NewPassword>() + self.token.len() + self.wanted.len()
    }
}

impl fmt::Debug for NewPassword {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("NewPassword")
    }
}

/// Why nothing came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotProved {
    /// The old password is another.
    Wrong,
    /// Too many try from there.
    TooMany,
}

/// The password that a form asks for. Errors: why that is none.
pub(crate) fn wanted<'a>(form: &'a Form<'_>) -> Result<&'a str, &'static str> {
    let [wanted, again] = ["new", "again"].map(|name| form.text(name).unwrap_or_default());
    if wanted != again {
        return Err("The new password was typed in two ways. It was not changed.");
    }
    if !(PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&wanted.len()) {
        return Err("A password has 8 letters at least, and 200 at most. It was not changed.");
    }
    if wanted.chars().any(char::is_control) {
        return Err(
            "There is something in the new password that programs cannot send. It was not changed.",
        );
    }
    Ok(wanted)
}

impl Asking<'_, '_> {
    /// What is kept of a new password is made of it, or the old one was not proved. The session goes on, and no other of the account does.
    pub(super) fn set_password(
        mut self,
        token: &str,
        proved: Result<Secrets, NotProved>,
    ) -> Result<(Visitor, Job), Told> {
        if !self.ticket.form_token().is(token) {
            let words = "This does not come from a page of your session.";
            return Err(Told::Reply(answer::told(Status::Forbidden, words)));
        }
        let known = self.cx.store().account(self.account);
        let present = known
            .map_or_else(PasswordMark::default, |known| PasswordMark::of(known.password_hash()));
        let job = match proved {
            Ok(_) if (self.cx.is_changing)(self.account) => self.complaint(
                "Your password is being changed in another window. It was not changed here.",
            ),
            Ok(secrets) if secrets.replaced != present => self.complaint(
                "Your password has been changed in another window. It was not changed again.",
            ),
            Ok(secrets) => {
                let mark = PasswordMark::of(&secrets.hash);
                let notes = self.sessions().into_iter().map(|(digest, kept)| {
                    match digest == self.session {
                        true => NoteChange::Replace(
                            digest[..].into(),
                            Kept { password: mark, ..kept }.to_bytes(),
                        ),
                        false => NoteChange::Remove(digest[..].into()),
                    }
                });
                let notes = notes.collect();
                Job::set_password(secrets, notes)
            }
            Err(NotProved::Wrong) => {
                self.complaint("That is not your present password. It was not changed.")
            }
            Err(NotProved::TooMany) => self.complaint(
                "Too many people try to log in from your address just now. Try again in a moment.",
            ),
        };
        Ok((self.visitor(), job))
    }

    /// The page of settings, with what is wrong.
    pub(super) fn complaint(&mut self, why: &str) -> Job {
        self.said = Some(Said::wrong(why));
        Job::Settings(Overview { sessions: self.sessions(), typed: None })
    }

    /// A form that asks for a password and got here without one being made: it asks for none.
    pub(super) fn no_password(&mut self, form: &Form<'_>) -> Result<Job, Reply> {
        Ok(self.complaint(wanted(form).err().unwrap_or("It was not changed. Try again.")))
    }
}
