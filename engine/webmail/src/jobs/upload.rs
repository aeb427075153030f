//! A message form that comes in pieces: the text is kept in memory, and files are written to the
//! store as they come.
//!
//! The draft is begun with the first file and with the text that stood before it in the form.
//! Nothing shows the draft before it is complete. If fields after the files change the text, or
//! the message is to be sent, the draft is written once more with its files copied.
//!
//! Invariants:
//! - Nothing is kept of a form that breaks off, or that does not come from a page of its session.
//! - A form that cannot be kept is still read to its end. So its sender sees the reason and gets
//!   the text back.
//! - At most one piece of a file is in memory at a time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::{Reply, Status};
use message::compose::{AttachedFile, Composer};

use crate::context::JobContext;
use crate::form::{FileEvent, FormError, FormReader, MESSAGE_TEXT_BYTES_MAX};
use crate::login::{DRAFT_BYTES_MAX, login_page};
use crate::ticket::FormToken;
use crate::{Destination, answer};

use super::attachment_copy::AttachmentCopy;
use super::draft::Draft;
use super::write::{DraftAction, Stage, WriteJob};

/// The field of attached files.
const FILES: &str = "files";

/// A piece of a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadPiece {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is the last piece.
    pub is_last: bool,
}

/// A form that is being received.
#[derive(Debug)]
pub(super) struct MessageUpload {
    reader: FormReader,
    /// The token of the session's forms. `None`: the client has no session.
    token: Option<FormToken>,
    /// Parser events that are not written yet.
    events: VecDeque<FileEvent>,
    is_whole: bool,
    /// Why the form is invalid.
    error: Option<FormError>,
    /// Why its files cannot be kept.
    trouble: Option<String>,
    /// The text with which the draft was begun, and the writer of its files.
    begun: Option<(Draft, Composer)>,
    /// The names of the files.
    names: Vec<String>,
    /// Whether the parser is within a file.
    is_within_file: bool,
}

impl MessageUpload {
    pub(super) fn new(token: Option<FormToken>, reader: FormReader) -> MessageUpload {
        MessageUpload {
            reader,
            token,
            events: VecDeque::new(),
            is_whole: false,
            error: None,
            trouble: None,
            begun: None,
            names: Vec::new(),
            is_within_file: false,
        }
    }

    pub(super) fn piece_arrived(&mut self, piece: &UploadPiece) {
        self.is_whole = piece.is_last;
        if self.error.is_none() {
            let read = self.reader.bytes_arrived(&piece.bytes, &mut self.events);
            let read = read.and_then(|()| if piece.is_last { self.reader.ended() } else { Ok(()) });
            self.error = read.err();
        }
    }

    /// The session of the form has ended.
    pub(super) fn session_ended(&mut self) {
        self.token = None;
    }

    /// Its files cannot be kept.
    pub(super) fn fail(&mut self, why: String) {
        self.trouble = Some(why);
        self.begun = None;
    }

    /// Whether all pieces were processed and more may come.
    pub(super) fn wants_more(&self) -> bool {
        self.events.is_empty() && !self.is_whole
    }

    /// Whether a file begins, so that the draft must be begun first. Other events are dropped.
    pub(super) fn file_begins(&mut self) -> bool {
        while let Some(events) = self.events.pop_front() {
            if let FileEvent::Began(file) = &events
                && file.field == FILES
                && !file.name.is_empty()
            {
                if self.can_be_saved() {
                    self.events.push_front(events);
                    return true;
                }
                self.names.push(file.name.clone());
            }
        }
        false
    }

    fn can_be_saved(&self) -> bool {
        self.token.is_some() && self.trouble.is_none() && self.error.is_none()
    }

    /// The text so far.
    pub(super) fn draft(&self) -> Draft {
        Draft::of(self.reader.form())
    }

    /// The draft was begun with this text.
    pub(super) fn begin(&mut self, draft: Draft, composer: Composer) {
        self.begun = Some((draft, composer));
    }

