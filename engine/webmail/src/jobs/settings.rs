//! The settings page: preferences and sessions. Both are notes of the account.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{AccountId, NoteChange, Refusal};

use crate::WebPage;
use crate::answer;
use crate::context::JobContext;
use crate::flash::FlashMessage;
use crate::layout::{AuthenticatedClient, PageLayout};
use crate::moments::Moment;
use crate::persisted_session::PersistedSession;
use crate::preferences::Preferences;
use crate::sessions::Digest;
use crate::settings::{SessionLine, SettingsPage};
use crate::step::{JobProgress, why};

/// The job that makes the settings page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SettingsJob {
    /// The valid sessions of the account.
    pub sessions: Vec<(Digest, PersistedSession)>,
    /// The preferences from the form, if they were rejected.
    pub typed: Option<Preferences>,
}

/// The reply after notes were changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Noted {
    /// The settings page with this flash message.
    Flash(String),
    /// Nothing, since the user has not asked for the change.
    Silently,
    /// The login page, since the client is logged out.
    LoggedOut,
}

/// A change of notes in progress.
#[derive(Debug)]
pub(crate) struct NoteJob {
    changes: Option<Vec<NoteChange>>,
    noted: Noted,
    refused: Option<Refusal>,
}

impl NoteJob {
    pub(super) fn new(changes: Vec<NoteChange>, noted: Noted) -> NoteJob {
        NoteJob { changes: Some(changes), noted, refused: None }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        let Some(changes) = self.changes.clone() else { return JobProgress::Waiting };
        let continuation = cx.continuation();
        match cx.store_mut().change_notes(account, changes, continuation) {
            Ok(()) => *under_way += 1,
            Err(Refusal::Busy) => return JobProgress::Yield,
            Err(refusal) => self.refused(refusal),
        }
        self.changes = None;
        JobProgress::Waiting
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        // It is not an error if a note to remove does not exist.
        self.refused = Some(refusal).filter(|refusal| *refusal != Refusal::NoSuchNote);
    }

    pub(super) fn done(&self, host: &str) -> JobProgress {
        let to_settings = |flash| JobProgress::Redirect(WebPage::Settings.to_string(), flash);
        match (&self.noted, self.refused) {
            (Noted::LoggedOut, Some(_)) => {
                JobProgress::Reply(answer::logged_out_until_restart(host))
            }
            (Noted::LoggedOut, None) => JobProgress::Reply(answer::logged_out()),
            (Noted::Silently, _) => JobProgress::Reply(answer::nothing()),
            (Noted::Flash(_), Some(refusal)) => to_settings(FlashMessage::failure(why(refusal))),
            (Noted::Flash(text), None) => to_settings(FlashMessage::success(text)),
        }
    }
}

impl SettingsJob {
    pub(super) fn page(&self, client: &AuthenticatedClient, cx: &mut JobContext<'_, '_>) -> Reply {
        let (zone, store) = (cx.zone(client.account), cx.store());
        let layout = PageLayout::of(client, store, None);
        let lines: Vec<(String, String, bool)> = self
            .sessions
            .iter()
            .map(|(digest, session)| {
                let [since, seen] =
                    [session.since, session.seen].map(|time| Moment::of(time, &zone).in_words());
                let since = format!("Signed in {since} from {}, last active {seen}", session.from);
                (session_key(digest), since, *digest == client.session)
            })
            .collect();
        let sessions: Vec<SessionLine<'_>> = lines
            .iter()
            .zip(&self.sessions)
            .map(|((key, since, is_this), (_, session))| SessionLine {
                key,
                program: &session.program,
                since,
                is_this: *is_this,
            })
            .collect();
        let preferences = self.typed.as_ref().unwrap_or(layout.preferences());
        answer::page(&SettingsPage {
            frame: layout.frame(client, &layout.links()),
            name: &preferences.name,
            signature: &preferences.signature,
            hold: preferences.hold,
            zone: &preferences.zone,
            sessions: &sessions,
        })
    }
}

/// The key that names a session in a form.
pub(crate) fn session_key(digest: &Digest) -> String {
    let (first, _) = digest.split_first_chunk().unwrap_or((&[0; 8], &[]));
    format!("{:016x}", u64::from_be_bytes(*first)).to_string()
}
