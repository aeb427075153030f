//! The settings page: preferences and sessions. Both are notes of the account.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{AccountId, NoteChange, Refusal, Store};

use crate::Page;
use crate::answer;
use crate::chosen::Chosen;
use crate::context::JobContext;
use crate::kept::Kept;
use crate::moments::Moment;
use crate::said::Said;
use crate::sessions::Digest;
use crate::settings::{SessionLine, SettingsPage};
use crate::step::{Progress, why};
use crate::surroundings::{Surroundings, Visitor};

/// The page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Overview {
    /// The valid sessions.
    pub sessions: Vec<(Digest, Kept)>,
    /// Preferences from the form that were rejected.
    pub typed: Option<Chosen>,
}

/// The reply after notes were changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Noted {
    /// The settings page with this flash message.
    Said(String),
    /// The login page: the client is logged out.
    LoggedOut,
}

/// A change of notes in progress.
#[derive(Debug)]
pub(crate) struct Noting {
    changes: Option<Vec<NoteChange>>,
    noted: Noted,
    refused: Option<Refusal>,
}

impl Noting {
    pub(super) fn new(changes: Vec<NoteChange>, noted: Noted) -> Noting {
        Noting { changes: Some(changes), noted, refused: None }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        let Some(changes) = self.changes.clone() else { return Progress::Waiting };
        let continuation = cx.continuation();
        match cx.store_mut().change_notes(account, changes, continuation) {
            Ok(()) => *under_way += 1,
            Err(Refusal::Busy) => return Progress::Yield,
            Err(refusal) => self.refused(refusal),
        }
        self.changes = None;
        Progress::Waiting
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        // A note that is to be removed and does not exist is no failure.
        self.refused = Some(refusal).filter(|refusal| *refusal != Refusal::NoSuchNote);
    }

    pub(super) fn done(&self, host: &str) -> Progress {
        let to_settings = |said| Progress::Redirect(Page::Settings.to_string(), said);
        match (&self.noted, self.refused) {
            (Noted::LoggedOut, Some(_)) => Progress::Reply(answer::logged_out_until_restart(host)),
            (Noted::LoggedOut, None) => Progress::Reply(answer::logged_out()),
            (Noted::Said(_), Some(refusal)) => to_settings(Said::wrong(why(refusal))),
            (Noted::Said(text), None) => to_settings(Said::done(text)),
        }
    }
}

impl Overview {
    pub(super) fn page(&self, visitor: &Visitor, store: &Store) -> Reply {
        let surroundings = Surroundings::of(visitor, store, None);
        let lines: Vec<(String, String, bool)> = self
            .sessions
            .iter()
            .map(|(digest, kept)| {
                let [since, seen] = [kept.since, kept.seen].map(|time| Moment::of(time).in_words());
                let since = format!("since {since}, from {}; seen {seen} (UTC)", kept.from);
                (session_key(digest), since, *digest == visitor.session)
            })
            .collect();
        let sessions: Vec<SessionLine<'_>> = lines
            .iter()
            .zip(&self.sessions)
            .map(|((key, since, is_this), (_, kept))| SessionLine {
                key,
                program: &kept.program,
                since,
                is_this: *is_this,
            })
            .collect();
        let chosen = self.typed.as_ref().unwrap_or(surroundings.chosen());
        answer::page(&SettingsPage {
            frame: surroundings.frame(visitor, &surroundings.links()),
            name: &chosen.name,
            signature: &chosen.signature,
            hold: chosen.hold,
            sessions: &sessions,
        })
    }
}

/// Names a session in a form.
pub(crate) fn session_key(digest: &Digest) -> String {
    let (first, _) = digest.split_first_chunk().unwrap_or((&[0; 8], &[]));
    format!("{:016x}", u64::from_be_bytes(*first)).to_string()
}