    /// Writes the pending events. False: there were none.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let has_events = !self.events.is_empty();
        for events in core::mem::take(&mut self.events) {
            let Some((_, composer)) = &mut self.begun else { continue };
            match events {
                FileEvent::Began(file) => {
                    self.is_within_file = file.field == FILES && !file.name.is_empty();
                    if self.is_within_file {
                        composer.file_began(
                            &AttachedFile { name: &file.name, media_type: &file.media_type },
                            out,
                        );
                        self.names.push(file.name);
                    }
                }
                FileEvent::Bytes(bytes) if self.is_within_file => {
                    composer.bytes_arrived(&bytes, out)
                }
                FileEvent::Ended if self.is_within_file => composer.file_ended(out),
                FileEvent::Bytes(_) | FileEvent::Ended => {}
            }
        }
        has_events
    }

    /// What the complete form asks for.
    ///
    /// Errors: the reply, if nothing is to be done.
    fn requested_action(&self, host: &str) -> Result<(Draft, DraftAction), Reply> {
        let form = self.reader.form();
        let draft = Draft { has_lost_files: !self.names.is_empty(), ..self.draft() };
        match (self.error, &self.token) {
            (Some(FormError::TooLarge), _) => Err(answer::error_page(
                Status::ContentTooLarge,
                &format!(
                    "The text of a message can have at most {} KB. Go back to shorten it.",
                    MESSAGE_TEXT_BYTES_MAX / 1000
                ),
            )),
            (Some(_), _) => Err(answer::error_page(
                Status::BadRequest,
                "The server could not read this form. Go back, reload the page, and try again.",
            )),
            (None, None) => Err(login_with_draft(&draft, host)),
            (None, Some(token)) if !token.is(form.text("token").unwrap_or_default()) => {
                Err(answer::not_of_session())
            }
            (None, Some(_)) => {
                let action = match form.text("do").unwrap_or_default() {
                    "send" => DraftAction::Send,
                    "discard" => DraftAction::Discard,
                    _ => DraftAction::Save,
                };
                Ok((draft, action))
            }
        }
    }
}

/// The login page for a client without a session. It carries the client's message until after the
/// login.
fn login_with_draft(draft: &Draft, host: &str) -> Reply {
    let text = draft.to_text();
    let why = match draft.has_lost_files {
        _ if text.len() > 2 * DRAFT_BYTES_MAX => {
            return answer::error_page(
                Status::Forbidden,
                "Your session has ended, and your message is too long to be kept while you sign in. Sign in again in another window, then go back to your message.",
            );
        }
        false => "Your session has ended. Sign in to continue.",
        true => {
            "Your session has ended. Sign in to continue. Your attachments were not kept: attach them again."
        }
    };
    login_page(host, "", &Destination::default(), Some(why), &text)
}

impl WriteJob {
    /// All of the form has come: does what it asks for.
    pub(super) fn form_ended(
        &mut self,
        mut upload: Box<MessageUpload>,
        cx: &mut JobContext<'_, '_>,
    ) {
        let (draft, action) = match upload.requested_action(cx.host()) {
            Ok(route) => route,
            Err(reply) => {
                self.reply = Some(reply);
                self.stage = Stage::Over;
                return;
            }
        };
        if let Some(trouble) = upload.trouble.take() {
            self.draft = draft;
            return self.fail(trouble, cx);
        }
        let Some((begun, composer)) = upload.begun.filter(|_| action != DraftAction::Discard)
        else {
            cx.abort();
            self.begin_with(draft, action);
            return;
        };
        let is_done = action == DraftAction::Save && begun.has_same_fields(&draft);
        let mut copied = draft.carried.clone();
        copied.sort_unstable();
        copied.dedup_by_key(|(part, _)| *part);
        if draft.carries()
            && let Some(saved) = draft.draft
        {
            let parts = copied.iter().map(|(part, _)| usize::from(*part)).collect();
            self.attachment_copy = Some(Box::new(AttachmentCopy::new(saved, parts, composer)));
        } else {
            copied.clear();
            composer.message_ended(&mut self.message);
        }
        if !is_done {
            let names = upload.names.into_iter().chain(copied.into_iter().map(|(_, name)| name));
            let carried = (FIRST_FILE..).zip(names).collect();
            self.next = Some((Draft { carried, has_lost_files: false, ..draft.clone() }, action));
        }
        self.draft = draft;
    }

    /// The draft is saved with its files under this key. Does the rest of what the form asks for.
    pub(super) fn go_on_with_draft(&mut self, cx: &mut JobContext<'_, '_>) {
        let Some((draft, action)) = self.next.take() else { return };
        match self.saved.take() {
            Some(saved) => self.begin_with(Draft { draft: Some(saved), ..draft }, action),
            None => self.fail(
                "The draft no longer exists. It was moved or deleted in another window or program."
                    .to_string(),
                cx,
            ),
        }
    }
}

/// The index of the first file among the parts of a message. Part 0 is the message, and part 1 is
/// its text.
const FIRST_FILE: u16 = 2;
