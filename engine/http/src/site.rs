//! The packed site: the files of a folder in one piece of memory, each with the header fields of
//! its response.
//!
//! The build host packs the site once with [`pack`], and [`Site`] reads the pack in place. Numbers
//! are little endian. A place is an offset from the start of the pack and a length, 4 bytes each.
//!
//! ```text
//! 0    8  "BPSITE\0\2"
//! 8    4  number of files
//! 12   4  length of the whole pack
//! 16      for each file, in the order of the paths' bytes, 112 bytes:
//!           0   place of the path, which begins with "/"
//!           8   place of the content type
//!           16  the date of its last change, an IMF-fixdate of 29 bytes, 3 bytes of zeros
//!           48  its entity tag: 16 hexadecimal digits
//!           64  places of its bytes: plain, gzip and brotli; a missing coding is (0, 0)
//!           88  places of the header fields of its response, for each of the three
//!         then for each file: path, content type, bytes and header fields
//! ```
//!
//! Invariant: [`Site::new`] validates the whole pack once. So all values that a [`Site`] returns
//! are inside of the pack and valid. Its header fields equal the fields that this version of the
//! code would write.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hash::Hasher;
use core::ops::Range;

use siphasher::sip::SipHasher13;

use crate::coding::Coding;
use crate::date::{self, DATE_BYTES};
use crate::response::ResponseHead;

const MAGIC: [u8; 8] = *b"BPSITE\0\x02";
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 112;
const TAG_DIGITS: usize = 16;
/// The codings in the order of their places in an entry.
const CODINGS: [Coding; 3] = [Coding::Identity, Coding::Gzip, Coding::Brotli];
/// Offsets in an entry: the places of the file's bytes, and the places of its header fields.
const BYTES_AT: usize = 64;
const HEADS_AT: usize = 88;

/// A packed site. The default is a site without files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    pack: &'static [u8],
    entries: &'static [[u8; ENTRY_BYTES]],
}

/// The reason why a pack is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteError {
    /// The bytes are not a packed site of this version.
    NotASite,
    /// A place is outside of the pack, or an entry is malformed or out of order.
    Broken,
}

impl fmt::Display for SiteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SiteError::NotASite => "not a packed site of this version",
            SiteError::Broken => "the packed site is damaged",
        })
    }
}

/// A file of the site.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    site: Site,
    entry: &'static [u8; ENTRY_BYTES],
}

/// The bytes of a file in one coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Representation {
    /// The coding of the bytes.
    pub coding: Coding,
    /// The bytes of the file in this coding.
    pub bytes: &'static [u8],
    /// The header fields of a response with all bytes.
    pub head: &'static [u8],
}

/// An entity tag with its quotes. It identifies the file and the coding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tag(heapless::Vec<u8, 24>);

impl Tag {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Site {
    /// Validates a packed site.
    ///
    /// Errors: `pack` is not a packed site, or is damaged.
    pub fn new(pack: &'static [u8]) -> Result<Site, SiteError> {
        let (header, rest) = pack.split_at_checked(HEADER_BYTES).ok_or(SiteError::NotASite)?;
        if !header.starts_with(&MAGIC) {
            return Err(SiteError::NotASite);
        }
        let count = number(header, 8).ok_or(SiteError::NotASite)?;
        if number(header, 12) != Some(pack.len()) {
            return Err(SiteError::Broken);
        }
        let entries = rest.as_chunks().0.get(..count).ok_or(SiteError::Broken)?;
        let site = Site { pack, entries };
        let mut before = "";
        for entry in entries {
            let path = site.text(entry, 0).ok_or(SiteError::Broken)?;
            let file = Resource { site, entry };
            if !path.starts_with('/') || path <= before || file.is_sound().is_none() {
                return Err(SiteError::Broken);
            }
            before = path;
        }
        Ok(site)
    }

    /// The file at `path`.
    pub fn find(&self, path: &str) -> Option<Resource> {
        self.find_in(path.as_bytes(), b"")
    }

