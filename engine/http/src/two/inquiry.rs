//! A question that a stream has asked, and the body that comes with it.

use alloc::boxed::Box;

use crate::question::Asked;
use crate::session::STRIDE_BYTES;
use crate::upload::{Admission, Upload};

/// A question without an answer.
#[derive(Debug)]
pub(super) struct Inquiry {
    asked: Box<Asked>,
    /// How long its body is to be, if that was said.
    length: Option<u64>,
    /// What of the body has come, once its sender is admitted.
    upload: Option<Upload>,
    /// How many bytes that were.
    came: u64,
    /// Bytes of frames since the client was told that more may come.
    untold: u32,
}

impl Inquiry {
    /// `length`: how long its body is to be, if that is said.
    pub(super) fn new(asked: Box<Asked>, length: Option<u64>) -> Inquiry {
        Inquiry { asked, length, upload: None, came: 0, untold: 0 }
    }

    pub(super) fn asked(&self) -> &Asked {
        &self.asked
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Bytes of its body that have come.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Its sender is admitted: the body is to come here.
    pub(super) fn admit(&mut self, upload: Upload) {
        self.upload = Some(upload);
    }

    /// The body, as long as it is held.
    pub(super) fn upload_mut(&mut self) -> Option<&mut Upload> {
        self.upload.as_mut()
    }

    /// The body, which is here no more.
    pub(super) fn take_upload(&mut self) -> Option<Upload> {
        self.upload.take()
    }

    /// A frame of the body comes. True: so much has come that the client is to be told of more.
    pub(super) fn frame_comes(&mut self, bytes: u32) -> bool {
        self.untold = self.untold.saturating_add(bytes);
        self.untold as usize >= STRIDE_BYTES
    }

    /// The client is told that so many more bytes may come.
    pub(super) fn told(&mut self, bytes: u32) {
        self.untold -= bytes;
    }

    /// What was admitted of a body, as long as it is held.
    pub(super) fn admitted(&self) -> Option<Admission> {
        self.upload.as_ref().map(Upload::admission)
    }

    /// Whether a piece of its body is with the program.
    pub(super) fn is_with_program(&self) -> bool {
        self.upload.as_ref().is_some_and(Upload::is_with_program)
    }

    /// How many bytes more may come, as the client does not know yet: not those that nobody has taken.
    pub(super) fn untold(&self) -> u32 {
        let waiting = self.upload.as_ref().map_or(0, Upload::waiting_bytes);
        self.untold.saturating_sub(waiting as u32)
    }

    /// Bytes of memory that it takes, but for what was admitted.
    pub(super) fn kept_bytes(&self) -> usize {
        size_of::<Inquiry>() + self.asked.kept_bytes()
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.upload.as_ref().is_some_and(Upload::is_too_large)
    }

    /// A part of the body.
    pub(super) fn keep(&mut self, part: &[u8]) {
        self.came += part.len() as u64;
        if let Some(upload) = &mut self.upload {
            upload.keep(part);
        }
    }
}
