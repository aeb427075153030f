//! The forms of the settings page.

use alloc::vec::Vec;

use http::Reply;
use store::NoteChange;

use crate::flash::FlashMessage;
use crate::form::Form;
use crate::jobs::{Job, Noted, SettingsJob, session_key};
use crate::persisted_session::PersistedSession;
use crate::preferences::Preferences;
use crate::sessions::Digest;
use crate::{WebPage, answer};

use super::{AuthenticatedRequest, SessionContext};

impl AuthenticatedRequest<'_, '_> {
    /// The job that carries out a form of the settings page.
    pub(super) fn set(&mut self, form: &Form<'_>) -> Result<Job, Reply> {
        let session = self.session;
        if let Some(key) = form.text("end") {
            let ended = self.end(|digest| session_key(digest) == key && *digest != session);
            return Ok(Job::note(ended, Noted::Flash("Session signed out.".into())));
        }
        match form.text("do").unwrap_or_default() {
            "save" => {
                let preferences = Preferences::of(form);
                match preferences.note_change() {
                    Ok(change) => {
                        Ok(Job::note(alloc::vec![change], Noted::Flash("Settings saved.".into())))
                    }
                    Err(why) => {
                        self.flash = Some(FlashMessage::failure(why));
                        Ok(Job::Settings(SettingsJob {
                            sessions: self.sessions(),
                            typed: Some(preferences),
                        }))
                    }
                }
            }
            "zone" => Ok(self.set_first_zone(form.text("zone").unwrap_or_default())),
            "password" => self.no_password(form),
            "end-others" => {
                let ended = self.end(|digest| *digest != session);
                Ok(Job::note(ended, Noted::Flash("All other sessions were signed out.".into())))
            }
            _ => Err(answer::redirect(&alloc::string::ToString::to_string(&WebPage::Settings))),
        }
    }

    /// The job that sets the time zone which the browser has reported, if the account has none.
    fn set_first_zone(&self, name: &str) -> Job {
        let known = self.cx.store().account(self.account);
        let preferences = known.as_ref().map(Preferences::of_account).unwrap_or_default();
        let is_first = preferences.zone.is_empty();
        let changed = Preferences { zone: name.into(), ..preferences }.note_change();
        Job::note(changed.into_iter().filter(|_| is_first).collect(), Noted::Silently)
    }

    /// The valid sessions of the account.
    pub(super) fn sessions(&self) -> Vec<(Digest, PersistedSession)> {
        let known = self.cx.store().account(self.account);
        known.map_or_else(Vec::new, |known| self.cx.sessions.all_of(&known, self.cx.cx.turn.wall))
    }

    /// Ends the chosen sessions. Returns the changes for the store.
    pub(super) fn end(&mut self, is_chosen: impl Fn(&Digest) -> bool) -> Vec<NoteChange> {
        let chosen: Vec<Digest> = self
            .sessions()
            .into_iter()
            .map(|(digest, _)| digest)
            .filter(|digest| is_chosen(digest))
            .collect();
        let SessionContext { sessions, cx, .. } = &mut self.cx;
        let Some(known) = cx.archive.own.store.account(self.account) else { return Vec::new() };
        chosen.iter().map(|digest| sessions.end(&known, digest, cx.turn.wall)).collect()
    }
}