    /// The file with the path `folder` followed by `name`.
    pub(crate) fn find_in(&self, folder: &[u8], name: &[u8]) -> Option<Resource> {
        let compare = |entry: &[u8; ENTRY_BYTES]| {
            let path = self.slice(entry, 0).unwrap_or_default();
            let (above, below) = path.split_at(folder.len().min(path.len()));
            above.cmp(folder).then_with(|| below.cmp(name))
        };
        let index = self.entries.binary_search_by(compare).ok()?;
        Some(Resource { site: *self, entry: self.entries.get(index)? })
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The size of the pack in bytes.
    pub fn bytes(&self) -> usize {
        self.pack.len()
    }

    /// Whether the site has no files.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn slice(&self, entry: &[u8], at: usize) -> Option<&'static [u8]> {
        let start = number(entry, at)?;
        self.pack.get(start..start.checked_add(number(entry, at + 4)?)?)
    }

    fn text(&self, entry: &[u8], at: usize) -> Option<&'static str> {
        core::str::from_utf8(self.slice(entry, at)?).ok()
    }
}

impl Resource {
    /// The value of `Content-Type`.
    pub fn content_type(&self) -> &'static str {
        self.site.text(self.entry, 8).unwrap_or_default()
    }

    /// The value of `Last-Modified`.
    pub fn modified(&self) -> &'static str {
        text(self.entry, 16..16 + DATE_BYTES).unwrap_or_default()
    }

    /// The date of the last change, in seconds since 1970-01-01.
    pub(crate) fn modified_seconds(&self) -> u64 {
        date::parse(self.modified().as_bytes()).unwrap_or(0)
    }

    /// The digits in the entity tags of the file.
    pub(crate) fn digits(&self) -> &'static str {
        text(self.entry, 48..48 + TAG_DIGITS).unwrap_or_default()
    }

    pub(crate) fn tag(&self, coding: Coding) -> Tag {
        let parts = ["\"", self.digits(), coding.tag_suffix(), "\""];
        Tag(parts.iter().flat_map(|part| part.bytes()).collect())
    }

    /// The file in each coding that the pack has: plain, and compressed where that was worthwhile.
    pub fn representations(&self) -> impl Iterator<Item = Representation> + '_ {
        CODINGS.into_iter().filter_map(|coding| self.representation(coding))
    }

    /// The file in `coding`, if the pack has it.
    pub(crate) fn representation(&self, coding: Coding) -> Option<Representation> {
        let at = 8 * coding as usize;
        number(self.entry, BYTES_AT + at).filter(|offset| *offset != 0)?;
        let bytes = self.site.slice(self.entry, BYTES_AT + at)?;
        Some(Representation { coding, bytes, head: self.site.slice(self.entry, HEADS_AT + at)? })
    }

    /// Whether the pack has the file in more than one coding.
    pub(crate) fn varies(&self) -> bool {
        self.representations().count() > 1
    }

    /// Checks that all parts of the entry are inside of the pack, and are valid in the head of a
    /// response. `None` if not.
    fn is_sound(&self) -> Option<()> {
        let content_type =
            self.site.text(self.entry, 8).filter(|content_type| is_sound_type(content_type))?;
        let modified =
            text(self.entry, 16..16 + DATE_BYTES).filter(|modified| is_of_one_line(modified))?;
        date::parse(modified.as_bytes())?;
        text(self.entry, 48..48 + TAG_DIGITS)?
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then_some(())?;
        self.representation(Coding::Identity)?;
        let is_there =
            |coding: &Coding| number(self.entry, BYTES_AT + 8 * *coding as usize) != Some(0);
        let about = About { content_type, modified, digits: self.digits(), varies: self.varies() };
        CODINGS.into_iter().filter(is_there).try_for_each(|coding| {
            let found = self.representation(coding)?;
            (found.head == about.head(coding, found.bytes.len()).as_bytes()).then_some(())
        })
    }
}

/// The values for a file's header fields that do not depend on the coding.
struct About<'a> {
    content_type: &'a str,
    modified: &'a str,
    digits: &'a str,
    varies: bool,
}

