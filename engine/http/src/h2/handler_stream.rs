//! A request for a handler on a stream, with its body.

use alloc::boxed::Box;

use crate::handler_request::QueuedRequest;
use crate::session::STRIDE_BYTES;
use crate::upload::{ArrivingBody, BodyAdmission};

/// A request that the handler has not replied to yet.
#[derive(Debug)]
pub(super) struct HandlerStream {
    asked: Box<QueuedRequest>,
    /// The length of the body in bytes, if the client announced it.
    length: Option<u64>,
    /// The body, after its sender was admitted.
    upload: Option<ArrivingBody>,
    /// The number of bytes of the body that have arrived.
    came: u64,
    /// The number of received bytes for which the window of the stream was not opened again.
    unreported: u32,
}

impl HandlerStream {
    /// `length`: the length of the body in bytes, if the client announced it.
    pub(super) fn new(asked: Box<QueuedRequest>, length: Option<u64>) -> HandlerStream {
        HandlerStream { asked, length, upload: None, came: 0, unreported: 0 }
    }

    pub(super) fn asked(&self) -> &QueuedRequest {
        &self.asked
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// The number of bytes of the body that have arrived.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Records that the sender was admitted. `upload` takes the bytes of the body.
    pub(super) fn admit(&mut self, upload: ArrivingBody) {
        self.upload = Some(upload);
    }

    /// The body, while it is held.
    pub(super) fn upload_mut(&mut self) -> Option<&mut ArrivingBody> {
        self.upload.as_mut()
    }

    /// Takes the body out.
    pub(super) fn take_upload(&mut self) -> Option<ArrivingBody> {
        self.upload.take()
    }

    /// A frame of the body with this many bytes arrives. Returns whether a window update is due.
    pub(super) fn frame_comes(&mut self, bytes: u32) -> bool {
        self.unreported = self.unreported.saturating_add(bytes);
        self.unreported as usize >= STRIDE_BYTES
    }

    /// Records that a window update of this many bytes was sent.
    pub(super) fn reported(&mut self, bytes: u32) {
        self.unreported -= bytes;
    }

    /// The admission of a body, while it is held.
    pub(super) fn admitted(&self) -> Option<BodyAdmission> {
        self.upload.as_ref().map(ArrivingBody::admission)
    }

    /// Whether the handler holds a piece of the body.
    pub(super) fn is_with_handler(&self) -> bool {
        self.upload.as_ref().is_some_and(ArrivingBody::is_with_handler)
    }

    /// The number of bytes for which a window update is due. Bytes that wait for the handler do not
    /// count.
    pub(super) fn unreported(&self) -> u32 {
        let waiting = self.upload.as_ref().map_or(0, ArrivingBody::waiting_bytes);
        self.unreported.saturating_sub(waiting as u32)
    }

    /// The memory of the request in bytes, without the admitted memory of its body.
    pub(super) fn kept_bytes(&self) -> usize {
        size_of::<HandlerStream>() + self.asked.kept_bytes()
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.upload.as_ref().is_some_and(ArrivingBody::is_too_large)
    }

    /// Adds a part of the body.
    pub(super) fn keep(&mut self, part: &[u8]) {
        self.came += part.len() as u64;
        if let Some(upload) = &mut self.upload {
            upload.keep(part);
        }
    }
}
