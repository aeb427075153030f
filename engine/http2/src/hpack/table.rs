//! The dynamic table: RFC 7541 sections 2.3.2, 2.3.3 and 4.
//!
//! Invariants:
//! - The sum of the sizes of all entries, each with [`ENTRY_OVERHEAD`], never exceeds the limit
//!   that the peer has set. That limit never exceeds [`TABLE_BYTES_MAX`].
//! - One buffer stores names and values, in the order of their entries. The space before the oldest
//!   entry is reused.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::statics;

/// The largest table that a peer may make us keep, in bytes: the initial value of the protocol.
pub const TABLE_BYTES_MAX: usize = 4096;

/// Bytes that an entry counts in addition to its name and its value.
const ENTRY_OVERHEAD: usize = 32;

/// A name and its value.
pub(crate) type NameValue<'a> = (&'a [u8], &'a [u8]);

#[derive(Debug)]
pub(crate) struct Table {
    /// The oldest entry first.
    entries: VecDeque<TableEntry>,
    bytes: Vec<u8>,
    size: usize,
    limit: usize,
}

/// The offset of an entry in the buffer, and the lengths of its name and value. Each number is
/// below [`TABLE_BYTES_MAX`].
#[derive(Clone, Copy, Debug)]
struct TableEntry {
    start: u16,
    name: u16,
    value: u16,
}

impl TableEntry {
    fn length(self) -> usize {
        usize::from(self.name) + usize::from(self.value)
    }
}

impl Table {
    pub(crate) fn new() -> Table {
        Table { entries: VecDeque::new(), bytes: Vec::new(), size: 0, limit: TABLE_BYTES_MAX }
    }

    /// The field with this index, in the static or the dynamic table.
    pub(crate) fn get(&self, index: usize) -> Option<NameValue<'_>> {
        let index = index.checked_sub(1)?;
        if let Some(field) = statics::ENTRIES.get(index) {
            return Some(*field);
        }
        let age = index - statics::ENTRIES.len();
        let entry = *self.entries.get(self.entries.len().checked_sub(age + 1)?)?;
        let start = usize::from(entry.start);
        self.bytes.get(start..start + entry.length())?.split_at_checked(entry.name.into())
    }

    /// Sets the limit that the peer asks for. Returns false if it is above [`TABLE_BYTES_MAX`].
    pub(crate) fn set_limit(&mut self, limit: usize) -> bool {
        if limit > TABLE_BYTES_MAX {
            return false;
        }
        self.limit = limit;
        self.make_room(0);
        if self.bytes.capacity() > limit {
            self.move_to_front();
            self.bytes.shrink_to(limit);
            self.entries.shrink_to(limit / ENTRY_OVERHEAD);
        }
        true
    }

    /// Adds the newest entry. An entry larger than the limit only empties the table.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.make_room(size);
        if size > self.limit {
            return;
        }
        if self.bytes.len() + name.len() + value.len() > TABLE_BYTES_MAX {
            self.move_to_front();
        }
        let wanted = self.bytes.len() + name.len() + value.len();
        if wanted > self.bytes.capacity() {
            // Doubles the buffer, up to its maximum.
            let capacity = wanted.max(2 * self.bytes.capacity()).min(TABLE_BYTES_MAX);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        let entry = TableEntry {
            start: self.bytes.len() as u16,
            name: name.len() as u16,
            value: value.len() as u16,
        };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_back(entry);
        self.size += size;
    }

    /// Empties the table, since the peer has sent an entry larger than any limit (RFC 7541 section
    /// 4.4).
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.size = 0;
    }

    /// The memory of the table, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<TableEntry>()
    }

    fn make_room(&mut self, size: usize) {
        while self.size + size > self.limit
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.length() + ENTRY_OVERHEAD;
        }
    }

    fn move_to_front(&mut self) {
        let unused = self.entries.front().map_or(self.bytes.len() as u16, |oldest| oldest.start);
        self.bytes.drain(..usize::from(unused));
        self.entries.iter_mut().for_each(|entry| entry.start -= unused);
    }
}
