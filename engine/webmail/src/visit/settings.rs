//! What is done on the page of settings.

use alloc::vec::Vec;

use http::Reply;
use store::NoteChange;

use crate::chosen::Chosen;
use crate::clerk::{Noted, Overview, Task, session_key};
use crate::form::Form;
use crate::kept::Kept;
use crate::said::Said;
use crate::sessions::Digest;
use crate::{Page, answer};

use super::Asking;

impl Asking<'_> {
    /// One of the forms of that page.
    pub(super) fn set(&mut self, form: &Form<'_>) -> Result<Task, Reply> {
        let session = self.session;
        if let Some(key) = form.text("end") {
            let ended = self.end(|digest| session_key(digest) == key && *digest != session);
            return Ok(Task::Note(ended, Noted::Said("It is logged out there.".into())));
        }
        match form.text("do").unwrap_or_default() {
            "save" => {
                let chosen = Chosen::of(form);
                match chosen.noted() {
                    Ok(change) => Ok(Task::Note(alloc::vec![change], Noted::Said("Saved.".into()))),
                    Err(why) => {
                        self.said = Some(Said::wrong(why));
                        Ok(Task::Settings(Overview { sessions: self.sessions(), typed: Some(chosen) }))
                    }
                }
            }
            "password" => self.no_password(form),
            "end-others" => {
                let ended = self.end(|digest| *digest != session);
                Ok(Task::Note(ended, Noted::Said("You are logged out everywhere else.".into())))
            }
            _ => Err(answer::elsewhere(&alloc::string::ToString::to_string(&Page::Settings))),
        }
    }

    /// His sessions.
    pub(super) fn sessions(&self) -> Vec<(Digest, Kept)> {
        let known = self.office.store.account(self.account);
        known.map_or_else(Vec::new, |known| self.office.sessions.all_of(&known, self.office.now))
    }

    /// Those of them that are chosen are over: what is to be noted of that.
    pub(super) fn end(&mut self, is_chosen: impl Fn(&Digest) -> bool) -> Vec<NoteChange> {
        let chosen: Vec<Digest> =
            self.sessions().into_iter().map(|(digest, _)| digest).filter(|digest| is_chosen(digest)).collect();
        let Some(known) = self.office.store.account(self.account) else { return Vec::new() };
        chosen.iter().map(|digest| self.office.sessions.end(&known, digest, self.office.now)).collect()
    }
}
