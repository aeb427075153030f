//! A response cache: a request with the same bytes as an earlier one gets the same response, and
//! its head is not parsed again.
//!
//! The response to a request without a body depends on its head and on the site, which never
//! changes while it is served. A client that asks again on an open connection sends the same bytes
//! each time. Many clients with the same browser also send the same bytes. The cache compares all
//! of these bytes, which costs less than parsing them.
//!
//! Invariants:
//! - A request is cached only if its head was complete and correct, it had no body, and its
//!   response was a whole file. So the end of a cached request is known: the parser has found it.
//! - The first bytes of a head select a place in the cache, and all bytes are compared. A client
//!   can evict the entries of other clients, but then their requests are only parsed as usual.
//! - No head with credentials is cached, since the duration of a comparison might reveal the
//!   credentials.
//!
//! A response that is requested twice within a second is prepared from the second request on: its
//! head and its file are in one block, which all connections share. A block never changes while a
//! connection uses it. So each place in the cache has two blocks. While connections still use both,
//! no new response can be prepared at that place.

use alloc::boxed::Box;
use alloc::sync::Arc;

use heapless::Vec;
use machine::{BLOCK_BYTES, Block, Piece};

use crate::date::DATE_BYTES;
use crate::site::Representation;
use crate::types::After;

/// The number of requests that are cached.
const PLACES: usize = 1 << PLACES_LOG2;
const PLACES_LOG2: u32 = 6;

/// The longest head that is cached, in bytes.
const HEAD_BYTES_MAX: usize = 512;

/// The maximum number of bytes of a response head without the header fields of the file.
const COMMON_HEAD_BYTES_MAX: usize = 128;

/// The number of bytes at the start of a head that are hashed to select its place. A whole head of
/// HTTP/1.1 is rarely shorter.
const HASHED_BYTES: usize = 32;

/// The requests that one core caches.
pub struct ResponseCache(Box<[CacheSlot]>);

struct CacheSlot {
    head: Vec<u8, HEAD_BYTES_MAX>,
    page: Option<CachedFile>,
    ready: Ready,
}

/// The index of a request's place in the cache.
#[derive(Clone, Copy)]
pub(crate) struct PlaceNumber(usize);

/// A response in the form in which it is sent.
#[derive(Default)]
struct Ready {
    /// The date at which the response was last requested.
    date: [u8; DATE_BYTES],
    /// The length of the prepared response in the first block, in bytes. `None`: the response is
    /// not prepared for `date`.
    length: Option<u32>,
    /// Two blocks, used in turn, since the previous response may still be in flight.
    blocks: [Option<Arc<Block>>; 2],
}

/// The response to a cached request: a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CachedFile {
    pub(crate) representation: Representation,
    /// Whether the client wants only the head, without the body.
    pub(crate) head_only: bool,
    pub(crate) after: After,
}

impl CachedFile {
    /// Whether the whole response fits a block.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        let Representation { head, bytes, .. } = self.representation;
        !self.head_only && COMMON_HEAD_BYTES_MAX + head.len() + bytes.len() <= BLOCK_BYTES
    }
}

impl ResponseCache {
    /// An empty cache.
    pub fn empty() -> ResponseCache {
        ResponseCache(
            (0..PLACES)
                .map(|_| CacheSlot { head: Vec::new(), page: None, ready: Ready::default() })
                .collect(),
        )
    }

    /// The head at the start of `bytes`, its response and its place, if the head is cached.
    #[inline]
    pub(crate) fn recall<'a>(
        &self,
        bytes: &'a [u8],
    ) -> Option<(&'a [u8], CachedFile, PlaceNumber)> {
        let number = place_of(bytes)?;
        let place = self.0.get(number)?;
        let head = bytes.get(..place.head.len()).filter(|head| *head == place.head.as_slice())?;
        Some((head, place.page?, PlaceNumber(number)))
    }

    /// The prepared response at a place, if it was prepared for `date`.
    #[inline]
    pub(crate) fn ready(&self, number: PlaceNumber, date: &[u8; DATE_BYTES]) -> Option<Piece> {
        let Ready { date: asked, length, blocks: [block, _] } = &self.0.get(number.0)?.ready;
        let length = length.filter(|_| asked == date)?;
        Some(Piece::from_shared(block.clone()?, length))
    }

    /// Records that the response is sent at `date`. Returns whether to prepare the response,
    /// because it was already sent in the same second.
    pub(crate) fn record_use(&mut self, number: PlaceNumber, date: &[u8; DATE_BYTES]) -> bool {
        let Some(CacheSlot { ready, .. }) = self.0.get_mut(number.0) else { return false };
        let again = ready.date == *date;
        (ready.date, ready.length) = (*date, None);
        again
    }

    /// Prepares a response: `head` and then `bytes`. Does nothing if the next block is still in
    /// flight, or if the response is too long.
    pub(crate) fn make_ready(&mut self, number: PlaceNumber, head: &[u8], bytes: &[u8]) {
        let Some(CacheSlot { ready: Ready { length, blocks, .. }, .. }) = self.0.get_mut(number.0)
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

    /// Caches the response to the head in the first `length` bytes of `bytes`, unless the head is
    /// too long.
    pub(crate) fn keep(&mut self, bytes: &[u8], length: usize, page: CachedFile) {
        let place = place_of(bytes).and_then(|place| self.0.get_mut(place));
        if let (Some(place), Some(head)) = (place, bytes.get(..length))
            && let Ok(head) = Vec::from_slice(head)
        {
            (place.head, place.page, place.ready.length) = (head, Some(page), None);
            place.ready.date = [0; DATE_BYTES];
        }
    }
}

/// The place of the head at the start of `bytes`. It depends on the first bytes and on the number
/// of bytes. Browsers that request the same file send the same first bytes, but usually heads of
/// different lengths.
#[inline]
fn place_of(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.first_chunk::<HASHED_BYTES>()?.as_chunks();
    let mixed = words.iter().fold(bytes.len() as u64, |mixed, word| {
        (mixed ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    Some((mixed >> (u64::BITS - PLACES_LOG2)) as usize)
}
