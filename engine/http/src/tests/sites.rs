//! The packed site.

use super::world::{file, files, site};
use crate::{Coding, Site, SiteError, pack};
use proptest::prelude::*;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

fn leaked(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}

#[test]
fn every_packed_file_is_found_unchanged() {
    let files = files();
    let site = site(&files);
    assert_eq!(site.len(), files.len());
    for (path, file) in &files {
        let found = site.find(path).unwrap();
        assert_eq!(
            (found.content_type(), found.modified()),
            (file.content_type.as_str(), file.modified.as_str())
        );
        for (coding, bytes) in [
            (Coding::Identity, Some(&file.plain)),
            (Coding::Gzip, file.gzip.as_ref()),
            (Coding::Brotli, file.brotli.as_ref()),
        ] {
            assert_eq!(
                found.representation(coding).map(|found| found.bytes),
                bytes.map(Vec::as_slice)
            );
        }
    }
    for path in ["", "/", "/hello", "/hello.txt/", "/zzz", "hello.txt"] {
        assert!(site.find(path).is_none(), "{path}");
    }
    assert!(Site::default().is_empty() && Site::default().find("/").is_none());
}

#[test]
fn the_entity_tag_depends_on_content_and_type() {
    let tag = |content_type, bytes| {
        let files = BTreeMap::from([("/a".to_string(), file(content_type, bytes))]);
        site(&files).find("/a").unwrap().tag(Coding::Identity)
    };
    assert_eq!(tag("a/b", b"x"), tag("a/b", b"x"));
    assert_ne!(tag("a/b", b"x"), tag("a/b", b"y"));
    assert_ne!(tag("a/b", b"x"), tag("a/c", b"x"));
}

#[test]
fn an_invalid_pack_is_rejected() {
    let good = pack(&files()).unwrap();
    assert_eq!(Site::new(b"").err(), Some(SiteError::NotASite));
    assert_eq!(Site::new(b"BPSITE\0\x01aaaaaaaaaaaaaaa").err(), Some(SiteError::NotASite));
    assert_eq!(Site::new(leaked(good[..good.len() - 1].to_vec())).err(), Some(SiteError::Broken));
    let mut wrong = files();
    wrong.insert("relative".to_string(), file("a/b", b""));
    assert_eq!(pack(&wrong).err(), Some(SiteError::Broken));
}

proptest! {
    #[test]
    fn a_damaged_pack_never_reads_outside_itself(at in 0usize..900, byte in any::<u8>()) {
        let mut pack = pack(&files()).unwrap();
        let at = at % pack.len();
        pack[at] = byte;
        if let Ok(site) = Site::new(leaked(pack)) {
            for path in files().keys() {
                if let Some(found) = site.find(path) {
                    found.tag(Coding::Brotli);
                    found.modified_seconds();
                }
            }
        }
    }
}

#[test]
fn a_type_or_date_with_a_line_end_is_rejected() {
    for byte in [b'\r', b'\n', 0, 0x7f] {
        let mut pack = pack(&files()).unwrap();
        let at = pack.windows(8).position(|window| window == b"text/css").unwrap();
        pack[at + 4] = byte;
        assert_eq!(Site::new(leaked(pack)).err(), Some(SiteError::Broken), "{byte}");
        // The weekday is not parsed, but must still be printable.
        let mut pack = crate::pack(&files()).unwrap();
        let at = pack.windows(4).position(|window| window == b"Sun,").unwrap();
        pack[at + 1] = byte;
        assert_eq!(Site::new(leaked(pack)).err(), Some(SiteError::Broken), "{byte}");
    }
    let split = BTreeMap::from([("/a".to_string(), file("a/b\r\nSet-Cookie: c", b""))]);
    assert_eq!(pack(&split).err(), Some(SiteError::Broken));
}

#[test]
fn a_pack_with_wrong_header_fields_is_rejected() {
    let good = pack(&files()).unwrap();
    for field in ["Content-Length: 30", "Content-Encoding: br", "Last-Modified: Sun", "ETag: \""] {
        let mut pack = good.clone();
        let at = pack.windows(field.len()).position(|window| window == field.as_bytes()).unwrap();
        pack[at + field.len() - 1] ^= 1;
        assert_eq!(Site::new(leaked(pack)).err(), Some(SiteError::Broken), "{field}");
    }
}
