//! What of a response is still to be queued.
//!
//! Answers to: RFC 9110 section 14.6 (several parts).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::open_reply::{End, Open, Pace};
use crate::outlet::Outlet;
use crate::ranges::Parts;
use crate::site::Resource;

/// The rest of a response's body.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Nothing,
    /// These bytes.
    Bytes(&'static [u8]),
    /// Parts of a file, each with a head of its own.
    Parts(Box<PartsLeft>),
    /// Bytes that are in no file.
    Own(Box<OwnLeft>),
    /// What a program says as long as it likes.
    Open(Box<OpenLeft>),
}

/// Bytes that a program may have said unasked and nobody taken; when there are more of them, it is over.
pub(crate) const UNSAID_BYTES_MAX: usize = 4096;

/// What of an open reply is not sent: mostly nothing, and then it owns no buffer.
#[derive(Debug)]
pub(crate) struct OpenLeft {
    open: Open,
    own: OwnLeft,
    over: Option<End>,
    /// Whether the program was asked for more and has not said it yet.
    is_asked: bool,
    /// Whether what is said is framed in chunks.
    in_chunks: bool,
    /// Bytes that are to come yet, if it is known how many.
    left: Option<u64>,
}

/// Bytes that are in no file, some of them sent.
#[derive(Debug)]
pub(crate) struct OwnLeft {
    bytes: Vec<u8>,
    sent: usize,
}

/// Several parts of a file, some of them sent.
#[derive(Debug)]
pub(crate) struct PartsLeft {
    resource: Resource,
    whole: &'static [u8],
    parts: Parts,
    /// Parts whose head is queued.
    begun: usize,
    /// What of the last of those is not.
    bytes: &'static [u8],
    ended: bool,
}

