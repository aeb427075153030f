//! Tests of the reference of the configuration: the page in docs/, and its examples.

extern crate std;

use alloc::vec::Vec;
use core::iter;

use crate::reference::{example, sections};
use crate::{Configuration, SmarthostTls, Way, reference};

const PAGE: &str = include_str!("../../../../docs/configuration.md");

#[test]
fn the_page_in_docs_is_the_reference() {
    let reference = reference();
    if reference != PAGE {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let folder = std::path::Path::new(root).join("target/test");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("configuration.md"), &reference).unwrap();
        panic!(
            "docs/configuration.md is not what the tables of keys say; \
             copy target/test/configuration.md there"
        );
    }
}

#[test]
fn every_example_of_the_reference_is_valid() {
    let configuration =
        Configuration::parse(&example(&[("user", "password_hash"), ("relay.domain", "direct")]))
            .unwrap_or_else(|error| panic!("{error}"));
    let Way::By(smarthost) = configuration.relay.way_to("example.com") else {
        panic!("the domain has a smarthost");
    };
    assert_eq!(smarthost.tls, SmarthostTls::Implicit);
    let by_smarthost = ["smarthost", "tls", "user", "password"];
    let mut absent: Vec<_> = by_smarthost.iter().map(|key| ("relay.domain", *key)).collect();
    absent.push(("user", "password"));
    let configuration =
        Configuration::parse(&example(&absent)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(*configuration.relay.way_to("example.com"), Way::Direct);
}

#[test]
fn every_section_of_the_file_is_in_the_reference() {
    let all = sections();
    let [root, rest @ ..] = all.as_slice() else { panic!("there are sections") };
    let mut described: Vec<_> = rest
        .iter()
        .filter(|section| section.name() != "relay.domain")
        .map(|section| section.name())
        .chain(root.keys.iter().map(|key| key.name))
        .collect();
    let mut known: Vec<_> = crate::KEYS.to_vec();
    described.sort_unstable();
    known.sort_unstable();
    assert_eq!(described, known);
}

#[test]
fn every_key_is_described() {
    for section in &sections() {
        for key in &section.keys {
            let texts = [key.form, &key.default, &key.range, key.example, &key.meaning];
            for text in iter::chain(texts, [section.about.as_str()]) {
                assert!(!text.is_empty() && !text.contains("  "), "{}: {text:?}", key.name);
            }
        }
    }
}
