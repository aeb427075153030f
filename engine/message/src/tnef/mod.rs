//! The files and the text in a `winmail.dat`, the container in which Outlook sends messages
//! (TNEF).
//!
//! A container is a sequence of attributes. The reader takes it in pieces, passes the content of
//! one file on, and keeps only names, sizes and the text.
//!
//! Invariants:
//! - The result does not depend on how the container is cut into pieces.
//! - Of an attribute at most [`VALUE_BYTES_MAX`] bytes are kept, and of a container at most
//!   [`TNEF_FILES_MAX`] files.
//! - Reading never fails: what follows a damaged attribute is left out. The work is linear in the
//!   bytes.
//!
//! Implements: MS-OXTNEF sections 2.1 and 2.2.

mod properties;

use alloc::string::String;
use alloc::vec::Vec;

use crate::charset;
use crate::shown::is_shown;
use properties::PropertyText;

/// The maximum number of files of a container that are read.
pub const TNEF_FILES_MAX: usize = 100;

/// The maximum number of bytes of an attribute that are kept, other than the content of a file.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of bytes of the name of a file.
const NAME_BYTES_MAX: usize = 255;

/// The first bytes of a container, and the number of bytes of the key after them.
const SIGNATURE: [u8; 4] = 0x223e_9f78_u32.to_le_bytes();
const KEY_BYTES: usize = 2;

/// The number of bytes before the value of an attribute: level, identifier and length.
const ATTRIBUTE_HEADER_BYTES: usize = 9;

/// The number of bytes after the value of an attribute.
const CHECKSUM_BYTES: usize = 2;

/// Identifiers of attributes, without their types.
const BODY: u16 = 0x800c;
const FILE_DATA: u16 = 0x800f;
const FILE_TITLE: u16 = 0x8010;
const FILE_BEGIN: u16 = 0x9002;
const MESSAGE_PROPERTIES: u16 = 0x9003;
const FILE_PROPERTIES: u16 = 0x9005;
const CODE_PAGE: u16 = 0x9007;

/// Identifiers of properties.
const PROPERTY_BODY: u16 = 0x1000;
const PROPERTY_LONG_NAME: u16 = 0x3707;

/// A file in a container.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TnefFile {
    /// The name without folders, and without characters that hide others or change their order. It
    /// is empty if the container has none.
    pub name: String,
    /// The size of the content in bytes. `None`: the container has no content of the file, since it
    /// is a message of Outlook.
    pub bytes: Option<u64>,
}

/// Reads a container.
#[derive(Debug, Default)]
pub struct TnefReader {
    /// The files so far.
    files: Vec<TnefFile>,
    /// The number of files so far, with those beyond the limit.
    file_count: usize,
    text: String,
    is_text_cut: bool,
    code_page: u32,
    expect: Expect,
    /// The bytes of the current element so far, as far as they are kept.
    held: Vec<u8>,
    /// Whether the current value has more bytes than are kept.
    is_value_long: bool,
}

/// The element of the container that is being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expect {
    /// The signature and the key.
    #[default]
    Start,
    /// The header of an attribute.
    Header,
    /// The value of an attribute: the identifier, and the number of bytes that are left.
    Value(u16, u32),
    /// The checksum of an attribute.
    Checksum,
    /// The container is damaged.
    Nothing,
}

impl TnefReader {
    /// The files so far.
    pub fn files(&self) -> &[TnefFile] {
        &self.files
    }

    /// The text of the message so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text is incomplete: the container has more of it than is kept.
    pub fn is_text_cut(&self) -> bool {
        self.is_text_cut
    }

