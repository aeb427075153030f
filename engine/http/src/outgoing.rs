//! The part of a response that is not queued yet.
//!
//! Implements: RFC 9110 section 14.6 (`multipart/byteranges`).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::open_reply::{OpenReply, ReplyEnd, ReplyPace};
use crate::outlet::Outlet;
use crate::ranges::Parts;
use crate::site::Resource;

/// The rest of a response's body.
#[derive(Debug)]
pub(crate) enum OutgoingBody {
    Nothing,
    /// Static bytes, such as a file.
    Bytes(&'static [u8]),
    /// Several parts of a file, each with its own head.
    Parts(Box<PartsLeft>),
    /// Bytes from a handler.
    Own(Box<OwnLeft>),
    /// An open reply, which the handler continues.
    Open(Box<OpenLeft>),
}

/// If the handler sets the pace of a reply, at most this many bytes wait for the client. If the
/// client leaves more bytes untaken, the reply ends.
pub(crate) const UNTAKEN_BYTES_MAX: usize = 4096;

/// The unsent part of an open reply. It is usually empty, and an empty part owns no buffer.
#[derive(Debug)]
pub(crate) struct OpenLeft {
    open: OpenReply,
    own: OwnLeft,
    over: Option<ReplyEnd>,
    /// Whether the handler was asked for more bytes and has not added any since.
    is_asked: bool,
    /// Whether the body is framed in chunks.
    in_chunks: bool,
    /// The number of bytes that the handler has not added yet, if the length of the body is known.
    left: Option<u64>,
}

/// Bytes from a handler, of which the first `sent` were sent.
#[derive(Debug)]
pub(crate) struct OwnLeft {
    bytes: Vec<u8>,
    sent: usize,
}

/// Several parts of a file, of which some were sent.
#[derive(Debug)]
pub(crate) struct PartsLeft {
    resource: Resource,
    whole: &'static [u8],
    parts: Parts,
    /// The number of parts with a queued head.
    begun: usize,
    /// The unsent bytes of the last part with a queued head.
    bytes: &'static [u8],
    ended: bool,
}

impl OutgoingBody {
    /// Whether no bytes are left to send.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, OutgoingBody::Nothing | OutgoingBody::Bytes([]))
    }

    /// A body of bytes from a handler.
    pub(crate) fn own(bytes: Vec<u8>) -> OutgoingBody {
        if bytes.is_empty() {
            OutgoingBody::Nothing
        } else {
            OutgoingBody::Own(Box::new(OwnLeft { bytes, sent: 0 }))
        }
    }

    /// An open reply that begins with `bytes`.
    pub(crate) fn open(open: OpenReply, bytes: Vec<u8>) -> OutgoingBody {
        let length = if let ReplyPace::Client { length } = open.pace { length } else { None };
        let left = length.map(|length| length.saturating_sub(bytes.len() as u64));
        let own = OwnLeft { bytes, sent: 0 };
        OutgoingBody::Open(Box::new(OpenLeft {
            open,
            own,
            over: None,
            is_asked: false,
            in_chunks: false,
            left,
        }))
    }

    /// Frames the body in chunks from now on, including its first bytes (RFC 9112 section 7.1).
    pub(crate) fn begin_chunks(&mut self) {
        if let OutgoingBody::Open(left) = self {
            let first = core::mem::take(&mut left.own.bytes);
            left.in_chunks = true;
            left.say(&first);
        }
    }

    /// The size of the handler's bytes that the body holds until they are sent.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            OutgoingBody::Own(own) => own.bytes.len(),
            OutgoingBody::Open(left) => left.own.bytes.len(),
            OutgoingBody::Nothing | OutgoingBody::Bytes(_) | OutgoingBody::Parts(_) => 0,
        }
    }

    /// The memory of the body without [`OutgoingBody::own_bytes`], in bytes.
    pub(crate) fn kept_bytes(&self) -> usize {
        match self {
            OutgoingBody::Nothing | OutgoingBody::Bytes(_) => 0,
            OutgoingBody::Parts(_) => size_of::<PartsLeft>(),
            OutgoingBody::Own(_) => size_of::<OwnLeft>(),
            OutgoingBody::Open(_) => size_of::<OpenLeft>(),
        }
    }

    /// The open reply to which the body belongs.
    pub(crate) fn open_reply(&self) -> Option<OpenReply> {
        if let OutgoingBody::Open(left) = self { Some(left.open) } else { None }
    }

    /// Whether the body is an open reply, all its bytes were sent, and the handler may add more.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, OutgoingBody::Open(left) if left.own.bytes.is_empty() && left.over.is_none())
    }

    /// Returns the number of the open reply if its handler must now be asked for more bytes.
    /// Records that the handler was asked, so that it is asked once.
    pub(crate) fn ask(&mut self) -> Option<u64> {
        let is_silent = self.is_silent();
        let OutgoingBody::Open(left) = self else { return None };
        let is_due = is_silent && left.open.is_paced_by_client() && !left.is_asked;
        left.is_asked |= is_due;
        is_due.then_some(left.open.number)
    }

    /// Adds bytes from the handler. If the handler sets the pace and the client leaves too many
    /// bytes untaken, the reply ends.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let OutgoingBody::Open(left) = self else { return };
        if left.over.is_some() {
            return;
        }
        if left.open.is_paced_by_client() {
            left.is_asked = false;
            left.say(bytes);
        } else if left.own.bytes.len() + bytes.len() > UNTAKEN_BYTES_MAX {
            left.over = Some(ReplyEnd::Cut);
        } else {
            left.say(bytes);
        }
    }

    /// Ends an open reply: the handler adds no more bytes.
    pub(crate) fn end(&mut self, end: ReplyEnd) {
        if let OutgoingBody::Open(left) = self {
            left.end(end);
        }
    }

    /// Ends an open reply if the handler sets its pace. If the client sets the pace, the reply is
    /// sent to its end.
    pub(crate) fn end_if_handler_paced(&mut self) {
        if self.open_reply().is_some_and(|open| !open.is_paced_by_client()) {
            self.end(ReplyEnd::Whole);
        }
    }

    /// Whether the reply has ended although a part of its body is missing.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, OutgoingBody::Open(left) if left.over == Some(ReplyEnd::Cut))
    }

    /// Queues `head`. If the body is static bytes, also queues as many of them as there is space
    /// for.
    pub(crate) fn send_behind(&mut self, head: &[u8], actions: &mut impl Outlet) {
        match self {
            OutgoingBody::Bytes(bytes) => {
                let count = actions.send_before(head, bytes);
                *bytes = bytes.get(count..).unwrap_or_default();
            }
            OutgoingBody::Nothing
            | OutgoingBody::Parts(_)
            | OutgoingBody::Own(_)
            | OutgoingBody::Open(_) => actions.send(head),
        }
    }

    /// Queues as much of the body as there is space for. Returns true if no part of it is left.
    pub(crate) fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        let done = match self {
            OutgoingBody::Nothing => true,
            OutgoingBody::Bytes(bytes) => send(bytes, actions),
            OutgoingBody::Parts(parts) => parts.send_on(actions),
            OutgoingBody::Own(own) => own.send_on(actions),
            OutgoingBody::Open(left) => left.send_on(actions),
        };
        if done {
            *self = OutgoingBody::Nothing;
        }
        done
    }
}

