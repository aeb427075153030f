//! A letter whose form comes a piece at a time: its words are kept, and its files are written as they come.
//!
//! A letter is begun when its first file does, with the words that stood before that in the form, as a draft that nobody sees before it is complete. What the form says behind
//! its files counts no less: then the draft is written once more, with its files copied, as it is when it is sent.
//!
//! Invariants:
//! - Nothing of a form is kept that does not come to its end, or turns out not to be of a page of the session that it came to.
//! - What cannot be kept is read to its end all the same: so its sender sees why, and gets his words back.
//! - Of a file there is a piece here at a time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::{Reply, Status};
use message::compose::{Composer, File};

use crate::context::JobContext;
use crate::form::{FormError, Heard, LETTER_TEXT_BYTES_MAX, Reader};
use crate::login::{KEPT_BYTES_MAX, login_page};
use crate::ticket::FormToken;
use crate::{Destination, answer};

use super::attaching::Copying;
use super::draft::Draft;
use super::writing::{Stage, Then, Writing};

/// The field of the files that go along.
const FILES: &str = "files";

/// Part of a form that comes in pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Whether nothing follows.
    pub is_last: bool,
}

/// A form that comes.
#[derive(Debug)]
pub(super) struct Arriving {
    reader: Reader,
    /// What a form of its session carries. `None`: it comes from a stranger.
    token: Option<FormToken>,
    /// What was heard of files and is not written.
    heard: VecDeque<Heard>,
    is_whole: bool,
    /// Why it is no form.
    error: Option<FormError>,
    /// Why its files are not kept.
    trouble: Option<String>,
    /// With what words the letter was begun, and what writes its files.
    begun: Option<(Draft, Composer)>,
    /// What the files are called.
    names: Vec<String>,
    /// Whether what is heard is of one of these.
    is_within_file: bool,
}

impl Arriving {
    pub(super) fn new(token: Option<FormToken>, reader: Reader) -> Arriving {
        Arriving {
            reader,
            token,
            heard: VecDeque::new(),
            is_whole: false,
            error: None,
            trouble: None,
            begun: None,
            names: Vec::new(),
            is_within_file: false,
        }
    }

    pub(super) fn piece_arrived(&mut self, piece: &Piece) {
        self.is_whole = piece.is_last;
        if self.error.is_none() {
            let read = self.reader.bytes_arrived(&piece.bytes, &mut self.heard);
            let read = read.and_then(|()| if piece.is_last { self.reader.ended() } else { Ok(()) });
            self.error = read.err();
        }
    }

    /// The session is over to which it comes.
    pub(super) fn session_ended(&mut self) {
        self.token = None;
    }

    /// Its files are not kept.
    pub(super) fn fail(&mut self, why: String) {
        self.trouble = Some(why);
        self.begun = None;
    }

    /// Whether all that came was read, and there is more.
    pub(super) fn wants_more(&self) -> bool {
        self.heard.is_empty() && !self.is_whole
    }

    /// Whether a file begins, before which the letter has to. What else was heard is passed over.
    pub(super) fn file_begins(&mut self) -> bool {
        while let Some(heard) = self.heard.pop_front() {
            if let Heard::Began(file) = &heard
                && file.field == FILES
                && !file.name.is_empty()
            {
                if self.is_kept() {
                    self.heard.push_front(heard);
                    return true;
                }
                self.names.push(file.name.clone());
            }
        }
        false
    }

    fn is_kept(&self) -> bool {
        self.token.is_some() && self.trouble.is_none() && self.error.is_none()
    }

    /// What was said so far.
    pub(super) fn draft(&self) -> Draft {
        Draft::of(self.reader.form())
    }

    /// The letter has begun with these words.
    pub(super) fn begin(&mut self, draft: Draft, composer: Composer) {
        self.begun = Some((draft, composer));
    }

