//! The site that every machine of a room serves. Browsers compare responses with it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use http::{Site, SiteFile};

/// The time at which all pages last changed.
pub(super) const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// The content codings, as header fields name them. The first means no coding.
pub(super) const CODINGS: [&str; 3] = ["identity", "gzip", "br"];

/// A page, and its bytes in each of [`CODINGS`]. No client decodes the bytes, which must arrive
/// unchanged.
pub(super) struct SitePage {
    pub(super) path: &'static str,
    forms: [Option<Vec<u8>>; CODINGS.len()],
}

impl SitePage {
    /// The coding and the bytes of the response to a client that prefers `coding`.
    pub(super) fn form(&self, coding: usize) -> (usize, &[u8]) {
        let present = if self.forms[coding].is_some() { coding } else { 0 };
        (present, self.forms[present].as_deref().unwrap_or_default())
    }
}

/// All pages.
pub(super) fn pages() -> &'static [SitePage] {
    static PAGES: OnceLock<Vec<SitePage>> = OnceLock::new();
    // The large page has more bytes than a connection may have in flight.
    PAGES.get_or_init(|| {
        let page = |path, plain, gzip: Option<usize>, brotli: Option<usize>| SitePage {
            path,
            forms: [
                Some(bytes(1, plain)),
                gzip.map(|count| bytes(2, count)),
                brotli.map(|count| bytes(3, count)),
            ],
        };
        vec![
            page("/", 4_321, Some(1_234), Some(1_111)),
            page("/empty", 0, None, None),
            page("/folder/", 1, None, None),
            page("/large", 280_000, Some(70_001), None),
            page("/segment", 1_460, None, Some(1_220)),
        ]
    })
}

/// The site in the packed form that a machine serves.
pub(super) fn packed() -> Site {
    static SITE: OnceLock<Site> = OnceLock::new();
    *SITE.get_or_init(|| {
        let file = |page: &SitePage| {
            let [plain, gzip, brotli] = page.forms.clone();
            let path = page
                .path
                .strip_suffix('/')
                .map_or(page.path.to_string(), |folder| format!("{folder}/index.html"));
            let (content_type, modified) = ("text/plain".to_string(), MODIFIED.to_string());
            (
                path,
                SiteFile { content_type, modified, plain: plain.unwrap_or_default(), gzip, brotli },
            )
        };
        let files: BTreeMap<String, SiteFile> = pages().iter().map(file).collect();
        let pack = http::pack(&files).expect("the pages make a valid site");
        Site::new(Box::leak(pack.into_boxed_slice())).expect("the pages make a valid site")
    })
}

/// Bytes without repetitions. Another `form` gives other bytes.
fn bytes(form: u32, count: usize) -> Vec<u8> {
    (0..count as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ (at >> 8) as u8 ^ form as u8)
        .collect()
}
