//! The shares of the cores in the index limit.
//!
//! The memory for the index belongs to the machine, and the accounts of one core may need most of
//! it. So the disk owner lends parts of the limit to the clients, as it lends segments. A client
//! requests more before it needs it, and returns what it does not use.
//!
//! Invariants:
//! - The limits of all cores together never exceed the limit of the machine, unless the index was
//!   larger than that when the disk was opened.
//! - A client has at most one request in progress.

use crate::capacity::{ClientUses, CoreUse};
use crate::index::RESIDENT_BYTES_PER_MESSAGE;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use machine::CoreId;

/// A client keeps 1/`AHEAD_PART` of the even share of a core ready for new messages.
const AHEAD_PART: u64 = 32;

/// The role of a store in sharing the index limit.
#[derive(Debug)]
pub(crate) enum IndexShare {
    Lender(IndexLender),
    Borrower(IndexBorrower),
}

/// The state of the disk owner, which lends.
#[derive(Debug)]
pub(crate) struct IndexLender {
    /// The limit of the machine.
    total: u64,
    ahead: u64,
    /// The bytes lent to each client, in the order of the cores.
    lent: Vec<u64>,
    /// Clients that wait for bytes, and the number that they want.
    waiting: VecDeque<(CoreId, u64)>,
    uses: ClientUses,
}

/// The state of a client, which borrows.
#[derive(Debug)]
pub(crate) struct IndexBorrower {
    ahead: u64,
    is_asking: bool,
    told: CoreUse,
}

/// What a client asks of the disk owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IndexWish {
    Borrow(u64),
    GiveBack(u64),
}

/// The bytes that a client keeps ready. `even_bytes`: the limit of the machine divided by its
/// cores.
fn ahead_of(even_bytes: u64) -> u64 {
    (even_bytes / AHEAD_PART).max(RESIDENT_BYTES_PER_MESSAGE as u64)
}

impl IndexLender {
    /// `even_bytes`: the limit of the machine divided by its cores.
    pub(crate) fn new(even_bytes: u64, cores: u8) -> IndexLender {
        IndexLender {
            total: even_bytes.saturating_mul(u64::from(cores)),
            ahead: ahead_of(even_bytes),
            lent: (1..cores).map(|_| 0).collect(),
            waiting: VecDeque::new(),
            uses: ClientUses::new(cores),
        }
    }

    /// The limit of the machine.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The limit of the disk owner's own index.
    pub(crate) fn own_limit(&self) -> u64 {
        self.total.saturating_sub(self.lent.iter().sum())
    }

    /// Whether a client waits because nothing is left.
    #[cfg(test)]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn uses(&mut self) -> &mut ClientUses {
        &mut self.uses
    }

    /// The use of all cores together. `own`: the use of the disk owner.
    pub(crate) fn use_with(&self, own: CoreUse) -> CoreUse {
        self.uses.with(own)
    }

    /// The first limit of a client with an index of `resident` bytes. `left`: the bytes of the
    /// index that no client has taken yet.
    pub(crate) fn lend_first(&mut self, core: CoreId, resident: u64, left: u64) -> u64 {
        let spare = self.own_limit().saturating_sub(left.saturating_add(resident));
        let bytes = resident + (2 * self.ahead).min(spare);
        *self.lent_to(core) += bytes;
        bytes
    }

    /// Processes a client's request. Returns the bytes that the client gets now. With zero, the
    /// client waits. `own_resident`: the bytes of the disk owner's own index.
    pub(crate) fn requested(&mut self, core: CoreId, wanted: u64, own_resident: u64) -> u64 {
        let bytes = wanted.min(self.spare(own_resident));
        if bytes < RESIDENT_BYTES_PER_MESSAGE as u64 {
            self.waiting.push_back((core, wanted));
            return 0;
        }
        *self.lent_to(core) += bytes;
        bytes
    }

    /// Takes back bytes from a client.
    pub(crate) fn returned(&mut self, core: CoreId, bytes: u64) {
        *self.lent_to(core) -= bytes;
    }

    /// The next waiting client that gets bytes now, and their number.
    pub(crate) fn next_served(&mut self, own_resident: u64) -> Option<(CoreId, u64)> {
        if self.spare(own_resident) < self.ahead {
            return None;
        }
        let (core, wanted) = self.waiting.pop_front()?;
        Some((core, self.requested(core, wanted, own_resident)))
    }

    /// The bytes that the disk owner can lend.
    fn spare(&self, own_resident: u64) -> u64 {
        self.own_limit().saturating_sub(own_resident.saturating_add(self.ahead))
    }

    fn lent_to(&mut self, core: CoreId) -> &mut u64 {
        match core.index().checked_sub(1).and_then(|index| self.lent.get_mut(index)) {
            Some(lent) => lent,
            None => unreachable!("a client that the disk owner does not have"),
        }
    }
}

