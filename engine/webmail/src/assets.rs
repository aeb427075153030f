//! What all pages share: their style, and the one script, without which all of them work too.
//!
//! Invariant: the address of each follows from what is in it. So a browser keeps it for as long as it likes, and a page is never shown with another program's style.

use alloc::format;
use alloc::string::String;
use core::fmt;

use http::{Field, Reply, Status};

/// The style of all pages.
pub const STYLE: &str = include_str!("../static/style.css");

/// The script of all pages: one file for browsers, and one story each for those who read it.
pub const SCRIPT: &str = concat!(
    include_str!("../static/pages.js"),
    include_str!("../static/keys.js"),
    include_str!("../static/writing.js"),
    include_str!("../static/holding.js"),
    include_str!("../static/news.js")
);

/// Something that all pages share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asset {
    /// How pages look.
    Style,
    /// What makes them quicker to use.
    Script,
}

impl Asset {
    /// All there are.
    pub const ALL: [Asset; 2] = [Asset::Style, Asset::Script];

    /// Its name under `/mail/`.
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

    /// By what its address tells it from that of another program.
    fn version(self) -> String {
        const STYLE_DIGEST: u64 = digest(STYLE.as_bytes());
        const SCRIPT_DIGEST: u64 = digest(SCRIPT.as_bytes());
        let digest = match self {
            Asset::Style => STYLE_DIGEST,
            Asset::Script => SCRIPT_DIGEST,
        };
        format!("{digest:016x}")
    }

    /// The one with that name, if its address ends with this.
    pub(crate) fn named(name: &str, version: &str) -> Option<Asset> {
        Asset::ALL.into_iter().find(|asset| asset.name() == name && asset.version() == version)
    }

    /// It, to be kept for a year.
    pub(crate) fn reply(self) -> Reply {
        let media_type = match self {
            Asset::Style => "text/css; charset=utf-8",
            Asset::Script => "text/javascript; charset=utf-8",
        };
        Reply::new(Status::Ok, media_type, self.text().into())
            .with(Field::CacheControl, "max-age=31536000, immutable")
            .with(Field::XContentTypeOptions, "nosniff")
    }
}

/// Its address.
impl fmt::Display for Asset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/mail/{}?v={}", self.name(), self.version())
    }
}

/// FNV-1a, while this is compiled: nobody chooses what it is taken of.
pub(crate) const fn digest(bytes: &[u8]) -> u64 {
    let (mut digest, mut rest) = (0xcbf2_9ce4_8422_2325_u64, bytes);
    while let [first, others @ ..] = rest {
        digest = (digest ^ *first as u64).wrapping_mul(0x0100_0000_01b3);
        rest = others;
    }
    digest
}
