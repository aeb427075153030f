//! Questions on a connection of HTTP/2: streams that a program answers.
//!
//! The rule: **one question is with the program at a time, and the others wait for their turn, the oldest first.** It is over with one when it has replied, or has admitted the body:
//! while bodies come, others are asked, and each body is handed over in its turn. Frames are looked at all the while; only what a client sends on a stream whose sender is not
//! admitted yet stays where it is, and all that follows it, until that is decided.
//!
//! Invariants:
//! - Not a byte of a body is taken before its sender is admitted, and never more than was.
//! - Questions that wait take no more than [`WAITING_BYTES_MAX`] of memory, nor more than the
//!   client's share; one more is answered by 503.
//! - Nothing is asked while more than [`UNSENT_BYTES_MAX`] of replies are not sent. A body that comes while its stream waits for that is refused with its stream: what opens the
//!   windows may lie behind it.
//! - The program's word goes to who has asked, or to nobody: a stream that was reset is over, and its question is not with anybody else.

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

/// Bytes of memory for questions without an answer.
pub(crate) const WAITING_BYTES_MAX: usize = 64 * 1024;

/// Bytes of replies that are not sent, above which nothing is asked.
pub(crate) const UNSENT_BYTES_MAX: usize = 4 << 20;

impl StreamList {
    /// Asks what has waited longest, or hands over its body, if nothing else is with the program.
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

    /// The program has said something to what it was asked: who has asked, if he still waits.
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

    /// The program has answered: see [`crate::two::Http2Session::replied`].
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

    /// The program wants the body: see [`crate::two::Http2Session::admitted`].
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

    /// The program has taken a piece of the body with this number. False: the body is gone.
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

    /// A frame of a body begins whose sender was admitted: when enough has come, more may.
    pub(in crate::two) fn upload_comes(&mut self, id: u32, frame_bytes: u32) {
        let Some(stream) = self.get_mut(id) else { return };
        let stream::Expect::Upload(inquiry) = &mut stream.expect else { return };
        if inquiry.frame_comes(frame_bytes) {
            self.has_brought = true;
            self.has_untold = true;
        }
    }

    /// Opens the windows of bodies that are wanted. True: the client knows of all of them.
    pub(in crate::two) fn open_windows(&mut self, line: &Line, actions: &mut impl Actions) -> bool {
        if self.has_untold {
            self.open_all_windows(line, actions);
        }
        !self.has_untold
    }

    /// Lets clients send more of the bodies that are wanted. There is room to say so, but perhaps not to all.
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

    /// The body of a request has ended, or is too long to be waited for.
    ///
    /// Errors: it is not as long as it was said to be, too often.
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

    /// There is more of a body than was admitted.
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

    /// A frame with a part of a body has ended whose sender was admitted.
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
