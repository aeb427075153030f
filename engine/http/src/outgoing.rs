//! What of a response is still to be queued.
//!
//! Answers to: RFC 9110 section 14.6 (several parts).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::actions::Outlet;
use crate::ranges::Parts;
use crate::reply::Open;
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

/// Bytes that a program may have said and nobody taken; when there are more of them, it is over.
pub(crate) const UNSAID_BYTES_MAX: usize = 4096;

/// What of an open reply is not sent: mostly nothing, and then it owns no buffer.
#[derive(Debug)]
pub(crate) struct OpenLeft {
    open: Open,
    own: OwnLeft,
    is_over: bool,
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
        if bytes.is_empty() { Outgoing::Nothing } else { Outgoing::Own(Box::new(OwnLeft { bytes, sent: 0 })) }
    }

    /// What a program says: these bytes first.
    pub(crate) fn open(open: Open, bytes: Vec<u8>) -> Outgoing {
        Outgoing::Open(Box::new(OpenLeft { open, own: OwnLeft { bytes, sent: 0 }, is_over: false }))
    }

    /// Bytes of memory that it holds until they are sent.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Outgoing::Own(own) => own.bytes.len(),
            Outgoing::Open(left) => left.own.bytes.len(),
            Outgoing::Nothing | Outgoing::Bytes(_) | Outgoing::Parts(_) => 0,
        }
    }

    /// The open reply that it is of.
    pub(crate) fn open_reply(&self) -> Option<Open> {
        if let Outgoing::Open(left) = self { Some(left.open) } else { None }
    }

    /// Whether everything was said, and the program may say more.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Outgoing::Open(left) if left.own.bytes.is_empty() && !left.is_over)
    }

    /// The program says more. Who does not take what it says has heard enough.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        if let Outgoing::Open(left) = self {
            left.is_over |= left.own.bytes.len() + bytes.len() > UNSAID_BYTES_MAX;
            if !left.is_over {
                left.own.bytes.extend_from_slice(bytes);
            }
        }
    }

    /// The program says no more.
    pub(crate) fn end(&mut self) {
        if let Outgoing::Open(left) = self {
            left.is_over = true;
        }
    }

    /// Queues `head`, and behind it as much as there is room for of bytes that need no head of their own.
    pub(crate) fn send_behind(&mut self, head: &[u8], actions: &mut impl Outlet) {
        match self {
            Outgoing::Bytes(bytes) => {
                let count = actions.send_before(head, bytes);
                *bytes = bytes.get(count..).unwrap_or_default();
            }
            Outgoing::Nothing | Outgoing::Parts(_) | Outgoing::Own(_) | Outgoing::Open(_) => actions.send(head),
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
    /// Bytes that were sent leave no buffer behind.
    fn send_on(&mut self, actions: &mut impl Outlet) -> bool {
        let is_said = self.own.send_on(actions);
        if is_said {
            self.own = OwnLeft { bytes: Vec::new(), sent: 0 };
        }
        is_said && self.is_over
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
        let heads = parts.iter().map(|part| part_head(resource, part, whole).len() as u64 + part.end - part.start);
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
                    self.bytes = self.whole.get(part.start as usize..part.end as usize).unwrap_or_default();
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