    /// Takes the next bytes of the container, and adds the content of the file with the index
    /// `wanted` to `out`.
    pub fn bytes_arrived(&mut self, mut bytes: &[u8], wanted: Option<usize>, out: &mut Vec<u8>) {
        while !bytes.is_empty() || matches!(self.expect, Expect::Value(_, 0)) {
            match self.expect {
                Expect::Start => {
                    if self.hold(&mut bytes, SIGNATURE.len() + KEY_BYTES) {
                        let is_valid = self.held.starts_with(&SIGNATURE);
                        self.expect(if is_valid { Expect::Header } else { Expect::Nothing });
                    }
                }
                Expect::Header => {
                    if self.hold(&mut bytes, ATTRIBUTE_HEADER_BYTES) {
                        self.header_arrived();
                    }
                }
                Expect::Value(identifier, 0) => {
                    self.value_arrived(identifier);
                    self.expect(Expect::Checksum);
                }
                Expect::Value(identifier, left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let (piece, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
                    self.piece_of_value_arrived(identifier, piece, wanted, out);
                    self.expect = Expect::Value(identifier, left.saturating_sub(length as u32));
                    bytes = rest;
                }
                Expect::Checksum => {
                    if self.hold(&mut bytes, CHECKSUM_BYTES) {
                        self.expect(Expect::Header);
                    }
                }
                Expect::Nothing => return,
            }
        }
    }

    /// Holds bytes until `most` are held. Returns whether they are.
    fn hold(&mut self, bytes: &mut &[u8], most: usize) -> bool {
        let room = most.saturating_sub(self.held.len()).min(bytes.len());
        let (piece, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.held.extend_from_slice(piece);
        *bytes = rest;
        self.held.len() >= most
    }

    fn expect(&mut self, next: Expect) {
        self.held.clear();
        self.expect = next;
    }

    fn header_arrived(&mut self) {
        let next = match *self.held {
            [1 | 2, i0, i1, _, _, l0, l1, l2, l3] => {
                let identifier = u16::from_le_bytes([i0, i1]);
                if identifier == FILE_BEGIN {
                    self.file_count += 1;
                    if self.files.len() < TNEF_FILES_MAX {
                        self.files.push(TnefFile::default());
                    }
                }
                let length = u32::from_le_bytes([l0, l1, l2, l3]);
                self.is_value_long = length as usize > VALUE_BYTES_MAX;
                Expect::Value(identifier, length)
            }
            _ => Expect::Nothing,
        };
        self.expect(next);
    }

    fn piece_of_value_arrived(
        &mut self,
        identifier: u16,
        piece: &[u8],
        wanted: Option<usize>,
        out: &mut Vec<u8>,
    ) {
        match identifier {
            FILE_DATA => {
                let index = self.file_count.checked_sub(1);
                if let Some(file) = index.and_then(|index| self.files.get_mut(index)) {
                    file.bytes = Some(file.bytes.unwrap_or(0) + piece.len() as u64);
                    if wanted == index {
                        out.extend_from_slice(piece);
                    }
                }
            }
            BODY | FILE_TITLE | MESSAGE_PROPERTIES | FILE_PROPERTIES | CODE_PAGE => {
                self.hold(&mut &*piece, VALUE_BYTES_MAX);
            }
            _ => {}
        }
    }

    /// The value of an attribute is complete, as far as it is kept.
    fn value_arrived(&mut self, identifier: u16) {
        let held = core::mem::take(&mut self.held);
        let code_page = self.code_page;
        let index = self.file_count.checked_sub(1);
        let file = index.and_then(|index| self.files.get_mut(index));
        match (identifier, file) {
            (CODE_PAGE, _) => {
                self.code_page = held.first_chunk().map_or(0, |page| u32::from_le_bytes(*page));
            }
            (BODY, _) => {
                self.text = decoded(&held, code_page);
                self.is_text_cut = self.is_value_long;
            }
            (MESSAGE_PROPERTIES, _) if self.text.is_empty() => {
                let text = properties::text(&held, PROPERTY_BODY);
                // The text may also be behind the bytes that are kept.
                self.is_text_cut = self.is_value_long && text.is_none_or(|text| text.is_last);
                self.text = text.map(|text| text.decoded(code_page)).unwrap_or_default();
            }
            (FILE_TITLE, Some(file)) if file.name.is_empty() => {
                file.name = name(&decoded(&held, code_page));
            }
            (FILE_PROPERTIES, Some(file)) => {
                let long_name = properties::text(&held, PROPERTY_LONG_NAME);
                let long_name = long_name.map(|long_name| name(&long_name.decoded(code_page)));
                if let Some(long_name) = long_name.filter(|name| !name.is_empty()) {
                    file.name = long_name;
                }
            }
            // The content may be empty.
            (FILE_DATA, Some(file)) => file.bytes = file.bytes.or(Some(0)),
            _ => {}
        }
    }
}

impl PropertyText<'_> {
    fn decoded(&self, code_page: u32) -> String {
        if self.is_utf16 {
            let text = charset::decode(Some(b"utf-16le"), self.bytes);
            return text.trim_end_matches('\0').into();
        }
        decoded(self.bytes, code_page)
    }
}

/// The text in this code page of Windows, up to the first zero.
fn decoded(bytes: &[u8], code_page: u32) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = match code_page {
        874 | 1250..=1258 => alloc::format!("windows-{code_page}"),
        932 => "shift_jis".into(),
        936 => "gbk".into(),
        949 => "euc-kr".into(),
        950 => "big5".into(),
        _ => String::new(),
    };
    charset::decode(Some(name.as_bytes()), bytes).into_owned()
}

/// A file name without its folders. It takes no more memory than its bytes.
fn name(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let mut bytes = 0;
    let is_kept = |c: &char| {
        bytes += c.len_utf8();
        bytes <= NAME_BYTES_MAX
    };
    let mut name: String = name.chars().filter(|c| is_shown(*c)).take_while(is_kept).collect();
    name.shrink_to_fit();
    name
}
