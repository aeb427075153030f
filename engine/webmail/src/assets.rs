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

/// The script of all pages. Browsers get one file, made of several source files.
pub const SCRIPT: &str = concat!(
    include_str!("../static/pages.js"),
    include_str!("../static/keys.js"),
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
