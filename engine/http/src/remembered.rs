//! Requests that were answered before: what is asked again with the very same bytes has the same answer, and is not read again.
//!
//! What the answer to a request without a body is depends on its head and on the site, which never changes while it is served. Who asks again on a kept
//! connection, and a crowd with one kind of browser, sends the same bytes each time: all of them are compared then, which costs less than reading them.
//!
//! Invariants:
//! - Only what was read gets in: a head that was whole and right, with no body behind it, whose answer is a whole file. So where a request ends is
//!   known here for the same reason as there.
//! - A place is found by a few bytes, an answer by all of them. Whoever asks so that others lose their places has them read as if this were not here.
//! - No head is kept with a secret in it: how long a comparison takes might tell of it.

use alloc::boxed::Box;

use heapless::Vec;

use crate::response::After;
use crate::site::Representation;

/// How many requests are remembered.
const PLACES: usize = 1 << PLACES_LOG2;
const PLACES_LOG2: u32 = 6;

/// The longest head that is remembered, in bytes.
const HEAD_BYTES_MAX: usize = 512;

/// Bytes at its start by which a head finds its place. No whole head of HTTP/1.1 is much shorter.
const TELLING_BYTES: usize = 32;

/// The requests that a core remembers.
pub struct Remembered(Box<[Place]>);

struct Place {
    head: Vec<u8, HEAD_BYTES_MAX>,
    page: Option<Page>,
}

/// The answer to a request that is remembered: a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    pub(crate) representation: Representation,
    /// Whether only its head is asked for.
    pub(crate) head_only: bool,
    pub(crate) after: After,
}

impl Remembered {
    /// Nothing yet.
    pub fn nothing() -> Remembered {
        Remembered((0..PLACES).map(|_| Place { head: Vec::new(), page: None }).collect())
    }

    /// The head that `bytes` begin with and its answer, if it is remembered.
    #[inline]
    pub(crate) fn recall<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], Page)> {
        let place = self.0.get(place_of(bytes)?)?;
        let head = bytes.get(..place.head.len()).filter(|head| *head == place.head.as_slice())?;
        Some((head, place.page?))
    }

    /// Remembers the answer to the head that is the first `length` of `bytes`, unless it is too long.
    pub(crate) fn keep(&mut self, bytes: &[u8], length: usize, page: Page) {
        let place = place_of(bytes).and_then(|place| self.0.get_mut(place));
        if let (Some(place), Some(head)) = (place, bytes.get(..length))
            && let Ok(head) = Vec::from_slice(head)
        {
            *place = Place { head, page: Some(page) };
        }
    }
}

/// Where the head is kept that `bytes` begin with: told by its first bytes, in which browsers do not differ, and by how many there are, in which they do.
#[inline]
fn place_of(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.first_chunk::<TELLING_BYTES>()?.as_chunks();
    let mixed = words.iter().fold(bytes.len() as u64, |mixed, word| {
        (mixed ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    Some((mixed >> (u64::BITS - PLACES_LOG2)) as usize)
}
