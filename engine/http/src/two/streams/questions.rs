//! Requests for a handler on an HTTP/2 connection.
//!
//! The rule: **one request is with the handler at a time, and the others wait for their turn, the
//! oldest first.** The turn of a request ends when the handler has replied or has admitted the
//! body. While bodies arrive, other requests are passed to the handler, and each body is passed on
//! in its turn. Frames are read all the time, with one exception. If a client sends a body that the
//! handler has not decided on, that frame and all later ones stay unread until it decides.
//!
//! Invariants:
//! - No byte of a body is taken before its sender is admitted, and never more than was admitted.
//! - Requests that wait take at most [`WAITING_BYTES_MAX`] of memory, and at most the share of the
//!   client. One more gets a 503 response.
//! - No request is passed on while more than [`UNSENT_BYTES_MAX`] of replies are unsent. If a body
//!   arrives for a stream that waits for that, the stream is refused, since the frames that open
//!   the windows may come after the body.
//! - A reply goes to the stream that made the request, or is dropped. After a reset the stream is
//!   over, and its reply goes to no other stream.

use alloc::boxed::Box;

use http2::{ErrorCode, Kind};

use super::StreamList;
use crate::actions::Actions;
use crate::answer::Answer;
use crate::reply::Reply;
use crate::session::STRIDE_BYTES;
use crate::two::calm::{Calm, Price};
use crate::two::inquiry::Inquiry;
use crate::two::sending::{Line, send_frame};
use crate::two::stream::{self, Stream};
use crate::types::Announced;
use crate::upload::{Admission, Upload};

/// Bytes of memory for requests without a reply.
pub(crate) const WAITING_BYTES_MAX: usize = 64 * 1024;

/// Bytes of unsent replies above which no request is passed to the handler.
pub(crate) const UNSENT_BYTES_MAX: usize = 4 << 20;

impl StreamList {
    /// Passes the oldest waiting request, or its body, to the handler, if no other request is
    /// there.
    #[cold]
    #[inline(never)]
    pub(in crate::two) fn ask_next(&mut self, actions: &mut impl Actions) {
        if self.asking.is_some() || self.has_too_much_unsent() {
            return;
        }
        let may_ask = |stream: &Stream| matches!(&stream.expect, stream::Expect::Turn(inquiry) if !inquiry.is_with_program());
        let next = self.list.iter_mut().find(|stream| may_ask(stream));
        let Some(stream) = next else {
            self.has_questions = false;
            return;
        };
        let before =
            core::mem::replace(&mut stream.expect, stream::Expect::Reset(ErrorCode::NoError));
        let stream::Expect::Turn(mut inquiry) = before else { return };
        self.asking = Some(stream.id);
        match inquiry.take_upload() {
            None => {
                let announced = match inquiry.length() {
                    _ if !stream.is_unread => Announced::Nothing,
                    Some(length) => Announced::Bytes(length),
                    None => Announced::Something,
                };
                actions.asked(&inquiry.asked().question(announced));
            }
            Some(upload) => upload.end(inquiry.asked(), actions),
        }
        stream.expect = stream::Expect::Us(inquiry);
    }

    /// Bytes of replies that the session holds until the client has taken them.
    pub(in crate::two) fn held_bytes(&self) -> usize {
        self.list.iter().map(Stream::own_bytes).sum()
    }

    pub(in crate::two) fn has_too_much_unsent(&self) -> bool {
        self.held_bytes() > UNSENT_BYTES_MAX
    }

    /// The handler has replied. Returns the stream that made the request, if it still waits.
    fn take_asker(&mut self) -> Option<(&mut Stream, Box<Inquiry>)> {
        let id = self.asking.take()?;
        let stream = self.get_mut(id)?;
        match core::mem::replace(&mut stream.expect, stream::Expect::Reset(ErrorCode::NoError)) {
            stream::Expect::Us(inquiry) => Some((stream, inquiry)),
            other => {
                stream.expect = other;
                None
            }
        }
    }

    /// The handler has replied: see [`crate::two::Http2Session::replied`].
    pub(in crate::two) fn replied(&mut self, reply: Reply, actions: &mut impl Actions) {
        let number = reply.number();
        match self.take_asker() {
            Some((stream, inquiry)) => {
                stream.expect = stream::Expect::Room(Box::new(Answer::to_question(
                    inquiry.asked(),
                    reply,
                    actions,
                )));
            }
            None => number.into_iter().for_each(|number| actions.left(number)),
        }
    }