/// Queues as many of `bytes` as there is space for, and removes these from `bytes`. Returns true if
/// `bytes` is then empty.
fn send(bytes: &mut &'static [u8], actions: &mut impl Outlet) -> bool {
    if !bytes.is_empty() {
        let count = actions.send_static(bytes);
        *bytes = bytes.get(count..).unwrap_or_default();
    }
    bytes.is_empty()
}

impl OwnLeft {
    fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        let count = rest.len().min(actions.send_room());
        if count > 0 {
            actions.send(rest.get(..count).unwrap_or_default());
        }
        self.sent += count;
        count == rest.len()
    }
}

impl OpenLeft {
    /// Adds bytes from the handler, up to the announced length of the body.
    fn say(&mut self, bytes: &[u8]) {
        let most = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = bytes.get(..most).unwrap_or(bytes);
        self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        match (self.in_chunks, bytes) {
            // An empty chunk would end the body.
            (_, []) => {}
            (false, bytes) => self.own.bytes.extend_from_slice(bytes),
            (true, bytes) => {
                self.own.bytes.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                self.own.bytes.extend_from_slice(bytes);
                self.own.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    fn end(&mut self, end: ReplyEnd) {
        if self.over.is_some() {
            return;
        }
        let is_whole = end == ReplyEnd::Whole && self.left.is_none_or(|left| left == 0);
        self.over = Some(if is_whole { ReplyEnd::Whole } else { ReplyEnd::Cut });
        if is_whole && self.in_chunks {
            self.own.bytes.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// Queues bytes, and frees the buffer when all of them are queued. Returns true if the reply is
    /// over.
    fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        let is_queued = self.own.send_on(actions);
        if is_queued {
            self.own = OwnLeft { bytes: Vec::new(), sent: 0 };
        }
        is_queued && self.over.is_some()
    }
}

impl PartsLeft {
    pub(crate) fn new(resource: Resource, whole: &'static [u8], parts: &Parts) -> PartsLeft {
        PartsLeft { resource, whole, parts: parts.clone(), begun: 0, bytes: &[], ended: false }
    }

    /// The boundary between the parts. It contains the entity tag, so that the file itself does not
    /// contain the boundary.
    pub(crate) fn boundary(resource: &Resource) -> String {
        format!("part-{}", resource.digits())
    }

    /// The length of the whole body in bytes, for parts of a representation with `whole` bytes.
    pub(crate) fn length(resource: &Resource, whole: u64, parts: &Parts) -> u64 {
        let heads = parts
            .iter()
            .map(|part| part_head(resource, part, whole).len() as u64 + part.end - part.start);
        heads.sum::<u64>() + end(resource).len() as u64
    }

    fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        while send(&mut self.bytes, actions) {
            if self.ended {
                return true;
            }
            let part = self.parts.get(self.begun);
            let text = match part {
                Some(part) => part_head(&self.resource, part, self.whole.len() as u64),
                None => end(&self.resource),
            };
            if actions.send_room() < text.len() {
                return false;
            }
            actions.send(text.as_bytes());
            match part {
                Some(part) => {
                    self.bytes =
                        self.whole.get(part.start as usize..part.end as usize).unwrap_or_default();
                    self.begun += 1;
                }
                None => self.ended = true,
            }
        }
        false
    }
}

fn part_head(resource: &Resource, part: &Range<u64>, whole: u64) -> String {
    let boundary = PartsLeft::boundary(resource);
    let (content_type, last) = (resource.content_type(), part.end.saturating_sub(1));
    format!(
        "\r\n--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: bytes {}-{last}/{whole}\r\n\r\n",
        part.start
    )
}

fn end(resource: &Resource) -> String {
    format!("\r\n--{}--\r\n", PartsLeft::boundary(resource))
}
