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
//!
//! What is remembered and asked for twice within a second lies ready from then on, head and file in one block, which all connections share. It is never changed while one of
//! them has it; whoever holds it for long keeps others from nothing but this.

use alloc::boxed::Box;
use alloc::sync::Arc;

use heapless::Vec;
use machine::{BLOCK_BYTES, Block, Piece};

use crate::date::DATE_BYTES;
use crate::site::Representation;
use crate::types::After;

/// How many requests are remembered.
const PLACES: usize = 1 << PLACES_LOG2;
const PLACES_LOG2: u32 = 6;

/// The longest head that is remembered, in bytes.
const HEAD_BYTES_MAX: usize = 512;

/// Bytes of a response beside the file and what is said of it, at most.
const HEAD_BYTES: usize = 128;

/// Bytes at its start by which a head finds its place. No whole head of HTTP/1.1 is much shorter.
const TELLING_BYTES: usize = 32;

/// The requests that a core remembers.
pub struct Remembered(Box<[Place]>);

struct Place {
    head: Vec<u8, HEAD_BYTES_MAX>,
    page: Option<Page>,
    ready: Ready,
}

/// Names the place of a request.
#[derive(Clone, Copy)]
pub(crate) struct PlaceNumber(usize);

/// A response as it is sent.
#[derive(Default)]
struct Ready {
    /// When it was last asked for.
    date: [u8; DATE_BYTES],
    /// Bytes of the response of that time, in the first block; none: it does not lie ready.
    length: Option<u32>,
    /// By turns, since the last one may still be on its way.
    blocks: [Option<Arc<Block>>; 2],
}

/// The answer to a request that is remembered: a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    pub(crate) representation: Representation,
    /// Whether only its head is asked for.
    pub(crate) head_only: bool,
    pub(crate) after: After,
}

impl Page {
    /// Whether the whole response fits a block.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        let Representation { head, bytes, .. } = self.representation;
        !self.head_only && HEAD_BYTES + head.len() + bytes.len() <= BLOCK_BYTES
    }
}

impl Remembered {
    /// Nothing yet.
    pub fn nothing() -> Remembered {
        Remembered(
            (0..PLACES)
                .map(|_| Place { head: Vec::new(), page: None, ready: Ready::default() })
                .collect(),
        )
    }

    /// The head that `bytes` begin with and its answer, if it is remembered.
    #[inline]
    pub(crate) fn recall<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], Page, PlaceNumber)> {
        let number = place_of(bytes)?;
        let place = self.0.get(number)?;
        let head = bytes.get(..place.head.len()).filter(|head| *head == place.head.as_slice())?;
        Some((head, place.page?, PlaceNumber(number)))
    }

    /// The response at a place, if it lies ready as it is at this time.
    #[inline]
    pub(crate) fn ready(&self, number: PlaceNumber, date: &[u8; DATE_BYTES]) -> Option<Piece> {
        let Ready { date: asked, length, blocks: [block, _] } = &self.0.get(number.0)?.ready;
        let length = length.filter(|_| asked == date)?;
        Some(Piece::from_shared(block.clone()?, length))
    }

    /// A response is given at this time; whether it is worth having ready, since it was given before within the same second.
    pub(crate) fn is_given_again(&mut self, number: PlaceNumber, date: &[u8; DATE_BYTES]) -> bool {
        let Some(Place { ready, .. }) = self.0.get_mut(number.0) else { return false };
        let again = ready.date == *date;
        (ready.date, ready.length) = (*date, None);
        again
    }

    /// Has a response lie ready, `head` and then `bytes`; not if all that lay ready before is still on its way, or it is too long.
    pub(crate) fn make_ready(&mut self, number: PlaceNumber, head: &[u8], bytes: &[u8]) {
        let Some(Place { ready: Ready { length, blocks, .. }, .. }) = self.0.get_mut(number.0)
        else {
            return;
        };
        blocks.rotate_left(1);
        let [block, _] = blocks;
        let own = Arc::get_mut(block.get_or_insert_with(|| Arc::new([0; BLOCK_BYTES])));
        if let Some((first, rest)) = own.and_then(|own| own.split_at_mut_checked(head.len()))
            && let Some(second) = rest.get_mut(..bytes.len())
        {
            first.copy_from_slice(head);
            second.copy_from_slice(bytes);
            *length = Some((head.len() + bytes.len()) as u32);
        }
    }

    /// Remembers the answer to the head that is the first `length` of `bytes`, unless it is too long.
    pub(crate) fn keep(&mut self, bytes: &[u8], length: usize, page: Page) {
        let place = place_of(bytes).and_then(|place| self.0.get_mut(place));
        if let (Some(place), Some(head)) = (place, bytes.get(..length))
            && let Ok(head) = Vec::from_slice(head)
        {
            (place.head, place.page, place.ready.length) = (head, Some(page), None);
            place.ready.date = [0; DATE_BYTES];
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