    /// Writes what was heard. False: there was nothing.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let has_heard = !self.heard.is_empty();
        for heard in core::mem::take(&mut self.heard) {
            let Some((_, composer)) = &mut self.begun else { continue };
            match heard {
                Heard::Began(file) => {
                    self.is_within_file = file.field == FILES && !file.name.is_empty();
                    if self.is_within_file {
                        composer.file_began(
                            &File { name: &file.name, media_type: &file.media_type },
                            out,
                        );
                        self.names.push(file.name);
                    }
                }
                Heard::Bytes(bytes) if self.is_within_file => composer.bytes_arrived(&bytes, out),
                Heard::Ended if self.is_within_file => composer.file_ended(out),
                Heard::Bytes(_) | Heard::Ended => {}
            }
        }
        has_heard
    }

    /// What is to be done with it, now that all of it is here.
    ///
    /// Errors: what is answered if nothing is.
    fn wish(&self, host: &str) -> Result<(Draft, Then), Reply> {
        let form = self.reader.form();
        let draft = Draft { has_lost_files: !self.names.is_empty(), ..self.draft() };
        match (self.error, &self.token) {
            (Some(FormError::TooLarge), _) => Err(answer::told(
                Status::ContentTooLarge,
                &format!(
                    "The text of a letter has {} KB at most. Go back: it is still there.",
                    LETTER_TEXT_BYTES_MAX / 1000
                ),
            )),
            (Some(_), _) => Err(answer::told(Status::BadRequest, "This form is not understood.")),
            (None, None) => Err(answer_to_stranger(&draft, host)),
            (None, Some(token)) if !token.is(form.text("token").unwrap_or_default()) => {
                Err(answer::not_of_session())
            }
            (None, Some(_)) => {
                let then = match form.text("do").unwrap_or_default() {
                    "send" => Then::Send,
                    "discard" => Then::Drop,
                    _ => Then::Keep,
                };
                Ok((draft, then))
            }
        }
    }
}

/// He has to log in first. The letter that he was writing waits for him there.
fn answer_to_stranger(draft: &Draft, host: &str) -> Reply {
    let kept = draft.kept();
    let why = match draft.has_lost_files {
        _ if kept.len() > 2 * KEPT_BYTES_MAX => {
            return answer::told(
                Status::Forbidden,
                "You were logged out meanwhile, and your letter is too long to wait here. Log in in another window, then go back: your letter is still there.",
            );
        }
        false => {
            "You were logged out meanwhile. Your letter is kept: it comes back when you are logged in."
        }
        true => {
            "You were logged out meanwhile. Your letter is kept, but for its files: attach them again when you are logged in."
        }
    };
    login_page(host, "", &Destination::default(), Some(why), &kept)
}

impl Writing {
    /// All of its form has come: it is done what that says.
    pub(super) fn form_ended(&mut self, mut arriving: Box<Arriving>, cx: &mut JobContext<'_, '_>) {
        let (draft, then) = match arriving.wish(cx.host()) {
            Ok(wish) => wish,
            Err(reply) => {
                self.reply = Some(reply);
                self.stage = Stage::Over;
                return;
            }
        };
        if let Some(trouble) = arriving.trouble.take() {
            self.draft = draft;
            return self.fail(trouble, cx);
        }
        let Some((begun, composer)) = arriving.begun.filter(|_| then != Then::Drop) else {
            cx.abort();
            self.begin_with(draft, then);
            return;
        };
        let is_done = then == Then::Keep && begun.says_the_same(&draft);
        let mut copied = draft.carried.clone();
        copied.sort_unstable();
        copied.dedup_by_key(|(part, _)| *part);
        if draft.carries()
            && let Some(kept) = draft.draft
        {
            let parts = copied.iter().map(|(part, _)| usize::from(*part)).collect();
            self.copying = Some(Box::new(Copying::new(kept, parts, composer)));
        } else {
            copied.clear();
            composer.message_ended(&mut self.message);
        }
        if !is_done {
            let names = arriving.names.into_iter().chain(copied.into_iter().map(|(_, name)| name));
            let carried = (FIRST_FILE..).zip(names).collect();
            self.next = Some((Draft { carried, has_lost_files: false, ..draft.clone() }, then));
        }
        self.draft = draft;
    }

    /// The draft is kept with its files, under this key, and what was wanted of it can be done.
    pub(super) fn go_on_with_draft(&mut self, cx: &mut JobContext<'_, '_>) {
        let Some((draft, then)) = self.next.take() else { return };
        match self.kept.take() {
            Some(kept) => self.begin_with(Draft { draft: Some(kept), ..draft }, then),
            None => self.fail(
                "It is not there any more: another window or program has moved or removed it."
                    .to_string(),
                cx,
            ),
        }
    }
}

/// The first file of a letter, among its parts: before it come the letter itself and its text.
const FIRST_FILE: u16 = 2;