impl About<'_> {
    /// The header fields of the whole file in `coding`, in which it has `length` bytes.
    fn head(&self, coding: Coding, length: usize) -> ResponseHead {
        let mut head = ResponseHead::default();
        head.file(coding, self.digits, self.modified, self.varies)
            .field("Content-Type", self.content_type)
            .number_field("Content-Length", length as u64);
        head
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

fn text(bytes: &'static [u8], range: Range<usize>) -> Option<&'static str> {
    core::str::from_utf8(bytes.get(range)?).ok()
}

/// The longest `Content-Type`, in bytes.
const CONTENT_TYPE_BYTES_MAX: usize = 128;

fn is_sound_type(content_type: &str) -> bool {
    content_type.len() <= CONTENT_TYPE_BYTES_MAX && is_of_one_line(content_type)
}

/// Whether the value is valid in a header field. A line end would let a file add other fields.
fn is_of_one_line(value: &str) -> bool {
    value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// A file to pack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteFile {
    /// The value of `Content-Type`: ASCII without control characters, at most 128 bytes.
    pub content_type: String,
    /// The date of its last change: an `IMF-fixdate`.
    pub modified: String,
    /// The bytes of the file.
    pub plain: Vec<u8>,
    /// The bytes compressed by gzip, if that is worthwhile.
    pub gzip: Option<Vec<u8>>,
    /// The bytes compressed by brotli, if that is worthwhile.
    pub brotli: Option<Vec<u8>>,
}

/// Packs files by their paths, which begin with `/`.
///
/// Errors: the pack would exceed 4 GiB, a path does not begin with `/`, a type is not valid in a
/// header field, or a date does not have the length of an `IMF-fixdate`. [`Site::new`] checks the
/// dates completely.
pub fn pack(files: &BTreeMap<String, SiteFile>) -> Result<Vec<u8>, SiteError> {
    let mut entries = Vec::with_capacity(files.len() * ENTRY_BYTES);
    let mut body = Vec::new();
    let body_start = HEADER_BYTES + files.len() * ENTRY_BYTES;
    for (path, file) in files {
        if file.modified.len() != DATE_BYTES
            || !is_of_one_line(&file.modified)
            || !is_sound_type(&file.content_type)
            || !path.starts_with('/')
        {
            return Err(SiteError::Broken);
        }
        let codings = [Some(&file.plain), file.gzip.as_ref(), file.brotli.as_ref()];
        let digits = tag_of(file);
        let varies = codings.iter().flatten().count() > 1;
        let about = About {
            content_type: &file.content_type,
            modified: &file.modified,
            digits: &digits,
            varies,
        };
        let mut place = |bytes: &[u8]| place(bytes, body_start, &mut body);
        entries.extend(place(path.as_bytes())?);
        entries.extend(place(file.content_type.as_bytes())?);
        entries.extend_from_slice(file.modified.as_bytes());
        entries.extend([0; 32 - DATE_BYTES]);
        entries.extend(digits.bytes());
        for bytes in codings {
            entries.extend(bytes.map_or(Ok(NOWHERE), |bytes| place(bytes))?);
        }
        for (coding, bytes) in CODINGS.into_iter().zip(codings) {
            entries.extend(
                bytes.map_or(Ok(NOWHERE), |bytes| {
                    place(about.head(coding, bytes.len()).as_bytes())
                })?,
            );
        }
    }
    let length = u32::try_from(body_start + body.len()).map_err(|_| SiteError::Broken)?;
    let mut packed = Vec::with_capacity(body_start + body.len());
    packed.extend(MAGIC);
    packed.extend((files.len() as u32).to_le_bytes());
    packed.extend(length.to_le_bytes());
    packed.append(&mut entries);
    packed.append(&mut body);
    Ok(packed)
}

/// The place of a coding that the pack does not have.
const NOWHERE: [u8; 8] = [0; 8];

/// Appends `bytes` to the body and returns their place.
///
/// Errors: the offset or the length exceeds 32 bits.
fn place(bytes: &[u8], body_start: usize, body: &mut Vec<u8>) -> Result<[u8; 8], SiteError> {
    let offset = u32::try_from(body_start + body.len()).map_err(|_| SiteError::Broken)?;
    let length = u32::try_from(bytes.len()).map_err(|_| SiteError::Broken)?;
    body.extend_from_slice(bytes);
    Ok((u64::from(offset) | u64::from(length) << 32).to_le_bytes())
}

/// A hash of the bytes and the type of a file, as 16 digits. It changes when the file changes.
fn tag_of(file: &SiteFile) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(file.content_type.as_bytes());
    hasher.write(&file.plain);
    alloc::format!("{:016x}", hasher.finish())
}
