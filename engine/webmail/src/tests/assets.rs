//! Tests of the assets.

use alloc::string::ToString;

use crate::tests::pages::{Words, all};
use crate::tests::{count, parsed};
use crate::{Asset, Route, SCRIPT, STYLE, WebPage};

/// The script is sent uncompressed, so its length is its size on the wire.
#[test]
fn the_script_is_under_45_kilobytes() {
    assert!(SCRIPT.len() < 45_000, "{}", SCRIPT.len());
}

#[test]
fn the_script_is_sent_without_its_comments() {
    let keys = include_str!("../../static/keys.js");
    assert!(keys.contains("\n/** The time when") && !SCRIPT.contains("The time when"));
    assert!(!SCRIPT.lines().any(|line| line.trim().starts_with("//")));
    let begins_with_comment = "/** @type {HTMLElement | null} */ (same";
    assert!(!SCRIPT.contains("\n *"), "a comment of several lines");
    for kept in ["let waitsSince = -PATIENCE_MS;\n", begins_with_comment] {
        assert!(SCRIPT.contains(kept), "{kept}");
    }
    assert!(
        SCRIPT.trim_start().starts_with("const region = ") && SCRIPT.ends_with("\n"),
        "all files"
    );
}

#[test]
fn address_of_an_asset_names_its_contents() {
    for asset in Asset::ALL {
        let address = asset.to_string();
        assert_eq!(Route::of("GET", &address), Ok(Route::Get(WebPage::Asset(asset))));
        assert_eq!(WebPage::Asset(asset).to_string(), address);
        let (path, version) = address.split_once("?v=").expect("a version");
        let another: alloc::string::String = version.chars().rev().collect();
        for wrong in ["", "0", &another, &version.to_uppercase(), &alloc::format!("0{version}")] {
            let is_same = wrong == version;
            assert!(
                is_same || Route::of("GET", &alloc::format!("{path}?v={wrong}")).is_err(),
                "{wrong}"
            );
        }
        assert!(Route::of("GET", path).is_err());
    }
    assert_ne!(crate::assets::digest(STYLE.as_bytes()), crate::assets::digest(SCRIPT.as_bytes()));
    assert_eq!(crate::assets::digest(b"foobar"), 0x85944171f73967e8, "the published test vector");
}

#[test]
fn only_pages_of_a_session_load_the_script() {
    for (name, page) in all(Words::MILD) {
        let own = alloc::format!("script[type=module][src='{}']", Asset::Script);
        let expected = usize::from(!["login", "refused"].contains(&name));
        assert_eq!(count(&parsed(&page), "script"), expected, "{name}");
        assert_eq!(count(&parsed(&page), &own), expected, "{name}");
    }
}

#[test]
fn script_has_the_mailbox_numbers_of_the_store() {
    let news = include_str!("../../static/news.js");
    let numbers = alloc::format!(
        "const [OUTBOX, TRASH] = [\"{}\", \"{}\"];",
        store::OUTBOX.0,
        store::TRASH.0
    );
    assert!(news.contains(&numbers), "{numbers}");
}