impl Outgoing {
    /// Whether there is nothing more to come.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Outgoing::Nothing | Outgoing::Bytes([]))
    }

    /// These bytes, which are in no file.
    pub(crate) fn own(bytes: Vec<u8>) -> Outgoing {
        if bytes.is_empty() {
            Outgoing::Nothing
        } else {
            Outgoing::Own(Box::new(OwnLeft { bytes, sent: 0 }))
        }
    }

    /// What a program says: these bytes first.
    pub(crate) fn open(open: Open, bytes: Vec<u8>) -> Outgoing {
        let length = if let Pace::Client { length } = open.pace { length } else { None };
        let left = length.map(|length| length.saturating_sub(bytes.len() as u64));
        let own = OwnLeft { bytes, sent: 0 };
        Outgoing::Open(Box::new(OpenLeft {
            open,
            own,
            over: None,
            is_asked: false,
            in_chunks: false,
            left,
        }))
    }

    /// What is said from now on, and what was said first, is framed in chunks (RFC 9112 section 7.1).
    pub(crate) fn begin_chunks(&mut self) {
        if let Outgoing::Open(left) = self {
            let first = core::mem::take(&mut left.own.bytes);
            left.in_chunks = true;
            left.say(&first);
        }
    }

    /// Bytes of memory that it holds until they are sent.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Outgoing::Own(own) => own.bytes.len(),
            Outgoing::Open(left) => left.own.bytes.len(),
            Outgoing::Nothing | Outgoing::Bytes(_) | Outgoing::Parts(_) => 0,
        }
    }

    /// Bytes of memory that it takes, but for those.
    pub(crate) fn kept_bytes(&self) -> usize {
        match self {
            Outgoing::Nothing | Outgoing::Bytes(_) => 0,
            Outgoing::Parts(_) => size_of::<PartsLeft>(),
            Outgoing::Own(_) => size_of::<OwnLeft>(),
            Outgoing::Open(_) => size_of::<OpenLeft>(),
        }
    }

    /// The open reply that it is of.
    pub(crate) fn open_reply(&self) -> Option<Open> {
        if let Outgoing::Open(left) = self { Some(left.open) } else { None }
    }

    /// Whether everything was said, and the program may say more.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Outgoing::Open(left) if left.own.bytes.is_empty() && left.over.is_none())
    }

    /// Whether the program is to be asked for more, and was not yet: from now on it is. Gives the number of the reply.
    pub(crate) fn ask(&mut self) -> Option<u64> {
        let is_silent = self.is_silent();
        let Outgoing::Open(left) = self else { return None };
        let is_due = is_silent && left.open.is_paced_by_client() && !left.is_asked;
        left.is_asked |= is_due;
        is_due.then_some(left.open.number)
    }

    /// The program says more. Who does not take what it says unasked has heard enough.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let Outgoing::Open(left) = self else { return };
        if left.over.is_some() {
            return;
        }
        if left.open.is_paced_by_client() {
            left.is_asked = false;
            left.say(bytes);
        } else if left.own.bytes.len() + bytes.len() > UNSAID_BYTES_MAX {
            left.over = Some(End::Cut);
        } else {
            left.say(bytes);
        }
    }

    /// The program says no more.
    pub(crate) fn end(&mut self, end: End) {
        if let Outgoing::Open(left) = self {
            left.end(end);
        }
    }

    /// The same, if the program has set the pace: what a client wants is said to its end.
    pub(crate) fn end_of_programs_pace(&mut self) {
        if self.open_reply().is_some_and(|open| !open.is_paced_by_client()) {
            self.end(End::Whole);
        }
    }

    /// Whether it ends before all was said.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Outgoing::Open(left) if left.over == Some(End::Cut))
    }

    /// Queues `head`, and behind it as much as there is room for of bytes that need no head of their own.
    pub(crate) fn send_behind(&mut self, head: &[u8], actions: &mut impl Outlet) {
        match self {
            Outgoing::Bytes(bytes) => {
                let count = actions.send_before(head, bytes);
                *bytes = bytes.get(count..).unwrap_or_default();
            }
            Outgoing::Nothing | Outgoing::Parts(_) | Outgoing::Own(_) | Outgoing::Open(_) => {
                actions.send(head)
            }
        }
    }

    /// Queues as much as there is room for; true when nothing is left.
    pub(crate) fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        let done = match self {
            Outgoing::Nothing => true,
            Outgoing::Bytes(bytes) => send(bytes, actions),
            Outgoing::Parts(parts) => parts.send_on(actions),
            Outgoing::Own(own) => own.send_on(actions),
            Outgoing::Open(left) => left.send_on(actions),
        };
        if done {
            *self = Outgoing::Nothing;
        }
        done
    }
}

/// Queues as many of `bytes` as there is room for, and leaves the others; true when none is left.
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
    /// Nothing is said beyond what was announced.
    fn say(&mut self, bytes: &[u8]) {
        let most = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = bytes.get(..most).unwrap_or(bytes);
        self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        match (self.in_chunks, bytes) {
            // An empty chunk would be the last one.
            (_, []) => {}
            (false, bytes) => self.own.bytes.extend_from_slice(bytes),
            (true, bytes) => {
                self.own.bytes.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                self.own.bytes.extend_from_slice(bytes);
                self.own.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    fn end(&mut self, end: End) {
        if self.over.is_some() {
            return;
        }
        let is_whole = end == End::Whole && self.left.is_none_or(|left| left == 0);
        self.over = Some(if is_whole { End::Whole } else { End::Cut });
        if is_whole && self.in_chunks {
            self.own.bytes.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// Bytes that were sent leave no buffer behind.
    fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        let is_said = self.own.send_on(actions);
        if is_said {
            self.own = OwnLeft { bytes: Vec::new(), sent: 0 };
        }
        is_said && self.over.is_some()
    }
}

impl PartsLeft {
    pub(crate) fn new(resource: Resource, whole: &'static [u8], parts: &Parts) -> PartsLeft {
        PartsLeft { resource, whole, parts: parts.clone(), begun: 0, bytes: &[], ended: false }
    }

    /// What stands between the parts. It has the file's tag in it, so that no file has it within.
    pub(crate) fn boundary(resource: &Resource) -> String {
        format!("part-{}", resource.digits())
    }

    /// Bytes of the whole body, of parts of a representation that is `whole` bytes long.
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
