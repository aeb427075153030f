//! A message form that arrives in pieces. The text is kept in memory, and files are written to the
//! store while they arrive.
//!
//! When the first file begins, the job begins a draft with the text fields that precede the file in
//! the form. The draft becomes visible only when it is complete. If fields after the files change
//! the text, or if the message is sent, the draft is written again, and its files are copied.
//!
//! Invariants:
//! - No part of a form is kept if the form is incomplete, or does not come from a page of its
//!   session.
//! - A form that cannot be kept is still read to its end. So the user sees the reason, and gets the
//!   text back.
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

/// The name of the field of attached files.
const FILES: &str = "files";

/// A piece of a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadPiece {
    /// The bytes of the piece.
    pub bytes: Vec<u8>,
    /// Whether this is the last piece.
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
    /// The reason why the form is invalid.
    error: Option<FormError>,
    /// The reason why the files cannot be kept, for the user.
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

    /// Records that the session of the form has ended.
    pub(super) fn session_ended(&mut self) {
        self.token = None;
    }

    /// Records that the files cannot be kept.
    pub(super) fn fail(&mut self, why: String) {
        self.trouble = Some(why);
        self.begun = None;
    }

    /// Whether all pieces were processed and more may arrive.
    pub(super) fn wants_more(&self) -> bool {
        self.events.is_empty() && !self.is_whole
    }

    /// Whether an event begins a file that can be saved, so that the draft must be begun first.
    /// Drops the events before that event, or all events if none does.
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

    /// The text that has arrived so far.
    pub(super) fn draft(&self) -> Draft {
        Draft::of(self.reader.form())
    }

    /// Records that the draft was begun with this text.
    pub(super) fn begin(&mut self, draft: Draft, composer: Composer) {
        self.begun = Some((draft, composer));
    }

    /// Writes the pending events. Returns false if there were none.
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

    /// The action that the complete form asks for.
    ///
    /// Errors: the reply, if no action follows.
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

/// The login page for a client without a session. The page keeps the client's message until after
/// the login.
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
    /// Begins the action that the complete form asks for.
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

    /// Continues with the action of the form, after the draft was saved with its files.
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
