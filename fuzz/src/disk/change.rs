//! Changes to the image of a disk.

use arbitrary::Arbitrary;
use store::PAGE_BYTES;

use super::image::{Image, PAGES};

/// One change. Except for [`Change::Raw`], it affects a page that was in use in the valid image.
#[derive(Arbitrary, Clone, Debug)]
pub(super) enum Change {
    /// Damage: other bytes, with the old checksum.
    Rot { page: u16, at: u16, bytes: [u8; 4] },
    /// A lost write: the page has zeros.
    Lose { page: u16 },
    /// A misdirected write: the page has the bytes of another page.
    Misdirect { from: u16, to: u16 },
    /// Another value of a field, with a correct checksum. If the page is a block of a journal, both
    /// copies of the block change.
    Field { page: u16, at: Place, value: Value },
    /// Other records in a block of a journal, with a correct checksum.
    Records { page: u16, records: Vec<Record> },
    /// Other bytes at the start of any page.
    Raw { page: u8, bytes: Vec<u8> },
}

/// The position of a field in its page.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Place {
    /// In the first 96 bytes, at a multiple of two.
    Header(u8),
    /// At any byte.
    At(u16),
}

/// The new value of a field.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Value {
    Byte(u8),
    Short(u16),
    Word(u32),
    Long(u64),
    /// The old value of four bytes plus this number.
    Add(i8),
    /// Eight bytes of 255.
    Most,
}

/// A record of a journal (section 4 of `docs/format.md`).
#[derive(Arbitrary, Clone, Debug)]
pub(super) struct Record {
    kind: u8,
    fields: Vec<Field>,
    /// A length that differs from the length of the fields.
    wrong_length: Option<u16>,
}

#[derive(Arbitrary, Clone, Debug)]
enum Field {
    Byte(u8),
    Short(u16),
    Word(u32),
    Long(u64),
    /// A small number in four bytes.
    Small(u8),
    /// The number of a page that is in use.
    Page(u8),
    /// Eight bytes of the block's old content, from this position: often an id.
    Known(u16),
    Text(u8),
    /// Four bytes of 255.
    Most,
    Zeros(u8),
}

impl Change {
    /// Makes the change. `valid` is the image as the store made it.
    pub(super) fn apply(&self, image: &mut Image, valid: &Image) {
        match self {
            Change::Rot { page, at, bytes } => {
                let page = image.chosen(*page);
                let at = usize::from(*at) % (PAGE_BYTES - bytes.len());
                image.page_mut(page)[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Change::Lose { page } => {
                let page = image.chosen(*page);
                image.page_mut(page).fill(0);
            }
            Change::Misdirect { from, to } => {
                let bytes = valid.page(valid.chosen(*from)).to_vec();
                let to = image.chosen(*to);
                image.page_mut(to).copy_from_slice(&bytes);
            }
            Change::Field { page, at, value } => {
                let page = image.chosen(*page);
                for page in copies(image, page) {
                    put(image.page_mut(page), *at, *value);
                    image.to_renew.push(page);
                }
            }
            Change::Records { page, records } => replace_records(image, *page, records),
            Change::Raw { page, bytes } => {
                let page = usize::from(*page) % PAGES;
                let count = bytes.len().min(PAGE_BYTES);
                image.page_mut(page)[..count].copy_from_slice(&bytes[..count]);
            }
        }
    }
}

/// The page. If it is a block of a journal, also the page with the other copy of the block.
fn copies(image: &Image, page: usize) -> Vec<usize> {
    let other = if page.is_multiple_of(2) { page + 1 } else { page - 1 };
    let is_block = &image.page(page)[16..20] == b"JRNL";
    if is_block && image.page(other).get(..64) == image.page(page).get(..64) {
        vec![page, other]
    } else {
        vec![page]
    }
}

fn put(page: &mut [u8], at: Place, value: Value) {
    let at = match at {
        Place::Header(at) => usize::from(at) % 48 * 2,
        Place::At(at) => usize::from(at) % (PAGE_BYTES - 8),
    };
    let word = u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    match value {
        Value::Byte(byte) => page[at] = byte,
        Value::Short(short) => page[at..at + 2].copy_from_slice(&short.to_le_bytes()),
        Value::Word(word) => page[at..at + 4].copy_from_slice(&word.to_le_bytes()),
        Value::Long(long) => page[at..at + 8].copy_from_slice(&long.to_le_bytes()),
        Value::Add(more) => {
            page[at..at + 4]
                .copy_from_slice(&word.wrapping_add_signed(i32::from(more)).to_le_bytes());
        }
        Value::Most => page[at..at + 8].fill(0xff),
    }
}

fn replace_records(image: &mut Image, choice: u16, records: &[Record]) {
    let blocks: Vec<usize> =
        image.used.iter().copied().filter(|page| &image.page(*page)[16..20] == b"JRNL").collect();
    let Some(index) = usize::from(choice).checked_rem(blocks.len()) else { return };
    let page = blocks[index];
    let before = image.page(page)[64..].to_vec();
    let mut bytes = Vec::new();
    for record in records.iter().take(40) {
        record.write(&mut bytes, &before, image);
    }
    bytes.truncate(PAGE_BYTES - 64);
    for page in copies(image, page) {
        let block = image.page_mut(page);
        block[22..24].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
        block[64..64 + bytes.len()].copy_from_slice(&bytes);
        image.to_renew.push(page);
    }
}

impl Record {
    fn write(&self, bytes: &mut Vec<u8>, before: &[u8], image: &Image) {
        let mut fields = Vec::new();
        for field in self.fields.iter().take(60) {
            field.write(&mut fields, before, image);
        }
        let length = self.wrong_length.unwrap_or(fields.len() as u16);
        bytes.push(self.kind % 12);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&fields);
    }
}

impl Field {
    fn write(&self, bytes: &mut Vec<u8>, before: &[u8], image: &Image) {
        match self {
            Field::Byte(byte) => bytes.push(*byte),
            Field::Short(short) => bytes.extend_from_slice(&short.to_le_bytes()),
            Field::Word(word) => bytes.extend_from_slice(&word.to_le_bytes()),
            Field::Long(long) => bytes.extend_from_slice(&long.to_le_bytes()),
            Field::Small(small) => bytes.extend_from_slice(&u32::from(*small).to_le_bytes()),
            Field::Page(page) => {
                bytes.extend_from_slice(&(image.chosen(u16::from(*page)) as u32).to_le_bytes())
            }
            Field::Known(at) => {
                let at = usize::from(*at) % (before.len() - 8);
                bytes.extend_from_slice(&before[at..at + 8]);
            }
            Field::Text(count) => {
                bytes.extend_from_slice(&u16::from(*count).to_le_bytes());
                bytes.extend(std::iter::repeat_n(b'a', usize::from(*count)));
            }
            Field::Most => bytes.extend_from_slice(&[0xff; 4]),
            Field::Zeros(count) => bytes.extend(std::iter::repeat_n(0, usize::from(*count))),
        }
    }
}
