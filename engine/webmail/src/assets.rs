//! The style sheet and the script that all pages share. All pages also work without the script.
//!
//! Invariant: the address of each file contains a digest of its contents. So a browser may cache
//! the file for any time, and never shows a page with the style of another release.

use alloc::format;
use alloc::string::String;
use core::fmt;

use http::{Reply, ReplyField, Status};

/// The style of all pages.
pub const STYLE: &str = include_str!("../static/style.css");

/// The script of all pages. Browsers get one file, made of several source files, without their
/// comments.
pub const SCRIPT: &str = text_of(WITHOUT_COMMENTS);

/// The bytes of the script. A first pass finds their number.
const WITHOUT_COMMENTS: &[u8] =
    &without_comments::<{ without_comments::<0>(SOURCES.as_bytes()).1 }>(SOURCES.as_bytes()).0;

/// The source files of the script, in their order.
const SOURCES: &str = concat!(
    include_str!("../static/pages.js"),
    include_str!("../static/keys.js"),
    include_str!("../static/frames.js"),
    include_str!("../static/writing.js"),
    include_str!("../static/holding.js"),
    include_str!("../static/news.js")
);

/// A file that all pages share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asset {
    /// The style sheet.
    Style,
    /// The script.
    Script,
}

impl Asset {
    /// All assets.
    pub const ALL: [Asset; 2] = [Asset::Style, Asset::Script];

    /// The file name under `/mail/`.
    fn name(self) -> &'static str {
        match self {
            Asset::Style => "style.css",
            Asset::Script => "mail.js",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Asset::Style => STYLE,
            Asset::Script => SCRIPT,
        }
    }

    /// The version in the asset's address.
    fn version(self) -> String {
        const STYLE_DIGEST: u64 = digest(STYLE.as_bytes());
        const SCRIPT_DIGEST: u64 = digest(SCRIPT.as_bytes());
        let digest = match self {
            Asset::Style => STYLE_DIGEST,
            Asset::Script => SCRIPT_DIGEST,
        };
        format!("{digest:016x}")
    }

    /// The asset with this name, if `version` is its current version.
    pub(crate) fn named(name: &str, version: &str) -> Option<Asset> {
        Asset::ALL.into_iter().find(|asset| asset.name() == name && asset.version() == version)
    }

    /// The reply with the asset. A browser may cache it for a year.
    pub(crate) fn reply(self) -> Reply {
        let media_type = match self {
            Asset::Style => "text/css; charset=utf-8",
            Asset::Script => "text/javascript; charset=utf-8",
        };
        Reply::new(Status::Ok, media_type, self.text().into())
            .with(ReplyField::CacheControl, "max-age=31536000, immutable")
            .with(ReplyField::XContentTypeOptions, "nosniff")
    }
}

/// The address of the asset.
impl fmt::Display for Asset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/mail/{}?v={}", self.name(), self.version())
    }
}

/// Whole lines of UTF-8, which are UTF-8.
const fn text_of(lines: &'static [u8]) -> &'static str {
    match core::str::from_utf8(lines) {
        Ok(text) => text,
        Err(_) => unreachable!(),
    }
}

/// The lines of a script that are not comments, and their length in bytes. The result has as many
/// of the bytes as fit. A comment is one or more whole lines, from `//` or from `/**` to `*/`.
const fn without_comments<const BYTES: usize>(script: &[u8]) -> ([u8; BYTES], usize) {
    let (mut kept, mut length) = ([0; BYTES], 0);
    let (mut rest, mut is_comment) = (script, false);
    while let Some((line, behind)) = split_line(rest) {
        rest = behind;
        let text = line.trim_ascii();
        let is_begun = matches!(text, [b'/', b'*', b'*', ..]);
        let is_ended = matches!(text, [.., b'*', b'/']);
        let is_dropped = is_comment || is_begun && is_ended || matches!(text, [b'/', b'/', ..]);
        // A line that begins with a short comment has code behind it.
        is_comment = (is_comment || is_begun && !has_end(text)) && !is_ended;
        let mut bytes = if is_dropped || is_comment { &[] } else { line };
        while let [first, others @ ..] = bytes {
            if let Some((_, [place, ..])) = kept.split_at_mut_checked(length) {
                *place = *first;
            }
            length += 1;
            bytes = others;
        }
    }
    (kept, length)
}

/// The first line with its line end, and the rest.
const fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut rest, mut length) = (text, 0);
    while let [first, others @ ..] = rest {
        length += 1;
        rest = others;
        if *first == b'\n' {
            break;
        }
    }
    if length == 0 { None } else { text.split_at_checked(length) }
}

/// Whether a comment ends in the line.
const fn has_end(mut line: &[u8]) -> bool {
    while let [first, others @ ..] = line {
        if let (b'*', [b'/', ..]) = (*first, others) {
            return true;
        }
        line = others;
    }
    false
}

/// The FNV-1a digest, which can be computed at compile time. No attacker chooses the input, so it
/// needs no resistance to collisions.
pub(crate) const fn digest(bytes: &[u8]) -> u64 {
    let (mut digest, mut rest) = (0xcbf2_9ce4_8422_2325_u64, bytes);
    while let [first, others @ ..] = rest {
        digest = (digest ^ *first as u64).wrapping_mul(0x0100_0000_01b3);
        rest = others;
    }
    digest
}
