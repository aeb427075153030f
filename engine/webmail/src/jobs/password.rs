//! Replaces an account's password, first in the store, and then on every core.
//!
//! Invariants:
//! - When the user reads that the password has changed, no core accepts the old password.
//! - The job replaces only the password that the client has proved to know. The configuration may
//!   replace that password before the job does. Then the job changes nothing.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use store::{AccountId, NewPassword, NoteChange, Refusal};

use crate::WebPage;
use crate::context::JobContext;
use crate::flash::FlashMessage;
use crate::step::{JobProgress, why};
use mail::PasswordMark;

/// The complaint about a change of a password that the account no longer has.
pub(crate) const ALREADY_CHANGED: &str = "Your password was already changed in another window.";

/// The stored form of a new password: its hash and its SCRAM verifier. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    /// The mark of the old password. The client has proved that it knows this password, and only
    /// this password is replaced.
    pub replaced: PasswordMark,
    /// The hash of the new password, as a PHC string.
    pub hash: String,
    /// The verifier of the new password for SCRAM-SHA-256.
    pub verifier: String,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secrets")
    }
}

/// A change in progress.
#[derive(Debug)]
pub(crate) struct PasswordJob {
    secrets: Secrets,
    /// The changes of persisted sessions. The session of the client stays, and the other sessions
    /// are removed.
    notes: Vec<NoteChange>,
    stage: Stage,
    refused: Option<Refusal>,
    /// Whether the client has proved a password that the account no longer has.
    is_outdated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The next step asks the store to replace the password.
    Wanted,
    /// The store has the password. The next step tells the other cores.
    Stored,
    /// All cores know the new password.
    Over,
}

impl PasswordJob {
    pub(super) fn new(secrets: Secrets, notes: Vec<NoteChange>) -> PasswordJob {
        PasswordJob { secrets, notes, stage: Stage::Wanted, refused: None, is_outdated: false }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if *under_way > 0 || self.refused.is_some() {
            return JobProgress::Waiting;
        }
        match self.stage {
            // Another change of the password is pending. Until it is durable, the account still has
            // the old password.
            Stage::Wanted if cx.store().is_password_pending(account) => return JobProgress::Yield,
            Stage::Wanted if !self.is_replaced_present(account, cx) => {
                self.is_outdated = true;
                self.stage = Stage::Over;
            }
            Stage::Wanted => match self.store(account, cx) {
                Ok(asked) => {
                    *under_way += asked;
                    self.stage = Stage::Stored;
                }
                Err(Refusal::Busy) => return JobProgress::Yield,
                Err(refusal) => self.refused = Some(refusal),
            },
            Stage::Stored => {
                *under_way += usize::from(cx.tell_password(account));
                self.stage = Stage::Over;
            }
            Stage::Over => {}
        }
        JobProgress::Waiting
    }

    /// Whether the account has the password that the client has proved to know.
    fn is_replaced_present(&self, account: AccountId, cx: &JobContext<'_, '_>) -> bool {
        let known = cx.store().account(account);
        known.is_none_or(|known| PasswordMark::of(known.password_hash()) == self.secrets.replaced)
    }

    /// Stores the password and the sessions, usually in one group of the journal. Returns the
    /// number of requests.
    fn store(&mut self, account: AccountId, cx: &mut JobContext<'_, '_>) -> Result<usize, Refusal> {
        let continuation = cx.continuation();
        let known = cx.store().account(account).ok_or(Refusal::NoSuchAccount)?;
        let own =
            if known.replaced().is_empty() { known.password_hash() } else { known.replaced() };
        let replaced = own.to_string();
        let new = NewPassword {
            hash: &self.secrets.hash,
            verifier: &self.secrets.verifier,
            replaced: &replaced,
        };
        cx.store_mut().set_password(account, &new, continuation)?;
        let noted =
            cx.store_mut().change_notes(account, core::mem::take(&mut self.notes), continuation);
        Ok(1 + usize::from(noted.is_ok()))
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        // If the note of a session could not be changed, the session ends. This does no harm.
        if !matches!(refusal, Refusal::NoSuchNote | Refusal::TooMany) {
            self.refused = Some(refusal);
        }
    }

    pub(super) fn done(&self) -> JobProgress {
        let flash = match self.refused {
            Some(refusal) => FlashMessage::failure(why(refusal)),
            None if self.is_outdated => FlashMessage::failure(ALREADY_CHANGED),
            None => {
                FlashMessage::success("Password changed. All your other sessions were signed out.")
            }
        };
        JobProgress::Redirect(WebPage::Settings.to_string(), flash)
    }
}
