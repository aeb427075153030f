//! What a session wants done: the trait [`Actions`] and the words that it uses.

use machine::Micros;

use crate::date::DATE_BYTES;
use crate::remembered::Remembered;
use crate::site::Site;

/// The session's hands. Each call is carried out or queued at once; none waits.
pub trait Actions {
    /// The site that is served.
    fn site(&self) -> &Site;

    /// What was answered before on connections like this one, from the same site.
    fn remembered(&mut self) -> &mut Remembered;

    /// How many bytes of responses can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a copy of `bytes`. A response is begun only while there is [`crate::RESPONSE_HEAD_BYTES_MAX`] of room.
    fn send(&mut self, bytes: &[u8]);

    /// Queues bytes that stay where they are, as many as there is room for, and returns how many that were.
    fn send_static(&mut self, bytes: &'static [u8]) -> usize;

    /// The time of day, as an `IMF-fixdate` (RFC 9110 section 5.6.7).
    fn date(&mut self) -> [u8; DATE_BYTES];

    /// A request has its answer: for an access log. If it has a body the answer is sent once that has come; should that be
    /// broken, or not come, another exchange without a method follows, and its answer is sent instead.
    fn answered<'a>(&mut self, exchange: impl FnOnce() -> Exchange<'a>);

    /// Calls [`crate::Session::deadline_expired`] after so long, instead of any deadline set before; `None`: never.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once everything queued is sent. The session is over.
    fn close(&mut self);
}

/// A request and its answer, in few words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange<'a> {
    /// The method, as the client wrote it; empty when the request could not be read.
    pub method: &'a str,
    /// The target, as the client wrote it: visible ASCII; empty when the request could not be read.
    pub target: &'a str,
    /// The response's status.
    pub status: u16,
    /// Bytes of the response's body.
    pub bytes: u64,
}
