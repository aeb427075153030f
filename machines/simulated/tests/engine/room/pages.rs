//! A site with two pages for a room's engine: the short `/`, and `/large`.

use std::collections::BTreeMap;

use http::{Site, SiteFile};

/// The body of `/large`.
pub(crate) fn large(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 3) as u8).collect()
}

/// The site, with this many bytes in `/large`.
pub(crate) fn site(large_bytes: usize) -> Site {
    let file = |bytes: &[u8]| SiteFile {
        content_type: "text/plain".to_string(),
        modified: "Sun, 06 Nov 1994 08:49:37 GMT".to_string(),
        plain: bytes.to_vec(),
        gzip: None,
        brotli: None,
    };
    let index = ("/index.html".to_string(), file(b"Index"));
    let pack =
        http::pack(&BTreeMap::from([index, ("/large".to_string(), file(&large(large_bytes)))]));
    Site::new(Box::leak(pack.expect("the pages make a valid site").into_boxed_slice()))
        .expect("the pages make a valid site")
}