impl IndexBorrower {
    /// `even_bytes`: the limit of the machine divided by its cores.
    pub(crate) fn new(even_bytes: u64) -> IndexBorrower {
        IndexBorrower { ahead: ahead_of(even_bytes), is_asking: false, told: CoreUse::default() }
    }

    /// The wish of a client with this limit and an index of `resident` bytes.
    pub(crate) fn wish(&mut self, resident: u64, limit: u64) -> Option<IndexWish> {
        let (enough, ahead) = (resident.saturating_add(self.ahead), self.ahead);
        if enough > limit && !self.is_asking {
            self.is_asking = true;
            return Some(IndexWish::Borrow(enough + ahead - limit));
        }
        let surplus = limit.saturating_sub(enough + ahead);
        (surplus > ahead).then_some(IndexWish::GiveBack(surplus))
    }

    /// Processes the answer to a request. After an answer of zero bytes the request stays open.
    pub(crate) fn answered(&mut self, bytes: u64) {
        self.is_asking = bytes == 0;
    }

    /// The use to report, if it has changed enough.
    pub(crate) fn news(&mut self, own: CoreUse, disk_pages: u64) -> Option<CoreUse> {
        let differs = own.differs_from(self.told, disk_pages, self.ahead * AHEAD_PART);
        differs.then(|| {
            self.told = own;
            own
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::CoreId;

    const EVEN: u64 = 320_000;
    const AHEAD: u64 = EVEN / AHEAD_PART;

    #[test]
    fn lent_index_bytes_never_exceed_the_limit() {
        let mut lender = IndexLender::new(EVEN, 4);
        let mut limits = [1, 2, 3].map(|core| lender.lend_first(CoreId(core), 0, 0));
        assert_eq!(lender.own_limit() + limits.iter().sum::<u64>(), 4 * EVEN);
        loop {
            let bytes = lender.requested(CoreId(2), 2 * AHEAD, 0);
            limits[1] += bytes;
            assert_eq!(lender.own_limit() + limits.iter().sum::<u64>(), 4 * EVEN);
            if bytes == 0 {
                break;
            }
        }
        // The other clients keep two parts each, and the lender one.
        assert_eq!(limits[1], 4 * EVEN - 5 * AHEAD);
        assert!(lender.has_waiting() && lender.next_served(0).is_none());
        lender.returned(CoreId(1), 2 * AHEAD);
        assert_eq!(lender.next_served(0), Some((CoreId(2), 2 * AHEAD)));
        assert!(!lender.has_waiting());
    }

    #[test]
    fn index_bytes_are_requested_once_and_given_back() {
        let mut borrower = IndexBorrower::new(EVEN);
        let limit = 2 * AHEAD;
        assert_eq!(borrower.wish(AHEAD, limit), None);
        assert_eq!(borrower.wish(AHEAD + 1, limit), Some(IndexWish::Borrow(AHEAD + 1)));
        assert_eq!(borrower.wish(limit, limit), None);
        borrower.answered(0);
        assert_eq!(borrower.wish(limit, limit), None);
        borrower.answered(AHEAD + 1);
        assert_eq!(borrower.wish(0, 3 * AHEAD + 1), Some(IndexWish::GiveBack(AHEAD + 1)));
    }
}