    /// The handler wants the body: see [`crate::two::Http2Session::admitted`].
    pub(in crate::two) fn admitted(&mut self, admission: Admission, actions: &mut impl Actions) {
        match self.take_asker() {
            None => admission.give_up(actions),
            Some((stream, mut inquiry)) => {
                let length = if stream.is_unread { inquiry.length() } else { None };
                let upload = Upload::begin(admission, length);
                if upload.is_too_large() {
                    let answer = admission.refuse(inquiry.asked(), actions);
                    stream.expect = stream::Expect::Room(Box::new(answer));
                } else {
                    inquiry.admit(upload);
                    let is_to_come = core::mem::take(&mut stream.is_unread);
                    stream.expect = if is_to_come {
                        stream::Expect::Upload(inquiry)
                    } else {
                        stream::Expect::Turn(inquiry)
                    };
                }
            }
        }
        self.has_questions = true;
    }

    /// The handler has taken a piece of the body with this number. Returns false if the body is
    /// gone.
    pub(in crate::two) fn piece_taken(&mut self, number: u64, actions: &mut impl Actions) -> bool {
        let inquiries = self.list.iter_mut().filter_map(Stream::inquiry_mut);
        let mut uploads = inquiries.filter_map(Inquiry::upload_mut);
        let Some(upload) = uploads.find(|upload| upload.admission().number == Some(number)) else {
            return false;
        };
        upload.piece_taken(number);
        upload.hand_over(actions);
        (self.has_questions, self.has_untold) = (true, true);
        true
    }

    /// A frame of an admitted body begins. If enough has arrived, a window update is due.
    pub(in crate::two) fn upload_comes(&mut self, id: u32, frame_bytes: u32) {
        let Some(stream) = self.get_mut(id) else { return };
        let stream::Expect::Upload(inquiry) = &mut stream.expect else { return };
        if inquiry.frame_comes(frame_bytes) {
            self.has_brought = true;
            self.has_untold = true;
        }
    }

    /// Opens the windows of bodies that are wanted. Returns true if all updates were sent.
    pub(in crate::two) fn open_windows(&mut self, line: &Line, actions: &mut impl Actions) -> bool {
        if self.has_untold {
            self.open_all_windows(line, actions);
        }
        !self.has_untold
    }

    /// Opens the windows of bodies that are wanted. There may be space for some of the updates
    /// only.
    #[cold]
    #[inline(never)]
    fn open_all_windows(&mut self, line: &Line, actions: &mut impl Actions) {
        for stream in &mut self.list {
            let stream::Expect::Upload(inquiry) = &mut stream.expect else { continue };
            let untold = inquiry.untold();
            if untold as usize >= STRIDE_BYTES {
                if !line.has_room(actions) {
                    return;
                }
                inquiry.told(untold);
                send_frame(Kind::WindowUpdate, 0, stream.id, &untold.to_be_bytes(), actions);
            }
        }
        self.has_untold = false;
    }

    /// The body of a request has ended, or is too long to wait for.
    ///
    /// Errors: too many bodies did not have their announced length.
    pub(in crate::two) fn body_ended(
        &mut self,
        id: u32,
        is_last: bool,
        calm: &mut Calm,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let Some(stream) = self.get_mut(id) else { return Ok(()) };
        let admitted = stream.admitted();
        if !stream.body_ended(is_last) {
            admitted.into_iter().for_each(|admission| admission.give_up(actions));
            return calm.pay(Price::Reset);
        }
        self.has_questions |= admitted.is_some();
        Ok(())
    }

    /// The body is larger than was admitted.
    #[cold]
    #[inline(never)]
    fn upload_is_too_large(&mut self, id: u32, is_last: bool, actions: &mut impl Actions) {
        let Some(stream) = self.get_mut(id) else { return };
        let stream::Expect::Upload(inquiry) = &mut stream.expect else { return };
        let Some(admission) = inquiry.admitted() else { return };
        let answer = admission.refuse(inquiry.asked(), actions);
        stream.expect = stream::Expect::Room(Box::new(answer));
        stream.is_unread = !is_last;
    }

    /// A frame with a part of an admitted body has ended.
    pub(in crate::two) fn upload_part_ended(
        &mut self,
        id: u32,
        is_last: bool,
        calm: &mut Calm,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let Some(inquiry) = self.get_mut(id).and_then(|stream| stream.inquiry_mut()) else {
            return Ok(());
        };
        match inquiry.is_too_large() {
            true => self.upload_is_too_large(id, is_last, actions),
            false if is_last => return self.body_ended(id, true, calm, actions),
            false => {
                inquiry.upload_mut().into_iter().for_each(|upload| upload.hand_over(actions));
                self.has_untold = true;
            }
        }
        Ok(())
    }
}
