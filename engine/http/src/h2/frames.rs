//! Frames that do not carry heads of requests.
//!
//! Implements: RFC 9113 sections 4.2, 5.1, 6.1 and 6.3 to 6.9.

use http2::{
    ErrorCode, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameHead, FrameType, Setting, flags, settings,
};

use super::flood_budget::FrameCost;
use super::sending::{send_frame, widened};
use super::session::{Expect, H2Progress, Http2Session};
use super::stream::{self, ClientHalf};
use crate::actions::Actions;
use crate::session::HttpWaitsFor;

/// The maximum number of settings in one frame. Each costs work, and a normal client needs only a
/// few.
const SETTINGS_MAX: usize = 32;

/// The longest request body, in bytes, that the session awaits before it responds. It is half of
/// the bytes that a client may send on a stream without a window update.
pub(super) const BODY_BYTES_MAX: u64 = 32 * 1024;

impl Http2Session {
    /// The start of a frame has arrived, and perhaps the whole frame.
    pub(super) fn frame_arrived(
        &mut self,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> Result<H2Progress, ErrorCode> {
        let Some(head) = FrameHead::parse(bytes) else {
            return Ok(H2Progress::AndWait(HttpWaitsFor::Bytes));
        };
        let length = head.length as usize;
        if self.expect == Expect::Settings
            && (head.kind != FrameType::Settings || head.has(flags::ACK))
        {
            return Err(ErrorCode::ProtocolError);
        }
        if length > FRAME_BYTES_MAX {
            return Err(ErrorCode::FrameSizeError);
        }
        if self.is_of_undecided(&head) {
            return self.body_of_undecided(head.stream, actions);
        }
        match head.kind {
            FrameType::Headers => return self.head_arrived(&head, bytes, actions),
            FrameType::Data => return self.body_begins(&head, bytes, actions),
            FrameType::PushPromise | FrameType::Continuation => {
                return Err(ErrorCode::ProtocolError);
            }
            FrameType::Unknown(_) => {
                self.flood_budget.pay(FrameCost::Look)?;
                return Ok(self.pass_over(0, head.length));
            }
            FrameType::GoAway => {
                check_connection(&head)?;
                // The last stream and the reason in the frame are ignored, since the open streams
                // are completed in any case.
                self.is_ending = true;
                let is_long = length >= 8;
                return if is_long {
                    Ok(self.pass_over(0, head.length))
                } else {
                    Err(ErrorCode::FrameSizeError)
                };
            }
            FrameType::Priority
            | FrameType::ResetStream
            | FrameType::Settings
            | FrameType::Ping
            | FrameType::WindowUpdate => check_size(&head)?,
        }
        let Some(payload) = bytes.get(FRAME_HEAD_BYTES..FRAME_HEAD_BYTES + length) else {
            return Ok(H2Progress::AndWait(HttpWaitsFor::Bytes));
        };
        if matches!(head.kind, FrameType::Settings | FrameType::Ping)
            && !self.output.has_room(actions)
        {
            return Ok(H2Progress::AndWait(HttpWaitsFor::SendRoom));
        }
        match head.kind {
            FrameType::Settings => self.settings_arrived(&head, payload, actions)?,
            FrameType::Ping => self.ping_arrived(&head, payload, actions)?,
            FrameType::WindowUpdate => self.window_opened(&head, payload, actions)?,
            FrameType::ResetStream => self.stream_reset(&head, actions)?,
            _ => self.priority_arrived(&head, actions)?,
        }
        Ok(H2Progress::AndGoOn(FRAME_HEAD_BYTES + length))
    }

    /// Takes the head of a frame and `taken` bytes, and skips the next `left` bytes.
    fn pass_over(&mut self, taken: usize, left: u32) -> H2Progress {
        self.expect = if left == 0 { Expect::Frame } else { Expect::Rest(left) };
        H2Progress::AndGoOn(FRAME_HEAD_BYTES + taken)
    }

    fn settings_arrived(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        check_connection(head)?;
        if head.has(flags::ACK) {
            self.flood_budget.pay(FrameCost::Look)?;
            return if payload.is_empty() { Ok(()) } else { Err(ErrorCode::FrameSizeError) };
        }
        if self.expect == Expect::Frame {
            self.flood_budget.pay(FrameCost::Answer)?;
        }
        for setting in settings(payload)? {
            if let Setting::InitialWindow(window) = setting? {
                let by = self.output.set_initial_window(window);
                self.streams.widen(by)?;
            }
        }
        self.expect = Expect::Frame;
        send_frame(FrameType::Settings, flags::ACK, 0, &[], actions);
        Ok(())
    }

    fn ping_arrived(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        check_connection(head)?;
        if !head.has(flags::ACK) {
            self.flood_budget.pay(FrameCost::Answer)?;
            send_frame(FrameType::Ping, flags::ACK, 0, payload, actions);
            return Ok(());
        }
        self.flood_budget.pay(FrameCost::Nothing)
    }

    fn window_opened(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        self.flood_budget.pay(FrameCost::Look)?;
        let increment =
            payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes) & 0x7fff_ffff);
        if head.stream == 0 {
            return if increment == 0 {
                Err(ErrorCode::ProtocolError)
            } else {
                self.output.open_window(increment)
            };
        }
        self.check_begun(head.stream)?;
        let Some(stream) = self.streams.get_mut(head.stream) else { return Ok(()) };
        let code = match widened(stream.window, increment.into()) {
            Some(_) if increment == 0 => ErrorCode::ProtocolError,
            None => ErrorCode::FlowControlError,
            Some(window) => {
                stream.window = window;
                return Ok(());
            }
        };
        self.flood_budget.pay(FrameCost::Reset)?;
        self.reset(head.stream, code, actions)
    }

    fn stream_reset(
        &mut self,
        head: &FrameHead,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        self.check_begun(head.stream)?;
        self.flood_budget.pay(FrameCost::Reset)?;
        self.streams.remove(head.stream, actions);
        Ok(())
    }

    /// Priorities are obsolete and ignored, but a malformed frame is still an error.
    fn priority_arrived(
        &mut self,
        head: &FrameHead,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        self.flood_budget.pay(FrameCost::Look)?;
        match head.stream {
            0 => Err(ErrorCode::ProtocolError),
            _ if head.length == 5 => Ok(()),
            // A stream that was never opened cannot be reset.
            stream if self.check_begun(stream).is_err() => Err(ErrorCode::FrameSizeError),
            stream => {
                self.flood_budget.pay(FrameCost::Reset)?;
                self.reset(stream, ErrorCode::FrameSizeError, actions)
            }
        }
    }

    /// The head of a DATA frame has arrived.
    fn body_begins(
        &mut self,
        head: &FrameHead,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> Result<H2Progress, ErrorCode> {
        self.check_begun(head.stream)?;
        let (mut left, mut padding, mut taken) = (head.length, 0, 0);
        if head.has(flags::PADDED) {
            let Some(length) = bytes.get(FRAME_HEAD_BYTES) else {
                return if left == 0 {
                    Err(ErrorCode::FrameSizeError)
                } else {
                    Ok(H2Progress::AndWait(HttpWaitsFor::Bytes))
                };
            };
            padding = u32::from(*length);
            // The length of the frame includes the padding and the padding length.
            left = left.checked_sub(padding + 1).ok_or(ErrorCode::ProtocolError)?;
            taken = 1;
        }
        let is_last = head.has(flags::END_STREAM);
        if left == 0 && !is_last {
            self.flood_budget.pay(FrameCost::Nothing)?;
        }
        self.received = self.received.saturating_add(head.length);
        match self.streams.client_half(head.stream) {
            Some(ClientHalf::Open) => self.streams.upload_comes(head.stream, head.length),
            // `Undecided` cannot occur here, since `frame_arrived` stops such a frame earlier.
            Some(ClientHalf::Undecided | ClientHalf::Unread) => {
                return Ok(self.pass_over(taken, left + padding));
            }
            Some(ClientHalf::Closed) | None => {
                self.flood_budget.pay(FrameCost::Nothing)?;
                if !self.streams.was_reset(head.stream) {
                    self.flood_budget.pay(FrameCost::Reset)?;
                    self.reset(head.stream, ErrorCode::StreamClosed, actions)?;
                }
                return Ok(self.pass_over(taken, left + padding));
            }
        }
        self.expect = Expect::Body { stream: head.stream, bytes: left, padding, is_last };
        if left + padding == 0 {
            self.body_part_ended(head.stream, is_last, actions)?;
        }
        Ok(H2Progress::AndGoOn(FRAME_HEAD_BYTES + taken))
    }

    /// Bytes of a DATA frame have arrived: a part of a body, or the padding after it.
    pub(super) fn body_arrived(
        &mut self,
        arrived: &[u8],
        actions: &mut impl Actions,
    ) -> Result<H2Progress, ErrorCode> {
        let Expect::Body { stream, bytes, padding, is_last } = self.expect else {
            return Ok(H2Progress::AndGoOn(0));
        };
        let of_body = arrived.len().min(bytes as usize);
        let of_padding = (arrived.len() - of_body).min(padding as usize);
        let (left, padding) = (bytes - of_body as u32, padding - of_padding as u32);
        self.expect = Expect::Body { stream, bytes: left, padding, is_last };
        match self.streams.get_mut(stream).map(|stream| &mut stream.expect) {
            Some(stream::Expect::Body { came, .. }) => *came += of_body as u64,
            Some(stream::Expect::Upload(handler_stream)) => {
                handler_stream.keep(arrived.get(..of_body).unwrap_or_default())
            }
            _ => {}
        }
        if left == 0 && padding == 0 {
            self.body_part_ended(stream, is_last, actions)?;
        }
        Ok(H2Progress::AndGoOn(of_body + of_padding))
    }

    /// The end of a DATA frame has arrived.
    fn body_part_ended(
        &mut self,
        id: u32,
        is_last: bool,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        self.expect = Expect::Frame;
        let is_too_long = match self.streams.get_mut(id).map(|stream| &stream.expect) {
            Some(stream::Expect::Body { came, .. }) => *came > BODY_BYTES_MAX,
            Some(stream::Expect::Upload(_)) => {
                return self.streams.upload_part_ended(
                    id,
                    is_last,
                    &mut self.flood_budget,
                    actions,
                );
            }
            _ => return Ok(()),
        };
        if is_last || is_too_long {
            self.streams.body_ended(id, is_last, &mut self.flood_budget, actions)
        } else {
            Ok(())
        }
    }

    /// A frame has arrived for a stream with a body on which the handler has not decided yet. The
    /// frame waits. If too many bytes of replies are unsent, the stream is refused instead.
    ///
    /// Errors: too many such streams were refused.
    fn body_of_undecided(
        &mut self,
        id: u32,
        actions: &mut impl Actions,
    ) -> Result<H2Progress, ErrorCode> {
        if self.streams.is_asking() || !self.streams.has_too_much_unsent() {
            return Ok(H2Progress::AndWait(HttpWaitsFor::Us));
        }
        if !self.output.has_room(actions) {
            return Ok(H2Progress::AndWait(HttpWaitsFor::SendRoom));
        }
        self.flood_budget.pay(FrameCost::Reset)?;
        self.reset(id, ErrorCode::RefusedStream, actions)?;
        Ok(H2Progress::AndGoOn(0))
    }

    /// Whether the frame belongs to a stream with a body on which the handler has not decided.
    fn is_of_undecided(&self, head: &FrameHead) -> bool {
        matches!(head.kind, FrameType::Headers | FrameType::Data)
            && self.streams.client_half(head.stream) == Some(ClientHalf::Undecided)
    }

    /// Errors: the client has not opened this stream.
    fn check_begun(&self, stream: u32) -> Result<(), ErrorCode> {
        let is_begun = stream % 2 == 1 && stream <= self.last_stream;
        if is_begun { Ok(()) } else { Err(ErrorCode::ProtocolError) }
    }
}

/// Errors: the frame names a stream, but its kind belongs to the connection.
fn check_connection(head: &FrameHead) -> Result<(), ErrorCode> {
    if head.stream == 0 { Ok(()) } else { Err(ErrorCode::ProtocolError) }
}

/// Errors: the length is wrong for this kind of frame.
fn check_size(head: &FrameHead) -> Result<(), ErrorCode> {
    let length = head.length as usize;
    let is_right = match head.kind {
        FrameType::ResetStream | FrameType::WindowUpdate => length == 4,
        FrameType::Ping => length == 8,
        // A priority of a wrong size ends only its stream.
        FrameType::Priority => length <= 64,
        _ if length > SETTINGS_MAX * 6 => return Err(ErrorCode::EnhanceYourCalm),
        _ => length.is_multiple_of(6),
    };
    if is_right { Ok(()) } else { Err(ErrorCode::FrameSizeError) }
}
