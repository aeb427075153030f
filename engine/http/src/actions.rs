//! What a session wants done: the trait [`Actions`] and the words that it uses.

use alloc::vec::Vec;

use machine::Micros;

use crate::date::DATE_BYTES;
use crate::outlet::Outlet;
use crate::question::Question;
use crate::remembered::Remembered;
use crate::reply::Reply;
use crate::site::Site;
use crate::types::{Method, Secrecy};

/// The session's hands. Each call is carried out or queued at once; none waits.
pub trait Actions: Outlet {
    /// The site that is served.
    fn site(&self) -> &Site;

    /// What was answered before on connections like this one, from the same site.
    fn remembered(&mut self) -> &mut Remembered;

    /// The HTTPS policy of this connection.
    fn secrecy(&self) -> Secrecy;

    /// The name under which who asks for `host` in the clear finds us over TLS: never a stranger's. `host`: without its port, at most 255 bytes.
    fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str;

    /// How a program may be asked for `path`, which is decoded and has no segments `.` and `..`; none: the path is the site's.
    fn methods(&self, path: &[u8]) -> &'static [Method];

    /// Whether the session may make the server keep so many bytes, all that it keeps already
    /// counted in: see [`crate::Session::kept_bytes`].
    fn may_keep(&self, bytes: usize) -> bool;

    /// Something is asked that a program answers. It says so later, never from within the call: by [`crate::Session::replied`], or by
    /// [`crate::Session::admitted`] if the body is wanted first. The session asks nothing else before.
    fn asked(&mut self, question: &Question<'_>);

    /// The body is there whose sender was admitted, with the question once more, which [`crate::Session::replied`] is to answer, later.
    fn body_arrived(&mut self, question: &Question<'_>, body: Vec<u8>);

    /// A piece has come of the body that was admitted under this number, and another follows when [`crate::Session::piece_taken`] has said that this one is done with, later.
    fn piece_arrived(&mut self, number: u64, bytes: Vec<u8>);

    /// The last piece has come of that body, perhaps an empty one: [`crate::Session::replied`] is to answer its question, later.
    fn pieces_ended(&mut self, number: u64, bytes: Vec<u8>);

    /// There is more of the body of this question than the `bytes` that were admitted: what is answered, by 413.
    fn too_large(&mut self, question: &Question<'_>, bytes: u64) -> Reply;

    /// The session does not hold a body any more for which so much memory was admitted: it was handed over, or does not come. Told once for each that was admitted.
    fn released(&mut self, memory: usize);

    /// The client has taken what was said on the open reply with this number, of which it sets the pace, and there is room for more: the program is to go on with
    /// [`crate::Session::fed`], or to end it, later and never from within the call. Told once for each time that it is to go on.
    fn wanted(&mut self, number: u64);

    /// Nobody listens any more to the open reply with this number, which is told once for each that was given, whoever ended it; or the body that was admitted under it does not come.
    fn left(&mut self, number: u64);

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
