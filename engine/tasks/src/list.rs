//! Doubly linked lists with all links in one array. An index is in at most one list. Adding
//! and removing an index are O(1).

use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct ListLink {
    previous: u32,
    next: u32,
}

/// The links of all indices below a capacity, shared by any number of [`List`]s.
#[derive(Debug)]
pub(crate) struct ListLinks {
    links: Vec<ListLink>,
}

/// One list. A list must always be used with the same [`ListLinks`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { first: NONE, last: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }

    pub(crate) fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }
}

impl ListLinks {
    pub(crate) const SLOT_BYTES: usize = size_of::<ListLink>();

    pub(crate) fn with_capacity(capacity: usize) -> ListLinks {
        ListLinks { links: vec![ListLink { previous: NONE, next: NONE }; capacity] }
    }

    /// Appends `index`, which is in no list, to `list`.
    pub(crate) fn push_back(&mut self, list: &mut List, index: u32) {
        let last = list.last;
        if let Some(link) = self.links.get_mut(index as usize) {
            *link = ListLink { previous: last, next: NONE };
        }
        match self.links.get_mut(last as usize) {
            Some(link) => link.next = index,
            None => list.first = index,
        }
        list.last = index;
    }

    /// Removes `index` from `list`, which contains it.
    pub(crate) fn remove(&mut self, list: &mut List, index: u32) {
        let Some(ListLink { previous, next }) = self.links.get(index as usize).copied() else {
            return;
        };
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => list.first = next,
        }
        match self.links.get_mut(next as usize) {
            Some(link) => link.previous = previous,
            None => list.last = previous,
        }
    }

    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let index = list.first()?;
        self.remove(list, index);
        Some(index)
    }
}
