//! What all pages share.

use alloc::string::ToString;

use crate::tests::pages::{Words, all};
use crate::tests::{count, parsed};
use crate::{Asset, Page, SCRIPT, STYLE, Wish};

/// As it is sent: nothing has to be unpacked to be counted.
#[test]
fn the_script_is_under_40_kilobytes() {
    assert!(SCRIPT.len() < 40_000, "{}", SCRIPT.len());
}

#[test]
fn what_all_pages_share_has_an_address_of_its_own_for_each_content_and_may_be_kept() {
    for asset in Asset::ALL {
        let address = asset.to_string();
        assert_eq!(Wish::of("GET", &address), Ok(Wish::See(Page::Asset(asset))));
        assert_eq!(Page::Asset(asset).to_string(), address);
        let (path, version) = address.split_once("?v=").expect("a version");
        let another: alloc::string::String = version.chars().rev().collect();
        for wrong in ["", "0", &another, &version.to_uppercase(), &alloc::format!("0{version}")] {
            let is_same = wrong == version;
            assert!(
                is_same || Wish::of("GET", &alloc::format!("{path}?v={wrong}")).is_err(),
                "{wrong}"
            );
        }
        assert!(Wish::of("GET", path).is_err());
    }
    assert_ne!(crate::assets::digest(STYLE.as_bytes()), crate::assets::digest(SCRIPT.as_bytes()));
    assert_eq!(crate::assets::digest(b"foobar"), 0x85944171f73967e8, "as its authors have it");
}

#[test]
fn every_page_of_somebody_who_is_logged_in_has_the_script_and_no_other_has() {
    for (name, page) in all(Words::MILD) {
        let own = alloc::format!("script[type=module][src='{}']", Asset::Script);
        let expected = usize::from(!["login", "print", "refused"].contains(&name));
        assert_eq!(count(&parsed(&page), "script"), expected, "{name}");
        assert_eq!(count(&parsed(&page), &own), expected, "{name}");
    }
}

#[test]
fn the_script_knows_the_outbox_and_what_it_stands_behind_by_the_numbers_of_the_store() {
    let news = include_str!("../../static/news.js");
    let numbers = alloc::format!(
        "const [OUTBOX, TRASH] = [\"{}\", \"{}\"];",
        store::OUTBOX.0,
        store::TRASH.0
    );
    assert!(news.contains(&numbers), "{numbers}");
}
